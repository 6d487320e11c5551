//! The declared ranges of a rank, as gets and puts look them up: without a lock.
//!
//! They lie in sorted tables, each for some of the ranks, so that a change does not cost more with ranges of many
//! ranks. A writer of a table excludes other writers and makes its sequence number odd meanwhile. A lookup is invalid
//! if the number has changed during it.

use super::cache::CacheId;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};

/// A range declared read-only, with its cache parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) struct Declared {
    pub(super) rank: u32,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Name of the range in the cache.
    pub(super) space: u32,
    pub(super) cache: CacheId,
    /// Larger gets are not cached, in bytes.
    pub(super) get_bytes_max: u32,
    /// Size of the objects in an array, in bytes; 0 if the range is no array.
    pub(super) object_bytes: u32,
}

impl Declared {
    /// Whether a get of bytes at an address of its rank, not behind its end, may be cached.
    pub(super) fn caches(&self, address: usize, len_bytes: usize) -> bool {
        let is_in = address >= self.start && len_bytes <= self.end - address;
        is_in && len_bytes <= self.get_bytes_max as usize
    }

    /// Whether bytes of a rank's segment overlap it.
    pub(super) fn overlaps(&self, rank: u32, address: usize, len_bytes: usize) -> bool {
        rank == self.rank && address < self.end && self.start - address.min(self.start) < len_bytes
    }
}

/// A [`Declared`] that may change while it is read.
#[derive(Debug, Default)]
struct AtomicDeclared {
    rank: AtomicU32,
    space: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
    cache: AtomicU32,
    get_bytes_max: AtomicU32,
    object_bytes: AtomicU32,
}

impl AtomicDeclared {
    fn load(&self) -> Declared {
        Declared {
            rank: self.rank.load(Ordering::Relaxed),
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
            space: self.space.load(Ordering::Relaxed),
            cache: CacheId(self.cache.load(Ordering::Relaxed)),
            get_bytes_max: self.get_bytes_max.load(Ordering::Relaxed),
            object_bytes: self.object_bytes.load(Ordering::Relaxed),
        }
    }

    fn store(&self, declared: &Declared) {
        self.rank.store(declared.rank, Ordering::Relaxed);
        self.start.store(declared.start, Ordering::Relaxed);
        self.end.store(declared.end, Ordering::Relaxed);
        self.space.store(declared.space, Ordering::Relaxed);
        self.cache.store(declared.cache.0, Ordering::Relaxed);
        self.get_bytes_max.store(declared.get_bytes_max, Ordering::Relaxed);
        self.object_bytes.store(declared.object_bytes, Ordering::Relaxed);
    }

    /// Whether the place ends at or before this address of the rank.
    fn is_before(&self, rank: u32, address: usize) -> bool {
        let its = self.rank.load(Ordering::Relaxed);
        its < rank || its == rank && self.end.load(Ordering::Relaxed) <= address
    }
}

/// Initial capacity of a table. It doubles each time.
const PLACES: usize = 4;

/// Maximum number of tables.
const TABLES_MAX: usize = 512;

/// Lookup attempts of a get or put while a table changes.
const TRIES: usize = 16;

/// The ranges. Only one thread at a time may change them.
#[derive(Debug)]
pub(super) struct Ranges {
    /// Number of ranges.
    len: AtomicU32,
    tables: Box<[Table]>,
}

/// The ranges of some ranks.
#[derive(Debug, Default)]
struct Table {
    /// Odd while the table changes.
    sequence: AtomicU32,
    len: AtomicU32,
    places: AtomicPtr<AtomicDeclared>,
    capacity: AtomicUsize,
}

impl Ranges {
    /// Room for ranges of `ranks` ranks.
    pub(super) fn new(ranks: usize) -> Ranges {
        let tables = ranks.next_power_of_two().min(TABLES_MAX);
        Ranges { len: AtomicU32::new(0), tables: (0..tables).map(|_| Table::default()).collect() }
    }

    /// Whether any range is declared.
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.len.load(Ordering::Relaxed) > 0
    }

    /// The number of a rank's table.
    pub(super) fn table_of(&self, rank: u32) -> u32 {
        // The number of tables is a power of two.
        rank & (self.tables.len() as u32 - 1)
    }

    /// The first range of a rank that ends behind an address. `Err`: the table kept changing.
    pub(super) fn first_behind(&self, rank: u32, address: usize) -> Result<Option<Declared>, Changing> {
        self.tables[self.table_of(rank) as usize].first_behind(rank, address)
    }

    /// Sets the ranges of a table. They must not overlap, and be sorted by rank and address. The caller excludes other
    /// writers.
    pub(super) fn replace(&self, table: u32, ranges: &[Declared]) {
        let before = self.tables[table as usize].replace(ranges);
        let len = self.len.load(Ordering::Relaxed) - before + ranges.len() as u32;
        self.len.store(len, Ordering::Relaxed);
    }
}

impl Table {
    fn first_behind(&self, rank: u32, address: usize) -> Result<Option<Declared>, Changing> {
        for _ in 0..TRIES {
            // Acquire: the table is no older than the number.
            let before = self.sequence.load(Ordering::Acquire);
            if before % 2 == 0 {
                let places = self.places();
                let len = (self.len.load(Ordering::Relaxed) as usize).min(places.len());
                let at = places[..len].partition_point(|place| place.is_before(rank, address));
                let found = places[..len].get(at).map(AtomicDeclared::load);
                // Pairs with the fence of `replace`: a reader of any changed word also sees the changed number.
                fence(Ordering::Acquire);
                if self.sequence.load(Ordering::Relaxed) == before {
                    return Ok(found.filter(|found| found.rank == rank));
                }
            }
            std::hint::spin_loop();
        }
        Err(Changing)
    }

    /// Returns the previous number of ranges.
    fn replace(&self, ranges: &[Declared]) -> u32 {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        if self.places().len() < ranges.len() {
            self.grow(ranges.len());
        }
        self.places().iter().zip(ranges).for_each(|(place, range)| place.store(range));
        let before = self.len.swap(ranges.len() as u32, Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
        before
    }

    /// Begins a larger table. The old one stays, since readers may be using it; all old ones together are as large as
    /// the last.
    fn grow(&self, least: usize) {
        let capacity = least.next_power_of_two().max(PLACES);
        let places: Box<[AtomicDeclared]> = (0..capacity).map(|_| AtomicDeclared::default()).collect();
        // Release: a reader of the new address or capacity finds the places there.
        self.places.store(Box::leak(places).as_mut_ptr(), Ordering::Release);
        self.capacity.store(capacity, Ordering::Release);
    }

    fn places(&self) -> &[AtomicDeclared] {
        // In this order: a capacity is never larger than the one of a table read after it.
        let capacity = self.capacity.load(Ordering::Acquire);
        let places = self.places.load(Ordering::Acquire);
        if capacity == 0 {
            return &[];
        }
        // SAFETY: tables only grow and are never freed. This one was published before its capacity, or is a later one.
        unsafe { std::slice::from_raw_parts(places, capacity) }
    }
}

/// A lookup has seen the table change at each attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changing;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn range(rank: u32, start: usize, end: usize) -> Declared {
        let space = (start / 100) as u32;
        Declared { rank, start, end, space, cache: CacheId(rank % 2), get_bytes_max: 1, object_bytes: 0 }
    }

    #[test]
    fn lookups_agree_with_a_linear_search() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..200 {
            let ranges = Ranges::new(1 + round % 6);
            let mut all: Vec<Declared> = Vec::new();
            for rank in 0..random.u32(0..6) {
                let mut at = 100 * random.usize(1..4);
                for _ in 0..random.u32(0..8) {
                    let end = at + 100 * random.usize(1..3);
                    all.push(range(rank, at, end));
                    at = end + 100 * random.usize(0..3);
                }
            }
            for table in 0..ranges.tables.len() as u32 {
                let its = |range: &&Declared| ranges.table_of(range.rank) == table;
                ranges.replace(table, &all.iter().filter(its).copied().collect::<Vec<_>>());
            }
            assert_eq!(ranges.is_any(), !all.is_empty());
            for _ in 0..50 {
                let (rank, address) = (random.u32(0..6), random.usize(0..2000));
                let expected = all.iter().find(|range| range.rank == rank && range.end > address).copied();
                assert_eq!(ranges.first_behind(rank, address), Ok(expected));
            }
        }
    }

    #[test]
    fn a_change_leaves_the_ranges_of_most_ranks_alone() {
        let ranges = Ranges::new(10_000);
        for rank in 0..10_000_u32 {
            let table = ranges.table_of(rank);
            let with: Vec<Declared> =
                (table..=rank).step_by(ranges.tables.len()).map(|rank| range(rank, 0, 100)).collect();
            assert!(with.len() <= 10_000_usize.div_ceil(TABLES_MAX), "a change copies {} ranges", with.len());
            ranges.replace(table, &with);
        }
        assert_eq!(ranges.len.load(Ordering::Relaxed), 10_000);
        assert!((0..10_000).all(|rank| ranges.first_behind(rank, 50) == Ok(Some(range(rank, 0, 100)))));
        (0..TABLES_MAX as u32).for_each(|table| ranges.replace(table, &[]));
        assert!(!ranges.is_any() && ranges.first_behind(9_999, 50) == Ok(None));
    }

    #[test]
    fn a_lookup_never_finds_parts_of_two_ranges() {
        let (ranges, is_over) = (Ranges::new(1), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut found = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let Ok(Some(one)) = ranges.first_behind(1, 500) else { continue };
                    assert_eq!(one, range(one.rank, one.start, one.end));
                    assert!(one.end > 500 && one.rank == 1);
                    found += 1;
                }
                found
            });
            let mut all: Vec<Declared> = Vec::new();
            for round in 0..20_000_usize {
                match round % 3 {
                    0 => all = vec![range(0, 100, 900), range(1, 300, 700)],
                    1 => all.insert(1, range(1, 0, 200)),
                    _ => all = (0..round % 50).map(|at| range(1, 100 * at, 100 * at + 100)).collect(),
                }
                ranges.replace(0, &all);
            }
            is_over.store(true, Ordering::Relaxed);
            reader.join().expect("what it found was whole");
        });
    }

    #[test]
    fn bytes_overlap_a_range_or_not() {
        let one = range(1, 200, 300);
        let overlaps = |rank, address, len| one.overlaps(rank, address, len);
        assert!(overlaps(1, 299, 1) && overlaps(1, 199, 2) && overlaps(1, 0, 1000) && overlaps(1, 250, 1));
        assert!(!overlaps(1, 300, 1) && !overlaps(1, 199, 1) && !overlaps(0, 250, 1) && !overlaps(1, 250, 0));
    }
}
