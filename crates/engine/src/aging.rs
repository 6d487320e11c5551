//! Write-behind by age. File pages and blocks dirty for long are written even if little is dirty, so that the file
//! system has them without a flush.
//!
//! This is the engine's only clock; the protocol has none. Without dirty file data nobody reads it and no thread wakes.

use super::Engine;
use std::fmt;
use std::time::{Duration, Instant};
use vgasnet_protocol::coherence::{Event, PageId};
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_stats::{self as stats, Row};

/// A file page stays dirty for at most this long, unless it is in use whenever it is examined.
const AGE_MAX: Duration = Duration::from_secs(5);

/// Interval until a page found in use is examined again.
const AGAIN: Duration = Duration::from_secs(1);

/// Times since which file pages and blocks have been dirty.
pub(super) struct Aging {
    clock: Box<dyn Fn() -> Duration + Send>,
    /// Pages that may be dirty, with the time of their first write.
    pages: OrderedMap<PageId, Duration>,
    /// Time since which blocks have been dirty. `None` if none are.
    blocks: Option<Duration>,
    /// Time of the next check. `None` if nothing is dirty.
    next: Option<Duration>,
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
        Aging { clock: Box::new(move || begin.elapsed()), pages: OrderedMap::new(), blocks: None, next: None }
    }
}

impl Aging {
    /// Whether no check is due.
    pub(super) fn is_idle(&self) -> bool {
        self.next.is_none()
    }

    /// A page is being written back.
    pub(super) fn on_written(&mut self, page: PageId) {
        self.pages.remove(&page);
    }

    fn oldest(&self) -> Option<Duration> {
        self.pages.values().copied().chain(self.blocks).min()
    }
}

impl Engine {
    /// Replaces the clock, which returns the time since an arbitrary origin.
    pub fn set_clock(&mut self, clock: impl Fn() -> Duration + Send + 'static) {
        self.write_behind.aging.clock = Box::new(clock);
    }

    /// Whether a check is scheduled, for which the storage's doorbell rings.
    pub fn rings_later(&self) -> bool {
        self.write_behind.aging.next.is_some()
    }

    /// Notes a file page that may be dirty from now on.
    pub(super) fn note_age(&mut self, page: PageId) {
        let (cache, aging) = (&self.protocol.cache, &mut self.write_behind.aging);
        // Write-backs for other reasons are not reported here.
        if aging.pages.len() >= cache.frames() as usize {
            aging.pages.retain(|page, _| cache.dirty_frame(*page).is_some());
        }
        let now = (aging.clock)();
        aging.pages.entry(page).or_insert(now);
        self.look_at_ages_by(now + AGE_MAX);
    }

    /// Notes file blocks that have become dirty.
    pub(super) fn note_age_of_blocks(&mut self) {
        if self.storage.take_newly_dirty() {
            let aging = &mut self.write_behind.aging;
            let now = (aging.clock)();
            aging.blocks.get_or_insert(now);
            self.look_at_ages_by(now + AGE_MAX);
        }
    }

    fn look_at_ages_by(&mut self, time: Duration) {
        let aging = &mut self.write_behind.aging;
        if aging.next.is_none() {
            aging.next = Some(time);
            let now = (aging.clock)();
            self.storage.ring_in(Some(time.saturating_sub(now)));
        }
    }

    /// Starts the write-back of pages and blocks dirty for [`AGE_MAX`], if a check is due.
    pub(super) fn write_aged(&mut self) {
        let aging = &mut self.write_behind.aging;
        let Some(next) = aging.next else { return };
        let now = (aging.clock)();
        if now < next {
            return;
        }
        if aging.blocks.is_some_and(|since| since + AGE_MAX <= now) {
            aging.blocks = None;
            self.storage.flush_blocks_of_files();
        }
        let aged = aging.pages.iter().filter(|(_, since)| **since + AGE_MAX <= now);
        let aged: Vec<PageId> = aged.map(|(page, _)| *page).collect();
        let mut is_any_in_use = false;
        // Neighbouring pages go to the disk in one request.
        for page in aged {
            let (cache, table) = (&self.protocol.cache, &self.space.own.table);
            let dirty = cache.dirty_frame(page).filter(|_| !self.files.stays(page));
            if dirty.is_some_and(|frame| !cache.evictable(frame) || table.is_pinned(frame)) {
                is_any_in_use = true;
                continue;
            }
            self.write_behind.aging.pages.remove(&page);
            if dirty.is_some() {
                stats::count(Row::FileAged);
                self.queue.raise(Event::WriteBack(page));
            }
        }
        let aging = &mut self.write_behind.aging;
        let next = aging.oldest().map(|oldest| oldest + AGE_MAX);
        aging.next = if is_any_in_use { Some(now + AGAIN) } else { next };
        self.storage.ring_in(aging.next.map(|next| next - now));
        self.handle_events();
    }
}
