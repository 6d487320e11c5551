//! What clients do: gets and puts, a page or a part of one at a time, each when the one before it has ended.

use fastrand::Rng;
use std::ops::Range;

/// A get or put in one page.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub home: u32,
    pub page: u32,
    pub offset_bytes: usize,
    pub len_bytes: usize,
    pub is_put: bool,
}

/// The data of a job: all of it in the segment of the first rank, or as much in each.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub homes: u32,
    pub pages_each: u32,
    pub page_bytes: usize,
}

/// The order in which a client goes through data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// From the first byte on.
    Sequential,
    /// As many accesses, at random.
    Random,
}

/// A client's accesses to come.
pub struct Program {
    data: Data,
    places: Range<u64>,
    /// The place of the next one, or that comes out of these.
    order: Order,
    left: u64,
    next: u64,
    len_bytes: usize,
    is_put: bool,
    random: Rng,
}

impl Data {
    pub fn pages(&self) -> u64 {
        u64::from(self.homes) * u64::from(self.pages_each)
    }

    /// Pieces of so many bytes.
    pub fn pieces(&self, len_bytes: usize) -> u64 {
        self.pages() * (self.page_bytes / len_bytes) as u64
    }
}

impl Program {
    /// Puts one part of `parts` of the data there, page by page.
    pub fn fill(data: Data, part: u32, parts: u32) -> Program {
        let end = |part: u32| data.pages() * u64::from(part) / u64::from(parts);
        let places = end(part)..end(part + 1);
        let (left, next, len_bytes) = (places.end - places.start, places.start, data.page_bytes);
        Program { data, places, order: Order::Sequential, left, next, len_bytes, is_put: true, random: Rng::with_seed(0) }
    }

    /// As many accesses of `len_bytes` as the data has.
    pub fn of_all(data: Data, order: Order, len_bytes: usize, is_put: bool, seed: u64) -> Program {
        let places = 0..data.pieces(len_bytes);
        Program { data, left: places.end, next: 0, places, order, len_bytes, is_put, random: Rng::with_seed(seed) }
    }
}

impl Iterator for Program {
    type Item = Access;

    fn next(&mut self) -> Option<Access> {
        self.left = self.left.checked_sub(1)?;
        let at = match self.order {
            Order::Sequential => self.next,
            Order::Random => self.random.u64(self.places.clone()),
        };
        self.next += 1;
        let in_page = (self.data.page_bytes / self.len_bytes) as u64;
        let page = at / in_page;
        Some(Access {
            home: (page / u64::from(self.data.pages_each)) as u32,
            page: (page % u64::from(self.data.pages_each)) as u32,
            offset_bytes: (at % in_page) as usize * self.len_bytes,
            len_bytes: self.len_bytes,
            is_put: self.is_put,
        })
    }
}
