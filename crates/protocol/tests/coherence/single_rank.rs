//! One rank against another's messages: cases rare or impossible in whole jobs.

use vgasnet_protocol::coherence::{
    Access, Action, CoherenceBody, CoherenceMessage, CopyVersion, Event, FrameId, PageId, Protocol, Share, ToCache,
    ToHome, Waiter,
};
use vgasnet_protocol::{Limits, Rank, RankSizes, Space, Stripes};

const HOME: Rank = Rank(0);
const PAGE: PageId = PageId::of_segment(HOME, 0);

/// A rank of a job of eight, and its last actions.
struct Single {
    protocol: Protocol,
    actions: Vec<Action>,
}

impl Single {
    fn new(rank: Rank) -> Single {
        let sizes = RankSizes { pages: 4, frames: 2 };
        Single { protocol: Protocol::new(Limits::new(rank, [sizes; 8]), true), actions: Vec::new() }
    }

    /// Handles an event. Returns the resulting actions.
    fn event(&mut self, event: Event) -> &[Action] {
        self.actions.clear();
        self.protocol.handle(event, &mut self.actions).expect("it makes sense");
        &self.actions
    }

    fn tell_cache(&mut self, from: Rank, body: ToCache) -> &[Action] {
        let message = CoherenceMessage { page: PAGE, body: CoherenceBody::Cache(body) };
        self.event(Event::Message { from, message })
    }
}

fn acknowledgement(version: CopyVersion, copies: u32) -> [Action; 1] {
    let body = CoherenceBody::Home(ToHome::Acknowledge { version, copies });
    [Action::Send { to: HOME, message: CoherenceMessage { page: PAGE, body } }]
}

#[test]
fn an_answer_waits_for_the_ranks_of_all_relays() {
    let (mut rank, version) = (Single::new(Rank(1)), CopyVersion(5));
    // The rank itself no longer has a copy. The second share has one rank: an off-by-one count would miss it.
    for share in [&[Rank(2), Rank(3)][..], &[Rank(4)], &[Rank(5), Rank(6), Rank(7)]] {
        let relayed = rank.tell_cache(HOME, ToCache::Relay { version, to: Share::new(share) });
        assert!(!relayed.is_empty());
    }
    assert_eq!(rank.tell_cache(HOME, ToCache::Invalidate { version }), []);
    for (from, copies) in [(4, 1), (2, 1), (3, 1), (5, 2)] {
        assert_eq!(rank.tell_cache(Rank(from), ToCache::Acknowledge { version, copies }), [], "rank {from}");
    }
    assert_eq!(rank.tell_cache(Rank(7), ToCache::Acknowledge { version, copies: 1 }), acknowledgement(version, 7));
}

#[test]
fn an_order_to_give_up_an_earlier_copy_leaves_a_later_one() {
    let mut rank = Single::new(Rank(1));
    rank.event(Event::Want { page: PAGE, access: Access::Read, waiter: Waiter(0) });
    rank.tell_cache(HOME, ToCache::Data { version: CopyVersion(7), grant: false, zeros: false });
    let is_open = |rank: &Single| rank.protocol.cache.page_in(FrameId(0)) == Some(PAGE);
    assert!(is_open(&rank));
    for version in [CopyVersion(6), CopyVersion(7)] {
        assert_eq!(rank.tell_cache(HOME, ToCache::Invalidate { version }), acknowledgement(version, 1), "{version:?}");
        assert!(is_open(&rank));
    }
    assert_eq!(rank.tell_cache(HOME, ToCache::Invalidate { version: CopyVersion(8) }), [Action::Close(PAGE)]);
}

#[test]
fn pages_of_a_file_that_are_being_written_are_dirty() {
    let (mut home, file) = (Single::new(HOME), Space::of_file(0));
    home.protocol.add_file(file, Stripes { homes: [HOME].into(), pages: 1 }, 4);
    let page = |index| PageId { space: file, index };
    let dirty = |home: &Single| home.protocol.home.dirty_pages_of(file).collect::<Vec<_>>();
    let tell = |home: &mut Single, body| {
        let message = CoherenceMessage { page: page(2), body: CoherenceBody::Home(body) };
        home.event(Event::Message { from: Rank(1), message });
    };
    tell(&mut home, ToHome::Write { frame: FrameId(0), copy: None });
    // The page has no owner yet; its writer may store in it before the home knows.
    assert_eq!(dirty(&home), [page(2)]);
    home.event(Event::Loaded(page(2)));
    assert_eq!(dirty(&home), [page(2)]);
    tell(&mut home, ToHome::Done { version: CopyVersion(1) });
    assert_eq!(dirty(&home), [page(2)]);
}
