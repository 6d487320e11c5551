//! Ranges that the program declares read-only, and the copies of small gets from them.

mod cache;
mod check;
mod declare;
mod ranges;

pub use cache::Report;
pub use declare::EndError;
pub use vgasnet_getcache::Stats as CopyStats;

use super::{Operation, Remote};
use cache::{Cache, CacheId, CacheLookup, KeepCopy, new_cache};
use declare::Open;
pub(super) use ranges::Declared;
use ranges::Ranges;
use std::sync::{Arc, Mutex, OnceLock};
use vgasnet_engine::Driver;
use vgasnet_engine::request::{Completion, CompletionId, Copy, Part};
use vgasnet_getcache::Outcome;
use vgasnet_memory::{AddressSpace, Piece};
use vgasnet_settings::UserError;
use vgasnet_sys::Signalproof;

/// The largest get that may leave a copy, in bytes.
pub const GET_BYTES_MAX: usize = 64 << 10;

/// Maximum number of caches of different sizes per rank.
const CACHES_MAX: usize = 8;

/// Settings of a rank's copies.
#[derive(Clone, Copy, Debug)]
pub struct CopySettings {
    /// Default memory for copies of a range, in bytes.
    pub cache_bytes: usize,
    /// The end of a range checks for writes.
    pub checks: bool,
    /// Reports a line about this rank.
    pub report: Report,
}

/// Options of a declared range.
#[derive(Clone, Copy, Debug)]
pub struct RangeOptions {
    /// Memory for copies, in bytes; 0: the setting's value.
    pub cache_bytes_max: usize,
    /// Larger gets leave no copy, in bytes; 0: [`GET_BYTES_MAX`].
    pub get_bytes_max: usize,
    /// Size of the objects in an array, in bytes; 0: the range is no array.
    pub object_bytes: usize,
    /// Copies of an earlier phase are reused.
    pub keeps: bool,
}

/// The declared ranges of a rank and its copies.
pub struct ReadOnly {
    driver: Arc<Driver>,
    space: Arc<AddressSpace>,
    settings: CopySettings,
    ranges: Ranges,
    /// In order of first use.
    caches: [OnceLock<(usize, Arc<Cache>)>; CACHES_MAX],
    open: Mutex<Open>,
}

impl ReadOnly {
    /// No declared ranges. Missing bytes come by `driver`.
    pub(super) fn new(driver: Arc<Driver>, settings: CopySettings) -> ReadOnly {
        let space = Arc::clone(driver.space());
        let ranges = Ranges::new(space.segments.ranks() as usize);
        let caches = [const { OnceLock::new() }; CACHES_MAX];
        ReadOnly { driver, space, settings, ranges, caches, open: Mutex::default() }
    }

    /// Whether any range is declared.
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.ranges.is_any()
    }

    fn cache(&self, id: CacheId) -> &Arc<Cache> {
        &self.caches[id.0 as usize].get().expect("a declared range has its cache").1
    }

    /// The cache of this size. The caller has the lock.
    fn cache_of(&self, bytes: usize, seed: u64) -> Result<CacheId, UserError> {
        let at = self.caches.iter().position(|one| one.get().is_none_or(|(its, _)| *its == bytes));
        let Some(at) = at else {
            return Err(UserError::new(format!(
                "a cache of {bytes} bytes beside {CACHES_MAX} of other sizes; give one of those sizes, or 0"
            )));
        };
        self.caches[at].get_or_init(|| (bytes, new_cache(bytes, GET_BYTES_MAX, seed, self.settings.report)));
        Ok(CacheId(at as u32))
    }

    /// Refuses writes in a declared range. There are some.
    fn refuse_write(&self, remote: &Remote) -> Result<(), UserError> {
        let Remote { rank, address, len_bytes } = *remote;
        let found = self.ranges.first_behind(rank, address).unwrap_or_else(|_| {
            let open = Signalproof::lock(&self.open);
            open.find(self.ranges.table_of(rank), rank, address, len_bytes)
        });
        match found.filter(|range| range.overlaps(rank, address, len_bytes)) {
            None => Ok(()),
            Some(Declared { start, end, .. }) => Err(UserError::new(format!(
                "{len_bytes} bytes at {address:#x} of rank {rank} would be written, and this rank has declared {start:#x} to {end:#x} \
                 read-only; end that range with vgasnet_readonly_end first"
            ))),
        }
    }

    /// Statistics of gets from declared ranges.
    pub fn stats(&self) -> CopyStats {
        let all = self.caches.iter().filter_map(OnceLock::get).map(|(_, cache)| cache.stats());
        all.fold(CopyStats::default(), |sum, one| sum.plus(&one))
    }

    /// Gets bytes of a declared range, if a copy has all of them, and leaves the range in `range`. Refuses writes there.
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, and not null.
    #[inline(never)]
    pub(super) unsafe fn by_copy(
        &self,
        operation: Operation,
        remote: &Remote,
        first: &Piece,
        range: &mut Option<Declared>,
    ) -> Result<bool, UserError> {
        let (Operation::Get(dest) | Operation::GetWeighted(dest, _)) = operation else {
            return self.refuse_write(remote).map(|()| false);
        };
        *range = self.ranges.first_behind(remote.rank, remote.address).unwrap_or(None);
        let is_one_piece = first.len_bytes == remote.len_bytes;
        let Some(range) = range.filter(|range| is_one_piece && range.caches(remote.address, remote.len_bytes)) else {
            return Ok(false);
        };
        let place = CacheLookup::of(&range, remote.address, first, self.space.page_bytes());
        let cache = self.cache(range.cache);
        // SAFETY: the client's memory is valid for as many bytes.
        Ok(unsafe { cache.hit(&place.key, place.skip, remote.len_bytes as u32, dest) })
    }

    /// The declared range with a piece of a get, if the piece may be cached. `range` is the operation's last one; a
    /// piece behind it may lie in the next one.
    pub(super) fn range_at(
        &self,
        range: &mut Option<Declared>,
        rank: u32,
        address: usize,
        len_bytes: usize,
    ) -> Option<Declared> {
        if range.is_some_and(|range| range.end <= address) {
            *range = self.ranges.first_behind(rank, address).unwrap_or(None);
        }
        range.filter(|range| range.caches(address, len_bytes))
    }

    /// Refuses an operation that writes in a range declared by this rank.
    #[inline]
    pub(super) fn check_write(&self, remote: &Remote) -> Result<(), UserError> {
        if self.is_any() { self.refuse_write(remote) } else { Ok(()) }
    }

    /// The part for a missing piece of a get in a declared range. `None`: a copy has its bytes, or another get fetches
    /// them and counts in `completion`.
    ///
    /// # Safety
    /// The client's memory at `dest` is valid for the piece until nothing is pending in `completion`.
    pub(super) unsafe fn part_or_copy(
        &self,
        range: &Declared,
        address: usize,
        piece: Piece,
        (dest, weight): (*mut u8, f32),
        completion: CompletionId,
    ) -> Option<Part> {
        let place = CacheLookup::of(range, address, &piece, self.space.page_bytes());
        let cache = self.cache(range.cache);
        // The fetching thread may finish before this one knows of having joined.
        self.driver.completions().add(completion);
        // SAFETY: the client's memory is valid until nothing is pending in `completion`, which counts this get until
        // the waiter is finished.
        let outcome = unsafe { cache.get(&place.key, &place.ask(piece.len_bytes, weight, completion), dest) };
        if outcome == Outcome::Joined {
            return None;
        }
        self.driver.completions().finish(completion);
        let Outcome::Miss { from, fill } = outcome else { return None };
        Some(match fill {
            None => {
                let (offset_bytes, start_bytes) = (piece.offset_bytes + from, piece.start_bytes + from);
                let piece = Piece { offset_bytes, len_bytes: piece.len_bytes - from, start_bytes, ..piece };
                Part { piece, copy: Copy::Get(dest.wrapping_add(from)), completion: Completion::Counted(completion) }
            }
            Some(fill) => {
                let room = fill.room().0.as_ptr();
                let missing = place.missing(&piece, fill.first_missing());
                let continuation = Box::new(KeepCopy::new(cache, fill, place.skip, (dest, from, piece.len_bytes)));
                Part { piece: missing, copy: Copy::Get(room), completion: Completion::Then(completion, continuation) }
            }
        })
    }
}
