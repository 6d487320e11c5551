//! Joint operations of the ranks of a file, as in `Files`. Each step waits until all ranks have finished the step
//! before.

use super::SharedFile;
use super::flush::Waits;
use super::history::History;
use super::locks::Lock;
use super::steps::Steps;
use crate::job::{Job, PAGE_BYTES};
use std::sync::Arc;
use vgasnet_engine::FileState;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::{FileAsk, PageFilter};
use vgasnet_protocol::{Rank, Space};

/// A joint operation of all ranks of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    Sync,
    /// Gives the file this many bytes.
    SetSize(u64),
    Close,
}

/// A rank's progress in a joint operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// It uses the file.
    Using,
    /// It has no unfinished call, except in a sync.
    Came,
    Flushing,
    Flushed,
    /// Sync only, after all flushes: as a home, it has the pages written back that are dirty in some pool.
    Recalling,
    Recalled,
    /// Sync only, after all recalls: no new call uses the file's bytes.
    Barring,
    /// No call is unfinished.
    Barred,
    /// After all flushes: waits until nothing about the file is pending here.
    Settling,
    Settled,
    /// Only for a new size, after all have settled: nothing about the file is pending at this home.
    Idle,
    /// Waits until the pages to be dropped have no pins.
    Forgetting,
    /// It has closed the file, or knows the new size.
    Closed,
}

/// A rank of the file's team.
pub struct Member {
    pub step: Step,
    pub waits: Waits,
    pub known_bytes: u64,
    pub state: Arc<FileState>,
    /// The locks its threads hold or wait for.
    pub locks: Vec<Lock>,
    /// The cause of a failed write in its part of a joint flush.
    refusal: Option<Cause>,
    /// When it came to the joint operation.
    came: u64,
    /// Its writes before this time are on the disk, by a successful sync.
    pub promised: Option<u64>,
    /// Its requests to other ranks, as a home.
    recalls: Vec<u32>,
}

impl Member {
    pub fn new(known_bytes: u64, state: Arc<FileState>) -> Member {
        let (step, waits, refusal) = (Step::Using, Waits::Nothing, None);
        Member {
            step,
            waits,
            known_bytes,
            state,
            locks: Vec::new(),
            refusal,
            came: 0,
            promised: None,
            recalls: Vec::new(),
        }
    }

    /// Whether its threads may begin calls. They may also while another thread syncs the file, until the sync bars
    /// them.
    pub fn may_begin(&self, errand: Option<Errand>) -> bool {
        self.step == Step::Using || errand == Some(Errand::Sync) && self.step < Step::Barring
    }
}

impl SharedFile {
    /// Whether all ranks have come to this step.
    pub fn all_are(&self, step: Step) -> bool {
        self.members.values().all(|member| member.step >= step)
    }

    /// Whether some rank is flushing.
    pub fn is_flushing(&self) -> bool {
        let flushes = |member: &Member| {
            matches!(member.step, Step::Flushing | Step::Flushed | Step::Recalling)
                || matches!(member.waits, Waits::Flush(..) | Waits::Homes(..))
        };
        self.members.values().any(flushes)
    }

    fn return_to(&mut self, step: Step) {
        self.members.values_mut().for_each(|member| member.step = step);
    }
}

impl Job {
    /// A rank takes the next step of an operation of its own on a file, or of a joint one. Returns whether it did.
    pub fn go_on_with_file(&mut self, rank: usize, space: Space) -> bool {
        let Some((file, member)) = self.files.open.get(&space).and_then(|file| Some((file, file.members.get(&rank)?)))
        else {
            return false;
        };
        if !matches!(member.waits, Waits::Nothing) {
            return self.go_on_waiting(rank, space);
        }
        let calls = self.nodes[rank].operations.iter().filter_map(|operation| operation.call.as_ref());
        let mut calls = calls.filter(|call| call.space == space);
        let engine = &self.nodes[rank].engine;
        let next = match member.step {
            Step::Using if file.errand == Some(Errand::Sync) => Step::Came,
            Step::Using if file.errand.is_some() && calls.next().is_none() && member.locks.is_empty() => Step::Came,
            Step::Recalling => return self.take_recalls(rank, space),
            Step::Recalled if file.all_are(Step::Recalled) => Step::Barring,
            Step::Barring if calls.all(|call| call.is_noted) && member.locks.iter().all(Lock::is_for_program) => {
                Step::Barred
            }
            Step::Barred if file.all_are(Step::Barred) => {
                self.end_sync(space);
                return true;
            }
            Step::Came if file.all_are(Step::Came) => Step::Flushing,
            Step::Flushing if engine.is_flushed_file(space) => Step::Flushed,
            // The last rank to flush decides for all whether the flush has succeeded.
            Step::Flushed if file.all_are(Step::Flushed) => {
                self.agree(space);
                return true;
            }
            Step::Forgetting => return self.forget_pages(rank, space),
            Step::Settling if engine.is_quiet_about(space) => Step::Settled,
            Step::Settled if file.all_are(Step::Settled) => match file.errand {
                Some(Errand::SetSize(_)) if engine.is_quiet_at_home(space) => Step::Idle,
                Some(Errand::SetSize(_)) => return false,
                _ => Step::Forgetting,
            },
            Step::Idle if file.all_are(Step::Idle) => Step::Forgetting,
            _ => return false,
        };
        self.enter(rank, space, next);
        true
    }

    fn enter(&mut self, rank: usize, space: Space, step: Step) {
        let in_flight = self.hub.in_flight() as u64;
        let (file, engine) = (self.files.open.get_mut(&space).expect("it is open"), &mut self.nodes[rank].engine);
        let is_first = !file.members.values().any(|member| member.step == step);
        let member = file.members.get_mut(&rank).expect("it is a member");
        member.step = step;
        let is_last = file.all_are(step);
        let member = file.members.get_mut(&rank).expect("it is a member");
        match (step, file.errand) {
            (Step::Came, _) => {
                member.came = file.history.timestamp();
                if is_last && file.options.heals_early {
                    file.heal();
                }
            }
            (Step::Recalling, _) => {
                let (own, all) = (Rank(rank as u32), PageFilter::ALL.0);
                let homes = file.stripes.homes.iter().filter(|home| **home == own);
                member.recalls = homes.map(|home| engine.ask_of_file(*home, space, FileAsk::Flush, all)).collect();
            }
            (Step::Flushing, _) => engine.flush_file(space),
            (Step::Flushed, _) => {
                file.members.get_mut(&rank).expect("it is a member").refusal = engine.refusal(space);
            }
            (Step::Closed, Some(Errand::SetSize(bytes))) => {
                let page_bytes = PAGE_BYTES as u64;
                engine.cut_file(space, (bytes / page_bytes) as u32, bytes.div_ceil(page_bytes) as u32);
                if is_last {
                    self.end_cut(space, bytes);
                }
            }
            (Step::Closed, _) => {
                self.files.seen.overtaken += if is_first { in_flight } else { 0 };
                engine.close_file(space);
                if is_last {
                    self.end_file(space);
                }
            }
            _ => {}
        }
        self.rouse(rank);
    }

    /// A home has the pages written back that are dirty in some pool. Returns whether it is done.
    fn take_recalls(&mut self, rank: usize, space: Space) -> bool {
        let file = self.files.open.get_mut(&space).expect("it is open");
        let member = file.members.get_mut(&rank).expect("it is a member");
        let Some(answers) = self.nodes[rank].engine.take_answers_of_file(&member.recalls) else { return false };
        self.files.seen.recalled += answers.len() as u64;
        member.refusal = answers.iter().find_map(|answer| Cause::of_byte(answer.cause));
        member.step = Step::Recalled;
        if file.all_are(Step::Recalled) && self.is_refused(space) {
            self.rouse_members(space);
        }
        true
    }

    /// A rank drops its pages of a file. Once none is left, it closes the file or learns its new size.
    fn forget_pages(&mut self, rank: usize, space: Space) -> bool {
        let first = match self.files.open[&space].errand {
            Some(Errand::SetSize(bytes)) => (bytes / PAGE_BYTES as u64) as u32,
            _ => 0,
        };
        let is_over = self.nodes[rank].engine.forget_pages(space, first);
        if is_over {
            self.enter(rank, space, Step::Closed);
        }
        is_over
    }

    /// Whether some rank could not write. Then the joint operation has failed. It is repeated after the file has been
    /// healed, if the file heals.
    fn is_refused(&mut self, space: Space) -> bool {
        let file = self.files.open.get_mut(&space).expect("it is open");
        let seen = &mut self.files.seen;
        if file.members.values().all(|member| member.refusal.is_none()) {
            return false;
        }
        assert!(file.is_faulty, "nothing is wrong with the file");
        if file.options.heals {
            seen.repeated += 1;
            file.heal();
            file.return_to(Step::Came);
        } else if file.errand == Some(Errand::Close) {
            seen.lost += 1;
            file.return_to(Step::Settling);
        } else {
            seen.failed_together += 1;
            file.errand = None;
            file.return_to(Step::Using);
        }
        true
    }

    /// The file gets its size while some ranks write. It must have each rank's writes from before the sync.
    fn end_sync(&mut self, space: Space) {
        let end = self.give_end(space);
        let is_synced = self.files.get(space).reach_disk();
        let calls = self.nodes.iter().flat_map(|node| &node.operations).filter_map(|operation| operation.call.as_ref());
        let unfinished = calls.filter(|call| call.space == space && call.is_put).count();
        let (file, seen) = (self.files.open.get_mut(&space).expect("it is open"), &mut self.files.seen);
        seen.synced_during_writes += u64::from(unfinished > 0);
        seen.synced += 1;
        seen.doubted += u64::from(!is_synced);
        let bytes = file.memory.bytes();
        for (rank, member) in &mut file.members {
            file.history.check_flushed(*rank, member.came, &bytes);
            member.known_bytes = end;
            member.promised = if is_synced { Some(member.came) } else { member.promised };
        }
        file.errand = None;
        file.return_to(Step::Using);
        self.rouse_members(space);
    }

    /// Makes a file as long as its written bytes. Returns its length.
    fn give_end(&mut self, space: Space) -> u64 {
        let file = self.files.open.get_mut(&space).expect("it is open");
        let end_of = |member: &super::Member| member.state.written_end().max(member.known_bytes);
        let end = file.members.values().map(end_of).max().unwrap_or_default();
        let (least, most) = (file.least_bytes, file.most_bytes);
        assert!(least <= end && end <= most, "{end} bytes are {least}..={most}");
        file.named.set_size(end).expect("it may be as long");
        end
    }

    /// All ranks know the new size of a file.
    fn end_cut(&mut self, space: Space, bytes: u64) {
        self.model.cut_file(space, bytes);
        let newest = self.model.bytes(space);
        let file = self.files.open.get_mut(&space).expect("it is open");
        for member in file.members.values_mut() {
            member.state.forget_end();
            member.known_bytes = bytes;
            member.promised = None;
        }
        if let Some(steps) = &mut file.steps {
            steps.check();
            *steps = Steps::new(newest.clone());
            self.files.seen.in_order += 1;
        }
        file.history = History::new(newest);
        (file.least_bytes, file.most_bytes) = (bytes, bytes);
        (file.is_cutting, file.errand) = (false, None);
        file.return_to(Step::Using);
        self.rouse_members(space);
    }

    /// All ranks have flushed.
    fn agree(&mut self, space: Space) {
        if !self.is_refused(space) {
            self.written(space);
        }
        self.rouse_members(space);
    }

    /// All written bytes are in the file, and the file gets its size.
    fn written(&mut self, space: Space) {
        if self.files.open[&space].errand == Some(Errand::Sync) {
            let ranks: Vec<usize> = self.files.open[&space].members.keys().copied().collect();
            return ranks.into_iter().for_each(|rank| self.enter(rank, space, Step::Recalling));
        }
        let end = self.give_end(space);
        let (file, seen) = (self.files.open.get_mut(&space).expect("it is open"), &mut self.files.seen);
        let (mut there, newest) = (file.memory.bytes(), self.model.bytes(space));
        there.resize(newest.len(), 0);
        let at = there.iter().zip(&newest).position(|(there, newest)| there != newest);
        assert_eq!(at, None, "the file lacks bytes that were written, and nobody was told");
        match file.errand.expect("all do something together") {
            Errand::SetSize(bytes) => {
                seen.cut += u64::from(bytes < end);
                seen.grown += u64::from(bytes > end);
                file.named.set_size(bytes).expect("it may be as long");
                file.is_cutting = true;
                file.return_to(Step::Settling);
            }
            Errand::Close => {
                seen.closed += 1;
                file.return_to(Step::Settling);
            }
            Errand::Sync => unreachable!("calls may be under way"),
        }
    }

    fn rouse_members(&mut self, space: Space) {
        let members: Vec<usize> = self.files.open[&space].members.keys().copied().collect();
        members.into_iter().for_each(|rank| self.rouse(rank));
    }
}
