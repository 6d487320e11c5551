//! Small operations on blocks: what each needs, and for what it waits.

use super::super::home_page::HomePage;
use super::numbering::Block;
use crate::request::Part;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Instant;
use vgasnet_protocol::coherence::{Access, Cause};
use vgasnet_stats::{self as stats, Row};

/// The blocks of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needed {
    pub page: HomePage,
    pub first: Block,
    /// 0 if the job has failed without blocks.
    pub count: u64,
    pub is_put: bool,
    /// The access for which to map the blocks.
    pub maps: Option<Access>,
    /// Whether to copy the block into the segment instead, if possible.
    pub is_copied: bool,
}

impl Needed {
    /// The numbers of the blocks.
    pub(super) fn blocks(&self) -> Range<Block> {
        self.first..self.first + self.count
    }
}

/// A small operation on blocks.
#[derive(Debug)]
struct BlockJob {
    /// `None` once it has become work.
    part: Option<Part>,
    needed: Needed,
    /// Blocks still to be read, or filled by other jobs; for a put also blocks being written.
    missing: usize,
    /// The page has been written before.
    is_written: bool,
    /// The cause of its failure: a block could not be read.
    failed: Option<Cause>,
    /// Start of its wait, if statistics are on.
    since: Option<Instant>,
}

/// A job that waits for nothing any more.
#[derive(Debug)]
pub(super) struct Ready {
    pub part: Part,
    pub needed: Needed,
    pub failed: Option<Cause>,
}

/// A job that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub needed: Needed,
    pub failed: Option<Cause>,
    /// Its page has no other job.
    pub is_last: bool,
}

/// The jobs.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    jobs: Slab<BlockJob>,
    /// Number of jobs per page.
    of_page: HashMap<HomePage, usize>,
    /// Jobs waiting for slots, in order.
    waiting: VecDeque<usize>,
}

impl Jobs {
    /// Adds a job. `is_written`: its page has been written before.
    pub(super) fn add(&mut self, part: Part, needed: Needed, is_written: bool) -> usize {
        debug_assert!(needed.count > 0, "a job needs some block");
        *self.of_page.entry(needed.page).or_default() += 1;
        let part = Some(part);
        self.jobs.insert(BlockJob { part, needed, missing: 0, is_written, failed: None, since: None })
    }

    /// Ends a job that has been ready.
    pub(super) fn end(&mut self, id: usize) -> Ended {
        debug_assert!(!self.waiting.contains(&id), "a job that ends waits for no slot");
        let BlockJob { needed, failed, part, missing, .. } = self.jobs.remove(id);
        assert!(part.is_none() && missing == 0, "a job ends after it was ready");
        let left = self.of_page.get_mut(&needed.page).expect("the page has this job");
        *left -= 1;
        let is_last = *left == 0;
        if is_last {
            self.of_page.remove(&needed.page);
        }
        Ended { needed, failed, is_last }
    }

    /// Number of jobs.
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether a page has puts.
    pub(super) fn has_puts(&self, page: HomePage) -> bool {
        self.has(page) && self.jobs.iter().any(|(_, job)| job.needed.page == page && job.needed.is_put)
    }

    /// Whether a page has jobs.
    pub(super) fn has(&self, page: HomePage) -> bool {
        self.of_page.contains_key(&page)
    }

    /// Whether pages of a file have jobs.
    pub(super) fn has_any_of(&self, file: u32) -> bool {
        self.of_page.keys().any(|page| page.slot() == file)
    }

    /// The blocks of a job.
    pub(super) fn needed(&self, id: usize) -> Needed {
        self.jobs[id].needed
    }

    /// The part of a job that is not ready yet.
    pub(super) fn part(&self, id: usize) -> Option<&Part> {
        self.jobs[id].part.as_ref()
    }

    /// Whether the page of a job has been written before.
    pub(super) fn is_written(&self, id: usize) -> bool {
        self.jobs[id].is_written
    }

    /// A job writes to a page: waiting jobs may find its bytes in the file.
    pub(super) fn on_written(&mut self, page: HomePage) {
        for id in &self.waiting {
            let job = &mut self.jobs[*id];
            job.is_written |= job.needed.page == page;
        }
    }

    /// Makes a job wait for slots.
    pub(super) fn wait(&mut self, id: usize) {
        debug_assert!(!self.waiting.contains(&id), "a job waits for slots once");
        self.waiting.push_back(id);
    }

    /// Notes the start of a job's wait.
    pub(super) fn note_wait(&mut self, id: usize) {
        if stats::is_on() {
            self.jobs[id].since = Some(Instant::now());
        }
    }

    /// The first job waiting for slots.
    pub(super) fn first_waiting(&self) -> Option<usize> {
        self.waiting.front().copied()
    }

    /// The first job waits no more.
    pub(super) fn end_first_wait(&mut self) {
        let first = self.waiting.pop_front();
        debug_assert!(first.is_some_and(|id| self.jobs.contains(id)), "some job waited for slots");
    }

    /// A block of a job is missing.
    pub(super) fn on_missing(&mut self, id: usize) {
        debug_assert!(self.jobs[id].part.is_some(), "a job that was ready lacks no block");
        self.jobs[id].missing += 1;
    }

    /// A missing block is here, or has failed.
    pub(super) fn on_arrived(&mut self, id: usize) {
        let job = &mut self.jobs[id];
        assert!(job.missing > 0, "the job waited for the block");
        job.missing -= 1;
    }

    /// A block of a job could not be read.
    pub(super) fn fail(&mut self, id: usize, cause: Cause) {
        debug_assert!(self.jobs[id].missing > 0, "a job fails by a block that it waits for");
        self.jobs[id].failed.get_or_insert(cause);
    }

    /// Fails a job waiting for slots, which it will not get.
    pub(super) fn refuse(&mut self, id: usize, cause: Cause) {
        let job = &mut self.jobs[id];
        debug_assert!(job.missing == 0 && job.part.is_some(), "a job that waits for slots has no block yet");
        (job.failed, job.needed.count) = (Some(cause), 0);
    }

    /// Fails the jobs waiting for slots that `are_refused`. Returns them.
    pub(super) fn refuse_waiting(&mut self, are_refused: impl Fn(&Needed) -> bool, cause: Cause) -> Vec<usize> {
        let is_refused = |id: &usize| are_refused(&self.jobs[*id].needed);
        let (refused, waiting): (Vec<usize>, Vec<usize>) = self.waiting.iter().copied().partition(is_refused);
        self.waiting = waiting.into();
        refused.iter().for_each(|id| self.refuse(*id, cause));
        refused
    }

    /// Takes the part of a job, once it waits for nothing.
    pub(super) fn take_ready(&mut self, id: usize) -> Option<Ready> {
        let job = &mut self.jobs[id];
        if job.missing > 0 {
            return None;
        }
        job.since.into_iter().for_each(|since| stats::time(Row::BlockWait, since));
        let part = job.part.take().expect("a job is ready once");
        Some(Ready { part, needed: job.needed, failed: job.failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Completion, Copy, ServedId};
    use vgasnet_memory::Piece;
    use vgasnet_protocol::Space;
    use vgasnet_protocol::coherence::PageId;

    fn add(jobs: &mut Jobs, page: HomePage, first: Block) -> usize {
        let page_id = PageId { space: Space::of_file(page.slot()), index: page.index() };
        let piece = Piece { page: page_id, offset_bytes: 0, len_bytes: 1, start_bytes: 0 };
        let completion = Completion::Served(ServedId { request: 0, piece: 0 });
        let part = Part { piece, copy: Copy::Put(std::ptr::null_mut()), completion };
        jobs.add(part, Needed { page, first, count: 2, is_put: true, maps: None, is_copied: false }, false)
    }

    #[test]
    fn a_job_is_ready_when_its_last_block_arrives() {
        let (mut jobs, page) = (Jobs::default(), HomePage::of_file(1, 7));
        let (one, other) = (add(&mut jobs, page, 4), add(&mut jobs, page, 8));
        (0..2).for_each(|_| jobs.on_missing(one));
        jobs.on_arrived(one);
        assert!(jobs.take_ready(one).is_none());
        jobs.fail(one, Cause(5));
        jobs.fail(one, Cause(28));
        jobs.on_arrived(one);
        let ready = jobs.take_ready(one).expect("nothing is missing");
        assert_eq!((ready.failed, ready.needed.blocks(), jobs.part(one).is_none()), (Some(Cause(5)), 4..6, true));
        assert!(!jobs.end(one).is_last && jobs.has(page));
        assert!(jobs.take_ready(other).is_some());
        assert!(jobs.end(other).is_last && !jobs.has(page) && !jobs.has_any_of(1) && jobs.len() == 0);
    }

    #[test]
    fn waiting_jobs_go_in_order_and_may_be_refused() {
        let (mut jobs, page, other) = (Jobs::default(), HomePage::of_file(1, 7), HomePage::of_file(2, 7));
        let ids = [page, other, page].map(|page| add(&mut jobs, page, 4));
        ids.into_iter().for_each(|id| jobs.wait(id));
        jobs.on_written(page);
        assert_eq!(ids.map(|id| jobs.is_written(id)), [true, false, true]);
        assert_eq!(jobs.refuse_waiting(|needed| needed.page == page, Cause(28)), [ids[0], ids[2]]);
        assert_eq!(jobs.take_ready(ids[2]).map(|ready| (ready.failed, ready.needed.count)), Some((Some(Cause(28)), 0)));
        assert_eq!(jobs.first_waiting(), Some(ids[1]));
        jobs.end_first_wait();
        assert_eq!(jobs.first_waiting(), None);
    }
}
