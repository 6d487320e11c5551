//! Golden transcripts of the protocol: each file is one scenario with all of its events and actions.
//!
//! A line beginning with `>` is a command, followed by the resulting events and actions. `UPDATE_TRANSCRIPTS=1`
//! rewrites the files with the current events and actions, for review. Commands:
//!
//! ```text
//! > world RANKS PAGES FRAMES [uncooperative|told|hosts]  the ranks, with pages and frames each. `told`: homes
//!                                                invalidate several holders through relays only.
//!                                                `hosts`: each two are on a host, and homes know that
//! > RANK read|write|overwrite PAGE               an operation of a client
//! > ship read|write PAGE                         an operation at the page's location, which must be possible
//! > evict RANK PAGE                              free the frame of a page
//! > prefetch RANK PAGE                           the page may be needed soon
//! > dismiss PAGE                                 guest copies of a page are given up
//! > adopt RANK PAGE                              another rank is about to give the page up
//! > stuck RANK                                   no frame can be freed for the awaiting pages
//! > clean RANK PAGE                              write a page back and keep it
//! > flush RANK                                   write dirty pages back
//! > recall PAGE                                  bring the file up to date with a page, whoever has it
//! > tell RANK PAGE                               the rank tells the page's home if it has given the page up
//! > run                                          all flights land, in order
//! > run but TEXT                                 the same, except flights whose display contains TEXT
//! > land TEXT                                    the first flight whose display contains TEXT lands
//! > fail TEXT                                    the first load or store whose display contains TEXT fails
//! ```

use crate::world::{Flight, Op, Shape, World, home_of};
use std::fs;
use std::path::Path;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, Event, PageId};

fn rank(text: &str) -> Rank {
    Rank(text.strip_prefix('r').and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{text} is no rank")))
}

fn page(text: &str) -> PageId {
    let parse = || {
        let (home, index) = text.strip_prefix('p')?.split_once('.')?;
        Some(PageId::of_segment(Rank(home.parse().ok()?), index.parse().ok()?))
    };
    parse().unwrap_or_else(|| panic!("{text} is no page"))
}

fn new_world(words: &[&str]) -> World {
    let number = |at: usize| words[at].parse().unwrap_or_else(|_| panic!("{} is no number", words[at]));
    let cooperative = words.get(3) != Some(&"uncooperative");
    let mut world =
        World::new(Shape { ranks: number(0), pages: number(1), frames: number(2), page_bytes: 1, cooperative });
    if words.get(3) == Some(&"hosts") {
        world = world.on_hosts_of(2);
    }
    if words.get(3) == Some(&"told") {
        world = world.telling_itself(1);
    }
    world.trace = Some(Vec::new());
    world
}

fn run(world: &mut World, but: Option<&str>) {
    let may_land = |flight: &Flight| but.is_none_or(|text| !flight.show().contains(text));
    while let Some(at) = world.flights.iter().position(may_land) {
        world.land(at);
        world.check();
    }
}

fn command(world: &mut World, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["world", ref shape @ ..] => *world = new_world(shape),
        ["run"] => run(world, None),
        ["run", "but", ..] => run(world, line.strip_prefix("run but ")),
        ["land", ..] => {
            let text = line.strip_prefix("land ").expect("words were split there");
            let at = world.flights.iter().position(|flight| flight.show().contains(text));
            world.land(at.unwrap_or_else(|| panic!("nothing under way shows {text}: {:#?}", world.flights)));
        }
        ["fail", ..] => {
            let text = line.strip_prefix("fail ").expect("words were split there");
            let at = world.flights.iter().position(|flight| flight.show().contains(text));
            world.fail(at.unwrap_or_else(|| panic!("nothing under way shows {text}: {:#?}", world.flights)));
        }
        ["ship", access @ ("read" | "write"), what] => {
            let access = if access == "read" { Access::Read } else { Access::Write };
            let op = Op { access, whole: false, offset: 0, value: 9 };
            assert!(world.ship(page(what), op), "nobody may use {what} at rest");
        }
        ["prefetch", at, what] => world.event(rank(at), Event::Prefetch(page(what))),
        ["adopt", at, what] => world.event(rank(at), Event::Adopt(page(what))),
        ["dismiss", what] => world.event(home_of(page(what)), Event::Dismiss(page(what))),
        ["evict", at, what] => {
            let (at, what) = (rank(at), page(what));
            let cache = &world.nodes[at.index()].protocol.cache;
            let frames = (0..world.shape.frames).map(vgasnet_protocol::coherence::FrameId);
            let frame =
                frames.into_iter().find(|frame| cache.page_in(*frame) == Some(what)).expect("the page has a frame");
            world.event(at, Event::Evict(frame));
        }
        ["stuck", at] => world.event(rank(at), Event::NoVictim),
        ["clean", at, what] => world.event(rank(at), Event::WriteBack(page(what))),
        ["flush", at] => world.event(rank(at), Event::Flush),
        ["recall", what] => world.recall(page(what)),
        ["tell", at, what] => world.event(rank(at), Event::Tell(page(what))),
        [at, access @ ("read" | "write" | "overwrite"), what] => {
            let whole = access == "overwrite";
            let access = if access == "read" { Access::Read } else { Access::Write };
            let value = world.trace.as_ref().map_or(0, Vec::len) as u8 | 1;
            world.start(rank(at), page(what), Op { access, whole, offset: 0, value });
        }
        _ => panic!("no such command: {line}"),
    }
    world.check();
}

/// The transcript with the current events and actions.
fn replay(transcript: &str) -> String {
    let mut world = new_world(&["1", "1", "1"]);
    let mut replayed = String::new();
    for line in transcript.lines() {
        if let Some(text) = line.strip_prefix("> ") {
            command(&mut world, text);
            replayed += &format!("{line}\n");
            for happened in world.trace.as_mut().expect("it is traced").drain(..) {
                replayed += &format!("{happened}\n");
            }
        } else if line.is_empty() || line.starts_with('#') {
            replayed += &format!("{line}\n");
        }
    }
    assert!(world.flights.is_empty(), "a transcript ends when nothing is under way");
    world.check_quiet();
    replayed
}

#[test]
fn every_path_goes_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/coherence/transcripts");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the folder is there").map(|e| e.expect("readable").path()).collect();
    paths.sort();
    assert!(paths.len() >= 14, "only {} transcripts", paths.len());
    for path in paths {
        let expected = fs::read_to_string(&path).expect("a transcript is text");
        let happened = replay(&expected);
        if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
            fs::write(&path, happened).expect("transcripts can be written");
        } else {
            assert!(expected == happened, "{} is not what happens now, which is:\n{happened}", path.display());
        }
    }
}
