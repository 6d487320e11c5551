//! A model of hints about the holders of pages, for a protocol in which ranks remember them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vgasnet_conduit::Rank;
use vgasnet_protocol::coherence::{CoherenceBody, CoherenceMessage, PageId, ToCache, ToHome};

/// Read requests that reach their homes in no time. This bounds the gain from hints, since a hint at best names a
/// holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Hints {
    /// None.
    #[default]
    None,
    /// Requests for a page with a usable hint: a message sent or received by the asking rank named a holder of the page
    /// or of its predecessor, and this rank now has the page. As fast as hints remembered by each rank.
    Own,
    /// All requests: as fast as complete and always correct hints.
    All,
}

/// The hints of all ranks, learned from their messages, and the actual holders of pages.
#[derive(Debug, Default)]
pub struct Known {
    hints: Hints,
    /// Per rank: the hints for as many pages as it has frames. The oldest hint is dropped first.
    memories: Vec<Memory>,
    memory_max: usize,
    /// The holders of each page. A rank that has evicted its copy remains until the home knows of the eviction.
    holders: BTreeMap<PageId, BTreeSet<Rank>>,
}

#[derive(Clone, Debug, Default)]
struct Memory {
    holders: BTreeMap<PageId, Rank>,
    order: VecDeque<PageId>,
}

impl Memory {
    fn learn(&mut self, page: PageId, holder: Rank, max: usize) {
        if self.holders.insert(page, holder).is_none() {
            self.order.push_back(page);
        }
        if self.order.len() > max {
            let oldest = self.order.pop_front().expect("there is one");
            self.holders.remove(&oldest);
        }
    }

    /// The last known holder of a page, or else of the preceding page.
    fn guess(&self, page: PageId) -> Option<Rank> {
        let before = page.index.checked_sub(1).map(|index| PageId { index, ..page });
        self.holders.get(&page).or_else(|| self.holders.get(&before?)).copied()
    }
}

impl Known {
    pub fn new(hints: Hints, ranks: u32, frames: u32) -> Known {
        let memories = if hints == Hints::Own { vec![Memory::default(); ranks as usize] } else { Vec::new() };
        Known { hints, memories, memory_max: frames as usize, ..Known::default() }
    }

    /// Learns from a message. Returns whether it is a read request that would not have had to go to the page's home.
    pub fn note(&mut self, from: Rank, to: Rank, message: &CoherenceMessage) -> bool {
        let is_read = matches!(message.body, CoherenceBody::Home(ToHome::Read { .. }));
        match self.hints {
            Hints::None => false,
            Hints::All => is_read,
            Hints::Own => {
                self.learn(from, to, message);
                is_read && self.is_right(from, to, message.page)
            }
        }
    }

    fn is_right(&self, asking: Rank, home: Rank, page: PageId) -> bool {
        let guess = self.memories[asking.index()].guess(page);
        guess.is_some_and(|rank| rank != home && self.holders.get(&page).is_some_and(|holders| holders.contains(&rank)))
    }

    fn learn(&mut self, from: Rank, to: Rank, message: &CoherenceMessage) {
        let page = message.page;
        match message.body {
            CoherenceBody::Cache(ToCache::Data { .. }) => {
                self.memories[to.index()].learn(page, from, self.memory_max);
                self.memories[from.index()].learn(page, to, self.memory_max);
                self.holders.entry(page).or_default().insert(to);
            }
            CoherenceBody::Home(
                ToHome::Forget { .. } | ToHome::Evict { .. } | ToHome::Nack { .. } | ToHome::Acknowledge { .. },
            ) => {
                if let Some(holders) = self.holders.get_mut(&page) {
                    holders.remove(&from);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::coherence::{CopyVersion, FrameId, Priority};

    const HOME: Rank = Rank(0);

    fn message(index: u32, body: CoherenceBody) -> CoherenceMessage {
        CoherenceMessage { body, page: PageId::of_segment(HOME, index) }
    }

    fn read(index: u32) -> CoherenceMessage {
        message(index, CoherenceBody::Home(ToHome::Read { frame: FrameId(0), priority: Priority::Now }))
    }

    fn data(index: u32) -> CoherenceMessage {
        let version = CopyVersion::default();
        message(index, CoherenceBody::Cache(ToCache::Data { version, grant: false, zeros: false }))
    }

    #[test]
    fn a_rank_knows_whom_it_has_served_until_that_one_says_that_it_has_given_up_the_page() {
        let mut known = Known::new(Hints::Own, 3, 4);
        assert!(!known.note(Rank(1), HOME, &read(7)), "it has heard nothing");
        known.note(Rank(1), Rank(2), &data(7));
        assert!(known.note(Rank(1), HOME, &read(7)));
        assert!(!known.note(Rank(2), HOME, &read(8)), "rank 1 does not have page 8");
        known.note(Rank(2), HOME, &message(7, CoherenceBody::Home(ToHome::Forget { copy: CopyVersion::default() })));
        assert!(!known.note(Rank(1), HOME, &read(7)));
    }

    #[test]
    fn who_had_a_page_is_asked_for_the_next() {
        let mut known = Known::new(Hints::Own, 3, 4);
        known.note(Rank(2), Rank(1), &data(7));
        known.note(HOME, Rank(2), &data(8));
        assert!(known.note(Rank(1), HOME, &read(8)));
    }

    #[test]
    fn it_remembers_as_many_pages_as_it_has_frames() {
        let mut known = Known::new(Hints::Own, 3, 2);
        for index in [10, 20, 30] {
            known.note(Rank(1), Rank(2), &data(index));
        }
        assert!(!known.note(Rank(1), HOME, &read(10)) && known.note(Rank(1), HOME, &read(20)));
    }

    #[test]
    fn nothing_or_all_is_known() {
        let [none, all] = [Hints::None, Hints::All].map(|hints| Known::new(hints, 2, 2).note(Rank(1), HOME, &read(0)));
        assert!(!none && all);
    }
}
