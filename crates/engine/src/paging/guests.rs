//! Guest pages. The last resident copy of a page is offered, before its eviction, to ranks with idle frames.
//!
//! A rank that keeps a guest reads it like a read-ahead page, so the protocol sees an ordinary copy. The page stays in
//! its pool until the offer is answered. The number of pages on offer is bounded, and the asked rank waits for nobody.

use super::Paging;
use crate::request::Part;
use std::collections::BTreeMap;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Cache, FrameId, PageId, Protocol};
use vgasnet_protocol::guests::{GuestMessage, GuestRoom, Offers, Room};
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
    incoming: BTreeMap<PageId, Rank>,
    /// Number of guests that have arrived.
    came: u64,
}

/// The answer to another rank's offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferAnswer {
    /// This rank has the page already.
    Needless,
    /// This rank fetches the page, and answers when it has come.
    Fetch,
    /// Refuse the offer. A frame may be evicted to make room for later guests.
    Refuse(Option<FrameId>),
}

impl Guests {
    /// No pages on offer and no guests. The pool has `frames` frames; see [`crate::EngineOptions::offers_max`].
    pub fn new(own: Rank, ranks: u32, frames: u32, offers_max: u32) -> Guests {
        Guests {
            is_on: offers_max > 0,
            offers: Offers::new(own, ranks, frames, offers_max),
            room: GuestRoom::new(frames),
            incoming: BTreeMap::new(),
            came: 0,
        }
    }

    /// Number of pages on offer.
    pub fn on_offer(&self) -> u32 {
        self.offers.len() as u32
    }

    /// Whether the number of pages on offer has reached its bound.
    pub fn is_offering_all_it_may(&self) -> bool {
        self.is_on && self.offers.is_full()
    }

    /// A page has come from another rank's pool.
    pub fn on_came_back(&mut self) {
        self.offers.on_came_back();
    }

    /// An operation of this rank has missed a page.
    pub fn on_missed(&mut self) {
        self.room.on_missed();
    }

    /// A page is open. Returns the rank that offered it, if it has come as a guest.
    pub fn on_came(&mut self, page: PageId) -> Option<Rank> {
        let from = self.incoming.remove(&page)?;
        stats::count(Row::GuestsCame);
        self.came += 1;
        Some(from)
    }

    /// The guests in flight.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.incoming.keys().copied()
    }

    /// A fetch has ended without its page. Returns the rank that offered it, if it was to be a guest.
    pub fn on_not_come(&mut self, page: PageId) -> Option<Rank> {
        self.incoming.remove(&page)
    }
}

impl Paging {
    /// Number of guest pages that have arrived in idle frames of this rank.
    pub fn guests_came(&self) -> u64 {
        self.guests.came
    }

    /// The rank to which a page chosen for eviction is offered, if it may be the only copy. It stays until the rank's
    /// answer.
    pub fn offer(&mut self, frame: FrameId, cache: &Cache) -> Option<(Rank, PageId)> {
        let page = cache.page_in(frame);
        // A guest could outlive the end of its file.
        let offered = page.filter(|page| page.space.segment().is_some() && self.frames.is_only_copy(frame));
        let page = offered.filter(|_| self.guests.is_on)?;
        let to = self.guests.offers.offer(page)?;
        debug_assert!(to != self.space.rank && self.guests.offers.has(page), "{page:?} is on offer to another rank");
        Some((to, page))
    }

    /// Handles the answer to an offer. Returns the frame to evict, unless its page is in use or gone.
    ///
    /// # Errors
    /// Nobody has asked for this answer.
    pub fn on_offer_answered(
        &mut self,
        from: Rank,
        answer: GuestMessage,
        cache: &Cache,
    ) -> Result<Option<FrameId>, &'static str> {
        let (page, is_refused) = match answer {
            GuestMessage::Kept { page } => {
                stats::count(Row::OffersKept);
                // With many pages kept, evictions run further ahead so that no operation waits for answers.
                self.reserve.on_kept();
                (page, false)
            }
            GuestMessage::Refused { page } => {
                stats::count(Row::OffersRefused);
                (page, true)
            }
            GuestMessage::Needless { page } | GuestMessage::Offer { page } => (page, false),
        };
        self.guests.offers.on_answer(from, page, is_refused)?;
        let Some(frame) = cache.frame_of(page) else { return Ok(None) };
        debug_assert!(!self.guests.offers.has(page), "the offer of {page:?} is answered");
        if !self.is_in_use(page, frame) && cache.evictable(frame) {
            return Ok(Some(frame));
        }
        self.frames.fill(frame, page, false, FillKind::ForUse);
        Ok(None)
    }

    /// Answers the offer of a page that another rank will evict soon.
    ///
    /// # Errors
    /// The page does not exist.
    pub fn answer_offer(
        &mut self,
        from: Rank,
        page: PageId,
        protocol: &Protocol,
        stays: impl Fn(PageId) -> bool,
    ) -> Result<OfferAnswer, &'static str> {
        if page.space.segment().is_none() || !protocol.spaces().has(page) {
            return Err("an offer of a page that does not exist");
        }
        let cache = &protocol.cache;
        if cache.contains(page) {
            return Ok(OfferAnswer::Needless);
        }
        let room = match self.guests.is_on {
            true => self.guests.room.on_offer(cache.surplus_frames(), self.frames.guests()),
            false => Room::None,
        };
        Ok(match room {
            Room::ForIt => {
                let before = self.guests.incoming.insert(page, from);
                debug_assert!(before.is_none(), "{page:?} comes as a guest once");
                OfferAnswer::Fetch
            }
            Room::AfterAGuest => OfferAnswer::Refuse(self.first_guest(cache, stays)),
            Room::AfterAnOwn => OfferAnswer::Refuse(self.victim(Need::Later, cache, stays)),
            Room::None => OfferAnswer::Refuse(None),
        })
    }

    /// Keeps a small write to a page of this home until guests have left the page, which no pool otherwise holds: the
    /// write can then go to the file. Returns whether the guests are to be dismissed: it is the first such write.
    pub fn wait_for_dismissal(&mut self, part: Part, tries: u8) -> bool {
        let parts = self.dismissals.waiting.entry(part.piece.page).or_default();
        parts.push((part, tries));
        parts.len() == 1
    }

    /// The guests of a page have left, or there was none.
    pub fn on_dismissed(&mut self, page: PageId) {
        debug_assert!(!self.dismissals.done.contains(&page), "the guests of {page:?} leave once");
        self.dismissals.done.push(page);
    }

    /// The parts, with their number of attempts, that waited for the guests of a page which have left.
    pub fn take_dismissed(&mut self) -> Option<Vec<(Part, u8)>> {
        let page = self.dismissals.done.pop()?;
        let parts = self.dismissals.waiting.remove(&page).unwrap_or_default();
        debug_assert!(!parts.is_empty(), "parts wait for the guests of {page:?}");
        Some(parts)
    }

    /// Number of parts waiting for guests to leave.
    pub fn waiting_parts(&self) -> usize {
        self.dismissals.waiting.values().map(Vec::len).sum()
    }
}

/// Small writes to pages of this home that wait for guests to leave.
#[derive(Debug, Default)]
pub(super) struct Dismissals {
    /// The parts, with their number of attempts.
    waiting: BTreeMap<PageId, Vec<(Part, u8)>>,
    /// Pages that guests have left and [`Paging::take_dismissed`] has not returned.
    done: Vec<PageId>,
}

impl Dismissals {
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }
}
