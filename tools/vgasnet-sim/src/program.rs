//! The work of clients: gets and puts, each started when the previous one has ended, and barriers.

use fastrand::Rng;

/// A client's next action.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A get or put.
    Access(Asked),
    /// A barrier of all ranks.
    Barrier,
}

/// A get or put in one page.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub home: u32,
    pub page: u32,
    pub offset_bytes: usize,
    pub len_bytes: usize,
    pub is_put: bool,
}

/// The data of a job: all of it in the segment of the first rank, or the same amount in each.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub homes: u32,
    pub pages_each: u32,
    pub page_bytes: usize,
}

/// The order of a client's accesses to data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// From the first byte on.
    Sequential,
    /// The same number of accesses at random places.
    Random,
}

/// A client's remaining steps.
pub type Program = Box<dyn Iterator<Item = Step>>;

impl Data {
    pub fn pages(&self) -> u64 {
        u64::from(self.homes) * u64::from(self.pages_each)
    }

    /// The number of pieces of this size.
    pub fn pieces(&self, len_bytes: usize) -> u64 {
        self.pages() * (self.page_bytes / len_bytes) as u64
    }

    /// One of [`Data::pieces`].
    fn piece(&self, at: u64, len_bytes: usize, is_put: bool) -> Step {
        let in_page = (self.page_bytes / len_bytes) as u64;
        let page = at / in_page;
        Step::Access(Asked {
            home: (page / u64::from(self.pages_each)) as u32,
            page: (page % u64::from(self.pages_each)) as u32,
            offset_bytes: (at % in_page) as usize * len_bytes,
            len_bytes,
            is_put,
        })
    }

    /// Gets of all pages, each once, in random order.
    pub fn shuffled(self, seed: u64) -> Program {
        let mut pages: Vec<u64> = (0..self.pages()).collect();
        Rng::with_seed(seed).shuffle(&mut pages);
        Box::new(pages.into_iter().map(move |page| self.piece(page, self.page_bytes, false)))
    }

    /// As many accesses of `len_bytes` as the data has pieces.
    pub fn all(self, order: Order, len_bytes: usize, is_put: bool, seed: u64) -> Program {
        let pieces = self.pieces(len_bytes);
        let mut random = Rng::with_seed(seed);
        Box::new((0..pieces).map(move |next| {
            let at = match order {
                Order::Sequential => next,
                Order::Random => random.u64(0..pieces),
            };
            self.piece(at, len_bytes, is_put)
        }))
    }
}

/// One page: all ranks read it in the even passes, and the last rank overwrites it in the odd ones.
pub fn rewrite(is_last: bool, pass: u32, page_bytes: usize) -> Program {
    let is_put = pass % 2 == 1;
    let whole = Asked { home: 0, page: 0, offset_bytes: 0, len_bytes: page_bytes, is_put };
    Box::new((is_last || !is_put).then_some(Step::Access(whole)).into_iter())
}

/// Rounds of `puts` single bytes to this rank's own places in the first page of the data, with a barrier after each
/// round.
pub fn false_sharing(rank: u32, rounds: u32, puts: u32, page_bytes: usize) -> Program {
    Box::new((0..rounds).flat_map(move |_| {
        let put = move |put| {
            let offset_bytes = (rank * puts + put) as usize % page_bytes;
            Step::Access(Asked { home: 0, page: 0, offset_bytes, len_bytes: 1, is_put: true })
        };
        (0..puts).map(put).chain([Step::Barrier])
    }))
}
