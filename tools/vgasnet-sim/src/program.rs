//! What clients do.

use fastrand::Rng;

/// A get or put in one page.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub home: u32,
    pub page: u32,
    pub offset_bytes: usize,
    pub len_bytes: usize,
    pub is_put: bool,
}

/// The order in which a client goes through the pages of all segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// One behind the other, from a place of the rank's own on.
    Sequential,
    /// At random.
    Random,
}

/// A client's accesses to come.
pub struct Program {
    order: Order,
    pages_each: u32,
    ranks: u32,
    left: u64,
    at: u64,
    len_bytes: usize,
    page_bytes: usize,
    is_put: bool,
    random: Rng,
}

impl Program {
    /// So many accesses of `len_bytes` by a rank to segments of `pages_each` pages.
    pub fn new(order: Order, (rank, ranks): (u32, u32), pages_each: u32, (page_bytes, len_bytes): (usize, usize), is_put: bool, accesses: u64, seed: u64) -> Program {
        let parts = (page_bytes / len_bytes) as u64;
        let at = u64::from(rank) * u64::from(pages_each) * parts;
        let random = Rng::with_seed(seed.wrapping_mul(1_000_003) + u64::from(rank));
        Program { order, pages_each, ranks, left: accesses, at, len_bytes, page_bytes, is_put, random }
    }
}

impl Iterator for Program {
    type Item = Access;

    fn next(&mut self) -> Option<Access> {
        self.left = self.left.checked_sub(1)?;
        let parts = (self.page_bytes / self.len_bytes) as u64;
        let all = u64::from(self.ranks) * u64::from(self.pages_each) * parts;
        let at = match self.order {
            Order::Sequential => self.at % all,
            Order::Random => self.random.u64(0..all),
        };
        self.at += 1;
        let page = at / parts;
        Some(Access {
            home: (page / u64::from(self.pages_each)) as u32,
            page: (page % u64::from(self.pages_each)) as u32,
            offset_bytes: (at % parts) as usize * self.len_bytes,
            len_bytes: self.len_bytes,
            is_put: self.is_put,
        })
    }
}
