//! How the engine carries out the protocol's actions.

use super::{Engine, Work};
use crate::request::{Copy, Part};
use vgasnet_conduit::{Token, Transfer};
use vgasnet_memory::Closing;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{
    Access, Action, CoherenceBody, CoherenceMessage, Event, FrameId, Outgoing, PageId, ToCache, ToHome, Waiter,
};
use vgasnet_protocol::replacement::FillKind;

impl Engine {
    /// Carries out an action, or queues it for the storage, the conduit or another thread.
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Send { to, message } => {
                self.note_frame(&message);
                if to == self.space.rank {
                    self.queue.raise(Event::Message { from: to, message });
                } else {
                    self.outbox.send_together(to, &message.encode());
                }
            }
            Action::Open { page, frame, access, waiters } => self.open(page, frame, access, &waiters),
            Action::Close(page) => {
                if !(self.space.is_own(page) && self.pins.defer_close(page.index)) {
                    self.close(page);
                }
            }
            Action::Transfer(outgoing) => self.transfer(outgoing),
            Action::Clear { page, frame } => {
                // A page never written is zeros in the file, too.
                self.space.own.blocks.clear(frame);
                // A fresh frame holds zeros already.
                if self.frames.is_zeros(frame) {
                    self.queue.raise(Event::Cleared(page));
                } else {
                    self.queue.add(Work::Clear { page, frame });
                }
            }
            Action::Fill { page, frame, waiter } => {
                let part = Box::new(self.waiting.take(waiter));
                self.queue.add(Work::Fill { page, frame, part });
            }
            Action::Load { page, to, frame, priority } => {
                self.storage.load(page, to, frame, priority);
            }
            Action::Store { page, from, frame, priority } => {
                self.storage.store(page, from, frame, priority);
            }
            Action::Hurry { page, priority } => self.storage.raise_priority(page, priority),
            Action::GiveUp(page) => {
                self.prefetch.on_opened(page);
                self.on_guest_not_come(page);
            }
            Action::Fail { page, frame, waiters, cause } => {
                self.on_guest_not_come(page);
                self.fail(page, frame, &waiters, cause);
            }
            Action::Unwritten { page, cause } => self.on_unwritten(page, cause),
            Action::Recalled { page, cause } => self.on_recalled(page, cause),
            Action::Dismissed(page) => self.guests.on_dismissed(page),
        }
    }

    /// Opens a page and queues the operations waiting for it.
    fn open(&mut self, page: PageId, frame: FrameId, access: Access, waiters: &[Waiter]) {
        let is_wanted = !waiters.is_empty();
        if is_wanted {
            self.space.own.table.take_ahead(frame);
        }
        self.space.open(page, frame, access, is_wanted);
        if access == Access::Write {
            self.frames.set_second_copy(frame, false);
            self.on_dirtied(page);
        }
        // Operations that joined the fetch are its first use.
        let is_ahead = self.prefetch.on_opened(page);
        let is_guest = self.on_guest_came(page, frame);
        let kind = match (is_wanted, is_ahead, is_guest) {
            (false, true, _) => FillKind::Ahead,
            (false, false, true) => FillKind::AsGuest,
            _ => FillKind::ForUse,
        };
        self.frames.fill(frame, page, is_wanted, kind);
        if is_ahead {
            if !is_wanted {
                self.space.own.table.mark_ahead(frame);
            }
            self.page_statistics.on_ahead(page, is_wanted);
        }
        if is_wanted {
            let parts = self.take_parts(page, waiters);
            self.queue.add(Work::Copies { page, frame, parts });
        }
    }

    /// Notes the source of a page. If it came from another holder's pool to be read, the holder keeps a copy, and this
    /// one is the second.
    pub(super) fn note_source(&mut self, from: Rank, page: PageId) {
        let spaces = self.protocol.spaces();
        let is_second = self.spares_only_copies && spaces.has(page) && spaces.home(page) != from;
        if let Some(frame) = self.protocol.cache.frame_of(page) {
            self.frames.set_second_copy(frame, is_second);
        }
        if is_second {
            self.guests.on_came_back();
        }
    }

    /// Notes the effect of an outgoing message on a frame of this rank.
    fn note_frame(&mut self, message: &CoherenceMessage) {
        if let Some(frame) = message.frame() {
            self.frames.reserve(frame);
            self.reserve.on_taken();
            self.block_frames.on_page_missed();
        }
        if let CoherenceBody::Home(ToHome::Acknowledge { .. }) | CoherenceBody::Cache(ToCache::Acknowledge { .. }) =
            message.body
        {
            // This rank's copy is gone. If its frame is reserved for a new copy of the page, nothing is known about the
            // new one's blocks.
            let kept = self.protocol.cache.frame_of(message.page);
            kept.into_iter().for_each(|frame| self.space.own.blocks.mark_all(frame));
        }
    }

    fn transfer(&mut self, outgoing: Outgoing) {
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
        for _ in parts.iter().filter(|part| matches!(part.copy, Copy::Pin(_))) {
            self.pins.on_pinned(page.index);
        }
        parts
    }

    /// Closes a page, now or once it is unpinned and given back.
    pub(super) fn close(&mut self, page: PageId) {
        match self.space.close(page) {
            Closing::Done(frame) => self.on_closed(page, frame),
            Closing::Pinned => {
                self.ask_back_lent(page);
                self.closing.push(page);
            }
        }
    }

    /// Called when a page is closed. It is unmapped before the protocol is told.
    pub(super) fn on_closed(&mut self, page: PageId, frame: FrameId) {
        if self.frames.is_mapped(page, frame) {
            self.queue.add(Work::Unmap { page, frame });
        } else {
            self.queue.raise(Event::Closed(page));
        }
    }
}
