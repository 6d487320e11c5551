//! Recently evicted pages.

use super::age;
use crate::coherence::PageId;
use crate::page_map::PageMap;
use alloc::collections::VecDeque;

/// Of less recent evictions, one in this many is remembered.
const SAMPLE: u8 = 8;

/// An evicted page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Time of its last observed use, by the policy's clock.
    pub used_at: u64,
    /// Time of its eviction.
    pub evicted_at: u64,
    /// Number of pages it represents, evicted at about the same time.
    pub stands_for: u8,
}

/// The record of an eviction.
#[derive(Clone, Copy, Debug)]
struct Eviction {
    page: PageId,
    /// The lower half of the time.
    at: u32,
    /// Time the page had been unused.
    unused_for: u32,
}

/// The last eviction of a page: its number in its queue, and whether the queue is the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EvictionRecord(u32);

impl EvictionRecord {
    const SAMPLE: u32 = 1;
    const NUMBER: u32 = 2;
}

/// Evictions in order. A record is void unless it is the last one known of its page.
#[derive(Debug)]
struct Queue {
    evictions: VecDeque<Eviction>,
    len_max: usize,
    /// The place of the first eviction, or of the next if there is none. The following ones are consecutive, and wrap.
    first: EvictionRecord,
}

/// The last evicted pages, at most as many as the pool has frames. Half are the most recent ones. The others are a
/// sample of earlier ones, reaching eight times as far back.
#[derive(Debug)]
pub struct History {
    gone: PageMap<EvictionRecord>,
    recent: Queue,
    sample: Queue,
    /// Number of evictions.
    evictions: u64,
}

impl History {
    /// An empty history of at most `pages_max` pages.
    pub fn new(pages_max: u32) -> History {
        let queue = |place| Queue::new(pages_max as usize / 2, EvictionRecord(place));
        History { gone: PageMap::new(), recent: queue(0), sample: queue(EvictionRecord::SAMPLE), evictions: 0 }
    }

    /// A page was evicted.
    pub fn on_evicted(&mut self, page: PageId, used_at: u64, evicted_at: u64) {
        let kept = self.recent.evictions.len() + self.sample.evictions.len();
        debug_assert!(self.gone.len() <= kept, "each page that is remembered has its eviction");
        let unused_for = u32::try_from(evicted_at.saturating_sub(used_at)).unwrap_or(u32::MAX);
        let (place, oldest) = self.recent.push(Eviction { page, at: evicted_at as u32, unused_for });
        *self.gone.get_or_insert_with(page, || place) = place;
        self.evictions += 1;
        let Some((place, oldest)) = oldest else { return };
        if !is_in_sample(self.evictions - self.recent.len_max as u64) {
            return self.forget(oldest.page, place);
        }
        if let Some(known) = self.gone.get_mut(oldest.page).filter(|known| **known == place) {
            let (place, oldest) = self.sample.push(oldest);
            *known = place;
            oldest.into_iter().for_each(|(place, eviction)| self.forget(eviction.page, place));
        }
    }

    /// Forgets a page. Returns its record, given the time `now`.
    pub fn take(&mut self, page: PageId, now: u64) -> Option<Gone> {
        let place = self.gone.remove(page)?;
        let kept = self.recent.evictions.len() + self.sample.evictions.len();
        debug_assert!(self.gone.len() < kept, "each page that is remembered has its eviction");
        let is_sample = place.0 & EvictionRecord::SAMPLE != 0;
        let queue = if is_sample { &self.sample } else { &self.recent };
        let Eviction { page: evicted, at, unused_for } = *queue.get(place);
        debug_assert_eq!(evicted, page, "a page and its eviction lead to each other");
        let evicted_at = now.saturating_sub(age(now, at));
        let used_at = evicted_at.saturating_sub(u64::from(unused_for));
        Some(Gone { used_at, evicted_at, stands_for: if is_sample { SAMPLE } else { 1 } })
    }

    /// Forgets the eviction at this place, unless the page has been evicted again.
    fn forget(&mut self, page: PageId, place: EvictionRecord) {
        if self.gone.get(page) == Some(&place) {
            self.gone.remove(page);
        }
    }
}

impl Queue {
    fn new(len_max: usize, first: EvictionRecord) -> Queue {
        Queue { evictions: VecDeque::new(), len_max, first }
    }

    /// Appends an eviction. Returns its place, and on overflow the removed first eviction with its place.
    fn push(&mut self, eviction: Eviction) -> (EvictionRecord, Option<(EvictionRecord, Eviction)>) {
        let len = self.evictions.len();
        debug_assert!(len <= self.len_max, "an overflow removes the first eviction");
        if len == self.evictions.capacity() {
            // Grows in small steps, so that the queue never has more capacity than it needs.
            self.evictions.reserve_exact((len / 8 + 16).min(self.len_max + 1 - len));
        }
        let place = EvictionRecord(self.first.0.wrapping_add(len as u32 * EvictionRecord::NUMBER));
        self.evictions.push_back(eviction);
        if len < self.len_max {
            return (place, None);
        }
        let first = self.first;
        self.first = EvictionRecord(first.0.wrapping_add(EvictionRecord::NUMBER));
        (place, self.evictions.pop_front().map(|oldest| (first, oldest)))
    }

    fn get(&self, place: EvictionRecord) -> &Eviction {
        let at = place.0.wrapping_sub(self.first.0) / EvictionRecord::NUMBER;
        debug_assert!((at as usize) < self.evictions.len(), "the eviction is still remembered");
        &self.evictions[at as usize]
    }
}

/// Whether the eviction numbered `number` is in the sample: different ones in each round of a scan.
fn is_in_sample(number: u64) -> bool {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    number.wrapping_mul(GOLDEN) >> 32 & u64::from(SAMPLE - 1) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;

    #[test]
    fn the_last_evictions_are_remembered_and_a_sample_of_those_before() {
        let page = |index| PageId::of_segment(Rank(0), index);
        let mut history = History::new(200);
        (0..1000).for_each(|index| history.on_evicted(page(index), 0, u64::from(index)));
        assert!(history.gone.len() <= 200 && history.recent.evictions.len() + history.sample.evictions.len() <= 200);
        let gone = |index| Gone { used_at: 0, evicted_at: u64::from(index), stands_for: 1 };
        assert!((900..1000).all(|index| history.take(page(index), 1000) == Some(gone(index))));
        let sample = (200..900).filter_map(|index| history.take(page(index), 1000));
        let stand_for: u32 = sample.map(|gone| u32::from(gone.stands_for)).sum();
        assert!((500..900).contains(&stand_for), "{stand_for}");
        assert_eq!(history.take(page(950), 1000), None, "it was taken");
        history.on_evicted(page(950), 1, 2);
        (0..50).for_each(|index| history.on_evicted(page(index), 0, 0));
        assert_eq!(history.take(page(950), 2).map(|gone| gone.used_at), Some(1), "it has a new entry");
    }
}
