//! Pages that were evicted not long ago.

use crate::coherence::PageId;
use alloc::collections::{BTreeMap, VecDeque};

/// Of the pages that were evicted longer ago, one in so many is remembered.
const SAMPLE: u32 = 8;

/// A page that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// When it was seen used last, by the policy's clock.
    pub used_at: u64,
    /// When it was evicted.
    pub evicted_at: u64,
    /// For how many pages it stands, which were evicted at about the same time.
    pub stands_for: u32,
}

/// The pages that were evicted last, at most as many as the pool has frames. Half of them are the very last ones. The
/// others are a sample of those before, and reach eight times as far back.
#[derive(Debug)]
pub struct History {
    /// Each with the number of its eviction.
    gone: BTreeMap<PageId, (Gone, u64)>,
    /// In order of their evictions. An entry whose number is not that of the page is void.
    recent: VecDeque<(PageId, u64)>,
    sample: VecDeque<(PageId, u64)>,
    evictions: u64,
    half_max: usize,
}

impl History {
    /// No pages yet, and never more than this many.
    pub fn new(pages_max: u32) -> History {
        let half_max = pages_max as usize / 2;
        let (recent, sample) = (VecDeque::new(), VecDeque::new());
        History { gone: BTreeMap::new(), recent, sample, evictions: 0, half_max }
    }

    /// A page was evicted.
    pub fn on_evicted(&mut self, page: PageId, used_at: u64, evicted_at: u64) {
        self.evictions += 1;
        self.gone.insert(page, (Gone { used_at, evicted_at, stands_for: 1 }, self.evictions));
        self.recent.push_back((page, self.evictions));
        if self.recent.len() <= self.half_max {
            return;
        }
        let Some((page, number)) = self.recent.pop_front() else { return };
        if is_in_sample(number) {
            if let Some((gone, _)) = self.gone.get_mut(&page).filter(|known| known.1 == number) {
                gone.stands_for = SAMPLE;
                self.sample.push_back((page, number));
            }
            if self.sample.len() > self.half_max {
                let oldest = self.sample.pop_front();
                oldest.into_iter().for_each(|(page, number)| self.forget(page, number));
            }
        } else {
            self.forget(page, number);
        }
    }

    /// Forgets a page. Returns what was known of it.
    pub fn take(&mut self, page: PageId) -> Option<Gone> {
        self.gone.remove(&page).map(|(gone, _)| gone)
    }

    /// Forgets the eviction with this number, unless the page has been evicted again.
    fn forget(&mut self, page: PageId, number: u64) {
        if self.gone.get(&page).is_some_and(|known| known.1 == number) {
            self.gone.remove(&page);
        }
    }
}

/// Whether the eviction with this number is in the sample: other ones in each round of a scan.
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
        assert!(history.gone.len() <= 200 && history.recent.len() + history.sample.len() <= 200);
        let gone = |index| Gone { used_at: 0, evicted_at: u64::from(index), stands_for: 1 };
        assert!((900..1000).all(|index| history.take(page(index)) == Some(gone(index))));
        let sample = (200..900).filter_map(|index| history.take(page(index)));
        let stand_for: u32 = sample.map(|gone| gone.stands_for).sum();
        assert!((500..900).contains(&stand_for), "{stand_for}");
        assert_eq!(history.take(page(950)), None, "it was taken");
        history.on_evicted(page(950), 1, 2);
        (0..50).for_each(|index| history.on_evicted(page(index), 0, 0));
        assert_eq!(history.take(page(950)).map(|gone| gone.used_at), Some(1), "it has a new entry");
    }
}
