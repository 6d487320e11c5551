//! Write-behind by age. File pages and blocks dirty for long are written even if little is dirty, so that the file
//! system has them without a flush.
//!
//! This is the engine's only clock; the protocol has none. Without dirty file data nobody reads it and no thread wakes.

use super::open_files::OpenFiles;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};
use vgasnet_memory::PageTable;
use vgasnet_protocol::coherence::{Cache, PageId};

/// A file page stays dirty for at most this long, unless it is in use whenever it is examined.
const AGE_MAX: Duration = Duration::from_secs(5);

/// Interval until a page found in use is examined again.
const AGAIN: Duration = Duration::from_secs(1);

/// Times since which file pages and blocks have been dirty.
pub(super) struct Aging {
    clock: Box<dyn Fn() -> Duration + Send>,
    /// Pages that may be dirty, with the time of their first write.
    pages: BTreeMap<PageId, Duration>,
    /// Time since which blocks have been dirty. `None` if none are.
    blocks: Option<Duration>,
    /// Time of the next check. `None` if nothing is dirty.
    next: Option<Duration>,
}

/// File data that have been dirty for [`AGE_MAX`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Aged {
    /// Blocks are among them.
    has_blocks: bool,
    /// The pages, in page order: neighbours go to the disk in one request.
    pages: Vec<PageId>,
    /// Time until the next check. `None` if nothing else is dirty.
    next_in: Option<Duration>,
}

impl Aged {
    /// Whether blocks of files are to be written.
    pub fn has_blocks(&self) -> bool {
        self.has_blocks
    }

    /// The pages to be written, in page order: neighbours go to the disk in one request.
    pub fn pages(&self) -> &[PageId] {
        &self.pages
    }

    /// Time until the next check. `None` if nothing else is dirty.
    pub fn next_in(&self) -> Option<Duration> {
        self.next_in
    }
}

/// State of a page that may be dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dirtiness {
    Clean,
    InUse,
    Dirty,
}

impl fmt::Debug for Aging {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Aging { clock: _, pages, blocks, next } = self;
        formatter.debug_struct("Aging").field("pages", pages).field("blocks", blocks).field("next", next).finish()
    }
}

impl Default for Aging {
    fn default() -> Aging {
        let begin = Instant::now();
        Aging { clock: Box::new(move || begin.elapsed()), pages: BTreeMap::new(), blocks: None, next: None }
    }
}

impl Aging {
    /// Replaces the clock. It returns the time since an arbitrary origin.
    pub(super) fn set_clock(&mut self, clock: impl Fn() -> Duration + Send + 'static) {
        assert!(self.is_idle() && self.pages.is_empty(), "ages are taken from one clock");
        self.clock = Box::new(clock);
    }

    /// Whether no check is due.
    pub(super) fn is_idle(&self) -> bool {
        self.next.is_none()
    }

    /// A page is being written back.
    pub(super) fn on_written(&mut self, page: PageId) {
        self.pages.remove(&page);
    }

    /// Notes a page that may be dirty from now on. Returns the time until the next check if it was not set.
    pub(super) fn note_page(&mut self, page: PageId, cache: &Cache) -> Option<Duration> {
        debug_assert!(page.space.segment().is_none(), "pages of files age, and {page:?} is of a segment");
        // Write-backs for other reasons are not reported here.
        if self.pages.len() >= cache.frames() as usize {
            self.pages.retain(|page, _| cache.dirty_frame(*page).is_some());
        }
        let now = (self.clock)();
        self.pages.entry(page).or_insert(now);
        self.check_by(now + AGE_MAX)
    }

    /// Notes blocks that have become dirty. Returns the time until the next check if it was not set.
    pub(super) fn note_blocks(&mut self) -> Option<Duration> {
        let now = (self.clock)();
        self.blocks.get_or_insert(now);
        self.check_by(now + AGE_MAX)
    }

    fn check_by(&mut self, time: Duration) -> Option<Duration> {
        if self.next.is_some() {
            return None;
        }
        self.next = Some(time);
        Some(time.saturating_sub((self.clock)()))
    }

    /// Takes the pages and blocks dirty for [`AGE_MAX`], if a check is due.
    pub(super) fn take_aged(&mut self, cache: &Cache, table: &PageTable, files: &OpenFiles) -> Option<Aged> {
        self.take_if(|page| match cache.dirty_frame(page).filter(|_| !files.stays(page)) {
            None => Dirtiness::Clean,
            Some(frame) if !cache.evictable(frame) || table.is_pinned(frame) => Dirtiness::InUse,
            Some(_) => Dirtiness::Dirty,
        })
    }

    fn take_if(&mut self, find: impl Fn(PageId) -> Dirtiness) -> Option<Aged> {
        let next = self.next?;
        let now = (self.clock)();
        if now < next {
            return None;
        }
        let is_aged = |since: Duration| since + AGE_MAX <= now;
        let has_blocks = self.blocks.take_if(|since| is_aged(*since)).is_some();
        let aged = self.pages.iter().filter(|(_, since)| is_aged(**since)).map(|(page, _)| *page);
        let mut pages: Vec<PageId> = aged.collect();
        let mut is_any_in_use = false;
        pages.retain(|page| {
            let found = find(*page);
            if found == Dirtiness::InUse {
                is_any_in_use = true;
            } else {
                self.pages.remove(page);
            }
            found == Dirtiness::Dirty
        });
        let oldest = self.pages.values().copied().chain(self.blocks).min();
        self.next = if is_any_in_use { Some(now + AGAIN) } else { oldest.map(|oldest| oldest + AGE_MAX) };
        let has_any = !self.pages.is_empty() || self.blocks.is_some();
        debug_assert_eq!(self.next.is_some(), has_any, "a check is due while anything is dirty");
        Some(Aged { has_blocks, pages, next_in: self.next.map(|next| next - now) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use vgasnet_protocol::{Rank, Space, Spaces};

    const fn page(index: u32) -> PageId {
        PageId { space: Space::of_file(3), index }
    }

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    /// An aging with a clock in seconds.
    fn aging() -> (Aging, Arc<AtomicU64>) {
        let (mut aging, clock) = (Aging::default(), Arc::new(AtomicU64::new(0)));
        let shown = Arc::clone(&clock);
        aging.set_clock(move || Duration::from_secs(shown.load(Ordering::Relaxed)));
        (aging, clock)
    }

    #[test]
    fn data_are_written_when_they_are_five_seconds_old() {
        let ((mut aging, clock), cache) = (aging(), Cache::new(Rank(0), 8, Spaces::new([4])));
        assert!(aging.is_idle() && aging.take_if(|_| Dirtiness::Dirty).is_none());
        assert_eq!(aging.note_page(page(2), &cache), seconds(5));
        assert_eq!(aging.note_page(page(1), &cache), None, "the next check is set");
        clock.store(2, Ordering::Relaxed);
        assert_eq!((aging.note_page(page(2), &cache), aging.note_blocks()), (None, None));
        clock.store(5, Ordering::Relaxed);
        let aged = aging.take_if(|_| Dirtiness::Dirty);
        assert_eq!(aged, Some(Aged { has_blocks: false, pages: vec![page(1), page(2)], next_in: seconds(2) }));
        assert_eq!(aging.take_if(|_| Dirtiness::Dirty), None);
        clock.store(7, Ordering::Relaxed);
        let aged = aging.take_if(|_| Dirtiness::Dirty);
        assert_eq!(aged, Some(Aged { has_blocks: true, pages: vec![], next_in: None }));
        assert!(aging.is_idle());
    }

    #[test]
    fn a_page_in_use_is_examined_again_and_a_clean_one_is_forgotten() {
        let ((mut aging, clock), cache) = (aging(), Cache::new(Rank(0), 8, Spaces::new([4])));
        (0..4).for_each(|index| _ = aging.note_page(page(index), &cache));
        aging.on_written(page(3));
        clock.store(6, Ordering::Relaxed);
        let found = |page: PageId| [Dirtiness::Clean, Dirtiness::InUse, Dirtiness::Dirty][page.index as usize];
        let aged = aging.take_if(found);
        assert_eq!(aged, Some(Aged { has_blocks: false, pages: vec![page(2)], next_in: seconds(1) }));
        clock.store(7, Ordering::Relaxed);
        let aged = aging.take_if(|_| Dirtiness::Dirty);
        assert_eq!(aged, Some(Aged { has_blocks: false, pages: vec![page(1)], next_in: None }));
    }

    #[test]
    fn pages_written_for_other_reasons_take_no_room() {
        let ((mut aging, _), cache) = (aging(), Cache::new(Rank(0), 8, Spaces::new([4])));
        (0..100).for_each(|index| _ = aging.note_page(page(index), &cache));
        assert!(aging.pages.len() <= 8);
    }
}
