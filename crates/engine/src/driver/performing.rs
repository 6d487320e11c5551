//! Performs work items without the engine's lock, and reports their completion.

use super::Fail;
use super::shared_engine::SharedEngine;
use super::sleepers::{Awaited, Happened};
use crate::outbox;
use crate::request::{Completion, CompletionId, Completions, FaultId, Mailbox, Part, Waited};
use crate::work::{BlockCopies, Delivery, Shipment, Work};
use std::sync::Arc;
use vgasnet_conduit::{Busy, Conduit, Urgency};
use vgasnet_memory::{AddressSpace, SegmentView, mapping_refused};
use vgasnet_protocol::coherence::{Access, Cause, Event, FrameId, PageId};
use vgasnet_settings::UserError;

/// Performs work items without the engine's lock.
pub(super) struct Performer {
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    completions: Arc<Completions>,
    fail: Fail,
}

/// Receivers of completions: the engine, faulting threads, and the events for other waiting threads.
pub(super) struct Receivers<'a> {
    engine: &'a SharedEngine,
    mailbox: &'a Mailbox,
    happened: Happened,
}

impl<'a> Receivers<'a> {
    pub(super) fn new(engine: &'a SharedEngine, mailbox: &'a Mailbox) -> Receivers<'a> {
        Receivers { engine, mailbox, happened: Happened::default() }
    }

    /// The events of completed parts. Threads that wait for them have to check their conditions.
    pub(super) fn happened(&self) -> Happened {
        self.happened
    }
}

impl Performer {
    pub(super) fn new(
        conduit: Arc<dyn Conduit>,
        space: Arc<AddressSpace>,
        completions: Arc<Completions>,
        fail: Fail,
    ) -> Performer {
        Performer { conduit, space, completions, fail }
    }

    /// Reports an error of a call and ends the job.
    pub(super) fn end_job_by(&self, call: &str, line: &UserError) -> ! {
        (self.fail)(call, line)
    }

    /// Counts a part in its completion.
    pub(super) fn count(&self, part: &Part) {
        if let Completion::Counted(completion) | Completion::Then(completion, _) = &part.completion {
            self.completions.add(*completion);
        }
    }

    /// Tells this rank's engine that a closing page has been unpinned.
    #[cold]
    pub(super) fn notify_unpinned(&self) {
        self.space.own.table.notify_unpinned();
        self.conduit.wake(self.space.rank);
    }

    /// Undoes one pin of a page of the own segment.
    pub(super) fn unpin_own(&self, index: u32) {
        if self.view().is_some_and(|view| view.unpin(index)) {
            self.notify_unpinned();
        }
    }

    fn view(&self) -> Option<&SegmentView> {
        self.space.view.as_deref()
    }

    /// Performs a work item. Returns whether it was done; if not, the conduit had no room and the engine has the item
    /// again.
    ///
    /// Out of line: a faulting thread drives on its own stack, which may be small.
    #[inline(never)]
    pub(super) fn perform(&self, work: Work, to: &mut Receivers<'_>) -> bool {
        let taken = match work {
            Work::Copies { page, frame, parts } => {
                self.copy(page, frame, parts, to);
                return true;
            }
            Work::Clear { page, frame } => {
                let pool = &self.space.own.pool;
                debug_assert!(!self.space.own.table.is_pinned(frame), "nobody uses {frame:?} before {page:?} is open");
                // SAFETY: the engine has reserved the frame for a page that is not open yet.
                unsafe { pool.frame(frame).write_bytes(0, pool.page_bytes()) };
                to.engine.lock().complete(Event::Cleared(page));
                return true;
            }
            Work::Fill { page, frame, part } => {
                self.fill(page, frame, *part, to);
                return true;
            }
            Work::Unmap { page, frame } => {
                self.unmap(page, frame);
                to.engine.lock().complete(Event::Closed(page));
                return true;
            }
            Work::UnmapUnused { pages } => {
                self.view().expect("only a rank with a segment has mapped pages").unmap_unused(&pages);
                return true;
            }
            Work::GiveBack { index } => {
                self.give_back(index);
                return true;
            }
            Work::Blocks(copies) => {
                self.copy_blocks(*copies, to);
                return true;
            }
            Work::LayOver { operation, blocks } => {
                blocks.run();
                to.engine.lock().end_lay_over(operation);
                return true;
            }
            Work::Deliver(delivery) => {
                self.deliver(*delivery, to);
                return true;
            }
            Work::Fail { parts, cause } => {
                parts.into_iter().for_each(|part| self.fail_part(part, cause, to));
                return true;
            }
            Work::Ship(ref shipment) => self.send(shipment),
            Work::Put(ref transfer) => self.conduit.put(transfer),
            Work::Get(ref transfer) => self.conduit.get(transfer),
        };
        if taken == Err(Busy) {
            to.engine.lock().put_back(work);
        }
        taken.is_ok()
    }

    fn copy(&self, page: PageId, frame: FrameId, parts: Vec<Part>, to: &mut Receivers<'_>) {
        let own = &self.space.own;
        debug_assert!(!parts.is_empty() && own.table.is_pinned(frame), "{page:?} is pinned for the parts");
        for part in &parts {
            // SAFETY: the engine pinned the page for these parts with the access that they need. The address space cut
            // their pieces, and the client's memory belongs to them until it has synced them.
            unsafe { part.copy.run(own, frame, &part.piece) };
            if let Some(access) = part.copy.mapped_access() {
                self.map_and_pin(page, frame, access);
            }
        }
        if own.table.unpin(frame) {
            self.notify_unpinned();
        }
        parts.into_iter().for_each(|part| self.complete(part.completion, to));
    }

    /// Performs the copy of a part that overwrites a page.
    fn fill(&self, page: PageId, frame: FrameId, part: Part, to: &mut Receivers<'_>) {
        assert!(part.overwrites(self.space.page_bytes()), "the part overwrites all of {page:?}");
        debug_assert!(!self.space.own.table.is_pinned(frame), "nobody uses {frame:?} before {page:?} is open");
        // SAFETY: the engine has reserved the frame for a page that is not open yet. The piece is the whole page, and
        // the client's memory belongs to it until the client has synced it.
        unsafe { part.copy.run(&self.space.own, frame, &part.piece) };
        to.engine.lock().complete(Event::Filled(page));
        self.complete(part.completion, to);
    }

    /// Delivers the result of a shipped part.
    #[inline(never)]
    fn deliver(&self, Delivery { part, bytes }: Delivery, to: &mut Receivers<'_>) {
        let expected = part.piece.len_bytes;
        assert!(
            bytes.is_empty() || bytes.len() == expected,
            "{} bytes were read for a part of {expected}",
            bytes.len()
        );
        // SAFETY: the client's memory is as long as the piece and belongs to the part until the client has synced it.
        unsafe { part.copy.deliver(&bytes) };
        self.complete(part.completion, to);
    }

    #[inline(never)]
    fn send(&self, shipment: &Shipment) -> Result<(), Busy> {
        let sent = self.conduit.send(shipment.to, &shipment.heads, &shipment.collect(), Urgency::Now);
        sent.inspect(|()| outbox::count_sent(&shipment.heads))
    }

    /// Performs the copies of a job on blocks.
    #[inline(never)]
    fn copy_blocks(&self, copies: BlockCopies, to: &mut Receivers<'_>) {
        if let Some(cause) = copies.failed {
            to.engine.lock().end_on_blocks(copies.job, false);
            return self.fail_part(copies.part, cause, to);
        }
        debug_assert_eq!(
            copies.places.iter().map(|place| place.len_bytes).sum::<usize>(),
            copies.part.piece.len_bytes,
            "the blocks have all bytes of the part"
        );
        for place in &copies.places {
            // SAFETY: the block belongs to the job until the job ends, and its bytes are present. The client's memory
            // is as long as the piece and belongs to the part until the client has synced it.
            unsafe { copies.part.copy.run_at(place.memory, place.start_bytes, place.len_bytes) };
        }
        let is_copied = copies.copy_into_segment();
        to.engine.lock().end_on_blocks(copies.job, is_copied);
        match copies.part.completion {
            // The block is there, and the page is not pinned.
            Completion::Fault(fault) => Self::release(fault, to),
            completion => self.complete(completion, to),
        }
    }

    /// Releases a faulting thread whose block is mapped or copied.
    fn release(fault: FaultId, to: &mut Receivers<'_>) {
        let awaited = Awaited::page(fault.wants().0);
        if to.mailbox.release(fault) == Waited::Looking {
            to.happened.add(awaited);
        }
    }

    /// Reports a failed part. Only parts of files fail: if a segment's file fails, the job ends.
    #[inline(never)]
    fn fail_part(&self, part: Part, cause: Cause, to: &mut Receivers<'_>) {
        match part.completion {
            Completion::Counted(completion) | Completion::Then(completion, _) => {
                to.engine.lock().note_file_error(part.piece.page.space, cause);
                self.completions.fail(completion, cause.0);
                self.complete(Completion::Counted(completion), to);
            }
            Completion::Served(id) => to.engine.lock().on_served_failed(id, cause),
            Completion::Nobody => {}
            Completion::Fault(_) => unreachable!("files have no addresses"),
        }
    }

    /// Completes a part.
    fn complete(&self, completion: Completion, to: &mut Receivers<'_>) {
        match completion {
            Completion::Counted(completion) => self.count_down(completion, &mut to.happened),
            Completion::Then(completion, continuation) => {
                let remaining = continuation.run(&mut |other| self.count_down(other, &mut to.happened));
                if let Some((piece, copy)) = remaining {
                    let part = Part { piece, copy, completion: Completion::Counted(completion) };
                    self.count(&part);
                    to.engine.lock().submit(part);
                }
                self.count_down(completion, &mut to.happened);
            }
            Completion::Served(id) => to.engine.lock().on_served(id),
            Completion::Nobody => {}
            Completion::Fault(fault) => {
                let awaited = Awaited::page(fault.wants().0);
                match to.mailbox.serve(fault) {
                    Waited::Looking => to.happened.add(awaited),
                    Waited::Asleep => {}
                    Waited::Gone(index) => self.unpin_own(index),
                }
            }
        }
    }

    fn count_down(&self, completion: CompletionId, happened: &mut Happened) {
        if self.completions.finish(completion) {
            happened.add(Awaited::completion(completion));
        }
    }

    /// Maps a page in the segment, and adds a pin for the requesting thread or client.
    fn map_and_pin(&self, page: PageId, frame: FrameId, access: Access) {
        debug_assert!(self.space.is_own(page), "{page:?} of another space has no address");
        let view = self.view().expect("pages are mapped only in a rank that has a segment");
        if let Err(errno) = view.map_and_pin(page.index, frame, access) {
            self.end_job_by("engine", &mapping_refused("map", errno));
        }
    }

    fn unmap(&self, page: PageId, frame: FrameId) {
        debug_assert!(self.space.is_own(page), "{page:?} of another space has no address");
        let view = self.view().expect("pages are mapped only in a rank that has a segment");
        if let Err(errno) = view.unmap(page, frame) {
            self.end_job_by("engine", &mapping_refused("unmap", errno));
        }
    }

    /// Unmaps a page of the own segment and returns its frame, if a neighbour has lent it.
    pub(super) fn give_back(&self, index: u32) {
        if let Some(Err(errno)) = self.view().map(|view| view.give_back(index)) {
            self.end_job_by("engine", &mapping_refused("unmap", errno));
        }
    }
}
