//! What ranks do together with the file that they have open, as `Files` does: each step waits until all have taken the one before.

use super::SharedFile;
use super::history::History;
use crate::job::{Job, Node, PAGE_BYTES};
use fastrand::Rng;
use std::sync::atomic::Ordering;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_protocol::file_message::FileAsk;

/// How far a rank has come with closing the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It uses the file.
    Using,
    /// No call of its own is under way.
    Came,
    Flushing,
    Flushed,
    /// All have flushed: waits until nothing is under way about the file here.
    Settling,
    Settled,
    Closed,
}

/// What a rank waits for besides.
#[derive(Debug)]
enum Waits {
    Nothing,
    /// A flush of its own, begun at a moment.
    Flush(u64),
    /// The homes flush, too.
    Homes(u64, Vec<u32>, Option<Cause>),
    /// Others tell how long the file is.
    Ends(Vec<u32>),
}

/// A rank that has the file open.
pub struct Member {
    pub step: Step,
    waits: Waits,
    known_bytes: u64,
    /// Why its flush, with all others, could not write something.
    refusal: Option<Cause>,
}

impl Member {
    pub fn new(known_bytes: u64) -> Member {
        Member { step: Step::Using, waits: Waits::Nothing, known_bytes, refusal: None }
    }
}

impl SharedFile {
    /// Whether all ranks have it open.
    pub fn is_open(&self) -> bool {
        self.members.iter().all(|member| member.step < Step::Closed)
    }

    /// Whether all have come so far.
    pub fn all_are(&self, step: Step) -> bool {
        self.members.iter().all(|member| member.step >= step)
    }

    /// Whether some rank writes all that it has.
    pub fn is_flushing(&self) -> bool {
        let flushes = |member: &Member| {
            matches!(member.step, Step::Flushing | Step::Flushed)
                || matches!(member.waits, Waits::Flush(_) | Waits::Homes(..))
        };
        self.members.iter().any(flushes)
    }

    /// Nothing goes wrong any more. Operations under way may still fail.
    pub fn heal(&mut self) {
        self.memory.configure(|faults| faults.heal());
        self.memory.limit_space(usize::MAX);
    }
}

impl Job {
    /// Makes a rank go on with what it waits for, or with closing the file if `is_over`: no call of any rank is to begin. Returns
    /// whether it did.
    pub fn go_on_with_file(&mut self, rank: usize, is_over: bool, heals: bool) -> bool {
        let Some(file) = &self.file else { return false };
        if !matches!(file.members[rank].waits, Waits::Nothing) {
            return self.go_on_waiting(rank);
        }
        let (step, space) = (file.members[rank].step, file.space);
        let has_calls = self.nodes[rank].operations.iter().any(|operation| operation.call.is_some());
        let engine = &self.nodes[rank].engine;
        let next = match step {
            Step::Using if is_over && !has_calls => Step::Came,
            Step::Came if file.all_are(Step::Came) => Step::Flushing,
            Step::Flushing if engine.is_flushed_file(space) => Step::Flushed,
            // The last one says for all whether it is done.
            Step::Flushed if file.all_are(Step::Flushed) => return self.agree(heals),
            Step::Settling if engine.is_quiet_about(space) => Step::Settled,
            Step::Settled if file.all_are(Step::Settled) => Step::Closed,
            _ => return false,
        };
        self.enter(rank, next);
        true
    }

    fn enter(&mut self, rank: usize, step: Step) {
        let in_flight = self.hub.in_flight() as u64;
        let file = self.file.as_mut().expect("it is open");
        let was_open = file.is_open();
        file.members[rank].step = step;
        match step {
            Step::Flushing => self.nodes[rank].engine.flush_file(file.space),
            Step::Flushed => file.members[rank].refusal = self.nodes[rank].engine.refusal(file.space),
            Step::Closed => {
                file.seen.overtaken += if was_open { in_flight } else { 0 };
                self.nodes[rank].engine.close_file(file.space);
            }
            _ => {}
        }
        self.rouse(rank);
    }

    /// All have flushed. The file is whole, or it is tried again if it was healed before, or some of it is lost.
    fn agree(&mut self, heals: bool) -> bool {
        let file = self.file.as_mut().expect("it is open");
        let is_refused = file.members.iter().any(|member| member.refusal.is_some());
        assert!(!is_refused || file.is_faulty, "nothing is wrong with the file");
        let next = if is_refused && heals { Step::Came } else { Step::Settling };
        file.members.iter_mut().for_each(|member| member.step = next);
        if !is_refused {
            file.seen.closed += 1;
            let written = file.states.iter().map(|state| state.written_end.load(Ordering::Relaxed));
            let end = written.chain(file.members.iter().map(|member| member.known_bytes)).max().unwrap_or_default();
            file.named.set_size(end).expect("it may be as long");
            let (mut there, newest) = (file.memory.bytes(), self.model.bytes(file.space));
            assert_eq!(there.len() as u64, end);
            there.resize(newest.len(), 0);
            let at = there.iter().zip(&newest).position(|(there, newest)| there != newest);
            assert_eq!(at, None, "the file lacks bytes that were written, and nobody was told");
        } else if heals {
            file.seen.repeated += 1;
            file.heal();
        } else {
            file.seen.lost += 1;
        }
        (0..self.nodes.len()).for_each(|rank| self.rouse(rank));
        true
    }

    /// A rank goes on with what it waits for alone.
    fn go_on_waiting(&mut self, rank: usize) -> bool {
        let file = self.file.as_mut().expect("it is open");
        let (engine, member, space) = (&mut self.nodes[rank].engine, &mut file.members[rank], file.space);
        match std::mem::replace(&mut member.waits, Waits::Nothing) {
            Waits::Flush(begun) if engine.is_flushed_file(space) => {
                let others = file.stripes.homes.iter().copied().filter(|home| home.index() != rank);
                let ids = others.map(|home| engine.ask_of_file(home, space, FileAsk::Flush)).collect();
                member.waits = Waits::Homes(begun, ids, engine.refusal(space));
            }
            Waits::Homes(begun, ids, refusal) => {
                let Some(answers) = engine.take_answers_of_file(&ids) else {
                    member.waits = Waits::Homes(begun, ids, refusal);
                    return false;
                };
                file.seen.flushes += 1;
                if refusal.is_some() || answers.iter().any(|answer| answer.cause != 0) {
                    assert!(file.is_faulty, "nothing is wrong with the file");
                    file.seen.failed_flushes += 1;
                } else {
                    // What another rank has taken meanwhile, or had in its pool, is its to write.
                    let home = |page: PageId| &self.nodes[file.stripes.home(page.index).index()].engine.protocol().home;
                    let is_elsewhere = |at: usize| {
                        let page = PageId { space, index: (at / PAGE_BYTES) as u32 };
                        let owner = home(page).dirty_owner(page);
                        let was_elsewhere = |owner: Rank| owner.index() != rank || file.history.has_others(rank, at);
                        home(page).is_writing(page) || owner.is_some_and(was_elsewhere)
                    };
                    let there = file.memory.bytes();
                    file.seen.elsewhere += file.history.check_flushed(rank, begun, &there, is_elsewhere);
                }
            }
            Waits::Ends(ids) => {
                let Some(answers) = engine.take_answers_of_file(&ids) else {
                    member.waits = Waits::Ends(ids);
                    return false;
                };
                let own = file.states[rank].written_end.load(Ordering::Relaxed);
                let end = answers.iter().map(|answer| answer.end_bytes).fold(member.known_bytes.max(own), u64::max);
                member.known_bytes = end;
                engine.note_end(space, end.div_ceil(PAGE_BYTES as u64) as u32);
            }
            other => {
                member.waits = other;
                return false;
            }
        }
        self.rouse(rank);
        true
    }

    /// A rank flushes what it has written, or asks how long the file is, or gives a hint.
    pub fn flush_or_ask(&mut self, rank: usize, random: &mut Rng) -> bool {
        let Some(file) = self.file.as_mut().filter(|file| file.members[rank].step == Step::Using) else { return false };
        let (engine, member, space) = (&mut self.nodes[rank].engine, &mut file.members[rank], file.space);
        if !matches!(member.waits, Waits::Nothing) {
            return false;
        }
        let first = random.u32(0..file.pages);
        let range = first..=random.u32(first..file.pages);
        match random.u32(0..8) {
            0..3 => {
                member.waits = Waits::Flush(file.history.moment());
                engine.flush_file(space);
            }
            3 => {
                let others = (0..file.states.len()).filter(|other| *other != rank);
                let ids = others.map(|other| engine.ask_of_file(Rank(other as u32), space, FileAsk::End)).collect();
                member.waits = Waits::Ends(ids);
            }
            4 => engine.fetch(space, range),
            5 => engine.discard(space, &range),
            6 => engine.expect_in_order(space, &range),
            _ => engine.clean(space, &range),
        }
        self.rouse(rank);
        true
    }

    /// Checks that nothing of the file is left on any rank, which all have closed.
    pub fn check_closed(&mut self) {
        let file = self.file.as_mut().expect("it was open");
        let of_rank = |(member, node): (&Member, &Node)| {
            let engine = &node.engine;
            let (is_flushed, is_quiet) = (engine.is_flushed_file(file.space), engine.is_quiet_about(file.space));
            let calls = node.operations.iter().map(|operation| operation.call).collect::<Vec<_>>();
            let Member { step, waits, .. } = member;
            format!(
                "{step:?}, {waits:?}, flushed: {is_flushed}, quiet: {is_quiet}, held: {}, {:?}, calls {calls:?}\n",
                engine.held_parts(),
                engine.pending()
            )
        };
        let stuck: String = file.members.iter().zip(&self.nodes).map(of_rank).collect();
        assert!(file.all_are(Step::Closed), "ranks wait forever:\n{stuck}");
        file.history = History::new(Vec::new());
        for (rank, node) in self.nodes.iter().enumerate() {
            let protocol = node.engine.protocol();
            let page = protocol.cache.pages_of(file.space).next();
            assert_eq!(page, None, "r{rank} has a page of a closed file");
            let entry = protocol.home.known_pages_of(file.space).next();
            assert_eq!(entry, None, "r{rank} has the directory entry of a page of a closed file");
            for index in 0..file.pages {
                let page = PageId { space: file.space, index };
                assert!(node.space.own.table.find(page).is_none(), "r{rank} has {page:?} in its page table");
            }
        }
    }
}
