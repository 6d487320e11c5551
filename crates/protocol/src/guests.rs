//! Guests: pages kept by a rank for another in unused frames. Selection of the rank to ask, and of offers to refuse.
//!
//! A page evicted from the only pool with a copy must be read from disk at its next use. Before that it is offered to
//! another rank, which keeps it as a guest if it has spare frames. Guests are evicted before all other pages, and are
//! not offered again. Idle pools thus serve as a cache for busy ones.
//!
//! Dahlin, Wang, Anderson and Patterson, "Cooperative Caching: Using Remote Client Memory to Improve File System
//! Performance" (OSDI 1994), section 2.4: N-Chance forwarding, here with one chance. As there, free room elsewhere is
//! unknown: one rank is asked, and another after a refusal. If all refuse, offers become rare.

use crate::coherence::PageId;
use crate::wire::{self, Encoded, Malformed};
use crate::{Rank, messages};
use alloc::collections::BTreeMap;

messages! {
    /// About a page that may leave the last pool with a copy.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GuestMessage {
        /// The sender will evict the page: the receiver keeps it, if it has a spare frame.
        24 => Offer {
            /// The page.
            page: PageId,
        },
        /// The receiver may evict the page: the sender has it now.
        25 => Kept {
            /// The offered page.
            page: PageId,
        },
        /// The receiver may evict the page: other ranks have it, or no rank by now.
        26 => Needless {
            /// The offered page.
            page: PageId,
        },
        /// The sender has no spare frame.
        27 => Refused {
            /// The offered page.
            page: PageId,
        },
    }
}

impl GuestMessage {
    /// The first bytes of these messages; other messages begin with other bytes.
    pub const TAGS: core::ops::RangeInclusive<u8> = 24..=27;

    /// The message as bytes.
    pub fn encode(&self) -> Encoded {
        wire::encode(self)
    }

    /// Reads the bytes of [`GuestMessage::encode`].
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn decode(bytes: &[u8]) -> Result<GuestMessage, Malformed> {
        wire::decode(bytes)
    }
}

/// Recommended maximum of simultaneous offers of a pool of `frames`: 0 for small pools, which need all their frames.
pub const fn offers_max(frames: u32) -> u32 {
    const PART: u32 = 16;
    const MOST: u32 = 32;
    if frames / PART < MOST { frames / PART } else { MOST }
}

/// Pages kept in a row without one coming back, in pools of this rank, before offers become rare: the pages are
/// apparently read once.
const UNPROVEN_POOLS: u32 = 16;

/// Rare offers: one page in this many, enough to detect renewed reads.
const UNPROVEN_PART: u32 = 8;

/// Consecutive refusals before pages are evicted without an offer.
const ASKED_AT_ONCE: u32 = 4;

/// Binary logarithm of the maximum number of pages per offer when all ranks refuse.
const PASSED_OVER_MAX: u32 = 6;

/// A rank's current offers, and the next rank to ask.
#[derive(Clone, Debug)]
pub struct Offers {
    own: Rank,
    ranks: u32,
    next: Rank,
    /// Ranks asked so far without success; selects the next rank.
    asked: u32,
    /// Refusals since a page was kept.
    refused: u32,
    /// Pages to evict without an offer before the next offer.
    to_pass_over: u32,
    in_flight: BTreeMap<PageId, Rank>,
    most: usize,
    /// Pages kept by others since one came back, and the limit at which offers become rare.
    unproven: u32,
    unproven_max: u32,
}

impl Offers {
    /// No offers yet, for rank `own` of `ranks` with a pool of `frames`. At most `most` offers at a time.
    pub fn new(own: Rank, ranks: u32, frames: u32, most: u32) -> Offers {
        assert!(own.0 < ranks, "rank {own} is one of {ranks}");
        let mut offers = Offers {
            own,
            ranks,
            next: own,
            asked: 0,
            refused: 0,
            to_pass_over: 0,
            in_flight: BTreeMap::new(),
            most: most as usize,
            unproven: 0,
            unproven_max: frames.saturating_mul(UNPROVEN_POOLS),
        };
        offers.look_elsewhere();
        offers
    }

    /// A page arrived from the pool of another rank.
    pub fn on_came_back(&mut self) {
        self.unproven = 0;
    }

    /// Number of offers.
    pub fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether there are no offers.
    pub fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether the maximum number of offers is reached.
    pub fn is_full(&self) -> bool {
        self.in_flight.len() >= self.most
    }

    /// Whether the page is on offer. It stays in its frame until the answer.
    pub fn has(&self, page: PageId) -> bool {
        self.in_flight.contains_key(&page)
    }

    /// A page possibly without other copies will be evicted. Returns the rank it is offered to, if any.
    pub fn offer(&mut self, page: PageId) -> Option<Rank> {
        if self.ranks < 2 || self.is_full() || self.has(page) {
            return None;
        }
        if self.to_pass_over > 0 {
            self.to_pass_over -= 1;
            return None;
        }
        assert_ne!(self.next, self.own, "a page is offered to another rank");
        self.in_flight.insert(page, self.next);
        debug_assert!(self.in_flight.len() <= self.most, "at most so many pages are on offer");
        // An unanswered offer may be refused, too.
        if self.refused >= ASKED_AT_ONCE {
            self.to_pass_over = 1 << (self.refused - ASKED_AT_ONCE).min(PASSED_OVER_MAX);
        }
        Some(self.next)
    }

    /// A rank's answer to an offer.
    ///
    /// # Errors
    /// Nothing was offered to it: in words.
    pub fn on_answer(&mut self, from: Rank, page: PageId, is_refused: bool) -> Result<(), &'static str> {
        if self.in_flight.get(&page) != Some(&from) {
            return Err("an answer about a page that was not offered");
        }
        self.in_flight.remove(&page);
        if !is_refused {
            self.unproven = self.unproven.saturating_add(1);
            self.refused = 0;
            self.to_pass_over = if self.unproven > self.unproven_max { UNPROVEN_PART - 1 } else { 0 };
        } else if from == self.next {
            self.refused = self.refused.saturating_add(1);
            self.look_elsewhere();
        }
        debug_assert_ne!(self.next, self.own, "another rank is asked next");
        Ok(())
    }

    /// Chooses another rank to ask, uniformly.
    fn look_elsewhere(&mut self) {
        if self.ranks < 2 {
            return;
        }
        self.asked = self.asked.wrapping_add(1);
        // SplitMix64 (Steele, Lea, Flood 2014), so that ranks do not all ask the same one.
        let mut mixed = (u64::from(self.own.0) << 32 | u64::from(self.asked)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        let ahead = (mixed ^ mixed >> 31) % u64::from(self.ranks - 1) + 1;
        self.next = Rank(((u64::from(self.own.0) + ahead) % u64::from(self.ranks)) as u32);
        debug_assert!(self.next != self.own && self.next.0 < self.ranks, "another rank of the job is asked");
    }
}

/// In a full pool, one offered guest in this many replaces another. Some guests thus stay long enough to be used,
/// however many pages circulate (Qureshi, Jaleel, Patt, Steely and Emer, ISCA 2007: bimodal insertion).
const REPLACED_PART: u32 = 8;

/// One frame in this many is kept for the rank's own misses.
const OWN_PART: u32 = 8;

/// A rank without a miss during this many offers is idle.
const IDLE_OFFERS: u32 = 64;

/// A rank's reaction to an offered page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It is kept as a guest.
    ForIt,
    /// There is no room. A guest leaves, making room for the next offer.
    AfterAGuest,
    /// There is no room. The rank's own next victim leaves.
    AfterAnOwn,
    /// There is no room.
    None,
}

/// The room of a rank for guests.
#[derive(Clone, Debug)]
pub struct GuestRoom {
    frames: u32,
    /// Offers since this rank's last miss.
    offered: u32,
}

impl GuestRoom {
    /// The room in a pool of `frames`.
    pub fn new(frames: u32) -> GuestRoom {
        GuestRoom { frames, offered: 0 }
    }

    /// An operation of this rank has missed a page.
    pub fn on_missed(&mut self) {
        self.offered = 0;
    }

    /// A page is offered while `free` frames are free or being freed, and `guests` hold guests.
    pub fn on_offer(&mut self, free: u32, guests: u32) -> Room {
        debug_assert!(free <= self.frames && guests <= self.frames, "the frames are those of the pool");
        self.offered = self.offered.saturating_add(1);
        let is_idle = self.offered > IDLE_OFFERS;
        let kept_free = if is_idle { 0 } else { self.frames.div_ceil(OWN_PART) };
        if free > kept_free {
            Room::ForIt
        } else if is_idle && guests < self.frames / 2 {
            Room::AfterAnOwn
        } else if free == kept_free && guests > 0 && self.offered % REPLACED_PART == 0 {
            Room::AfterAGuest
        } else {
            Room::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use std::collections::BTreeSet;

    fn page(index: u32) -> PageId {
        PageId::of_segment(Rank(1), index)
    }

    #[test]
    fn every_message_survives_encoding() {
        let page = page(u32::MAX - 1);
        let all = [
            GuestMessage::Offer { page },
            GuestMessage::Kept { page },
            GuestMessage::Needless { page },
            GuestMessage::Refused { page },
        ];
        for message in all {
            let bytes = message.encode();
            assert!(GuestMessage::TAGS.contains(&bytes[0]));
            assert_eq!(GuestMessage::decode(&bytes), Ok(message));
            assert!((0..bytes.len()).all(|end| GuestMessage::decode(&bytes[..end]) == Err(Malformed)));
        }
    }

    #[test]
    fn who_keeps_pages_is_asked_again_and_who_refuses_is_not() {
        let mut offers = Offers::new(Rank(3), 8, 64, 4);
        let first = offers.offer(page(0)).expect("somebody is asked");
        assert!(first != Rank(3) && offers.has(page(0)) && offers.offer(page(0)).is_none());
        assert_eq!(offers.on_answer(first, page(0), false), Ok(()));
        assert_eq!(offers.offer(page(1)), Some(first));
        assert_eq!(offers.on_answer(first, page(1), true), Ok(()));
        let asked: BTreeSet<Rank> = (2..40)
            .filter_map(|index| {
                let rank = offers.offer(page(index))?;
                offers.on_answer(rank, page(index), true).expect("it was asked");
                Some(rank)
            })
            .collect();
        assert!(asked.len() >= 3 && !asked.contains(&Rank(3)), "{asked:?}");
    }

    #[test]
    fn where_all_refuse_one_page_in_many_is_offered() {
        let mut offers = Offers::new(Rank(0), 100, 1 << 10, 32);
        let offered: Vec<u32> = (0..100_000)
            .filter(|index| {
                let asked = offers.offer(page(*index));
                asked.into_iter().for_each(|rank| offers.on_answer(rank, page(*index), true).expect("it was asked"));
                asked.is_some()
            })
            .collect();
        assert!(offered.len() < 1600, "{} of 100000 pages are offered", offered.len());
        // Some rank has room by now.
        let asked = (100_000..100_065).find_map(|index| Some((index, offers.offer(page(index))?)));
        let (index, rank) = asked.expect("one of them is offered");
        offers.on_answer(rank, page(index), false).expect("it was asked");
        assert!((200_000..200_010).all(|index| offers.offer(page(index)) == Some(rank)));
    }

    #[test]
    fn few_pages_are_on_offer_and_answers_that_nobody_asked_for_are_refused() {
        let mut offers = Offers::new(Rank(0), 2, 64, 4);
        assert_eq!((0..10).filter(|index| offers.offer(page(*index)).is_some()).count(), 4);
        assert!(offers.on_answer(Rank(0), page(0), false).is_err(), "another rank was asked");
        assert!(offers.on_answer(Rank(1), page(9), false).is_err(), "the page was not offered");
        assert_eq!(offers.on_answer(Rank(1), page(0), false), Ok(()));
        assert!(offers.on_answer(Rank(1), page(0), false).is_err(), "it was answered");
        assert_eq!(Offers::new(Rank(0), 1, 64, 4).offer(page(0)), None, "nobody else is there");
        assert_eq!(
            Offers::new(Rank(0), 2, 15, offers_max(15)).offer(page(0)),
            None,
            "a small pool needs all its frames"
        );
    }

    #[test]
    fn pages_that_are_read_once_are_offered_for_a_while() {
        let mut offers = Offers::new(Rank(0), 2, 64, 4);
        let mut offered = |pages: core::ops::Range<u32>, comes_back: bool| {
            let mut count = 0;
            for index in pages {
                let asked = offers.offer(page(index));
                asked.into_iter().for_each(|rank| offers.on_answer(rank, page(index), false).expect("it was asked"));
                if comes_back && index % 8 == 0 {
                    offers.on_came_back();
                }
                count += u32::from(asked.is_some());
            }
            count
        };
        assert_eq!(offered(0..1024, false), 1024);
        let count = offered(1024..2024, false);
        assert!((100..200).contains(&count), "{count} of 1000");
        assert!(offered(3000..3100, true) > 80);
        assert_eq!(offered(4000..4100, true), 100);
    }

    #[test]
    fn guests_come_while_frames_are_free_and_some_later() {
        let mut room = GuestRoom::new(64);
        assert_eq!(room.on_offer(9, 0), Room::ForIt);
        let answers: Vec<Room> = (0..16).map(|_| room.on_offer(8, 5)).collect();
        assert_eq!(answers.iter().filter(|answer| **answer == Room::AfterAGuest).count(), 2);
        assert!(!answers.contains(&Room::ForIt));
        assert!((0..32).all(|_| room.on_offer(8, 0) == Room::None), "no guest can leave");
        room.on_missed();
        assert!((0..64).all(|_| room.on_offer(0, 5) == Room::None), "the rank itself needs frames");
    }

    #[test]
    fn an_idle_rank_gives_up_half_of_its_own_pages() {
        let mut room = GuestRoom::new(64);
        assert!((0..64).all(|_| room.on_offer(0, 0) == Room::None), "it may be about to miss");
        for guests in 0..32 {
            assert_eq!([0, 1].map(|free| room.on_offer(free, guests)), [Room::AfterAnOwn, Room::ForIt]);
        }
        let answers: Vec<Room> = (0..32).map(|_| room.on_offer(0, 32)).collect();
        assert_eq!(answers.iter().filter(|answer| **answer == Room::AfterAGuest).count(), 4);
        assert_eq!(answers.iter().filter(|answer| **answer == Room::None).count(), 28);
        room.on_missed();
        assert_eq!(room.on_offer(1, 0), Room::None, "it is at work again");
    }
}
