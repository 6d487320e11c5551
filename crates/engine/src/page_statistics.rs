//! Statistics of pages, gathered from the protocol's events and actions as they pass. Nothing is kept while statistics
//! are off.

use crate::request::{Copy, Part};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vgasnet_conduit::Conduit;
use vgasnet_memory::AddressSpace;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Action, Cache, CoherenceBody, CoherenceMessage, Event, PageId, ToCache, ToHome};
use vgasnet_stats::{self as stats, Row};

/// Maximum number of remembered evictions; three pools' worth if less.
const EVICTED_MAX: usize = 64 << 10;

/// A page with a frame within this time did not wait for one.
const AT_ONCE: Duration = Duration::from_micros(5);

/// State kept per page, to count each once and in the right row.
pub(super) struct PageStatistics {
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    /// Start of each pending miss, and the source of its page once known.
    misses: HashMap<PageId, (Instant, Option<Row>)>,
    /// Prefetched pages, marked in the page table until their first use.
    ahead: HashSet<PageId>,
    evicted: Evicted,
    disk: DiskPeriods,
}

/// The periods in which a disk reads or writes pages.
#[derive(Default)]
struct DiskPeriods {
    /// Pages in flight between the file and a frame, with their start.
    in_flight: HashMap<(PageId, Row), Instant>,
    /// Start of the current period.
    since: Option<Instant>,
}

impl DiskPeriods {
    fn begin(&mut self, page: PageId, row: Row) {
        let now = Instant::now();
        self.since.get_or_insert(now);
        self.in_flight.insert((page, row), now);
    }

    /// Ends an operation, done or failed. Returns its start if that was seen. The last one ends the period.
    fn end(&mut self, page: PageId, row: Row) -> Option<Instant> {
        let begun = self.in_flight.remove(&(page, row));
        if let Some(since) = self.since.take_if(|_| self.in_flight.is_empty()) {
            stats::time(Row::DiskBusy, since);
        }
        debug_assert_eq!(self.since.is_some(), !self.in_flight.is_empty(), "a disk is busy while it has operations");
        begun
    }
}

impl PageStatistics {
    pub(super) fn new(conduit: Arc<dyn Conduit>, space: Arc<AddressSpace>, frames: u32) -> PageStatistics {
        PageStatistics {
            conduit,
            space,
            misses: HashMap::new(),
            ahead: HashSet::new(),
            evicted: Evicted::new(frames as usize),
            disk: DiskPeriods::default(),
        }
    }

    /// Called before an event is handled.
    pub(super) fn on_event(&mut self, event: &Event, cache: &Cache) {
        match event {
            Event::Want { page, .. } => self.on_wanted(*page),
            // For a resident page this asks for the right to write.
            Event::Overwrite { page, .. } if !cache.may_overwrite(*page) => self.on_wanted(*page),
            Event::Evict(frame) => {
                if let Some(page) = cache.page_in(*frame) {
                    // A dirty page counts when it is written back: a writer may take it before.
                    stats::add(Row::EvictedClean, u64::from(cache.dirty_frame(page).is_none()));
                    self.evicted.add(page);
                }
            }
            Event::Message { from, message } => self.on_message(*from, message),
            Event::LoadFailed { page, .. } => drop(self.disk.end(*page, Row::DiskRead)),
            Event::StoreFailed { page, .. } => drop(self.disk.end(*page, Row::DiskWrite)),
            Event::Loaded(page) => {
                let pages = u64::from(self.on_disk(*page, Row::DiskRead));
                stats::add(Row::DiskReadBytes, pages * self.space.page_bytes() as u64);
            }
            // The storage server counts the bytes written.
            Event::Stored(page) => drop(self.on_disk(*page, Row::DiskWrite)),
            _ => {}
        }
    }

    /// Called before an action is carried out.
    pub(super) fn on_action(&mut self, action: &Action) {
        match action {
            Action::Send { to, message } => self.on_send(*to, message),
            Action::Open { page, waiters, .. } => self.on_open(*page, !waiters.is_empty()),
            Action::Close(page) => self.on_close(*page),
            Action::Transfer(outgoing) => {
                stats::count(Row::ServedPool);
                self.add_page(outgoing.forward.to, Row::PageOutNeighbour, Row::PageOutOtherHost);
            }
            Action::Load { page, to, .. } => self.begin_disk(*page, Row::DiskRead, *to, Row::ServedDisk),
            Action::Store { page, from, .. } => self.begin_disk(*page, Row::DiskWrite, *from, Row::ServedStores),
            Action::Fill { .. } => stats::count(Row::Overwritten),
            Action::Clear { .. }
            | Action::GiveUp(_)
            | Action::Hurry { .. }
            | Action::Fail { .. }
            | Action::Unwritten { .. }
            | Action::Recalled { .. }
            | Action::Dismissed(_) => {}
        }
    }

    fn on_wanted(&mut self, page: PageId) {
        if self.misses.contains_key(&page) {
            return stats::count(Row::MissJoined);
        }
        self.misses.insert(page, (Instant::now(), None));
        // The use may need write access, for which the page is closed before it is used.
        if self.ahead.remove(&page) {
            stats::count(Row::AheadUsed);
        }
    }

    /// Counts the bytes of a missed part.
    pub(super) fn on_part(&mut self, part: &Part) {
        match part.copy {
            Copy::Get(_) => stats::add(Row::GetBytes, part.piece.len_bytes as u64),
            Copy::Atomic(atomic) if atomic.op.is_read() => stats::add(Row::GetBytes, part.piece.len_bytes as u64),
            Copy::Put(_) | Copy::PutOwned(..) | Copy::Set(_) | Copy::Atomic(_) => {
                stats::add(Row::PutBytes, part.piece.len_bytes as u64)
            }
            Copy::MakeResident(_) | Copy::Pin(_) | Copy::ReadAhead => {}
        }
    }

    /// Notes the source of a page.
    fn on_message(&mut self, from: Rank, message: &CoherenceMessage) {
        let page = message.page;
        let row = match message.body {
            CoherenceBody::Cache(ToCache::Data { zeros: true, .. }) => Row::MissZeros,
            CoherenceBody::Cache(ToCache::Data { .. }) if from == self.space.rank => Row::MissOwnDisk,
            CoherenceBody::Cache(ToCache::Data { .. }) => {
                self.add_page(from, Row::PageInNeighbour, Row::PageInOtherHost);
                if self.is_of_this_host(from) { Row::MissNeighbour } else { Row::MissOtherHost }
            }
            CoherenceBody::Cache(ToCache::Grant { .. }) => Row::MissRight,
            _ => return,
        };
        stats::add(Row::ZerosCame, u64::from(row == Row::MissZeros));
        if let Some((_, source)) = self.misses.get_mut(&page) {
            // The right to write may come in a message of its own.
            *source = source.filter(|_| row == Row::MissRight).or(Some(row));
        }
    }

    fn on_send(&mut self, to: Rank, message: &CoherenceMessage) {
        match message.body {
            CoherenceBody::Home(ToHome::Read { .. } | ToHome::Write { copy: None, .. }) => {
                self.on_frame(message.page);
                if let Some(pools) = self.evicted.take(message.page) {
                    stats::add(Row::Refetched2, u64::from(pools <= 1));
                    stats::count(Row::Refetched4);
                }
            }
            CoherenceBody::Home(ToHome::Evict { keep: true, .. }) => stats::count(Row::Cleaned),
            CoherenceBody::Home(ToHome::Evict { keep: false, .. }) => stats::count(Row::EvictedDirty),
            CoherenceBody::Cache(ToCache::Data { zeros: true, .. }) if to != self.space.rank => {
                stats::count(Row::ServedZeros);
            }
            _ => {}
        }
    }

    /// A page has a frame. Most pages get it at once.
    fn on_frame(&mut self, page: PageId) {
        if let Some((since, _)) = self.misses.get(&page) {
            if since.elapsed() > AT_ONCE {
                stats::time(Row::MissFrame, *since);
            }
        }
    }

    fn on_open(&mut self, page: PageId, is_wanted: bool) {
        if !is_wanted {
            return;
        }
        if let Some((since, source)) = self.misses.remove(&page) {
            stats::time(source.unwrap_or(Row::MissLate), since);
        }
    }

    /// A prefetched page has arrived. It `is_used` if an operation is already waiting.
    pub(super) fn on_ahead(&mut self, page: PageId, is_used: bool) {
        if stats::is_on() {
            stats::count(Row::AheadFetched);
            if is_used {
                stats::count(Row::AheadUsed);
            } else {
                self.ahead.insert(page);
            }
        }
    }

    fn on_close(&mut self, page: PageId) {
        if self.ahead.remove(&page) {
            stats::count(if self.is_unused(page) { Row::AheadWasted } else { Row::AheadUsed });
        }
    }

    /// Counts resident prefetched pages that have been used since.
    pub(super) fn count_used(&mut self) {
        let before = self.ahead.len();
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.retain(|page| self.is_unused(*page));
        stats::add(Row::AheadUsed, (before - ahead.len()) as u64);
        self.ahead = ahead;
    }

    fn is_unused(&self, page: PageId) -> bool {
        let table = &self.space.own.table;
        table.find(page).is_some_and(|frame| table.is_ahead(frame))
    }

    fn begin_disk(&mut self, page: PageId, row: Row, peer: Rank, served: Row) {
        if peer != self.space.rank {
            stats::count(served);
        }
        self.disk.begin(page, row);
    }

    /// A disk operation is done. Returns whether its start was seen.
    fn on_disk(&mut self, page: PageId, row: Row) -> bool {
        let since = self.disk.end(page, row);
        since.iter().for_each(|since| stats::time(row, *since));
        since.is_some()
    }

    fn add_page(&self, peer: Rank, neighbour: Row, other_host: Row) {
        let row = if self.is_of_this_host(peer) { neighbour } else { other_host };
        stats::add(row, self.space.page_bytes() as u64);
    }

    fn is_of_this_host(&self, rank: Rank) -> bool {
        self.conduit.host_of(rank) == self.conduit.host_of(self.space.rank)
    }
}

/// The latest evictions, to tell which misses a larger pool would avoid.
struct Evicted {
    frames: usize,
    /// Number of each page's eviction.
    numbers: HashMap<PageId, u64>,
    order: VecDeque<(PageId, u64)>,
    next: u64,
}

impl Evicted {
    fn new(frames: usize) -> Evicted {
        Evicted { frames: frames.max(1), numbers: HashMap::new(), order: VecDeque::new(), next: 0 }
    }

    fn add(&mut self, page: PageId) {
        self.numbers.insert(page, self.next);
        self.order.push_back((page, self.next));
        self.next += 1;
        while self.order.len() > EVICTED_MAX.min(3 * self.frames) {
            let Some((page, number)) = self.order.pop_front() else { break };
            if self.numbers.get(&page) == Some(&number) {
                self.numbers.remove(&page);
            }
        }
        debug_assert!(self.numbers.len() <= self.order.len(), "each number has its eviction");
    }

    /// Number of pools' worth of pages evicted since this page was, rounded up, if known: a pool larger by this factor
    /// would still hold it.
    fn take(&mut self, page: PageId) -> Option<usize> {
        let number = self.numbers.remove(&page)?;
        debug_assert!(number < self.next, "evictions are counted");
        Some(((self.next - number) as usize).div_ceil(self.frames))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(index: u32) -> PageId {
        PageId::of_segment(Rank(0), index)
    }

    #[test]
    fn a_disk_is_busy_until_the_last_operation_has_ended_or_failed() {
        let mut disk = DiskPeriods::default();
        disk.begin(page(1), Row::DiskRead);
        disk.begin(page(1), Row::DiskWrite);
        assert!(disk.end(page(1), Row::DiskRead).is_some() && disk.since.is_some());
        assert!(disk.end(page(2), Row::DiskWrite).is_none() && disk.since.is_some(), "that one is not known");
        assert!(disk.end(page(1), Row::DiskWrite).is_some() && disk.since.is_none());
    }

    #[test]
    fn evicted_pages_are_known_for_three_pools() {
        let mut evicted = Evicted::new(4);
        (0..20).for_each(|index| evicted.add(page(index)));
        let pools = [19, 16, 15, 12, 8, 7].map(|index| evicted.take(page(index)));
        assert_eq!(pools, [Some(1), Some(1), Some(2), Some(2), Some(3), None]);
        assert_eq!(evicted.take(page(19)), None, "it was taken");
    }

    #[test]
    fn a_page_that_is_evicted_again_counts_from_then() {
        let mut evicted = Evicted::new(2);
        [1, 2, 3, 1, 4, 5, 6, 7].into_iter().for_each(|index| evicted.add(page(index)));
        assert_eq!([1, 2].map(|index| evicted.take(page(index))), [Some(3), None]);
    }
}
