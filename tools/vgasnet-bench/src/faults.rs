//! The cost of the first load or store of a page, by the place of the page: open but unmapped in the own pool, in
//! another rank's pool, or only on the disk.

use crate::baseline::{PageCopies, median, quantile};
use crate::disk::{Buffers, PlainFile};
use crate::plan::Spec;
use crate::rank::{Rank, fail};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use vgasnet_measuring::progress;
use xxhash_rust::xxh3::xxh3_64;

/// The rank with the pages of the kinds `neighbour_*` in its pool.
const NEIGHBOUR: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Load,
    Store,
}

/// The preparation of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Got by the rank itself: open for reading.
    Got,
    /// Put by the rank itself: owned.
    Put,
    /// Got and loaded: mapped, but not for stores.
    Loaded,
    /// Put by the neighbour, the owner.
    PutByNeighbour,
    /// In no pool.
    WrittenBack,
}

struct Kind {
    name: &'static str,
    before: Before,
    access: Access,
}

/// The order matters: pages of the first kind have never been mapped, pages of all other kinds have.
const KINDS: [Kind; 9] = [
    Kind { name: "own_pool_load_first", before: Before::Got, access: Access::Load },
    Kind { name: "own_pool_load_again", before: Before::Got, access: Access::Load },
    Kind { name: "own_pool_store_got", before: Before::Got, access: Access::Store },
    Kind { name: "own_pool_store_loaded", before: Before::Loaded, access: Access::Store },
    Kind { name: "own_pool_store_put", before: Before::Put, access: Access::Store },
    Kind { name: "neighbour_load", before: Before::PutByNeighbour, access: Access::Load },
    Kind { name: "neighbour_store", before: Before::PutByNeighbour, access: Access::Store },
    Kind { name: "disk_load", before: Before::WrittenBack, access: Access::Load },
    Kind { name: "disk_store", before: Before::WrittenBack, access: Access::Store },
];

/// Measurements of rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub faults: Vec<Latency>,
    /// A load from a mapped page.
    pub mapped_load_ns: f64,
    /// `memcpy` of a page, measured between faults.
    pub copy_page_us: f64,
    /// A plain read of a page.
    pub plain_read_page_us: f64,
    pub plain_read_page_p99_us: f64,
    pub plain_is_direct: bool,
}

/// Latency of the faults of a kind.
#[derive(Debug, Serialize, Deserialize)]
pub struct Latency {
    pub kind: String,
    pub access: Access,
    pub samples: u64,
    /// Pages no longer in the place of this kind when measured. Their faults are not samples.
    pub elsewhere: u64,
    pub min_us: f64,
    pub median_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

/// Rank 0's measurements other than faults, and its record of the pages.
struct Notes {
    /// The last word written to each page.
    words: Vec<u64>,
    plain: PlainFile,
    copies: PageCopies,
    mapped_load_ns: Vec<f64>,
    copy_us: Vec<f64>,
    plain_us: Vec<f64>,
}

pub fn run(rank: &Rank, spec: &Spec) -> Option<Found> {
    let pages = u64::from(spec.count);
    let window_pages = (rank.pool_bytes / rank.page_bytes as u64 / 2).clamp(1, pages);
    let mut notes = rank.is_first().then(|| Notes::new(rank, spec));
    if let Some(notes) = &mut notes {
        // Whole pages are written, since reads of unwritten blocks do not reach the disk.
        let whole = vec![0xA5; rank.page_bytes];
        for page in (0..pages).rev() {
            rank.put(0, page * rank.page_bytes as u64, &whole);
            notes.words[page as usize] = word(spec, page, KINDS.len());
            rank.put(0, offset(rank, page), &notes.words[page as usize].to_le_bytes());
        }
    }
    let mut faults = Vec::new();
    let bar = progress::bar(rank.is_first(), "faults", KINDS.len() as u64 * pages);
    for (number, kind) in KINDS.iter().enumerate() {
        let mut taken_us = Vec::new();
        for first in (0..pages).step_by(window_pages as usize) {
            // Downwards, so no page is read ahead.
            let window = (first..pages.min(first + window_pages)).rev().collect();
            let turn = Turn { rank, spec, kind, number, window };
            turn.prepare();
            if let Some(notes) = &mut notes {
                taken_us.extend(notes.measure(&turn));
            }
            rank.barrier();
            turn.check_from_outside();
            // Pages read by the neighbour would stay in place.
            rank.barrier();
            bar.inc(turn.window.len() as u64);
        }
        if rank.is_first() && taken_us.is_empty() {
            fail(format!("{}: no page stayed where it was put; give a larger --pool", kind.name));
        }
        faults.push(latency(kind, spec, &taken_us));
    }
    let notes = notes?;
    Some(Found {
        faults,
        mapped_load_ns: median(&notes.mapped_load_ns),
        copy_page_us: median(&notes.copy_us),
        plain_read_page_us: median(&notes.plain_us),
        plain_read_page_p99_us: quantile(&notes.plain_us, 0.99),
        plain_is_direct: notes.plain.is_direct,
    })
}

fn latency(kind: &Kind, spec: &Spec, taken_us: &[f64]) -> Latency {
    Latency {
        kind: kind.name.into(),
        access: kind.access,
        samples: taken_us.len() as u64,
        elsewhere: u64::from(spec.count) - taken_us.len() as u64,
        min_us: quantile(taken_us, 0.0),
        median_us: median(taken_us),
        p99_us: quantile(taken_us, 0.99),
        max_us: quantile(taken_us, 1.0),
    }
}

/// The word written to a page for a kind, by any rank.
fn word(spec: &Spec, page: u64, number: usize) -> u64 {
    xxh3_64(&[spec.seed.to_le_bytes(), page.to_le_bytes(), number.to_le_bytes()].concat())
}

/// A place in the page that differs from page to page.
fn offset(rank: &Rank, page: u64) -> u64 {
    let page_bytes = rank.page_bytes as u64;
    page * page_bytes + page * 4160 % page_bytes / 8 * 8
}

/// A window of the pages, measured for a kind of fault.
struct Turn<'a> {
    rank: &'a Rank,
    spec: &'a Spec,
    kind: &'a Kind,
    number: usize,
    window: Vec<u64>,
}

impl Turn<'_> {
    /// The word written by a store.
    fn word(&self, page: u64) -> u64 {
        word(self.spec, page, self.number)
    }

    /// The word written by a put before the fault, replaced by the store.
    fn word_before(&self, page: u64) -> u64 {
        !self.word(page)
    }

    /// Empties all pools, then brings the pages to their places.
    fn prepare(&self) {
        let (rank, before) = (self.rank, self.kind.before);
        rank.empty_pool();
        rank.barrier();
        let putter = if before == Before::PutByNeighbour { NEIGHBOUR } else { 0 };
        for &page in &self.window {
            let at = offset(rank, page);
            match before {
                Before::Put | Before::PutByNeighbour if rank.me == putter => {
                    rank.put(0, at, &self.word_before(page).to_le_bytes());
                }
                Before::Got | Before::Loaded if rank.is_first() => rank.get(0, at, &mut [0]),
                _ => {}
            }
            if before == Before::Loaded && rank.is_first() {
                load(rank, at);
            }
        }
        rank.barrier();
    }

    /// Checks that rank 0's neighbour sees its stores.
    fn check_from_outside(&self) {
        let (rank, name) = (self.rank, self.kind.name);
        if self.kind.access == Access::Load || rank.me != NEIGHBOUR {
            return;
        }
        for &page in &self.window {
            let (at, mut bytes) = (offset(rank, page), [0; 8]);
            rank.get(0, at, &mut bytes);
            if u64::from_le_bytes(bytes) != self.word(page) {
                fail(format!("{name}: rank {NEIGHBOUR} gets other bytes at offset {at} of rank 0 than were stored"));
            }
        }
    }

    /// Whether the page is in the place of this kind, as far as rank 0 can see. The runtime may have moved the page.
    fn is_in_place(&self, page: u64) -> bool {
        let expected = match self.kind.before {
            Before::Got | Before::Put | Before::Loaded => [true, false],
            Before::PutByNeighbour => [false, true],
            Before::WrittenBack => [false, false],
        };
        let is_open_at = |rank| self.rank.is_open_at(rank, offset(self.rank, page));
        (0..).zip(expected).all(|(rank, expected)| is_open_at(rank).is_none_or(|is_open| is_open == expected))
    }
}

fn load(rank: &Rank, offset: u64) -> u64 {
    // SAFETY: the word is aligned and lies in this rank's segment. No other rank writes to it meanwhile.
    unsafe { rank.own_segment().wrapping_add(offset as usize).cast::<u64>().read_volatile() }
}

fn store(rank: &Rank, offset: u64, word: u64) {
    // SAFETY: as for a load. No other rank reads it meanwhile either.
    unsafe { rank.own_segment().wrapping_add(offset as usize).cast::<u64>().write_volatile(word) };
}

impl Notes {
    fn new(rank: &Rank, spec: &Spec) -> Notes {
        Notes {
            words: vec![0; spec.count as usize],
            plain: PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages),
            copies: PageCopies::new(rank.page_bytes),
            mapped_load_ns: Vec::new(),
            copy_us: Vec::new(),
            plain_us: Vec::new(),
        }
    }

    /// Faults on every page of the window. Returns microseconds for each page that was in its place.
    fn measure(&mut self, turn: &Turn<'_>) -> Vec<f64> {
        let Turn { rank, kind, window, .. } = turn;
        let mut taken_us = Vec::new();
        for &page in window {
            let is_in_place = turn.is_in_place(page);
            let at = offset(rank, page);
            if matches!(kind.before, Before::Put | Before::PutByNeighbour) {
                self.words[page as usize] = turn.word_before(page);
            }
            let stored = turn.word(page);
            let start = Instant::now();
            let loaded = match kind.access {
                Access::Load => Some(load(rank, at)),
                Access::Store => {
                    store(rank, at, stored);
                    None
                }
            };
            let fault_us = start.elapsed().as_secs_f64() * 1e6;
            taken_us.extend(is_in_place.then_some(fault_us));
            match loaded {
                Some(loaded) => self.check(page, loaded, kind),
                None => self.words[page as usize] = stored,
            }
        }
        let start = Instant::now();
        for &page in window {
            self.check(page, load(rank, offset(rank, page)), kind);
        }
        self.mapped_load_ns.push(start.elapsed().as_secs_f64() * 1e9 / window.len() as f64);
        self.copy_us.extend(window.iter().map(|_| self.copies.run() * 1e6));
        if kind.before == Before::WrittenBack {
            let page_bytes = rank.page_bytes as u64;
            self.plain_us.extend(window.iter().map(|page| self.plain.read_range(page * page_bytes, page_bytes) * 1e6));
        }
        taken_us
    }

    fn check(&self, page: u64, loaded: u64, kind: &Kind) {
        let expected = self.words[page as usize];
        if loaded != expected {
            fail(format!("{}: page {page} has {loaded:#x} where {expected:#x} was written", kind.name));
        }
    }
}
