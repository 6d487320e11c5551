//! The memory of the ranks that is mapped here: of those of this host. Nothing is kept for the other ranks of the job.

use super::RankMemory;

/// The memories that are mapped here, the own included. They are numbered in the order of their ranks: the pools of the host.
#[derive(Debug)]
pub struct Memories {
    mapped: Box<[(u32, RankMemory)]>,
    /// The rank of the first one.
    first: u32,
}

impl Memories {
    /// The memories of these ranks, at least one, in order.
    pub fn new(mapped: impl IntoIterator<Item = (u32, RankMemory)>) -> Memories {
        let mapped: Box<[_]> = mapped.into_iter().collect();
        assert!(mapped.is_sorted_by_key(|(rank, _)| *rank), "ranks are in order");
        Memories { first: mapped.first().expect("the own memory is mapped").0, mapped }
    }

    /// That of a rank, if it is mapped here.
    #[inline]
    pub fn get(&self, rank: usize) -> Option<&RankMemory> {
        // Ranks of a host follow each other, as a rule.
        let guess = rank.wrapping_sub(self.first as usize);
        match self.mapped.get(guess) {
            Some((at, memory)) if *at as usize == rank => Some(memory),
            _ => self.search(rank),
        }
    }

    #[cold]
    fn search(&self, rank: usize) -> Option<&RankMemory> {
        let at = self.mapped.binary_search_by_key(&rank, |(rank, _)| *rank as usize).ok()?;
        Some(&self.mapped[at].1)
    }

    /// How many there are.
    pub fn pools(&self) -> usize {
        self.mapped.len()
    }

    /// The rank and the memory of a pool of this host.
    #[inline]
    pub fn pool(&self, pool: usize) -> (usize, &RankMemory) {
        let (rank, memory) = &self.mapped[pool];
        (*rank as usize, memory)
    }

    /// All of them, each with its rank.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &RankMemory)> {
        self.mapped.iter().map(|(rank, memory)| (*rank as usize, memory))
    }
}
