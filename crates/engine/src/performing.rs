//! Performs work items without the engine's lock, and reports their completion.

use super::sleepers::{Awaited, Happened};
use super::{BlockCopies, Delivery, Driver, Shipment, Work, outbox};
use crate::request::{Completion, CompletionId, FaultId, Part, Waited};
use vgasnet_conduit::{Busy, Urgency};
use vgasnet_memory::mapping_refused;
use vgasnet_protocol::coherence::{Access, Cause, Event, FrameId, PageId};

impl Driver {
    /// Performs a work item. Returns whether it was done; if not, the conduit had no room and the engine has the item
    /// again.
    ///
    /// Out of line: a faulting thread drives on its own stack, which may be small.
    #[inline(never)]
    pub(super) fn perform(&self, work: Work) -> bool {
        let taken = match work {
            Work::Copies { page, frame, parts } => {
                self.copy(page, frame, parts);
                return true;
            }
            Work::Clear { page, frame } => {
                let pool = &self.space.own.pool;
                // SAFETY: the engine has reserved the frame for a page that is not open yet.
                unsafe { pool.frame(frame).write_bytes(0, pool.page_bytes()) };
                self.engine().complete(Event::Cleared(page));
                return true;
            }
            Work::Fill { page, frame, part } => {
                self.fill(page, frame, *part);
                return true;
            }
            Work::Unmap { page, frame } => {
                self.unmap(page, frame);
                self.engine().complete(Event::Closed(page));
                return true;
            }
            Work::UnmapUnused { page, frame } => {
                self.view().expect("only a rank with a segment has mapped pages").unmap_unused(page, frame);
                return true;
            }
            Work::GiveBack { index } => {
                self.give_back(index);
                return true;
            }
            Work::Blocks(copies) => {
                self.copy_blocks(*copies);
                return true;
            }
            Work::LayOver { operation, blocks } => {
                blocks.run();
                self.engine().end_lay_over(operation);
                return true;
            }
            Work::Deliver(delivery) => {
                self.deliver(*delivery);
                return true;
            }
            Work::Fail { parts, cause } => {
                parts.into_iter().for_each(|part| self.fail_part(part, cause));
                return true;
            }
            Work::Ship(ref shipment) => self.send(shipment),
            Work::Put(ref transfer) => self.conduit.put(transfer),
            Work::Get(ref transfer) => self.conduit.get(transfer),
        };
        if taken == Err(Busy) {
            self.engine().put_back(work);
        }
        taken.is_ok()
    }

    fn copy(&self, page: PageId, frame: FrameId, parts: Vec<Part>) {
        let own = &self.space.own;
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
        let mut happened = Happened::default();
        parts.into_iter().for_each(|part| self.complete(part.completion, &mut happened));
        if !happened.is_nothing() {
            self.tell(happened);
        }
    }

    /// Performs the copy of a part that overwrites a page.
    fn fill(&self, page: PageId, frame: FrameId, part: Part) {
        // SAFETY: the engine has reserved the frame for a page that is not open yet. The piece is the whole page, and
        // the client's memory belongs to it until the client has synced it.
        unsafe { part.copy.run(&self.space.own, frame, &part.piece) };
        self.engine().complete(Event::Filled(page));
        self.finish_part(part.completion);
    }

    /// Delivers the result of a shipped part.
    #[inline(never)]
    fn deliver(&self, Delivery { part, bytes }: Delivery) {
        // SAFETY: the client's memory is as long as the piece and belongs to the part until the client has synced it.
        unsafe { part.copy.deliver(&bytes) };
        self.finish_part(part.completion);
    }

    #[inline(never)]
    fn send(&self, shipment: &Shipment) -> Result<(), Busy> {
        let sent = self.conduit.send(shipment.to, &shipment.heads, &shipment.collect(), Urgency::Now);
        sent.inspect(|()| outbox::count_sent(&shipment.heads))
    }

    /// Performs the copies of a job on blocks.
    #[inline(never)]
    fn copy_blocks(&self, copies: BlockCopies) {
        if let Some(cause) = copies.failed {
            self.engine().end_on_blocks(copies.job);
            return self.fail_part(copies.part, cause);
        }
        for place in &copies.places {
            // SAFETY: the block belongs to the job until the job ends, and its bytes are present. The client's memory
            // is as long as the piece and belongs to the part until the client has synced it.
            unsafe { copies.part.copy.run_at(place.memory, place.start_bytes, place.len_bytes) };
        }
        self.engine().end_on_blocks(copies.job);
        match copies.part.completion {
            // The block is mapped, and the page is not pinned.
            Completion::Fault(fault) => self.release(fault),
            completion => self.finish_part(completion),
        }
    }

    /// Releases a faulting thread whose block is mapped.
    fn release(&self, fault: FaultId) {
        let awaited = Awaited::page(fault.wants().0);
        if self.mailbox.release(fault) == Waited::Looking {
            self.tell(Happened::of(awaited));
        }
    }

    /// Reports a failed part. Only parts of files fail: if a segment's file fails, the job ends.
    #[inline(never)]
    fn fail_part(&self, part: Part, cause: Cause) {
        match part.completion {
            Completion::Counted(completion) | Completion::Then(completion, _) => {
                self.engine().note_file_error(part.piece.page.space, cause);
                self.completions().fail(completion, cause.0);
                self.finish_part(Completion::Counted(completion));
            }
            Completion::Served(id) => self.engine().on_served_failed(id, cause),
            Completion::Fault(_) => unreachable!("files have no addresses"),
        }
    }

    /// Completes a part and wakes the threads waiting for it.
    fn finish_part(&self, completion: Completion) {
        let mut happened = Happened::default();
        self.complete(completion, &mut happened);
        if !happened.is_nothing() {
            self.tell(happened);
        }
    }

    /// Completes a part, and adds its effects to `happened`.
    fn complete(&self, completion: Completion, happened: &mut Happened) {
        match completion {
            Completion::Counted(completion) => self.count_down(completion, happened),
            Completion::Then(completion, continuation) => {
                let remaining = continuation.run(&mut |other| self.count_down(other, happened));
                if let Some((piece, copy)) = remaining {
                    let part = Part { piece, copy, completion: Completion::Counted(completion) };
                    self.count(&part);
                    self.engine().submit(part);
                }
                self.count_down(completion, happened);
            }
            Completion::Served(id) => self.engine().on_served(id),
            Completion::Fault(fault) => {
                let awaited = Awaited::page(fault.wants().0);
                match self.mailbox.serve(fault) {
                    Waited::Looking => happened.add(awaited),
                    Waited::Asleep => {}
                    Waited::Gone(index) => self.unpin_own(index),
                }
            }
        }
    }

    fn count_down(&self, completion: CompletionId, happened: &mut Happened) {
        if self.completions().finish(completion) {
            happened.add(Awaited::completion(completion));
        }
    }

    /// Maps a page in the segment, and adds a pin for the requesting thread or client.
    fn map_and_pin(&self, page: PageId, frame: FrameId, access: Access) {
        let view = self.view().expect("pages are mapped only in a rank that has a segment");
        if let Err(errno) = view.map_and_pin(page.index, frame, access) {
            self.fail("engine", &mapping_refused("map", errno));
        }
    }

    fn unmap(&self, page: PageId, frame: FrameId) {
        let view = self.view().expect("pages are mapped only in a rank that has a segment");
        if let Err(errno) = view.unmap(page, frame) {
            self.fail("engine", &mapping_refused("unmap", errno));
        }
    }

    /// Unmaps a page of the own segment and returns its frame, if a neighbour has lent it.
    pub fn give_back(&self, index: u32) {
        if let Some(Err(errno)) = self.view().map(|view| view.give_back(index)) {
            self.fail("engine", &mapping_refused("unmap", errno));
        }
    }
}
