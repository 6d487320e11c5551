//! Assignment of freed frames to awaiting pages.

use vgasnet_protocol::coherence::{
    Access, Action, CoherenceBody, CoherenceMessage, Event, FrameId, PageId, Priority, Protocol, ToCache, ToHome,
    Waiter,
};
use vgasnet_protocol::{Limits, Rank, RankSizes};

const HOME: Rank = Rank(1);

/// The only frame holds page 0 of the other rank.
fn full() -> Protocol {
    let sizes = RankSizes { pages: 8, frames: 1 };
    let mut protocol = Protocol::new(Limits::new(Rank(0), [sizes; 2]), true);
    assert_eq!(reads(&tell(&mut protocol, want(0))), [0]);
    give(&mut protocol, 0);
    protocol
}

fn page(index: u32) -> PageId {
    PageId::of_segment(HOME, index)
}

fn want(index: u32) -> Event {
    Event::Want { page: page(index), access: Access::Read, waiter: Waiter(index) }
}

/// The page arrives as zeros.
fn give(protocol: &mut Protocol, index: u32) {
    tell(protocol, Event::Message { from: HOME, message: home_data(index) });
    let opened = tell(protocol, Event::Cleared(page(index)));
    assert!(opened.iter().any(|action| matches!(action, Action::Open { .. })), "{opened:?}");
}

/// The home's answer to the first read of a page.
fn home_data(index: u32) -> CoherenceMessage {
    let sizes = RankSizes { pages: 8, frames: 1 };
    let mut home = Protocol::new(Limits::new(HOME, [sizes; 2]), true);
    let read = CoherenceMessage {
        page: page(index),
        body: CoherenceBody::Home(ToHome::Read { frame: FrameId(0), priority: Priority::Now }),
    };
    let actions = tell(&mut home, Event::Message { from: Rank(0), message: read });
    let data = actions.into_iter().find_map(|action| match action {
        Action::Send { message, .. } => Some(message),
        _ => None,
    });
    data.filter(|message| matches!(message.body, CoherenceBody::Cache(ToCache::Data { .. }))).expect("zeros")
}

fn tell(protocol: &mut Protocol, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    protocol.handle(event, &mut actions).expect("it makes sense");
    actions
}

/// The pages requested from their home by these actions.
fn reads(actions: &[Action]) -> Vec<u32> {
    let read = |action: &Action| match action {
        Action::Send { message: CoherenceMessage { page, body: CoherenceBody::Home(ToHome::Read { .. }) }, .. } => {
            Some(page.index)
        }
        _ => None,
    };
    actions.iter().filter_map(read).collect()
}

#[test]
fn a_page_that_is_waited_for_gets_the_frame_before_one_that_is_fetched_ahead() {
    let mut protocol = full();
    for ahead in [1, 2] {
        assert_eq!(reads(&tell(&mut protocol, Event::Prefetch(page(ahead)))), []);
    }
    assert_eq!(protocol.cache.starving(), 0);
    assert_eq!(reads(&tell(&mut protocol, want(3))), []);
    // An operation now wants it.
    assert_eq!(reads(&tell(&mut protocol, want(2))), []);
    assert_eq!(protocol.cache.starving(), 2);
    let mut got = Vec::new();
    for held in [0, 3, 2] {
        assert!(protocol.cache.wants_frame());
        let mut actions = tell(&mut protocol, Event::Evict(FrameId(0)));
        if actions.contains(&Action::Close(page(held))) {
            actions = tell(&mut protocol, Event::Closed(page(held)));
        }
        let read = reads(&actions);
        let [next] = read[..] else { panic!("one page gets the frame: {actions:?}") };
        give(&mut protocol, next);
        got.push(next);
    }
    assert_eq!(got, [3, 2, 1]);
}
