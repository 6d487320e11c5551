//! The decisions of [`Paging`] beside a protocol of one or two ranks, without an engine.

use super::*;
use crate::test_space::{OWN, space};
use std::ops::RangeInclusive;
use vgasnet_protocol::coherence::{Action, Waiter};
use vgasnet_protocol::guests::GuestMessage;
use vgasnet_protocol::replacement::{Need, PolicyKind};
use vgasnet_protocol::{Limits, RankSizes};

const PAGE: usize = 4096;
const FRAMES: u32 = 64;

/// A pool of [`FRAMES`] frames and its rank's protocol. This rank is the home of all pages, and its file answers at
/// once.
struct Pager {
    paging: Paging,
    protocol: Protocol,
    space: Arc<AddressSpace>,
}

impl Pager {
    fn new(ranks: u32, optimisations: Optimisations) -> Pager {
        let space = Arc::new(space(FRAMES, PAGE));
        let options =
            EngineOptions { policy: PolicyKind::Clock, cooperative: true, ships: None, offers_max: 4, optimisations };
        let sizes = (0..ranks).map(|_| RankSizes { pages: 1000, frames: FRAMES });
        Pager {
            paging: Paging::new(Arc::clone(&space), ranks, FRAMES, &options),
            protocol: Protocol::new(Limits::new(OWN, sizes), true),
            space,
        }
    }

    /// Handles an event and all that follow.
    fn handle(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut actions = Vec::new();
            self.protocol.handle(event, &mut actions).expect("a correct message");
            events.extend(actions.into_iter().filter_map(|action| self.act(action)));
        }
    }

    fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Send { message, .. } => {
                self.paging.on_sent(&message, &self.protocol.cache);
                Some(Event::Message { from: OWN, message })
            }
            Action::Open { page, frame, access, waiters } => {
                let is_wanted = !waiters.is_empty();
                self.paging.open(page, frame, access, is_wanted);
                if is_wanted {
                    let _ = self.space.own.table.unpin(frame);
                }
                None
            }
            Action::Close(page) => match self.paging.close(page) {
                CloseStep::Closed(_) => Some(Event::Closed(page)),
                CloseStep::Pinned { .. } => None,
            },
            Action::Clear { page, .. } => Some(Event::Cleared(page)),
            Action::Load { page, .. } => Some(Event::Loaded(page)),
            Action::Store { page, .. } => Some(Event::Stored(page)),
            _ => None,
        }
    }

    fn use_pages(&mut self, pages: RangeInclusive<u32>, access: Access) {
        pages.for_each(|index| self.handle(Event::Want { page: page(index), access, waiter: Waiter(0) }));
    }

    fn demand(&self) -> Option<Need> {
        self.paging.demand(&self.protocol.cache).eviction
    }

    fn victim(&mut self) -> Option<PageId> {
        let victim = self.paging.next_victim(Need::Now, &self.protocol.cache, |_| false);
        victim.and_then(|frame| self.protocol.cache.page_in(frame))
    }

    fn frame(&self, index: u32) -> FrameId {
        self.protocol.cache.frame_of(page(index)).expect("it is resident")
    }

    /// The pages of `range` that are read ahead now.
    fn read_ahead(&mut self, range: RangeInclusive<u32>) -> Vec<u32> {
        let mut range = range;
        let next = || self.paging.next_ahead(page(0).space, &mut range, &self.protocol.cache);
        std::iter::from_fn(next).map(|page| page.index).collect()
    }
}

fn page(index: u32) -> PageId {
    PageId::of_segment(OWN, index)
}

#[test]
fn pages_that_fit_need_no_eviction() {
    let mut pager = Pager::new(1, Optimisations::ALL);
    pager.use_pages(0..=FRAMES - 1, Access::Read);
    assert_eq!(pager.demand(), None);
    pager.use_pages(FRAMES..=FRAMES, Access::Read);
    assert_eq!(pager.demand(), Some(Need::Now));
    assert!(pager.paging.demand(&pager.protocol.cache).is_for_pages);
}

#[test]
fn evictions_run_ahead_once_a_page_has_waited_for_a_dirty_one() {
    for works_ahead in [true, false] {
        let mut pager = Pager::new(1, Optimisations { works_ahead, ..Optimisations::ALL });
        pager.use_pages(0..=FRAMES, Access::Write);
        let victim = pager.victim().expect("some page");
        assert!(pager.protocol.cache.dirty_frame(victim).is_some());
        let frame = pager.frame(victim.index);
        pager.handle(Event::Evict(frame));
        assert_eq!(pager.demand(), works_ahead.then_some(Need::Later));
        assert_eq!(pager.paging.is_short(), works_ahead);
    }
}

#[test]
fn pages_that_stay_and_pinned_pages_are_no_victims() {
    let mut pager = Pager::new(1, Optimisations::ALL);
    pager.use_pages(0..=FRAMES, Access::Read);
    let pinned = FRAMES * 3 / 4 - 1;
    assert_eq!(pager.paging.add_pins(0..=pinned), Ok(()));
    let stays = |page: PageId| page.index != FRAMES - 1;
    let victim = pager.paging.victim(Need::Now, &pager.protocol.cache, stays);
    assert_eq!(victim, Some(pager.frame(FRAMES - 1)));
    let stays = |page: PageId| page.index > pinned;
    assert_eq!(pager.paging.victim(Need::Now, &pager.protocol.cache, stays), None);
    assert!(pager.paging.is_pinned(page(0)) && !pager.paging.is_pinned(page(pinned + 1)));
}

#[test]
fn read_ahead_skips_resident_pages_and_ends_at_half_of_the_pool() {
    let mut pager = Pager::new(1, Optimisations::ALL);
    pager.use_pages(2..=3, Access::Read);
    assert_eq!(pager.read_ahead(0..=4), [0, 1, 4]);
    let most = FRAMES / 2;
    assert_eq!(pager.read_ahead(100..=199).len() as u32, most - 3);
    pager.paging.on_given_up(page(4));
    assert_eq!(pager.read_ahead(200..=299), [200]);
    assert_eq!(pager.paging.pages_ahead() as u32, most);
    assert!(Pager::new(1, Optimisations { works_ahead: false, ..Optimisations::ALL }).read_ahead(0..=9).is_empty());
}

#[test]
fn a_pinned_page_closes_once_it_is_unpinned() {
    let mut pager = Pager::new(1, Optimisations::ALL);
    pager.use_pages(0..=1, Access::Read);
    let table = pager.space.own.table;
    let pinned = table.pin(page(0), Access::Read).expect("it is open");
    assert!(matches!(pager.paging.close(page(1)), CloseStep::Closed(closed) if closed.page == page(1)));
    assert_eq!(pager.paging.close(page(0)), CloseStep::Pinned { asks_back: false });
    assert!(!pager.paging.poll_closing(|closed| panic!("{closed:?} is pinned")) && !pager.paging.is_idle());
    assert!(table.unpin(pinned.frame), "it is closing");
    let mut closed = Vec::new();
    assert!(pager.paging.poll_closing(|page| closed.push(page)) && pager.paging.is_idle());
    assert_eq!(closed, [ClosedPage { page: page(0), frame: pinned.frame, is_mapped: false }]);
}

#[test]
fn a_page_pinned_by_the_client_closes_when_its_pins_are_removed() {
    let mut pager = Pager::new(1, Optimisations::ALL);
    assert_eq!(pager.paging.add_pins(5..=6), Ok(()));
    assert!(!pager.paging.defer_close(page(5)), "its pin is not in the page table yet");
    pager.paging.on_pinned(5);
    assert!(pager.paging.defer_close(page(5)) && !pager.paging.defer_close(page(7)));
    assert_eq!(pager.paging.remove_pins(5..=7), None);
    assert_eq!(pager.paging.remove_pins(5..=6), Some(vec![5]));
}

#[test]
fn an_only_copy_is_offered_and_evicted_once_the_offer_is_answered() {
    let mut pager = Pager::new(2, Optimisations::ALL);
    pager.use_pages(0..=2, Access::Read);
    let (first, second, cache) = (pager.frame(0), pager.frame(1), &pager.protocol.cache);
    assert_eq!(pager.paging.offer(first, cache), Some((Rank(1), page(0))));
    assert_eq!(pager.paging.offer(second, cache), Some((Rank(1), page(1))));
    let kept = GuestMessage::Kept { page: page(0) };
    assert!(pager.paging.on_offer_answered(Rank(0), kept, cache).is_err(), "another rank was asked");
    assert_eq!(pager.paging.on_offer_answered(Rank(1), kept, cache), Ok(Some(first)));
    let pinned = pager.space.own.table.pin(page(1), Access::Read).expect("it is open");
    let refused = GuestMessage::Refused { page: page(1) };
    assert_eq!(pager.paging.on_offer_answered(Rank(1), refused, cache), Ok(None), "it is in use again");
    let _ = pager.space.own.table.unpin(pinned.frame);
}

#[test]
fn a_second_copy_is_evicted_without_an_offer() {
    for spares_only_copies in [true, false] {
        let mut pager = Pager::new(2, Optimisations { spares_only_copies, ..Optimisations::ALL });
        pager.use_pages(0..=0, Access::Read);
        // From a rank other than its home.
        pager.paging.on_data(Rank(1), page(0), &pager.protocol);
        let offer = pager.paging.offer(pager.frame(0), &pager.protocol.cache);
        assert_eq!(offer.is_none(), spares_only_copies);
    }
}

#[test]
fn an_offered_page_comes_as_a_guest_into_an_idle_pool() {
    let mut pager = Pager::new(2, Optimisations::ALL);
    pager.use_pages(0..=0, Access::Read);
    let mut answer = |index| pager.paging.answer_offer(Rank(1), page(index), &pager.protocol, |_| false);
    assert_eq!([0, 7].map(&mut answer), [Ok(OfferAnswer::Needless), Ok(OfferAnswer::Fetch)]);
    assert!(answer(1000).is_err(), "there is no such page");
    pager.handle(Event::Prefetch(page(7)));
    assert_eq!((pager.paging.guests_came(), pager.paging.on_given_up(page(7))), (1, None));
}

#[test]
fn a_guest_that_does_not_come_is_declined() {
    let mut pager = Pager::new(2, Optimisations::ALL);
    let answer = pager.paging.answer_offer(Rank(1), page(7), &pager.protocol, |_| false);
    assert_eq!(answer, Ok(OfferAnswer::Fetch));
    assert_eq!([7, 7].map(|index| pager.paging.on_given_up(page(index))), [Some(Rank(1)), None]);
    assert_eq!(pager.paging.guests_came(), 0);
}

#[test]
fn blocks_get_a_frame_for_their_misses_until_pages_need_it() {
    let mut pager = Pager::new(1, Optimisations::ALL);
    pager.paging.on_blocks_missed(1000);
    assert!(pager.paging.owes_blocks_a_frame(0) && pager.demand().is_none(), "frames are free");
    pager.use_pages(0..=FRAMES - 1, Access::Read);
    pager.paging.on_blocks_missed(1000);
    assert!(pager.paging.owes_blocks_a_frame(0));
    assert_eq!(pager.demand(), Some(Need::Later));
    assert!(!pager.paging.demand(&pager.protocol.cache).is_for_pages);
    pager.paging.refuse_blocks();
    assert_eq!(pager.demand(), None);
}
