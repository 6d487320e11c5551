//! Collectives and barriers called by images.

use super::Coll;
use super::calls::{Call, Caller, check, check_bytes};
use super::drive::{Bases, Memory};
use super::images::{Layout, Part, Together};
use super::meeting::{ImageBarrier, Meeting};
use super::operators::Reduction;
use std::sync::Arc;
use vgasnet_engine::request::CompletionId;
use vgasnet_protocol::barrier::{Misuse, Name};
use vgasnet_protocol::collectives::TEAM_ALL;
use vgasnet_protocol::collectives::plan::{Plan, Shape};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::Signalproof;

/// Bytes of a reduction's elements combined at once.
const OPERAND_BYTES: usize = 32 << 10;

impl Coll {
    /// Sets the number of images of each rank, and the calling image. Each image calls this with the same numbers.
    ///
    /// # Errors
    /// A rank without image, an image of another rank, or other numbers while images wait for one another.
    pub fn set_images(&self, counts: &[u32], image: u32) -> Result<(), UserError> {
        let rank = self.rank();
        let layout = Layout::new(counts)?;
        let own = layout.of(rank);
        if !own.contains(&image) {
            let last = own.end - 1;
            return Err(UserError::new(format!(
                "image {image} of rank {rank}; the images of this rank are {} to {last}",
                own.start
            )));
        }
        self.replace_layout(Some(layout))
    }

    /// Makes each rank one image.
    ///
    /// # Errors
    /// Images wait for one another.
    pub fn set_no_images(&self) -> Result<(), UserError> {
        self.replace_layout(None)
    }

    fn replace_layout(&self, layout: Option<Layout>) -> Result<(), UserError> {
        let layout = layout.filter(|layout| !layout.is_plain());
        let mut meeting = Signalproof::lock(&self.meeting);
        if meeting.as_ref().map(|its| &*its.layout) == layout.as_ref() {
            return Ok(());
        }
        if meeting.as_ref().is_some_and(|its| !its.is_idle()) {
            return Err(UserError::new(
                "other numbers of images while images of this rank are in a collective or barrier; call vgasnet_coll_init \
                 with the same numbers in each of them",
            ));
        }
        *meeting = layout.map(|layout| Meeting::new(layout, self.rank()));
        Ok(())
    }

    fn rank(&self) -> u32 {
        self.am.ops().space().rank.0
    }

    /// The images of a team: of the team of all ranks, if some rank has several.
    pub(super) fn layout(&self, team: u64) -> Option<Arc<Layout>> {
        let meeting = Signalproof::lock(&self.meeting);
        meeting.as_ref().filter(|_| team == TEAM_ALL).map(|its| Arc::clone(&its.layout))
    }

    /// Whether some rank has several images.
    pub fn has_images(&self) -> bool {
        Signalproof::lock(&self.meeting).is_some()
    }

    /// The caller of a collective of a team, in a thread with this image number, if it has one.
    ///
    /// # Errors
    /// There is no such team; or its ranks have images, and the thread is none of this rank's.
    pub fn caller(&self, team: u64, image: Option<u32>) -> Result<Caller, UserError> {
        let Some(layout) = self.layout(team) else {
            return Ok(Caller { me: self.look_up(team, |team| team.me)?, nth: 0 });
        };
        let own = layout.of(self.rank());
        let me = if own.len() == 1 { Some(own.start) } else { image.filter(|image| own.contains(image)) };
        let me = me.ok_or_else(|| {
            let last = own.end - 1;
            UserError::new(format!(
                "this thread is no image; call vgasnet_coll_init in it first, with one of the images {} to {last} of this rank",
                own.start
            ))
        })?;
        Ok(Caller { me, nth: me - own.start })
    }

    /// Gives a collective to the images of this rank, and to the machine once all of them have called it.
    ///
    /// # Safety
    /// As for [`Coll::enter`].
    pub(super) unsafe fn enter_image(&self, call: &Call, layout: &Layout) -> Result<CompletionId, UserError> {
        check(call, layout.images(), "image")?;
        let plan = self.plan_of_rank(call, layout, call.reduce.map_or(1, |reduction| reduction.element_bytes))?;
        let completion = self.begin();
        let part = Part { source: call.source, destination: call.destination, completion };
        {
            // Held until the machine has it: collectives begin in the order of the images' calls.
            let mut meeting = Signalproof::lock(&self.meeting);
            let its = meeting.as_mut().filter(|its| *its.layout == *layout).ok_or_else(|| {
                UserError::new(
                    "the numbers of images change during this call; let all images call vgasnet_coll_init before",
                )
            })?;
            let called = its.call(call.caller.nth as usize, &plan, (call.root, call.block_bytes), part)?;
            if let Some(together) = called {
                let memory = Memory::of_images(together, call.reduce)?;
                self.with(|machine| machine.start(TEAM_ALL, plan, memory));
            }
        }
        self.driver().poll();
        Ok(completion)
    }

    /// The plan of this rank in a collective of images.
    fn plan_of_rank(&self, call: &Call, layout: &Layout, element_bytes: usize) -> Result<Plan, UserError> {
        let Call { kind, root, block_bytes, .. } = *call;
        let of_images = Shape { kind, me: call.caller.me, ranks: layout.images(), root, block_bytes, element_bytes };
        let shape = layout.shape_of_ranks(of_images, self.rank());
        let shape = shape.ok_or_else(|| UserError::new(format!("{block_bytes} bytes an image are too many")))?;
        check_bytes(shape.block_bytes, shape.ranks, "rank")?;
        Ok(Plan { shape, all_in: call.sync.all_in, all_out: call.sync.all_out, for_images: true })
    }

    /// Copies or reduces the images' input to the source of this rank.
    pub(super) fn collect(&self, together: &Together, bases: &Bases, reduction: Option<Reduction>) {
        match reduction {
            Some(reduction) if together.parts.len() > 1 => self.reduce_images(together, bases.source, &reduction),
            // SAFETY: the clients' memory is valid until the collective is synced, and the copies stay inside it and
            // the collective's own.
            _ => together.collect(bases, &mut |from, to, len_bytes| unsafe { self.copy_memory(from, to, len_bytes) }),
        }
    }

    /// Reduces the images' input, in their order, to `into`, piece by piece.
    fn reduce_images(&self, together: &Together, into: usize, reduction: &Reduction) {
        let element_bytes = reduction.element_bytes;
        let piece_bytes = (OPERAND_BYTES / element_bytes).max(1) * element_bytes;
        let mut operand = vec![0_u128; piece_bytes.min(together.block_bytes).div_ceil(size_of::<u128>())];
        let operand = operand.as_mut_ptr().expose_provenance();
        for start in (0..together.block_bytes).step_by(piece_bytes) {
            let len_bytes = piece_bytes.min(together.block_bytes - start);
            for (nth, part) in together.parts.iter().enumerate() {
                let to = if nth == 0 { into + start } else { operand };
                // SAFETY: the client's memory is valid until the collective is synced. The result has room for a block,
                // and the operand for a piece.
                unsafe { self.copy_memory(part.source + start, to, len_bytes) };
                if nth > 0 {
                    // SAFETY: both are this collective's own memory, and aligned for any type: pieces are whole
                    // elements.
                    unsafe { reduction.combine(into + start, operand, len_bytes) };
                }
            }
        }
    }

    /// Copies the destination of this rank to its images.
    pub(super) fn deliver(&self, together: &Together, bases: &Bases) {
        // SAFETY: the clients' memory is valid until the collective is synced, and the copies stay inside it and the
        // collective's own.
        together.deliver(bases, &mut |from, to, len_bytes| unsafe { self.copy_memory(from, to, len_bytes) });
    }

    /// An image arrives at the barrier of all images.
    ///
    /// # Errors
    /// It has not ended the one before.
    pub fn image_barrier_notify(&self, nth: u32, name: Name) -> Result<(), Misuse> {
        let of_rank = self.with_barrier(nth, |barrier, nth| barrier.notify(nth, name))??;
        if let Some(name) = of_rank {
            self.driver().barrier_notify(name)?;
            self.with_barrier(nth, |barrier, _| barrier.on_notified())?;
            self.driver().notify();
        }
        Ok(())
    }

    /// Whether the names match, once every image has arrived; `None` before.
    ///
    /// # Errors
    /// The image has not arrived.
    pub fn image_barrier_try(&self, nth: u32, name: Name) -> Result<Option<bool>, Misuse> {
        if let Some(of_rank) = self.with_barrier(nth, |barrier, _| barrier.ask())? {
            let released = self.driver().barrier_try(of_rank)?;
            let outcome = |matched| if matched { self.driver().barrier_result() } else { Ok(Name::Mismatch) };
            let outcome = released.map(outcome).transpose()?;
            self.with_barrier(nth, |barrier, _| barrier.on_answer(outcome))?;
            // Other images have slept while this one was asking.
            self.driver().notify();
        } else {
            self.driver().poll();
        }
        self.with_barrier(nth, |barrier, nth| barrier.finish(nth, name))?
    }

    /// Waits until every image has arrived. Returns whether the names match.
    ///
    /// # Errors
    /// The image has not arrived.
    pub fn image_barrier_wait(&self, nth: u32, name: Name) -> Result<bool, Misuse> {
        loop {
            if let Some(matched) = self.image_barrier_try(nth, name)? {
                return Ok(matched);
            }
            let _waiting = stats::wait(Row::WaitBarrier);
            self.driver().wait_until(&|| {
                let is_released = self.driver().barrier_is_released();
                self.with_barrier(nth, |barrier, nth| barrier.is_worth_asking(nth, is_released)).unwrap_or(true)
            });
        }
    }

    /// Uses the barrier of the images of this rank.
    ///
    /// # Errors
    /// The rank no longer has such an image.
    fn with_barrier<R>(&self, nth: u32, body: impl FnOnce(&mut ImageBarrier, usize) -> R) -> Result<R, Misuse> {
        let mut meeting = Signalproof::lock(&self.meeting);
        let its = meeting.as_mut().filter(|its| (nth as usize) < its.images());
        its.map(|its| body(&mut its.barrier, nth as usize)).ok_or(Misuse::NotNotified)
    }
}
