//! Pages that leave the last pool which has them: they are offered to ranks with frames to spare, which keep them as guests.
//!
//! Who keeps a page reads it as one that is fetched ahead, so the protocol knows its copy as any other. The page stays where it is until
//! the offer is answered. Few pages are on offer at a time, and who is asked waits for nobody.

use super::Engine;
use crate::memory::Frames;
use crate::request::Part;
use crate::stats::{self, Row};
use vgasnet_conduit::Conduit;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Cache, Event, FrameId, PageId};
use vgasnet_protocol::guests::{GuestMessage, GuestRoom, Offers, Room};
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_protocol::replacement::{FillKind, Need};

/// What a rank has on offer, and what is coming to it as a guest.
#[derive(Debug)]
pub(super) struct Guests {
    /// Else nothing is offered, and all offers are refused.
    is_on: bool,
    offers: Offers,
    room: GuestRoom,
    /// Guests that are on their way, and who has offered each.
    coming: OrderedMap<PageId, Rank>,
    /// How many have come so far.
    came: u64,
    /// Parts that write few bytes of pages of this home, each with how often it was tried, and wait until guests have left.
    dismissing: OrderedMap<PageId, Vec<(Part, u8)>>,
    /// Pages that the guests of [`Guests::dismissing`] have left, which nobody has looked at since.
    dismissed: Vec<PageId>,
}

impl Guests {
    /// Nothing is on offer, and no guest is there. The pool has `frames` frames; see [`super::Manner::offers_max`].
    pub(super) fn new(conduit: &dyn Conduit, frames: u32, offers_max: u32) -> Guests {
        let offers = Offers::new(conduit.rank(), conduit.ranks(), frames, offers_max);
        Guests {
            is_on: offers_max > 0,
            offers,
            room: GuestRoom::new(frames),
            coming: OrderedMap::new(),
            came: 0,
            dismissing: OrderedMap::new(),
            dismissed: Vec::new(),
        }
    }

    /// How many pages are on offer.
    pub(super) fn on_offer(&self) -> u32 {
        self.offers.len() as u32
    }

    /// Whether as many pages are on offer as may be at a time.
    pub(super) fn is_offering_all_it_may(&self) -> bool {
        self.is_on && self.offers.is_full()
    }

    /// How many parts wait until guests have left.
    pub(super) fn parts(&self) -> usize {
        self.dismissing.values().map(Vec::len).sum()
    }

    /// Whether some of them need wait no more.
    pub(super) fn has_dismissed(&self) -> bool {
        !self.dismissed.is_empty()
    }

    /// Guests have left, or there was none who could.
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
    /// How many pages of others have come to idle frames of this rank, so far.
    pub fn guests_came(&self) -> u64 {
        self.guests.came
    }

    /// Offers a page that was chosen to be given up, if nobody else may have it. Returns whether it is on offer.
    pub(super) fn offer(&mut self, frame: FrameId) -> bool {
        let page = self.protocol.cache.page_in(frame);
        // Files have ends that a guest would outlive.
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
                // Evictions run ahead where many pages are kept, so that nobody waits for answers.
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

    /// Gives up a page whose offer was answered, unless it is in use by now, or gone.
    fn give_up_offered(&mut self, page: PageId) {
        let Some(frame) = self.protocol.cache.frame_of(page) else { return };
        let is_pinned = self.is_pinned(page) || self.space.own.table.is_pinned(frame);
        if !is_pinned && self.protocol.cache.evictable(frame) {
            self.handle(Event::Evict(frame));
        } else {
            self.frames.fill(frame, page, false, FillKind::ForUse);
        }
    }

    /// Another rank gives a page up soon.
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
                self.guests.coming.insert(page, from);
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

    /// Gives up a guest, or a page that this rank uses least, for a guest that comes later.
    fn make_room(&mut self, find: impl FnOnce(&mut Frames, &Cache, &dyn Fn(PageId) -> bool) -> Option<FrameId>) {
        if let Some(frame) = self.search_victims(find) {
            self.handle(Event::Evict(frame));
        }
    }

    /// A page is open. Returns whether it has come as a guest.
    pub(super) fn on_guest_came(&mut self, page: PageId, frame: FrameId) -> bool {
        let Some(from) = self.guests.coming.remove(&page) else { return false };
        stats::count(Row::GuestsCame);
        self.guests.came += 1;
        self.frames.set_second_copy(frame, false);
        self.outbox.send(from, &GuestMessage::Kept { page }.encode());
        true
    }

    /// Has guests leave a page of this home, which nobody else has, for a part that writes few bytes of it: it goes to the file then.
    pub(super) fn dismiss_guests_for(&mut self, part: Part, tries: u8) {
        let page = part.piece.page;
        let parts = self.guests.dismissing.entry(page).or_default();
        parts.push((part, tries));
        if parts.len() == 1 {
            self.events.push_back(Event::Dismiss(page));
        }
    }

    /// Goes on with the parts whose guests have left.
    pub(super) fn retry_dismissed(&mut self) {
        while let Some(page) = self.guests.dismissed.pop() {
            for (part, tries) in self.guests.dismissing.remove(&page).into_iter().flatten() {
                let kept = self.do_at_home(part, tries + 1);
                kept.into_iter().for_each(|part| self.want(part));
            }
            self.handle_events();
        }
    }

    /// A page does not come that was to come as a guest, or otherwise.
    pub(super) fn on_guest_not_come(&mut self, page: PageId) {
        if let Some(from) = self.guests.coming.remove(&page) {
            self.outbox.send(from, &GuestMessage::Needless { page }.encode());
        }
    }
}
