//! Loans: neighbours' frames mapped in the own segment for loads.
//!
//! If a neighbour has a page of the own segment open, a load maps its frame instead of copying it. The frame counts as
//! pinned there until it is given back (`page_table/lending.rs`), always after being unmapped. A page of the segment
//! has a frame of the own pool mapped or a loan, never both. Changes are made under the lock of the page's set.

use super::page_mapper::PageMapper;
use super::page_table::PageTable;
use super::pool::Pool;
use std::sync::Arc;
use vgasnet_conduit::Conduit;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, FrameId, PageId};
use vgasnet_sys::futex::Lock;

/// Loans per set. One instruction needs fewer pages, so the loans of a set do not evict each other in a cycle.
const WAYS: usize = 8;

/// A pool that lends frames.
pub struct Lender {
    /// Its rank.
    pub rank: Rank,
    /// Its page table.
    pub table: PageTable,
    /// Its frames.
    pub pool: Pool,
    /// Maps its frames in the own segment.
    pub mapper: Box<dyn PageMapper>,
}

/// A mapped frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loan {
    index: u32,
    pool: usize,
    frame: FrameId,
}

/// The loans of pages with equal index modulo the number of sets.
#[derive(Debug, Default)]
pub(super) struct Set {
    loans: [Option<Loan>; WAYS],
    /// The next loan to be replaced.
    oldest: usize,
}

/// The loans of a rank: at most as many as its pool has frames, at least one.
pub struct Loans {
    conduit: Arc<dyn Conduit>,
    /// The pools of the host, by index.
    lenders: Box<[Option<Lender>]>,
    sets: Box<[Lock<Set>]>,
    ways: usize,
}

impl Loans {
    /// No loans yet, for a rank with `frames` frames, from these pools of the host. At most `count_max` loans are
    /// mapped at a time.
    pub fn new(conduit: Arc<dyn Conduit>, lenders: Box<[Option<Lender>]>, frames: u32, count_max: u32) -> Loans {
        let most = frames.min(count_max).max(1) as usize;
        let sets = (0..most.div_ceil(WAYS)).map(|_| Lock::new(Set::default())).collect();
        Loans { conduit, lenders, sets, ways: most.min(WAYS) }
    }

    /// The set of a page. Its lock keeps the page's mapping from changing.
    pub(super) fn set_of(&self, index: u32) -> &Lock<Set> {
        &self.sets[index as usize % self.sets.len()]
    }

    /// Whether there is a loan of the page.
    pub(super) fn has(&self, index: u32) -> bool {
        self.set_of(index).lock().find(index).is_some()
    }

    /// Borrows and maps a frame for a page with nothing mapped. Returns whether it is mapped.
    pub(super) fn borrow(&self, set: &mut Set, page: PageId, pool: usize, frame: FrameId) -> bool {
        let Some(lender) = self.lenders.get(pool).and_then(Option::as_ref) else { return false };
        if !lender.table.lend(frame, page) {
            return false;
        }
        lender.pool.touch(frame);
        let place = set.loans[..self.ways].iter().position(Option::is_none).unwrap_or(set.oldest);
        let has_room = set.loans[place].is_none_or(|oldest| self.end(oldest).is_ok());
        set.oldest = (place + 1) % self.ways;
        set.loans[place] = set.loans[place].filter(|_| !has_room);
        if !has_room || lender.mapper.map(page.index, frame, Access::Read, None).is_err() {
            self.tell(lender, frame);
            return false;
        }
        set.loans[place] = Some(Loan { index: page.index, pool, frame });
        true
    }

    /// Unmaps a page and gives its frame back, if it is a loan.
    ///
    /// # Errors
    /// The system's errno value, if it cannot be unmapped.
    pub(super) fn give_back(&self, set: &mut Set, index: u32) -> Result<(), i32> {
        let Some(place) = set.find(index) else { return Ok(()) };
        set.loans[place].map_or(Ok(()), |loan| self.end(loan))?;
        set.loans[place] = None;
        Ok(())
    }

    fn end(&self, Loan { index, pool, frame }: Loan) -> Result<(), i32> {
        let lender = self.lenders[pool].as_ref().expect("a loan has a lender");
        lender.mapper.unmap(index, frame, Access::Read)?;
        self.tell(lender, frame);
        Ok(())
    }

    /// Ends an unmapped loan.
    fn tell(&self, lender: &Lender, frame: FrameId) {
        if lender.table.give_back(frame) {
            lender.table.notify_unpinned();
            self.conduit.wake(lender.rank);
        }
    }

    /// The frames lent to this rank, with their pages and pools.
    pub fn all(&self) -> Vec<(u32, usize, FrameId)> {
        let of_set = |set: &Lock<Set>| set.lock().loans;
        let loans = self.sets.iter().flat_map(of_set).flatten();
        loans.map(|Loan { index, pool, frame }| (index, pool, frame)).collect()
    }
}

impl Set {
    pub(super) fn find(&self, index: u32) -> Option<usize> {
        self.loans.iter().position(|loan| loan.is_some_and(|loan| loan.index == index))
    }
}
