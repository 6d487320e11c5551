//! Begin and end of ranges, and the copies kept until they begin again.

use super::cache::CacheId;
use super::check::Watch;
use super::ranges::Declared;
use super::{CopySettings, GET_BYTES_MAX, RangeOptions, ReadOnly, Remote};
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ops::Range;
use vgasnet_engine::Purpose;
use vgasnet_getcache::MEMORY_MAX;
use vgasnet_protocol::Rank;
use vgasnet_protocol::writes::NEVER;
use vgasnet_settings::UserError;
use vgasnet_sys::Signalproof;

/// Maximum number of ended ranges with kept copies.
const KEPT_MAX: usize = 1024;

/// A range that has begun and not ended.
struct Begun {
    declared: Declared,
    /// Gets are served from copies, and writes are refused.
    is_ready: bool,
    /// Logical time at the range's home up to which copies of an earlier phase are valid, if they are to be kept.
    since: Option<u64>,
    watch: Option<Watch>,
}

/// An ended range with kept copies.
struct Kept {
    declared: Declared,
    /// Copies of pages written after this time are stale.
    since: u64,
}

/// Name of a range: its table, rank and start.
type Name = (u32, u32, usize);

/// State that changes at the begin and the end of a range.
#[derive(Default)]
pub(super) struct Open {
    ranges: BTreeMap<Name, Begun>,
    /// Oldest first.
    kept: VecDeque<Kept>,
    /// Space numbers of ended ranges, for reuse.
    free_spaces: Vec<u32>,
    spaces: u32,
}

impl Open {
    /// The first range of a table that overlaps these bytes.
    pub(super) fn find(&self, table: u32, rank: u32, address: usize, len_bytes: usize) -> Option<Declared> {
        let end = address.saturating_add(len_bytes);
        let mut others = self.ranges.range(..(table, rank, end)).rev().map(|(_, begun)| begun.declared);
        // Ranges do not overlap, so the last to begin before the end also ends last.
        others.next().filter(|last| last.overlaps(rank, address, len_bytes))
    }

    fn new_space(&mut self) -> u32 {
        self.free_spaces.pop().unwrap_or_else(|| {
            self.spaces += 1;
            self.spaces - 1
        })
    }

    fn begin(&mut self, table: u32, declared: Declared) {
        let begun = Begun { declared, is_ready: false, since: None, watch: None };
        self.ranges.insert((table, declared.rank, declared.start), begun);
    }

    /// The ready ranges of a table.
    fn ready(&self, table: u32) -> Vec<Declared> {
        let all = self.ranges.range((table, 0, 0)..(table + 1, 0, 0)).map(|(_, begun)| begun);
        all.filter(|begun| begun.is_ready).map(|begun| begun.declared).collect()
    }

    /// Takes the copies kept for a range by an earlier phase. Copies in another cache or of other objects do not count.
    fn take_kept(&mut self, declared: &Declared) -> Option<Kept> {
        let is_it = |kept: &Kept| Declared { space: declared.space, ..kept.declared } == *declared;
        let at = self.kept.iter().position(is_it)?;
        self.kept.remove(at)
    }

    /// Keeps the copies of an ended range. Returns the range whose copies are dropped for it.
    fn keep(&mut self, kept: Kept) -> Option<Declared> {
        self.kept.push_back(kept);
        let oldest = if self.kept.len() > KEPT_MAX { self.kept.pop_front() } else { None };
        oldest.map(|oldest| oldest.declared)
    }
}

impl ReadOnly {
    /// Declares a range of a rank's segment read-only.
    ///
    /// # Errors
    /// The range is empty, not in the segment, or overlaps another; or an option is out of range.
    pub fn begin(&self, range: Remote, options: RangeOptions) -> Result<(), UserError> {
        let checked = check_options(&options, &self.settings)?;
        let pages = self.pages_of(&range)?;
        let (declared, kept) = self.take_range(&range, checked, options.keeps)?;
        let mut since = None;
        if let Some(kept) = kept {
            since = Some(self.drop_written(&kept, pages.clone()));
        } else if options.keeps {
            since = Some(self.driver.writes_since(Rank(range.rank), NEVER, pages.clone(), Purpose::Keep).now);
        }
        let watch = self.settings.checks.then(|| self.watch(&declared, pages));
        let mut open = Signalproof::lock(&self.open);
        let name = self.name_of(&range);
        let begun = open.ranges.get_mut(&name).expect("nobody ends a range that has not begun");
        (begun.is_ready, begun.since, begun.watch) = (true, since, watch);
        self.publish(&open, name.0);
        Ok(())
    }

    /// Ends a declared range.
    ///
    /// # Errors
    /// There is none with this rank, address and length.
    pub fn end(&self, range: Remote) -> Result<(), EndError> {
        let mut open = Signalproof::lock(&self.open);
        let Remote { rank, address, len_bytes } = range;
        let name = self.name_of(&range);
        let is_it = |begun: &Begun| begun.is_ready && begun.declared.end - address == len_bytes;
        if !open.ranges.get(&name).is_some_and(is_it) {
            return Err(EndError::BadArgument(UserError::new(format!(
                "this rank has declared no range of {len_bytes} bytes at {address:#x} of rank {rank}; end a range as it was begun, and once"
            ))));
        }
        let Begun { declared, since, watch, .. } = open.ranges.remove(&name).expect("it is there");
        self.publish(&open, name.0);
        let forgotten = match since {
            Some(since) => open.keep(Kept { declared, since }),
            None => Some(declared),
        };
        forgotten.iter().for_each(|range| self.forget(&mut open, range));
        drop(open);
        watch.map_or(Ok(()), |watch| self.check_watched(&declared, &watch)).map_err(EndError::Broken)
    }

    /// Reserves a range, and takes the copies kept for it by an earlier phase.
    fn take_range(
        &self,
        range: &Remote,
        (cache_bytes, get_bytes_max, object_bytes): (usize, u32, u32),
        keeps: bool,
    ) -> Result<(Declared, Option<Kept>), UserError> {
        let Remote { rank, address, len_bytes } = *range;
        let mut open = Signalproof::lock(&self.open);
        let table = self.ranges.table_of(rank);
        if let Some(Declared { start, end, .. }) = open.find(table, rank, address, len_bytes) {
            return Err(UserError::new(format!(
                "{len_bytes} bytes at {address:#x} of rank {rank} overlap the range from {start:#x} to {end:#x} that this rank has \
                 declared already; end that one first, or leave it open"
            )));
        }
        let cache: CacheId = self.cache_of(cache_bytes, u64::from(self.space.rank.0) + 1)?;
        let end = address + len_bytes;
        let mut declared = Declared { rank, start: address, end, space: 0, cache, get_bytes_max, object_bytes };
        let mut kept = open.take_kept(&declared);
        declared.space = kept.as_ref().map_or_else(|| open.new_space(), |kept| kept.declared.space);
        if !keeps && kept.take().is_some() {
            self.cache(cache).invalidate(declared.space);
        }
        open.begin(table, declared);
        Ok((declared, kept))
    }

    /// Drops stale copies of a range that begins again. Returns the time up to which the others are valid.
    fn drop_written(&self, kept: &Kept, pages: Range<u32>) -> u64 {
        let Kept { declared, since } = kept;
        let cache = self.cache(declared.cache);
        let written = self.driver.writes_since(Rank(declared.rank), *since, pages, Purpose::Keep);
        if written.has_forgotten {
            cache.invalidate(declared.space);
        } else {
            let page_bytes = self.space.page_bytes() as u64;
            let starts = written.pages.iter().map(|page| self.start_of(declared.rank, page.index) as u64);
            starts.for_each(|start| cache.drop_range(declared.space, declared.rank, start, page_bytes));
        }
        written.now
    }

    fn forget(&self, open: &mut Open, range: &Declared) {
        self.cache(range.cache).invalidate(range.space);
        open.free_spaces.push(range.space);
    }

    fn name_of(&self, range: &Remote) -> Name {
        (self.ranges.table_of(range.rank), range.rank, range.address)
    }

    /// Makes the ready ranges of a table visible to gets and puts.
    fn publish(&self, open: &Open, table: u32) {
        self.ranges.replace(table, &open.ready(table));
        // The shortest path of puts does not check ranges.
        self.space.translations().refuse_puts(self.is_any());
    }

    /// The pages of a range.
    fn pages_of(&self, range: &Remote) -> Result<Range<u32>, UserError> {
        let Remote { rank, address, len_bytes } = *range;
        let first = self.space.pieces(rank, address, len_bytes)?.next();
        let last = self.space.pieces(rank, (address + len_bytes).saturating_sub(1), 1.min(len_bytes))?.next();
        match (first, last) {
            (Some(first), Some(last)) => Ok(first.page.index..last.page.index + 1),
            _ => Err(UserError::new("a range of 0 bytes; give the length of what is read, at least 1")),
        }
    }
}

/// Reasons for a failed end of a range.
#[derive(Debug)]
pub enum EndError {
    /// There is no such range.
    BadArgument(UserError),
    /// Some rank has written to it.
    Broken(UserError),
}

/// The copy memory, the largest get and the object size that options ask for.
fn check_options(options: &RangeOptions, settings: &CopySettings) -> Result<(usize, u32, u32), UserError> {
    let RangeOptions { cache_bytes_max, get_bytes_max, object_bytes, .. } = *options;
    let given = |value: usize, default: usize| if value == 0 { default } else { value };
    let get_bytes_max = given(get_bytes_max, GET_BYTES_MAX);
    if get_bytes_max > GET_BYTES_MAX {
        return Err(UserError::new(format!(
            "get_bytes_max is {get_bytes_max}; give at most {GET_BYTES_MAX}: larger gets leave no copies"
        )));
    }
    if object_bytes > get_bytes_max {
        return Err(UserError::new(format!(
            "object_bytes is {object_bytes}, and gets of at most {get_bytes_max} bytes leave copies; give objects of at most that, or 0"
        )));
    }
    if cache_bytes_max != 0 && cache_bytes_max < GET_BYTES_MAX {
        return Err(UserError::new(format!(
            "cache_bytes_max is {cache_bytes_max}; give at least {GET_BYTES_MAX}, or 0 for VGASNET_GET_CACHE_SIZE"
        )));
    }
    if cache_bytes_max as u64 > MEMORY_MAX {
        return Err(UserError::new(format!(
            "cache_bytes_max is {cache_bytes_max}; give at most {MEMORY_MAX}, or 0 for VGASNET_GET_CACHE_SIZE"
        )));
    }
    Ok((given(cache_bytes_max, settings.cache_bytes), get_bytes_max as u32, object_bytes as u32))
}
