//! Locks of bytes of shared files, for atomic calls and for programs.

use super::calls::Call;
use crate::job::Job;
use fastrand::Rng;
use vgasnet_protocol::file_locks::{LockId, LockMode, LockPurpose, LockRange, LockRequest};
use vgasnet_protocol::{Rank, Space};

/// Locks that programs of a rank request at once, one per thread.
const LOCKS_AT_ONCE: usize = 2;

/// A lock held or awaited by a thread.
pub struct Lock {
    pub id: LockId,
    pub purpose: LockPurpose,
    pub ranges: Vec<LockRange>,
    /// The call to begin when it is granted.
    pub wanted: Option<Wanted>,
}

/// A call waiting for its lock.
pub struct Wanted {
    pub call: Call,
    pub memory: Vec<u8>,
}

impl Lock {
    /// Whether a program holds or awaits it, rather than a call.
    pub fn is_for_program(&self) -> bool {
        self.purpose == LockPurpose::Program
    }
}

impl Job {
    /// A thread requests a lock.
    pub fn ask_for_lock(&mut self, rank: usize, space: Space, purpose: LockPurpose, ranges: &[LockRange]) -> LockId {
        let file = &self.files.open[&space];
        let page_bytes = crate::job::PAGE_BYTES as u64;
        let request = LockRequest { file: space, purpose, stripes: &file.stripes, page_bytes, ranges };
        let engine = &mut self.nodes[rank].engine;
        let id = engine.lock(request);
        self.files.seen.waited += u64::from(!engine.is_locked(id));
        self.rouse(rank);
        id
    }

    /// A program locks some bytes.
    pub fn lock_some(&mut self, rank: usize, space: Space, random: &mut Rng) -> bool {
        let file = &self.files.open[&space];
        let of_program = file.members[&rank].locks.iter().filter(|lock| lock.purpose == LockPurpose::Program);
        if of_program.count() >= LOCKS_AT_ONCE {
            return false;
        }
        let start = random.u64(0..file.size_bytes() as u64);
        let end = random.u64(start..file.size_bytes() as u64) + 1;
        let mode = if random.bool() { LockMode::Exclusive } else { LockMode::Shared };
        let ranges = vec![LockRange { start, end, mode }];
        let id = self.ask_for_lock(rank, space, LockPurpose::Program, &ranges);
        let lock = Lock { id, purpose: LockPurpose::Program, ranges, wanted: None };
        self.files.get(space).members.get_mut(&rank).expect("it is a member").locks.push(lock);
        true
    }

    /// A thread with a granted lock begins its call, or releases the lock. Returns whether there was such a thread.
    pub fn go_on_with_lock(&mut self, rank: usize, space: Space) -> bool {
        let engine = &self.nodes[rank].engine;
        let member = self.files.open.get_mut(&space).and_then(|file| file.members.get_mut(&rank));
        let Some(member) = member else { return false };
        let may_go_on = |lock: &super::locks::Lock| {
            engine.is_locked(lock.id) && (lock.wanted.is_some() || lock.purpose == LockPurpose::Program)
        };
        let Some(at) = member.locks.iter().position(may_go_on) else { return false };
        match member.locks[at].wanted.take() {
            Some(Wanted { call, memory }) => self.begin_call(rank, call, memory),
            None => {
                self.files.seen.locked += 1;
                let id = member.locks[at].id;
                self.unlock(rank, space, id);
            }
        }
        true
    }

    /// A thread releases its lock.
    pub fn unlock(&mut self, rank: usize, space: Space, id: LockId) {
        let member = self.files.get(space).members.get_mut(&rank).expect("it is a member");
        member.locks.retain(|lock| lock.id != id);
        self.nodes[rank].engine.unlock(id);
        self.rouse(rank);
    }

    /// Granted locks exclude each other.
    pub fn check_locks(&self) {
        for file in self.files.open.values() {
            let locks = file.members.iter().flat_map(|(rank, member)| member.locks.iter().map(|lock| (*rank, lock)));
            let granted: Vec<_> = locks.filter(|(rank, lock)| self.nodes[*rank].engine.is_locked(lock.id)).collect();
            for (at, (rank, lock)) in granted.iter().enumerate() {
                for (other_rank, other) in &granted[..at] {
                    let has_conflict = lock.purpose == other.purpose
                        && lock.ranges.iter().any(|range| other.ranges.iter().any(|its| its.conflicts_with(range)));
                    let (space, ranges, its) = (file.space, &lock.ranges, &other.ranges);
                    assert!(!has_conflict, "r{rank} and r{other_rank} both lock {space:?}: {ranges:?}, {its:?}");
                }
            }
        }
    }

    /// The most messages about locks that wait for room in a conduit. Each request is in several parts, and has an
    /// answer and an unlock.
    pub fn lock_messages_max(&self) -> usize {
        let parts = |file: &super::SharedFile| {
            let ranges = file.members.values().flat_map(|member| &member.locks).map(|lock| lock.ranges.len());
            // Recently released locks still have messages in flight.
            (ranges.sum::<usize>() + 4 * file.members.len()) * file.pages as usize
        };
        4 * self.files.open.values().map(parts).sum::<usize>()
    }

    /// Describes the waiting requests, and the holders they wait for.
    pub fn lock_waits(&self, space: Space) -> String {
        let mut shown = String::new();
        for (home, node) in self.nodes.iter().enumerate() {
            for ask in node.engine.locks().asks_here().filter(|ask| ask.file == space) {
                let Rank(rank) = ask.rank;
                let what = if ask.is_granted { "has" } else { "waits for" };
                shown += &format!("r{rank} {what} {:?} at r{home}: {:?}, {:?}\n", ask.ranges, ask.purpose, ask.name);
            }
        }
        shown
    }
}
