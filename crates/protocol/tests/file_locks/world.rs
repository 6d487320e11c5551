//! A job of ranks locking bytes of files, over a network with any order of messages.

use crate::model::Model;
use std::sync::Arc;
use vgasnet_protocol::file_locks::{
    Action, FileLocks, LockId, LockMessage, LockMode, LockPurpose, LockRange, LockRequest,
};
use vgasnet_protocol::{Rank, Space, Stripes, Violation};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 10;

/// A message in flight.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flight {
    pub from: Rank,
    pub to: Rank,
    pub bytes: Arc<[u8]>,
}

/// A request from its lock to its unlock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    pub rank: Rank,
    pub id: LockId,
    pub file: Space,
    pub purpose: LockPurpose,
    pub ranges: Arc<[LockRange]>,
    pub is_granted: bool,
}

#[derive(Clone, Hash)]
pub struct World {
    /// States of an exploration share equal nodes.
    pub nodes: Vec<Arc<FileLocks>>,
    pub stripes: Stripes,
    pub flights: Vec<Flight>,
    pub requests: Vec<Request>,
    /// The refusal that ended the job, if a message made no sense.
    pub refusal: Option<Violation>,
    /// Forged messages are in use: only the absence of panics is checked.
    pub is_tainted: bool,
    /// Total number of messages sent.
    pub sent: u64,
    /// The expected answers of each home.
    pub model: Option<Model>,
    /// The events so far, if recorded.
    pub trace: Option<Vec<String>>,
}

/// The bytes of a page.
pub fn page(index: u64, mode: LockMode) -> LockRange {
    LockRange { start: index * PAGE_BYTES, end: (index + 1) * PAGE_BYTES, mode }
}

fn conflict(one: &[LockRange], other: &[LockRange]) -> bool {
    one.iter().any(|range| other.iter().any(|of_other| range.conflicts_with(of_other)))
}

impl World {
    /// Ranks without locks. Pages are assigned to the homes round robin.
    pub fn new(ranks: u32, homes: &[Rank], message_bytes_max: usize) -> World {
        let node = Arc::new(FileLocks::new(ranks, message_bytes_max));
        World {
            nodes: vec![node; ranks as usize],
            stripes: Stripes { homes: homes.into(), pages: 1 },
            flights: Vec::new(),
            requests: Vec::new(),
            refusal: None,
            is_tainted: false,
            sent: 0,
            model: None,
            trace: None,
        }
    }

    pub fn node(&mut self, rank: Rank) -> &mut FileLocks {
        Arc::make_mut(&mut self.nodes[rank.index()])
    }

    pub fn lock(&mut self, rank: Rank, file: Space, purpose: LockPurpose, ranges: &[LockRange]) {
        self.note(|| format!("{rank:?} locks {ranges:?} of {file:?} for {purpose:?}"));
        let stripes = self.stripes.clone();
        let request = LockRequest { file, purpose, stripes: &stripes, page_bytes: PAGE_BYTES, ranges };
        let mut actions = Vec::new();
        let id = self.node(rank).lock(request, &mut actions);
        self.requests.push(Request { rank, id, file, purpose, ranges: ranges.into(), is_granted: false });
        self.carry_out(rank, actions);
    }

    /// Unlocks the granted request at `at`.
    pub fn unlock(&mut self, at: usize) {
        let Request { rank, id, .. } = self.requests.remove(at);
        self.note(|| format!("{rank:?} unlocks {id:?}"));
        let mut actions = Vec::new();
        self.node(rank).unlock(id, &mut actions);
        self.carry_out(rank, actions);
    }

    /// All ranks close a file without locks.
    pub fn forget_file(&mut self, file: Space) {
        self.note(|| format!("{file:?} is closed"));
        self.model.iter_mut().for_each(|model| model.forget_file(file));
        for node in &mut self.nodes {
            Arc::make_mut(node).forget_file(file).expect("nobody waits");
        }
    }

    /// Delivers the message at `at`.
    pub fn land(&mut self, at: usize) {
        let Flight { from, to, bytes } = self.flights.remove(at);
        self.deliver(from, to, &bytes);
    }

    pub fn deliver(&mut self, from: Rank, to: Rank, bytes: &[u8]) {
        self.note(|| format!("{from:?} -> {to:?}: {:?}", LockMessage::decode(bytes)));
        let mut actions = Vec::new();
        if let Err(violation) = self.node(to).on_message(from, bytes, &mut actions) {
            assert!(self.is_tainted, "{violation}");
            self.refusal = Some(violation);
            return;
        }
        if let Some(model) = &mut self.model {
            model.on_message(from, to, bytes, &actions);
        }
        self.carry_out(to, actions);
    }

    fn carry_out(&mut self, rank: Rank, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, bytes } => {
                    self.sent += 1;
                    self.flights.push(Flight { from: rank, to, bytes: bytes.into() });
                }
                Action::Granted(id) => {
                    self.note(|| format!("{rank:?} has {id:?}"));
                    let mut own = self.requests.iter_mut().filter(|request| request.rank == rank && request.id == id);
                    let request = own.next().expect("it was asked for");
                    assert!(!request.is_granted, "{request:?} twice");
                    request.is_granted = true;
                }
            }
        }
    }

    /// Checks the invariants of every state.
    pub fn check(&self) {
        for (at, one) in self.requests.iter().enumerate() {
            assert_eq!(self.nodes[one.rank.index()].is_granted(one.id), one.is_granted, "{one:?}");
            for other in self.requests[at + 1..].iter().filter(|other| one.is_granted && other.is_granted) {
                let same = (one.file, one.purpose) == (other.file, other.purpose);
                assert!(!same || !conflict(&one.ranges, &other.ranges), "{one:?} and {other:?}");
            }
        }
        for node in &self.nodes {
            let asks: Vec<_> = node.asks_here().collect();
            for one in &asks {
                let others = asks.iter().filter(|other| (other.rank, other.name) != (one.rank, one.name));
                let mut conflicting = others
                    .filter(|other| (one.file, one.purpose) == (other.file, other.purpose))
                    .filter(|other| conflict(one.ranges, other.ranges));
                if one.is_granted {
                    assert!(conflicting.all(|other| !other.is_granted), "{one:?}");
                } else {
                    assert!(one.name.waits && conflicting.next().is_some(), "{one:?} waits for nobody");
                }
            }
        }
    }

    /// Checks the invariants of a state without flights and locks.
    pub fn check_quiet(&self) {
        assert_eq!(self.requests, [], "they wait for each other");
        assert!(self.nodes.iter().all(|node| node.is_quiet()), "something is left");
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }
}
