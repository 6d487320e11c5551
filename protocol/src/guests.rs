//! Pages that a rank keeps for another, in frames that it does not use: whom to ask, and whom to refuse.
//!
//! A page that a rank gives up and that no other pool has is to be read from a disk by whoever wants it next. Before that it is offered
//! to another rank, which keeps it as a guest if it has frames to spare. Guests leave before all other pages, and are given to nobody
//! else then. So pools that their ranks do not use are a cache for those that need more.
//!
//! Dahlin, Wang, Anderson and Patterson, "Cooperative Caching: Using Remote Client Memory to Improve File System Performance" (OSDI
//! 1994), section 2.4: N-Chance forwarding, here with one chance. Which rank has room is not known, as there: one is asked, and another
//! after a refusal. Where all refuse, hardly any page is offered.

use crate::coherence::PageId;
use crate::ordered::OrderedMap;
use crate::wire::{self, Encoded, Malformed};
use crate::{Rank, messages};

messages! {
    /// About a page that may leave the last pool that has it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GuestMessage {
        /// The sender gives the page up soon: the receiver is to keep it, if it has a frame to spare.
        24 => Offer {
            /// The page.
            page: PageId,
        },
        /// The receiver may give the page up: the sender has it now.
        25 => Kept {
            /// The page that was offered.
            page: PageId,
        },
        /// The receiver may give the page up: others have it, or nobody has by now.
        26 => Needless {
            /// The page that was offered.
            page: PageId,
        },
        /// The sender has no frame to spare.
        27 => Refused {
            /// The page that was offered.
            page: PageId,
        },
    }
}

impl GuestMessage {
    /// The first bytes of these messages; no other message begins with one of them.
    pub const TAGS: core::ops::RangeInclusive<u8> = 24..=27;

    /// The message as bytes.
    pub fn encode(&self) -> Encoded {
        wire::encode(self)
    }

    /// Reads what [`GuestMessage::encode`] wrote.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn decode(bytes: &[u8]) -> Result<GuestMessage, Malformed> {
        wire::decode(bytes)
    }
}

/// Pages of a pool of so many frames that are best on offer at a time at most: none in small pools, which need all their frames.
pub const fn offers_max(frames: u32) -> u32 {
    const PART: u32 = 16;
    const MOST: u32 = 32;
    if frames / PART < MOST { frames / PART } else { MOST }
}

/// Pages that are kept in a row before one comes back, in pools of this rank, until few are offered: they are read once, it seems.
const UNPROVEN_POOLS: u32 = 16;

/// Of so many pages one is offered then. It shows when pages are read again.
const UNPROVEN_PART: u32 = 8;

/// Ranks that are asked in a row before pages go without an offer.
const ASKED_AT_ONCE: u32 = 4;

/// Of so many pages, as a power of two, one is offered where all have refused.
const PASSED_OVER_MAX: u32 = 6;

/// What a rank has on offer, and whom it asks next.
#[derive(Clone, Debug)]
pub struct Offers {
    own: Rank,
    ranks: u32,
    next: Rank,
    /// Ranks asked so far that had no room: where to look next.
    asked: u32,
    /// Refusals since a page was kept.
    refused: u32,
    /// Pages that go without an offer before another one is offered.
    to_pass_over: u32,
    under_way: OrderedMap<PageId, Rank>,
    most: usize,
    /// Pages that others have kept since one came back, and how many may be until few are offered.
    unproven: u32,
    unproven_max: u32,
}

impl Offers {
    /// Nothing is on offer of the rank `own` of so many, whose pool has `frames` frames. It offers up to `most` pages at a time.
    pub fn new(own: Rank, ranks: u32, frames: u32, most: u32) -> Offers {
        let mut offers = Offers {
            own,
            ranks,
            next: own,
            asked: 0,
            refused: 0,
            to_pass_over: 0,
            under_way: OrderedMap::new(),
            most: most as usize,
            unproven: 0,
            unproven_max: frames.saturating_mul(UNPROVEN_POOLS),
        };
        offers.look_elsewhere();
        offers
    }

    /// A page has come from the pool of another rank.
    pub fn on_came_back(&mut self) {
        self.unproven = 0;
    }

    /// How many pages are on offer.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether as many are as may be at a time.
    pub fn is_full(&self) -> bool {
        self.under_way.len() >= self.most
    }

    /// Whether the page is on offer. It stays where it is until that is answered.
    pub fn has(&self, page: PageId) -> bool {
        self.under_way.contains_key(&page)
    }

    /// A page that nobody else may have is given up soon. Returns the rank to which it is offered, if it is.
    pub fn offer(&mut self, page: PageId) -> Option<Rank> {
        if self.ranks < 2 || self.is_full() || self.has(page) {
            return None;
        }
        if self.to_pass_over > 0 {
            self.to_pass_over -= 1;
            return None;
        }
        self.under_way.insert(page, self.next);
        // What is not answered yet may be refused, too.
        if self.refused >= ASKED_AT_ONCE {
            self.to_pass_over = 1 << (self.refused - ASKED_AT_ONCE).min(PASSED_OVER_MAX);
        }
        Some(self.next)
    }

    /// The answer of a rank to an offer.
    ///
    /// # Errors
    /// Nothing was offered to it: in words.
    pub fn on_answer(&mut self, from: Rank, page: PageId, is_refused: bool) -> Result<(), &'static str> {
        if self.under_way.get(&page) != Some(&from) {
            return Err("an answer about a page that was not offered");
        }
        self.under_way.remove(&page);
        if !is_refused {
            self.unproven = self.unproven.saturating_add(1);
            self.refused = 0;
            self.to_pass_over = if self.unproven > self.unproven_max { UNPROVEN_PART - 1 } else { 0 };
        } else if from == self.next {
            self.refused = self.refused.saturating_add(1);
            self.look_elsewhere();
        }
        Ok(())
    }

    /// Takes another rank to ask: any, each as often as the others.
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
    }
}

/// One guest in so many that are offered to a pool which has no more room takes the place of another. So some stay long enough to be
/// wanted, however many pages go round (Qureshi, Jaleel, Patt, Steely and Emer, ISCA 2007: bimodal insertion).
const REPLACED_PART: u32 = 8;

/// Of the frames of a pool one in so many is for pages that its own rank will miss.
const OWN_PART: u32 = 8;

/// A rank that misses no page while it is offered so many is at rest.
const AT_REST: u32 = 64;

/// What a rank does about a page that it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It comes as a guest.
    ForIt,
    /// There is none. A guest is to leave, so that there is for the next.
    AfterAGuest,
    /// There is none. The next page of the rank's own that it would give up is to leave.
    AfterAnOwn,
    /// There is none.
    None,
}

/// How much room a rank has for guests.
#[derive(Clone, Debug)]
pub struct GuestRoom {
    frames: u32,
    /// Pages that were offered since this rank has missed one.
    offered: u32,
}

impl GuestRoom {
    /// The room of a pool of `frames` frames.
    pub fn new(frames: u32) -> GuestRoom {
        GuestRoom { frames, offered: 0 }
    }

    /// An operation of this rank has missed a page.
    pub fn on_missed(&mut self) {
        self.offered = 0;
    }

    /// A page is offered, where so many frames are free or will be, and so many have guests.
    pub fn on_offer(&mut self, free: u32, guests: u32) -> Room {
        self.offered = self.offered.saturating_add(1);
        let is_at_rest = self.offered > AT_REST;
        let kept_free = if is_at_rest { 0 } else { self.frames.div_ceil(OWN_PART) };
        if free > kept_free {
            Room::ForIt
        } else if is_at_rest && guests < self.frames / 2 {
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
        // Somebody has room by now.
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
        let few = offered(1024..2024, false);
        assert!((100..200).contains(&few), "{few} of 1000");
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
    fn a_rank_at_rest_gives_up_half_of_its_own_pages() {
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
