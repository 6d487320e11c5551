//! Several ranks' protocols joined by a network, disks and pools, stepped one event at a time in any order.
//!
//! All flights are in `flights`; the test picks the next one to land. After each step [`World::check`] compares every
//! byte of every copy with a model and checks the invariants of docs/internals/protocol.md.

mod canonical;
mod check;
pub mod disk;
mod io;
mod shipped;

use std::collections::BTreeMap;
use vgasnet_protocol::coherence::{
    Access, Action, Cause, CoherenceBody, CoherenceMessage, Event, FrameId, Outgoing, PageId, Priority, Protocol,
    Waiter,
};
use vgasnet_protocol::{Hosts, Limits, Rank, RankSizes, Violation};

/// The shape of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    pub ranks: u32,
    /// Pages in each rank's segment.
    pub pages: u32,
    pub frames: u32,
    /// A page of one byte moves at once, a larger one in two halves.
    pub page_bytes: usize,
    pub cooperative: bool,
}

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op {
    pub access: Access,
    /// Whether it writes every byte of the page.
    pub whole: bool,
    pub offset: usize,
    /// The byte to write.
    pub value: u8,
}

/// An event in flight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flight {
    Message {
        from: Rank,
        to: Rank,
        message: CoherenceMessage,
    },
    /// Moves half of the bytes on the first landing. The second landing moves the remainder and notifies the source.
    Transfer {
        outgoing: Outgoing,
        source: Rank,
        second_half: bool,
    },
    Clear {
        rank: Rank,
        page: PageId,
        frame: FrameId,
    },
    Load {
        page: PageId,
        to: Rank,
        frame: FrameId,
        priority: Priority,
        second_half: bool,
    },
    Store {
        page: PageId,
        from: Rank,
        frame: FrameId,
        priority: Priority,
        second_half: bool,
    },
    /// An operation holding its page open until it lands.
    Copy {
        rank: Rank,
        page: PageId,
        frame: FrameId,
        waiter: Waiter,
        op: Op,
    },
    /// An operation overwriting the whole page before it is opened.
    Fill {
        rank: Rank,
        page: PageId,
        frame: FrameId,
        waiter: Waiter,
        op: Op,
    },
    Closed {
        rank: Rank,
        page: PageId,
    },
}

impl Flight {
    /// The flight as shown in transcripts.
    pub fn show(&self) -> String {
        match self {
            Flight::Message { from, to, message } => format!("{from:?} -> {to:?}: {}", show_message(message)),
            Flight::Copy { rank, page, op, .. } => format!("{rank:?}: {:?} {page:?}", op.access),
            Flight::Fill { rank, page, .. } => format!("{rank:?}: Fill {page:?}"),
            other => format!("{other:?}"),
        }
    }
}

/// The state of a page for the operations of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Word {
    open: Option<(FrameId, Access)>,
    pins: u32,
    closing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    pub protocol: Protocol,
    frames: Vec<Vec<u8>>,
    file: BTreeMap<u32, Vec<u8>>,
    words: BTreeMap<PageId, Word>,
    waiting: BTreeMap<Waiter, (PageId, Op)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct World {
    pub shape: Shape,
    pub nodes: Vec<Node>,
    pub flights: Vec<Flight>,
    /// The newest bytes of each page not all zeros.
    model: BTreeMap<PageId, Vec<u8>>,
    /// By page, the number of pending recalls.
    pub recalls: BTreeMap<PageId, u32>,
    /// The homes' disks, if crashes lose unsynced bytes.
    pub disks: Option<disk::Disks>,
    /// Every event and action, if recorded.
    pub trace: Option<Vec<String>>,
    /// Some rank violated the protocol: bytes may be anything, and a rank may refuse a message.
    pub is_tainted: bool,
    /// The refusal that ended a tainted job.
    pub refusal: Option<Violation>,
}

/// A rank's knowledge of all ranks' memory.
pub fn limits(shape: Shape, rank: Rank) -> Limits {
    let sizes = RankSizes { pages: shape.pages, frames: shape.frames };
    Limits::new(rank, (0..shape.ranks).map(|_| sizes))
}

/// The rank whose segment has the page.
pub fn home_of(page: PageId) -> Rank {
    page.space.segment().expect("all pages are of segments")
}

impl World {
    pub fn new(shape: Shape) -> World {
        let node = |rank| Node {
            protocol: Protocol::new(limits(shape, Rank(rank)), shape.cooperative),
            frames: vec![vec![0xEE; shape.page_bytes]; shape.frames as usize],
            file: BTreeMap::new(),
            words: BTreeMap::new(),
            waiting: BTreeMap::new(),
        };
        let nodes = (0..shape.ranks).map(node).collect();
        let (flights, model, recalls, disks, trace, refusal) = Default::default();
        World { shape, nodes, flights, model, recalls, disks, trace, is_tainted: false, refusal }
    }

    /// Homes keep pages read for others. Call before the first event.
    pub fn keeping_at_home(mut self) -> World {
        for node in &mut self.nodes {
            node.protocol = node.protocol.clone().keeping_at_home();
        }
        self
    }

    /// Places `ranks` ranks on each host. Call before the first event.
    pub fn on_hosts_of(mut self, ranks: u32) -> World {
        let hosts = Hosts::of((0..self.shape.ranks).map(|rank| rank / ranks));
        for node in &mut self.nodes {
            node.protocol = node.protocol.clone().on_hosts(hosts.clone());
        }
        self
    }

    /// Sets the maximum holders invalidated by the home's own messages. Call before the first event.
    pub fn telling_itself(mut self, holders: usize) -> World {
        for node in &mut self.nodes {
            node.protocol = node.protocol.clone().telling_itself(holders);
        }
        self
    }

    /// An operation of a client at `rank`: uses the page at once if it is open, otherwise requests it.
    pub fn start(&mut self, rank: Rank, page: PageId, op: Op) {
        let node = &mut self.nodes[rank.index()];
        // An operation gets the lowest free number of its rank, so that the states of an endless run recur.
        let in_use = |flights: &[Flight], waiter| {
            let uses = |flight: &Flight| match flight {
                Flight::Copy { rank: r, waiter: w, .. } | Flight::Fill { rank: r, waiter: w, .. } => {
                    *r == rank && *w == waiter
                }
                _ => false,
            };
            flights.iter().any(uses)
        };
        let mut waiter = Waiter(0);
        while node.waiting.contains_key(&waiter) || in_use(&self.flights, waiter) {
            waiter.0 += 1;
        }
        let word = node.words.entry(page).or_default();
        match word.open {
            Some((frame, access)) if access >= op.access => {
                word.pins += 1;
                self.note(|| format!("{rank:?}: {:?} {page:?} hits", op.access));
                self.flights.push(Flight::Copy { rank, page, frame, waiter, op });
            }
            _ => {
                node.waiting.insert(waiter, (page, op));
                self.event(
                    rank,
                    match op.whole {
                        true => Event::Overwrite { page, waiter },
                        false => Event::Want { page, access: op.access, waiter },
                    },
                );
            }
        }
    }

    /// Brings the file up to date with the page.
    pub fn recall(&mut self, page: PageId) {
        *self.recalls.entry(page).or_default() += 1;
        self.event(home_of(page), Event::Recall(page));
    }

    /// Operations of `rank` waiting for a page or using one.
    pub fn busy_ops(&self, rank: Rank) -> usize {
        let is_copy = |flight: &&Flight| match flight {
            Flight::Copy { rank: r, .. } | Flight::Fill { rank: r, .. } => *r == rank,
            _ => false,
        };
        let copies = self.flights.iter().filter(is_copy).count();
        self.nodes[rank.index()].waiting.len() + copies
    }

    /// The frames `rank` may give up now, if it needs one.
    pub fn evictable(&self, rank: Rank) -> Vec<FrameId> {
        let cache = &self.nodes[rank.index()].protocol.cache;
        if !cache.wants_frame() {
            return Vec::new();
        }
        (0..self.shape.frames).map(FrameId).filter(|frame| cache.evictable(*frame)).collect()
    }

    /// Lands the flight at `at`.
    pub fn land(&mut self, at: usize) {
        match self.flights.remove(at) {
            Flight::Message { from, to, message } => self.event(to, Event::Message { from, message }),
            Flight::Closed { rank, page } => self.event(rank, Event::Closed(page)),
            Flight::Clear { rank, page, frame } => {
                self.nodes[rank.index()].frames[frame.0 as usize].fill(0);
                self.event(rank, Event::Cleared(page));
            }
            Flight::Transfer { outgoing, source, second_half } => {
                let bytes = self.nodes[source.index()].frames[outgoing.from.0 as usize].clone();
                self.fill(outgoing.forward.to, outgoing.forward.frame, &bytes, second_half);
                if second_half {
                    self.event(source, Event::Transferred(outgoing));
                } else {
                    self.flights.push(Flight::Transfer { outgoing, source, second_half: true });
                }
            }
            Flight::Load { page, to, frame, priority, second_half } => {
                let file = self.nodes[home_of(page).index()].file.get(&page.index);
                assert!(self.is_tainted || file.is_some(), "{page:?} was never written to the file");
                let bytes = file.cloned().unwrap_or_else(|| vec![0; self.shape.page_bytes]);
                self.fill(to, frame, &bytes, second_half);
                if second_half {
                    self.event(home_of(page), Event::Loaded(page));
                } else {
                    self.flights.push(Flight::Load { page, to, frame, priority, second_half: true });
                }
            }
            Flight::Store { page, from, frame, priority, second_half } => {
                self.land_store(page, from, frame, priority, second_half);
            }
            Flight::Copy { rank, page, frame, op, .. } => self.land_copy(rank, page, frame, op),
            Flight::Fill { rank, page, frame, op, .. } => {
                self.write(rank, page, frame, op);
                self.event(rank, Event::Filled(page));
            }
        }
    }

    fn land_copy(&mut self, rank: Rank, page: PageId, frame: FrameId, op: Op) {
        match op.access {
            Access::Read => {
                let byte = self.nodes[rank.index()].frames[frame.0 as usize][op.offset];
                let newest = self.model.get(&page).map_or(0, |newest| newest[op.offset]);
                assert!(self.is_tainted || byte == newest, "{rank:?} read old bytes of {page:?}");
            }
            Access::Write => self.write(rank, page, frame, op),
        }
        let word = self.nodes[rank.index()].words.get_mut(&page).expect("a pinned page has a word");
        word.pins -= 1;
        if word.closing && word.pins == 0 {
            self.flights.push(Flight::Closed { rank, page });
        }
    }

    fn write(&mut self, rank: Rank, page: PageId, frame: FrameId, op: Op) {
        let len = self.shape.page_bytes;
        let range = if op.whole { 0..len } else { op.offset..op.offset + 1 };
        self.nodes[rank.index()].frames[frame.0 as usize][range.clone()].fill(op.value);
        let model = self.model.entry(page).or_insert_with(|| vec![0; len]);
        model[range.clone()].fill(op.value);
        self.disks.iter_mut().for_each(|disks| disks.note_newest(page, range.clone(), model));
    }

    fn fill(&mut self, to: Rank, frame: FrameId, bytes: &[u8], second_half: bool) {
        let half = if second_half { bytes.len() / 2..bytes.len() } else { 0..bytes.len() / 2 };
        self.nodes[to.index()].frames[frame.0 as usize][half.clone()].copy_from_slice(&bytes[half]);
    }

    /// Passes an event to a rank and starts the resulting actions.
    pub fn event(&mut self, rank: Rank, event: Event) {
        self.note(|| format!("{rank:?} <- {}", show_event(&event)));
        let mut actions = Vec::new();
        if matches!(event, Event::Closed(_)) {
            let Event::Closed(page) = event else { unreachable!() };
            self.nodes[rank.index()].words.get_mut(&page).expect("a closed page has a word").closing = false;
        }
        if let Err(violation) = self.nodes[rank.index()].protocol.handle(event, &mut actions) {
            assert!(self.is_tainted, "{violation}");
            self.refusal.get_or_insert(violation);
            return;
        }
        for action in actions {
            self.note(|| format!("{rank:?} -> {}", show_action(&action)));
            self.act(rank, action);
        }
    }

    fn act(&mut self, rank: Rank, action: Action) {
        let second_half = self.shape.page_bytes == 1;
        let node = &mut self.nodes[rank.index()];
        match action {
            Action::Send { to, message } => self.flights.push(Flight::Message { from: rank, to, message }),
            Action::Transfer(outgoing) => {
                self.flights.push(Flight::Transfer { outgoing, source: rank, second_half });
            }
            Action::Clear { page, frame } => self.flights.push(Flight::Clear { rank, page, frame }),
            Action::Load { page, to, frame, priority } => {
                self.flights.push(Flight::Load { page, to, frame, priority, second_half });
            }
            Action::Store { page, from, frame, priority } => {
                self.flights.push(Flight::Store { page, from, frame, priority, second_half });
            }
            Action::Fill { page, frame, waiter } => {
                let (wanted, op) = node.waiting.remove(&waiter).expect("a waiter waits once");
                assert!(wanted == page && op.whole);
                self.flights.push(Flight::Fill { rank, page, frame, waiter, op });
            }
            Action::Hurry { page, priority } => self.hurry(page, priority),
            Action::Recalled { page, cause } => self.note_recalled(rank, page, cause),
            Action::Dismissed(_) => {}
            Action::GiveUp(page) => assert!(node.waiting.values().all(|(wanted, _)| *wanted != page)),
            Action::Unwritten { page, .. } => {
                let cache = &node.protocol.cache;
                assert!(cache.dirty_frame(page).is_some() && !cache.is_leaving(page), "{page:?} does not stay");
            }
            Action::Fail { page, waiters, .. } => {
                for waiter in waiters {
                    let (wanted, _) = node.waiting.remove(&waiter).expect("a waiter waits once");
                    assert_eq!(wanted, page);
                }
            }
            Action::Open { page, frame, access, waiters } => {
                let word = node.words.entry(page).or_default();
                assert!(!word.closing, "{page:?} opened while closing");
                word.open = Some((frame, access));
                for waiter in waiters {
                    let (wanted, op) = node.waiting.remove(&waiter).expect("a waiter waits once");
                    assert!(wanted == page && access >= op.access);
                    word.pins += 1;
                    self.flights.push(Flight::Copy { rank, page, frame, waiter, op });
                }
            }
            Action::Close(page) => {
                let word = node.words.get_mut(&page).expect("an open page has a word");
                assert!(word.open.is_some() && !word.closing);
                word.open = None;
                word.closing = true;
                if word.pins == 0 {
                    self.flights.push(Flight::Closed { rank, page });
                }
            }
        }
    }

    /// A home has recalled a page: unless that failed, the file has its newest bytes.
    fn note_recalled(&mut self, rank: Rank, page: PageId, cause: Option<Cause>) {
        self.disks.iter_mut().for_each(|disks| disks.is_unwritten |= cause.is_some());
        let left = self.recalls.get_mut(&page).expect("it was asked for");
        *left -= 1;
        if *left == 0 {
            self.recalls.remove(&page);
        }
        let (newest, there) = (self.model.get(&page), self.nodes[rank.index()].file.get(&page.index));
        let is_there = newest.is_none_or(|newest| there == Some(newest));
        assert!(self.is_tainted || cause.is_some() || is_there, "the file lacks bytes of {page:?}");
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }

    pub fn pages(&self) -> impl Iterator<Item = PageId> + use<> {
        let shape = self.shape;
        (0..shape.ranks).flat_map(move |home| (0..shape.pages).map(move |index| PageId::of_segment(Rank(home), index)))
    }
}

fn show_message(message: &CoherenceMessage) -> String {
    match &message.body {
        CoherenceBody::Home(body) => format!("{:?} {body:?}", message.page),
        CoherenceBody::Cache(body) => format!("{:?} {body:?}", message.page),
    }
}

fn show_event(event: &Event) -> String {
    match event {
        Event::Message { from, message } => format!("{from:?}: {}", show_message(message)),
        other => format!("{other:?}"),
    }
}

fn show_action(action: &Action) -> String {
    match action {
        Action::Send { to, message } => format!("{to:?}: {}", show_message(message)),
        other => format!("{other:?}"),
    }
}
