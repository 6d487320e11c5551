//! The memories mapped here, those of this host's ranks. Nothing is kept for the other ranks of the job.

use super::RankMemory;

/// The memories mapped here, the own included. Their indices, in the order of ranks, name the pools of the host.
#[derive(Debug)]
pub struct Memories {
    mapped: Box<[(u32, RankMemory)]>,
    /// The first rank.
    first: u32,
}

impl Memories {
    /// The memories of these ranks, at least one, in order.
    pub fn new(mapped: impl IntoIterator<Item = (u32, RankMemory)>) -> Memories {
        let mapped: Box<[_]> = mapped.into_iter().collect();
        assert!(mapped.is_sorted_by_key(|(rank, _)| *rank), "ranks are in order");
        Memories { first: mapped.first().expect("the own memory is mapped").0, mapped }
    }

    /// The memory of a rank, if it is mapped here.
    #[inline]
    pub fn get(&self, rank: usize) -> Option<&RankMemory> {
        self.find(rank).map(|pool| &self.mapped[pool].1)
    }

    /// The pool of a rank, if it is mapped here.
    #[inline]
    pub fn find(&self, rank: usize) -> Option<usize> {
        // Ranks of a host are usually consecutive.
        let guess = rank.wrapping_sub(self.first as usize);
        match self.mapped.get(guess) {
            Some((at, _)) if *at as usize == rank => Some(guess),
            _ => self.search(rank),
        }
    }

    #[cold]
    fn search(&self, rank: usize) -> Option<usize> {
        self.mapped.binary_search_by_key(&rank, |(rank, _)| *rank as usize).ok()
    }

    /// Number of pools.
    pub fn pools(&self) -> usize {
        self.mapped.len()
    }

    /// The rank and the memory of a pool of this host.
    #[inline]
    pub fn pool(&self, pool: usize) -> (usize, &RankMemory) {
        let (rank, memory) = &self.mapped[pool];
        (*rank as usize, memory)
    }

    /// All memories, with their ranks.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &RankMemory)> {
        self.mapped.iter().map(|(rank, memory)| (*rank as usize, memory))
    }
}
