//! The cost of the first load or store of a page, by the place of the page: open but unmapped in the own pool, in
//! another rank's pool, or only on the disk.

mod threads;

use crate::Stop;
use crate::disk::{Buffers, PlainFile};
use crate::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// The rank with the pages of the kinds `neighbour_*` in its pool.
const NEIGHBOUR: u32 = 1;

/// The target of a fault, in addition to a copy if it copies the page.
const OVERHEAD_US: f64 = 20.0;

/// Latency of the first load or store of a page, by the location of the page
#[derive(Args, Serialize, Deserialize)]
pub struct Fault {
    #[command(flatten)]
    setup: Setup,

    /// Number of faults of each kind
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 256, value_parser = within(1..=100_000))]
    faults: u32,

    /// Measure instead the pages per second for this number of threads of one rank loading from random pages; several
    /// numbers, as in 1,4,16, are measured in alternating rounds
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with_all = ["faults", "peer_memory"],
          value_parser = within(1..=1024))]
    threads: Vec<u32>,

    /// Whether ranks of one host use each other's frames directly
    #[arg(long, value_enum, default_value_t = Switch::On)]
    peer_memory: Switch,

    #[command(flatten)]
    judging: Judging,
}

impl Benchmark for Fault {
    const NAME: &'static str = "fault";

    fn mode(&self) -> &'static str {
        if self.threads.is_empty() { "fault" } else { "fault-threads" }
    }

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let mut jobs = Vec::new();
        for setup in self.setup.in_pages(LARGE_AND_SMALL) {
            if !self.threads.is_empty() {
                jobs.push(threads::job(self, &setup)?);
                continue;
            }
            for &peer_memory in self.peer_memory.values() {
                let job = Job::in_modes(self, 2, true, peer_memory, &setup)?.with_frames(FRAMES_MIN)?;
                let data_bytes = u64::from(self.faults) * job.config.page_bytes;
                jobs.push(job.with_data(data_bytes, 1));
            }
        }
        Ok(jobs)
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        if !self.threads.is_empty() {
            return threads::measure(&self.threads, rank, spec);
        }
        let pages = u64::from(self.faults);
        let window_pages = (rank.pool_bytes / rank.page_bytes as u64 / 2).clamp(1, pages);
        let mut notes = rank.is_first().then(|| Notes::new(rank, spec, pages));
        if let Some(notes) = &mut notes {
            notes.write_pages(rank, spec);
        }
        let mut taken_us: Vec<Vec<f64>> = Vec::new();
        let bar = progress::bar(rank.is_first(), "faults", KINDS.len() as u64 * pages);
        for (number, kind) in KINDS.iter().enumerate() {
            let mut of_kind_us = Vec::new();
            for first in (0..pages).step_by(window_pages as usize) {
                // Downwards, so no page is read ahead.
                let window = (first..pages.min(first + window_pages)).rev().collect();
                let turn = Turn { rank, spec, kind, number, window };
                turn.prepare();
                if let Some(notes) = &mut notes {
                    of_kind_us.extend(notes.measure(&turn));
                }
                rank.barrier();
                turn.check_from_outside();
                // Pages read by the neighbour would stay in place.
                rank.barrier();
                bar.inc(turn.window.len() as u64);
            }
            if rank.is_first() && of_kind_us.is_empty() {
                fail(format!("{}: no page stayed where it was put; give a larger --pool", kind.name));
            }
            taken_us.push(of_kind_us);
        }
        notes.map_or_else(Figures::default, |notes| notes.figures(&taken_us))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Access {
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

/// Rank 0's measurements other than faults, and its record of the pages.
struct Notes {
    /// The last word written to each page.
    words: Vec<u64>,
    plain: PlainFile,
    copies: PageCopies,
    copy_us: Vec<f64>,
    plain_us: Vec<f64>,
    row: Row,
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
    fn new(rank: &Rank, spec: &Spec, pages: u64) -> Notes {
        Notes {
            words: vec![0; pages as usize],
            plain: PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages),
            copies: PageCopies::new(rank.page_bytes),
            copy_us: Vec::new(),
            plain_us: Vec::new(),
            row: Row::default(),
        }
    }

    /// Writes whole pages, since reads of unwritten blocks do not reach the disk.
    fn write_pages(&mut self, rank: &Rank, spec: &Spec) {
        let whole = vec![0xA5; rank.page_bytes];
        for (page, noted) in self.words.iter_mut().enumerate().rev() {
            let page = page as u64;
            rank.put(0, page * rank.page_bytes as u64, &whole);
            *noted = word(spec, page, KINDS.len());
            rank.put(0, offset(rank, page), &noted.to_le_bytes());
        }
    }

    /// Little more than the copy of a page, for faults that copy one. Pages no longer in the place of a kind when
    /// measured are `elsewhere`: their faults are not samples.
    fn figures(&self, taken_us: &[Vec<f64>]) -> Figures {
        let copy_us = median(&self.copy_us);
        let row = |(kind, us): (&Kind, &Vec<f64>)| {
            Row::labelled(kind.name.replace('_', " "))
                .keep("kind", kind.name)
                .keep("access", kind.access)
                .show("samples", us.len())
                .keep("elsewhere", self.words.len() - us.len())
                .show("min_us", quantile(us, 0.0))
                .show("median_us", median(us))
                .show("p99_us", quantile(us, 0.99))
                .show("max_us", quantile(us, 1.0))
                .show("less_a_copy_us", median(us) - copy_us)
                .keep("copy_page_us", copy_us)
                .ratio("to_copy", "median_us", "copy_page_us")
        };
        let faults: Vec<Row> = KINDS.iter().zip(taken_us).map(row).collect();
        let us = |name: &str| faults.iter().find(|fault| fault.is("kind", name)).map(|fault| fault.number("median_us"));
        let rounded_us = (copy_us * 10.0).round() / 10.0;
        let names = [
            ("own_pool_load_again", "load, page in the own pool, us", 0.0),
            ("own_pool_store_put", "store, page in the own pool, us", 0.0),
            ("neighbour_load", "load, page of a neighbour, us", 0.0),
            ("neighbour_store", "store, page of a neighbour, us", rounded_us),
        ];
        let judged = names.map(|(name, meaning, copy_us)| (name, meaning, us(name), OVERHEAD_US + copy_us));
        let row = self
            .row
            .clone()
            .show("copy_page_us", copy_us)
            .show("plain_read_page_us", median(&self.plain_us))
            .show("plain_read_page_p99_us", quantile(&self.plain_us, 0.99))
            .rows("faults", faults);
        let figures = Figures::of(row).with_direct(self.plain.is_direct);
        judged.into_iter().fold(figures, |figures, (name, meaning, us, most_us)| {
            figures.target(name, meaning, us, Bound::AtMost, most_us)
        })
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
        self.row.add("mapped_load_ns", start.elapsed().as_secs_f64() * 1e9 / window.len() as f64);
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
