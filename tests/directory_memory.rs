//! The memory of an entry in a home's directory, as in docs/internals/memory.md: it depends on the holders of the page,
//! not on the ranks of the job.

use std::fs;
use std::path::Path;
use vgasnet::live_bytes;
use vgasnet_protocol::coherence::{
    Action, CoherenceBody, CoherenceMessage, Event, FrameId, PageId, Priority, Protocol, ToCache, ToHome,
};
use vgasnet_protocol::{Limits, Rank, RankSizes};

const PAGES: u32 = 1 << 13;

/// In this order few pages follow their neighbours.
const SCATTERED: u32 = 40_503;

/// A home's part of the protocol, in a job of this many ranks.
fn home(ranks: u32) -> Protocol {
    let sizes = RankSizes { pages: PAGES, frames: 1 };
    Protocol::new(Limits::new(Rank(0), (0..ranks).map(|_| sizes)), true)
}

fn tell(protocol: &mut Protocol, from: Rank, page: PageId, body: ToHome, actions: &mut Vec<Action>) {
    let message = CoherenceMessage { body: CoherenceBody::Home(body), page };
    protocol.handle(Event::Message { from, message }, actions).expect("it makes sense");
}

/// A rank reads a page and becomes a holder.
fn read(protocol: &mut Protocol, from: Rank, page: PageId) {
    let (mut actions, frame) = (Vec::new(), FrameId(0));
    tell(protocol, from, page, ToHome::Read { frame, priority: Priority::Now }, &mut actions);
    let [Action::Send { message, .. }] = actions[..] else { panic!("{actions:?}") };
    let version = match message.body {
        CoherenceBody::Cache(ToCache::Data { version, .. }) => version,
        CoherenceBody::Cache(ToCache::Forward(forward)) => forward.version,
        other => panic!("{other:?}"),
    };
    actions.clear();
    tell(protocol, from, page, ToHome::Done { version }, &mut actions);
}

/// Bytes of an entry with this many holders of each page.
fn entry_bytes(ranks: u32, holders: u32, stride: u32) -> f64 {
    let mut protocol = home(ranks);
    let before = live_bytes();
    for page in (1..=PAGES).map(|at| PageId::of_segment(Rank(0), at * stride % PAGES)) {
        (1..=holders).for_each(|holder| read(&mut protocol, Rank(holder), page));
    }
    assert!(protocol.home.is_quiet());
    (live_bytes() - before) as f64 / f64::from(PAGES)
}

/// The numbers in the sentence and the table of memory.md.
fn documented() -> [f64; 4] {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/internals/memory.md")).expect("it is text");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let number_behind = |before: &str| -> f64 {
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("memory.md lacks: {before}"));
        rest.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let one = number_behind("A directory entry is");
    assert_eq!(one, number_behind("| directory |"), "the table says something else");
    let up_to_four = number_behind("bytes where one rank holds the page, about");
    [one, up_to_four, number_behind("for up to four and"), number_behind("Beyond 64 holders each takes at most")]
}

#[test]
fn an_entry_takes_what_is_written_down() {
    let [one, up_to_four, each_more, each_of_many] = documented();
    let measured = [1, 4, 8, 16, 64].map(|holders| (holders, entry_bytes(65, holders, SCATTERED)));
    println!("bytes of an entry, by holders: {measured:.1?}");
    for (holders, bytes) in measured {
        let said = if holders == 1 { one } else { up_to_four + each_more * f64::from(holders.max(4) - 4) };
        assert!((bytes - said).abs() <= 0.1 * said, "{bytes} bytes for {holders} holders, {said} are written down");
    }
    for holders in [65, 100, 200] {
        let each = entry_bytes(holders + 1, holders, SCATTERED) / f64::from(holders);
        println!("where {holders} hold each, for each: {each:.1}");
        assert!(
            each <= each_of_many,
            "{each} bytes for each of {holders} holders, {each_of_many} at most are written down"
        );
    }
    let in_order = entry_bytes(65, 1, 1);
    println!("where one holds each, in order: {in_order:.1}");
    assert!((in_order - one).abs() <= 0.1 * one, "{in_order} bytes in order, {one} are written down");
    let of_many = entry_bytes(4096, 4, SCATTERED);
    assert!((of_many - measured[1].1).abs() < 1.0, "{of_many} bytes in a job of 4,096 ranks");
}
