//! How the engine carries out the protocol's actions.

use super::{Engine, pinning};
use crate::Work;
use crate::paging::{CloseStep, ClosedPage};
use crate::queue::Todo;
use crate::request::{Copy, Part};
use vgasnet_conduit::{Token, Transfer};
use vgasnet_protocol::coherence::{Access, Action, Event, FrameId, Outgoing, PageId, Waiter};
use vgasnet_protocol::guests::GuestMessage;

impl Engine {
    /// Carries out an action, or queues it for the storage, the conduit or another thread.
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Send { to, message } => {
                self.paging.on_sent(&message, &self.protocol.cache);
                if to == self.space.rank {
                    self.queue.raise(Event::Message { from: to, message });
                } else {
                    self.outbox.send_together(to, &message.encode());
                }
            }
            Action::Open { page, frame, access, waiters } => self.open(page, frame, access, &waiters),
            Action::Close(page) => {
                if !self.paging.defer_close(page) {
                    self.close(page);
                }
            }
            Action::Transfer(outgoing) => self.transfer(outgoing),
            Action::Clear { page, frame } => {
                if self.paging.clear(frame) {
                    self.queue.raise(Event::Cleared(page));
                } else {
                    self.queue.add(Work::Clear { page, frame });
                }
            }
            Action::Fill { page, frame, waiter } => {
                let part = Box::new(self.waiting.take(waiter));
                debug_assert_eq!(part.piece.page, page, "the part waits for the page");
                self.queue.add(Work::Fill { page, frame, part });
            }
            Action::Load { page, to, frame, priority } => {
                debug_assert!(self.is_home(page), "{page:?} is read by its home");
                self.storage.load(page, to, frame, priority);
            }
            Action::Store { page, from, frame, priority } => {
                debug_assert!(self.is_home(page), "{page:?} is written by its home");
                self.storage.store(page, from, frame, priority);
            }
            Action::Hurry { page, priority } => self.storage.raise_priority(page, priority),
            Action::GiveUp(page) => {
                let offered_by = self.paging.on_given_up(page);
                offered_by.into_iter().for_each(|rank| self.decline(rank, page));
            }
            Action::Fail { page, frame, waiters, cause } => {
                let offered_by = self.paging.on_given_up(page);
                offered_by.into_iter().for_each(|rank| self.decline(rank, page));
                self.fail(frame, &waiters, cause);
            }
            Action::Unwritten { page, cause } => self.on_unwritten(page, cause),
            Action::Recalled { page, cause } => self.on_recalled(page, cause),
            Action::Dismissed(page) => self.paging.on_dismissed(page),
        }
    }

    /// Opens a page and queues the operations waiting for it.
    fn open(&mut self, page: PageId, frame: FrameId, access: Access, waiters: &[Waiter]) {
        let is_wanted = !waiters.is_empty();
        debug_assert_eq!(self.protocol.cache.page_in(frame), Some(page), "{frame:?} has the page that is opened");
        let opened = self.paging.open(page, frame, access, is_wanted);
        if access == Access::Write {
            self.on_dirtied(page);
        }
        if let Some(rank) = opened.kept_for {
            self.outbox.send(rank, &GuestMessage::Kept { page }.encode());
        }
        if opened.is_ahead {
            self.page_statistics.on_ahead(page, is_wanted);
        }
        if is_wanted {
            let parts = self.take_parts(page, waiters);
            self.queue.add(Work::Copies { page, frame, parts });
        }
    }

    fn transfer(&mut self, outgoing: Outgoing) {
        let known = self.protocol.cache.page_in(outgoing.from);
        debug_assert_eq!(known, Some(outgoing.page), "the page stays in its frame until it is sent");
        assert_ne!(outgoing.forward.to, self.space.rank, "{:?} is sent to another rank", outgoing.page);
        let pool = &self.space.own.pool;
        let token = self.waiting.begin_transfer(outgoing);
        self.queue.add(Work::Put(Transfer {
            peer: outgoing.forward.to,
            peer_offset_bytes: pool.offset_bytes(outgoing.forward.frame),
            own_offset_bytes: pool.offset_bytes(outgoing.from),
            len_bytes: pool.page_bytes(),
            token,
        }));
    }

    /// A page has been written into another rank's frame. A rank of this host also learns which blocks the file may
    /// lack.
    pub(super) fn on_transferred(&mut self, token: Token) {
        let outgoing = self.waiting.end_transfer(token);
        debug_assert!(
            self.protocol.cache.frame_of(outgoing.page) == Some(outgoing.from),
            "the page stays until it is sent"
        );
        let (blocks, forward) = (&self.space.own.blocks, &outgoing.forward);
        if let Some(its) = self.space.blocks(forward.to) {
            blocks.pass_on(outgoing.from, its, forward.frame);
        }
        if forward.access == Access::Write {
            // The frame may be reserved for another copy of the page.
            blocks.mark_all(outgoing.from);
        }
        self.handle(Event::Transferred(outgoing));
    }

    fn take_parts(&mut self, page: PageId, waiters: &[Waiter]) -> Vec<Part> {
        let parts = self.waiting.take_all(waiters);
        debug_assert!(parts.iter().all(|part| part.piece.page == page), "the parts wait for {page:?}");
        for _ in parts.iter().filter(|part| matches!(part.copy, Copy::Pin(_))) {
            self.paging.on_pinned(page.index);
        }
        parts
    }

    /// Closes a page, now or once it is unpinned and given back.
    pub(super) fn close(&mut self, page: PageId) {
        match self.paging.close(page) {
            CloseStep::Closed(closed) => finish_close(closed, self.queue.todo()),
            CloseStep::Pinned { asks_back: true } => pinning::ask_back(&mut self.outbox, page),
            CloseStep::Pinned { asks_back: false } => {}
        }
    }

    /// Looks for closing pages that are closed by now. Returns whether there was one.
    pub(super) fn poll_closing(&mut self) -> bool {
        let todo = self.queue.todo();
        self.paging.poll_closing(|closed| finish_close(closed, todo))
    }
}

/// A closed page is unmapped before the protocol is told.
fn finish_close(closed: ClosedPage, todo: &mut Todo) {
    let ClosedPage { page, frame, is_mapped } = closed;
    if is_mapped {
        todo.add(Work::Unmap { page, frame });
    } else {
        todo.raise(Event::Closed(page));
    }
}
