//! The meeting of a rank's images: the last one to call takes the collective, or the barrier, to the other ranks.

use super::images::{Layout, Part, Together};
use std::collections::VecDeque;
use std::sync::Arc;
use vgasnet_protocol::barrier::{Misuse, Name};
use vgasnet_protocol::collectives::plan::Plan;
use vgasnet_settings::UserError;

/// The images of a rank, in a job with several images on some rank.
#[derive(Debug)]
pub(super) struct Meeting {
    pub layout: Arc<Layout>,
    rank: u32,
    /// Number of collectives called by each image of this rank.
    called: Box<[u64]>,
    /// Number of collectives called by all images.
    complete: u64,
    /// Collectives called by some images.
    waiting: VecDeque<Gathering>,
    pub barrier: ImageBarrier,
}

/// A collective called by some images of this rank.
#[derive(Debug)]
struct Gathering {
    plan: Plan,
    /// The root's image.
    root: u32,
    parts: Box<[Option<Part>]>,
}

impl Meeting {
    pub fn new(layout: Layout, rank: u32) -> Meeting {
        let images = layout.of(rank).len();
        Meeting {
            layout: Arc::new(layout),
            rank,
            called: vec![0; images].into(),
            complete: 0,
            waiting: VecDeque::new(),
            barrier: ImageBarrier::new(images),
        }
    }

    /// Number of images of this rank.
    pub fn images(&self) -> usize {
        self.called.len()
    }

    /// Whether no image waits for another one.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.barrier.is_idle()
    }

    /// Image `nth` of this rank calls a collective, which is `plan` for the rank. Returns it if this is the last image.
    ///
    /// # Errors
    /// Other images have called another collective.
    pub fn call(
        &mut self,
        nth: usize,
        plan: &Plan,
        (root, block_bytes): (u32, usize),
        part: Part,
    ) -> Result<Option<Together>, UserError> {
        let at = (self.called[nth] - self.complete) as usize;
        if at == self.waiting.len() {
            let parts = vec![None; self.called.len()].into();
            self.waiting.push_back(Gathering { plan: *plan, root, parts });
        }
        let gathering = &mut self.waiting[at];
        if (gathering.plan, gathering.root) != (*plan, root) {
            let image = self.layout.of(self.rank).start as usize + nth;
            return Err(UserError::new(format!(
                "image {image} calls another collective than the other images of its rank, or of another size, root or \
                 synchronisation; all images call the same ones in the same order"
            )));
        }
        gathering.parts[nth] = Some(part);
        self.called[nth] += 1;
        if gathering.parts.iter().any(Option::is_none) {
            return Ok(None);
        }
        let Gathering { parts, .. } = self.waiting.pop_front().expect("images call in order, so it is the first");
        self.complete += 1;
        let (layout, kind) = (Arc::clone(&self.layout), plan.shape.kind);
        let parts = parts.iter().copied().flatten().collect();
        Ok(Some(Together { layout, rank: self.rank, kind, root, block_bytes, parts }))
    }
}

/// The barrier of all images, as a rank sees it.
#[derive(Debug)]
pub(super) struct ImageBarrier {
    /// For each image the number of barriers begun and ended, and its name for the last one.
    begun: Box<[u64]>,
    ended: Box<[u64]>,
    names: Box<[Name]>,
    /// The joined name of the images that have begun.
    name: Name,
    /// Number of barriers begun by all images, and notified to the other ranks.
    notified: u64,
    /// Number of these barriers at which all ranks have arrived.
    released: u64,
    /// The name of the last one.
    outcome: Name,
    /// An image is asking for the release of the next one.
    is_asked: bool,
}

impl ImageBarrier {
    fn new(images: usize) -> ImageBarrier {
        ImageBarrier {
            begun: vec![0; images].into(),
            ended: vec![0; images].into(),
            names: vec![Name::Anonymous; images].into(),
            name: Name::Anonymous,
            notified: 0,
            released: 0,
            outcome: Name::Anonymous,
            is_asked: false,
        }
    }

    fn is_idle(&self) -> bool {
        self.begun == self.ended
    }

    /// An image begins a barrier. If it is the last one, returns the name to notify the other ranks with; then the
    /// caller calls [`ImageBarrier::on_notified`].
    ///
    /// # Errors
    /// [`Misuse::NotifiedTwice`] if it has not ended the one before.
    pub fn notify(&mut self, nth: usize, name: Name) -> Result<Option<Name>, Misuse> {
        if self.begun[nth] != self.ended[nth] {
            return Err(Misuse::NotifiedTwice);
        }
        let is_first = self.begun.iter().all(|begun| *begun == self.notified);
        self.name = if is_first { name } else { self.name.join(name) };
        self.names[nth] = name;
        self.begun[nth] += 1;
        Ok(self.begun.iter().all(|begun| *begun > self.notified).then_some(self.name))
    }

    /// The other ranks have been notified.
    pub fn on_notified(&mut self) {
        self.notified += 1;
    }

    /// The name to ask the ranks' barrier with, if it is to be asked and no image does; then the caller calls
    /// [`ImageBarrier::on_answer`].
    pub fn ask(&mut self) -> Option<Name> {
        let is_to_be_asked = self.released < self.notified && !self.is_asked;
        self.is_asked |= is_to_be_asked;
        is_to_be_asked.then_some(self.name)
    }

    /// The outcome of asking: the name with which the ranks' barrier is released, or `None`.
    pub fn on_answer(&mut self, released: Option<Name>) {
        self.is_asked = false;
        if let Some(outcome) = released {
            self.outcome = outcome;
            self.released += 1;
        }
    }

    /// Whether [`ImageBarrier::finish`] or [`ImageBarrier::ask`] has something to do for an image, given whether the
    /// ranks' barrier is released.
    pub fn is_worth_asking(&self, nth: usize, is_released: bool) -> bool {
        let is_to_be_asked = self.released < self.notified && !self.is_asked;
        self.released >= self.begun[nth] || is_released && is_to_be_asked
    }

    /// Ends a barrier for an image, if all have arrived: whether their names match each other, and the name given at
    /// the wait.
    ///
    /// # Errors
    /// [`Misuse::NotNotified`] if it has not begun one.
    pub fn finish(&mut self, nth: usize, name: Name) -> Result<Option<bool>, Misuse> {
        if self.begun[nth] == self.ended[nth] {
            return Err(Misuse::NotNotified);
        }
        if self.released < self.begun[nth] {
            return Ok(None);
        }
        self.ended[nth] += 1;
        Ok(Some(self.outcome != Name::Mismatch && self.names[nth].at_wait(name, self.outcome) != Name::Mismatch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_image_takes_the_barrier_to_the_other_ranks() {
        let mut barrier = ImageBarrier::new(2);
        assert_eq!(barrier.finish(0, Name::Id(1)), Err(Misuse::NotNotified));
        assert_eq!(barrier.notify(0, Name::Id(1)), Ok(None));
        assert_eq!(barrier.notify(0, Name::Id(1)), Err(Misuse::NotifiedTwice));
        assert!(barrier.ask().is_none() && !barrier.is_worth_asking(0, true));
        assert_eq!(barrier.notify(1, Name::Anonymous), Ok(Some(Name::Id(1))));
        barrier.on_notified();
        assert_eq!(barrier.ask(), Some(Name::Id(1)));
        assert!(barrier.ask().is_none() && barrier.finish(1, Name::Anonymous) == Ok(None));
        barrier.on_answer(None);
        assert_eq!(barrier.ask(), Some(Name::Id(1)));
        barrier.on_answer(Some(Name::Id(1)));
        // One image may begin the next barrier while the other one has not ended this one.
        assert_eq!(barrier.finish(0, Name::Id(1)), Ok(Some(true)));
        assert_eq!(barrier.notify(0, Name::Id(2)), Ok(None));
        assert_eq!(barrier.finish(0, Name::Id(2)), Ok(None));
        assert_eq!(barrier.finish(1, Name::Id(7)), Ok(Some(false)));
        assert_eq!(barrier.notify(1, Name::Id(3)), Ok(Some(Name::Mismatch)));
    }
}
