//! Guest pages. The last resident copy of a page is offered, before its eviction, to ranks with idle frames.
//!
//! A rank that keeps a guest reads it like a read-ahead page, so the protocol sees an ordinary copy. The page stays in
//! its pool until the offer is answered. The number of pages on offer is bounded, and the asked rank waits for nobody.

use super::Engine;
use crate::request::Part;
use vgasnet_conduit::Conduit;
use vgasnet_memory::Frames;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Cache, Event, FrameId, PageId};
use vgasnet_protocol::guests::{GuestMessage, GuestRoom, Offers, Room};
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_protocol::replacement::{FillKind, Need};
use vgasnet_stats::{self as stats, Row};

/// Pages on offer, and guests on their way to this rank.
#[derive(Debug)]
pub(super) struct Guests {
    /// If false, nothing is offered and all offers are refused.
    is_on: bool,
    offers: Offers,
    room: GuestRoom,
    /// Guests in flight, with the offering rank.
    incoming: OrderedMap<PageId, Rank>,
    /// Number of guests that have arrived.
    came: u64,
    /// Small writes to pages of this home that wait for guests to leave, with their number of attempts.
    dismissing: OrderedMap<PageId, Vec<(Part, u8)>>,
    /// Pages of [`Guests::dismissing`] that guests have left and [`Engine::retry_dismissed`] has not handled.
    dismissed: Vec<PageId>,
}

impl Guests {
    /// No pages on offer and no guests. The pool has `frames` frames; see [`super::EngineOptions::offers_max`].
    pub(super) fn new(conduit: &dyn Conduit, frames: u32, offers_max: u32) -> Guests {
        let offers = Offers::new(conduit.rank(), conduit.ranks(), frames, offers_max);
        Guests {
            is_on: offers_max > 0,
            offers,
            room: GuestRoom::new(frames),
            incoming: OrderedMap::new(),
            came: 0,
            dismissing: OrderedMap::new(),
            dismissed: Vec::new(),
        }
    }

    /// Number of pages on offer.
    pub(super) fn on_offer(&self) -> u32 {
        self.offers.len() as u32
    }

    /// Whether the number of pages on offer has reached its bound.
    pub(super) fn is_offering_all_it_may(&self) -> bool {
        self.is_on && self.offers.is_full()
    }

    /// Number of parts waiting for guests to leave.
    pub(super) fn parts(&self) -> usize {
        self.dismissing.values().map(Vec::len).sum()
    }

    /// Whether some of these parts can go on.
    pub(super) fn has_dismissed(&self) -> bool {
        !self.dismissed.is_empty()
    }

    /// The guests of a page have left, or there was none.
    pub(super) fn on_dismissed(&mut self, page: PageId) {
        self.dismissed.push(page);
    }

    /// A page has come from another rank's pool.
    pub(super) fn on_came_back(&mut self) {
        self.offers.on_came_back();
    }

    /// An operation of this rank has missed a page.
    pub(super) fn on_missed(&mut self) {
        self.room.on_missed();
    }
}

impl Engine {
    /// Number of guest pages that have arrived in idle frames of this rank.
    pub fn guests_came(&self) -> u64 {
        self.guests.came
    }

    /// Offers a page chosen for eviction if it may be the only copy. Returns whether it is on offer.
    pub(super) fn offer(&mut self, frame: FrameId) -> bool {
        let page = self.protocol.cache.page_in(frame);
        // A guest could outlive the end of its file.
        let offered = page.filter(|page| page.space.segment().is_some() && self.frames.is_only_copy(frame));
        let Some(page) = offered.filter(|_| self.guests.is_on) else { return false };
        let Some(to) = self.guests.offers.offer(page) else { return false };
        self.outbox.send(to, &GuestMessage::Offer { page }.encode());
        true
    }

    pub(super) fn on_guest_message(&mut self, from: Rank, message: GuestMessage) -> Result<(), &'static str> {
        let (page, is_refused) = match message {
            GuestMessage::Offer { page } => return self.on_offer(from, page),
            GuestMessage::Kept { page } => {
                stats::count(Row::OffersKept);
                // With many pages kept, evictions run further ahead so that no operation waits for answers.
                self.reserve.on_kept();
                (page, false)
            }
            GuestMessage::Needless { page } => (page, false),
            GuestMessage::Refused { page } => {
                stats::count(Row::OffersRefused);
                (page, true)
            }
        };
        self.guests.offers.on_answer(from, page, is_refused)?;
        self.give_up_offered(page);
        Ok(())
    }

    /// Evicts a page whose offer was answered, unless it is in use or gone.
    fn give_up_offered(&mut self, page: PageId) {
        let Some(frame) = self.protocol.cache.frame_of(page) else { return };
        let is_pinned = self.is_pinned(page) || self.space.own.table.is_pinned(frame);
        if !is_pinned && self.protocol.cache.evictable(frame) {
            self.handle(Event::Evict(frame));
        } else {
            self.frames.fill(frame, page, false, FillKind::ForUse);
        }
    }

    /// Another rank will evict this page soon.
    fn on_offer(&mut self, from: Rank, page: PageId) -> Result<(), &'static str> {
        if page.space.segment().is_none() || !self.protocol.spaces().has(page) {
            return Err("an offer of a page that does not exist");
        }
        let cache = &self.protocol.cache;
        if cache.contains(page) {
            self.outbox.send(from, &GuestMessage::Needless { page }.encode());
            return Ok(());
        }
        let room = match self.guests.is_on {
            true => self.guests.room.on_offer(cache.surplus_frames(), self.frames.guests()),
            false => Room::None,
        };
        match room {
            Room::ForIt => {
                self.guests.incoming.insert(page, from);
                self.handle(Event::Adopt(page));
                return Ok(());
            }
            Room::AfterAGuest => self.make_room(|frames, cache, stays| frames.first_guest(cache, stays)),
            Room::AfterAnOwn => self.make_room(|frames, cache, stays| frames.victim(Need::Later, cache, stays)),
            Room::None => {}
        }
        self.outbox.send(from, &GuestMessage::Refused { page }.encode());
        Ok(())
    }

    /// Evicts a guest or this rank's least used page, to make room for later guests.
    fn make_room(&mut self, find: impl FnOnce(&mut Frames, &Cache, &dyn Fn(PageId) -> bool) -> Option<FrameId>) {
        if let Some(frame) = self.search_victims(find) {
            self.handle(Event::Evict(frame));
        }
    }

    /// A page is open. Returns whether it has come as a guest.
    pub(super) fn on_guest_came(&mut self, page: PageId, frame: FrameId) -> bool {
        let Some(from) = self.guests.incoming.remove(&page) else { return false };
        stats::count(Row::GuestsCame);
        self.guests.came += 1;
        self.frames.set_second_copy(frame, false);
        self.outbox.send(from, &GuestMessage::Kept { page }.encode());
        true
    }

    /// Dismisses the guests of a page of this home that no pool otherwise holds, so that a small write can go to the
    /// file.
    pub(super) fn dismiss_guests_for(&mut self, part: Part, tries: u8) {
        let page = part.piece.page;
        let parts = self.guests.dismissing.entry(page).or_default();
        parts.push((part, tries));
        if parts.len() == 1 {
            self.queue.raise(Event::Dismiss(page));
        }
    }

    /// Resumes the parts whose guests have left.
    pub(super) fn retry_dismissed(&mut self) {
        while let Some(page) = self.guests.dismissed.pop() {
            for (part, tries) in self.guests.dismissing.remove(&page).into_iter().flatten() {
                self.do_at_home_or_fetch(part, tries + 1);
            }
            self.handle_events();
        }
    }

    /// A fetch has ended without its page. If it was for a guest, declines the offer.
    pub(super) fn on_guest_not_come(&mut self, page: PageId) {
        if let Some(from) = self.guests.incoming.remove(&page) {
            self.outbox.send(from, &GuestMessage::Needless { page }.encode());
        }
    }
}
