//! Flushes of shared files. In a collective flush each rank writes its own dirty data. A flush by one rank writes all
//! data that the rank has written, wherever they are.

use super::{Driver, Engine, Unwritten};
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use vgasnet_protocol::coherence::{Cause, Event, PageId};
use vgasnet_protocol::file_message::{FileAsk, FileMessage, PageFilter};
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_protocol::{Rank, Space};

/// A flush by one rank, at a home of the file.
#[derive(Debug)]
pub(super) struct FlushAtHome {
    from: Rank,
    message: FileMessage,
    /// Pages still to be written back.
    left: usize,
    /// The first failure.
    cause: Option<Cause>,
}

/// Flushes in progress at a home. All flushes of a file that have reached the same stage advance together, so the cost
/// does not depend on their number.
#[derive(Debug, Default)]
pub(super) struct FlushesAtHome {
    flushes: OrderedMap<u64, FlushAtHome>,
    last: u64,
    recalls: OrderedMap<PageId, Recalls>,
    /// Flushes with all pages written or failed, which wait for blocks.
    recalled: OrderedMap<Space, Vec<u64>>,
    /// Flushes waiting for spilled data to reach the file.
    draining: OrderedMap<Space, Vec<u64>>,
}

/// The flushes waiting for the write-back of a page. Flushes that begin during a write-back share another one, since
/// the bytes in flight may be older than their writes.
#[derive(Debug)]
struct Recalls {
    now: Vec<u64>,
    next: Vec<u64>,
}

impl FlushesAtHome {
    pub(super) fn is_idle(&self) -> bool {
        self.flushes.is_empty()
    }

    fn begin(&mut self, flush: FlushAtHome) -> u64 {
        self.last += 1;
        if flush.left == 0 {
            self.recalled.entry(flush.message.space).or_default().push(self.last);
        }
        self.flushes.insert(self.last, flush);
        self.last
    }

    /// Takes a finished flush.
    fn end(&mut self, id: u64) -> FlushAtHome {
        self.flushes.remove(&id).expect("it is under way")
    }

    /// Makes a flush wait for a page. Returns whether the page is to be recalled now.
    fn wait_for(&mut self, flush: u64, page: PageId) -> bool {
        if let Some(recalls) = self.recalls.get_mut(&page) {
            recalls.next.push(flush);
            return false;
        }
        self.recalls.insert(page, Recalls { now: vec![flush], next: Vec::new() });
        true
    }

    /// A page is written back or has failed. Returns whether to recall it again.
    fn on_recalled(&mut self, page: PageId, cause: Option<Cause>) -> bool {
        let Some(Recalls { now, next }) = self.recalls.remove(&page) else { return false };
        // A failure holds for the later flushes, too.
        let (ended, next) = if cause.is_some() { ([now, next].concat(), Vec::new()) } else { (now, next) };
        for id in ended {
            let flush = self.flushes.get_mut(&id).expect("it waits for the page");
            flush.left -= 1;
            flush.cause = flush.cause.or(cause);
            if flush.left == 0 {
                self.recalled.entry(page.space).or_default().push(id);
            }
        }
        let is_again = !next.is_empty();
        if is_again {
            self.recalls.insert(page, Recalls { now: next, next: Vec::new() });
        }
        is_again
    }
}

/// A flush by this rank alone.
#[derive(Clone, Copy, Debug)]
pub struct OwnFlush {
    /// Pages written since the rank's previous flush began.
    new: PageFilter,
    /// Also the pages of earlier flushes that are still in progress.
    pages: PageFilter,
}

impl OwnFlush {
    /// The pages to ask homes for.
    pub fn filter(&self) -> PageFilter {
        self.pages
    }
}

impl Engine {
    /// Starts writing this rank's data of a file, in its pool or as a home. [`Engine::is_flushed_file`] reports
    /// completion.
    pub fn flush_file(&mut self, space: Space) {
        let Some(file) = self.files.open.get_mut(&space) else { return };
        file.state.refusal.store(0, Ordering::Relaxed);
        file.state.told_refusal.store(false, Ordering::Relaxed);
        file.unwritten.clear();
        self.storage.flush_file(space);
        self.handle(Event::FlushSpace(space));
    }

    /// Whether the flush has ended: all data are written or have failed. A page forwarded to another rank belongs to
    /// the other rank's flush.
    pub fn is_flushed_file(&self, space: Space) -> bool {
        self.protocol.cache.is_flushed_of(space) && self.storage.is_flushed(space).is_some()
    }

    /// Why data of the file could not be written, in this rank's pool or as a home.
    pub fn refusal(&self, space: Space) -> Option<Cause> {
        self.files.refusal(space).or_else(|| self.storage.is_flushed(space)?.err())
    }

    /// Begins a flush by this rank alone: it writes its own data as [`Engine::flush_file`]. The homes write the other
    /// dirty pages.
    pub fn begin_flush(&mut self, space: Space) -> OwnFlush {
        self.flush_file(space);
        let Some(file) = self.files.open.get_mut(&space) else {
            return OwnFlush { new: PageFilter::default(), pages: PageFilter::default() };
        };
        let new = file.state.take_written_pages();
        file.flushes.push(new);
        let pages = file.flushes.iter().copied().fold(file.state.begun_pages(), PageFilter::with);
        OwnFlush { new, pages }
    }

    /// Ends a flush. After a failure the next flush asks for all of its pages again.
    pub fn end_flush(&mut self, space: Space, flush: OwnFlush, is_refused: bool) {
        let Some(file) = self.files.open.get_mut(&space) else { return };
        if let Some(at) = file.flushes.iter().position(|other| *other == flush.new) {
            file.flushes.swap_remove(at);
        }
        if is_refused {
            file.state.note_written_pages(flush.pages);
        }
    }

    /// A rank flushes a file: this home writes its blocks and recalls pages that are dirty in some pool.
    pub(super) fn flush_at_home(&mut self, from: Rank, message: FileMessage) {
        self.storage.flush_file(message.space);
        let filter = PageFilter(message.value);
        let dirty = self.protocol.home.dirty_pages_of(message.space).filter(|page| filter.has(page.index));
        let dirty: Vec<PageId> = dirty.collect();
        let flushing = &mut self.files.flushing;
        let id = flushing.begin(FlushAtHome { from, message, left: dirty.len(), cause: None });
        let recalled: Vec<PageId> = dirty.into_iter().filter(|page| flushing.wait_for(id, *page)).collect();
        recalled.into_iter().for_each(|page| self.handle(Event::Recall(page)));
    }

    /// A page that a flush asked for is written back, or has failed.
    pub(super) fn on_recalled(&mut self, page: PageId, cause: Option<Cause>) {
        if self.files.flushing.on_recalled(page, cause) {
            self.queue.raise(Event::Recall(page));
        }
    }

    /// Answers flushes that have ended, and notes failures to write or to drain.
    pub(super) fn answer_flushes(&mut self) {
        for (space, cause) in self.storage.take_undrained() {
            self.refuse(space, cause);
        }
        for (space, cause) in self.storage.take_block_failures() {
            self.note_file_error(space, cause);
        }
        if self.files.flushing.flushes.is_empty() {
            return;
        }
        for (space, ids) in std::mem::take(&mut self.files.flushing.recalled) {
            let Some(written) = self.storage.is_flushed(space) else {
                self.files.flushing.recalled.insert(space, ids);
                continue;
            };
            // Even after a failure, since otherwise all later writes would bypass the buffer.
            self.storage.drain_file(space);
            if written.is_err() || !self.storage.spills() {
                self.answer_all(ids, written);
            } else {
                self.files.flushing.draining.entry(space).or_default().extend(ids);
            }
        }
        // This includes flushes that began to drain just above: without spilled data no other drive may follow.
        for (space, ids) in std::mem::take(&mut self.files.flushing.draining) {
            match self.storage.is_drained(space) {
                Some(drained) => self.answer_all(ids, drained),
                None => _ = self.files.flushing.draining.insert(space, ids),
            }
        }
    }

    fn answer_all(&mut self, ids: Vec<u64>, written: Result<(), Cause>) {
        for id in ids {
            let FlushAtHome { from, message, cause, .. } = self.files.flushing.end(id);
            let cause = written.err().or(cause).map_or(0, Cause::to_byte);
            self.send_about_file(from, FileMessage { is_answer: true, cause, ..message });
        }
    }
}

impl Driver {
    /// Writes this rank's data of a file, in its pool or as a home, as far as possible. Returns the unwritten part, if
    /// any.
    pub fn flush_file(&self, space: Space) -> Option<Unwritten> {
        self.engine().flush_file(space);
        self.step();
        self.unwritten_when(space, &|engine| engine.is_flushed_file(space))
    }

    /// Drains spilled data to a file of which this rank is a home, as far as possible. Returns the file's data that
    /// this rank could not write, now or earlier, if any.
    pub fn drain_file(&self, space: Space) -> Option<Unwritten> {
        self.engine().drain_file(space);
        self.step();
        self.unwritten_when(space, &|engine| engine.is_drained_file(space).is_some())
    }

    /// Writes all data of a file that this rank has written, as far as possible. Returns the unwritten part, if any,
    /// without the ranges that other ranks hold.
    pub fn flush_file_alone(&self, space: Space, homes: &[Rank]) -> Option<Unwritten> {
        let flush = self.engine().begin_flush(space);
        self.step();
        let own = self.unwritten_when(space, &|engine| engine.is_flushed_file(space));
        let of_homes = self.recall_file(space, homes, flush.filter());
        let unwritten = own.or_else(|| of_homes.map(|cause| Unwritten { cause, ranges: Vec::new() }));
        self.engine().end_flush(space, flush, unwritten.is_some());
        unwritten
    }

    /// Has homes write their blocks of a file and its pages that are dirty in any pool. Returns why a write has failed,
    /// if one has.
    pub fn recall_file(&self, space: Space, homes: &[Rank], pages: PageFilter) -> Option<Cause> {
        let answers = self.ask_of_file(homes.iter().copied(), space, FileAsk::Flush, pages.0);
        answers.iter().find_map(|answer| Cause::of_byte(answer.cause))
    }

    /// Waits until `is_done`. Returns the unwritten part of the file at that time, if any.
    fn unwritten_when(&self, space: Space, is_done: &dyn Fn(&Engine) -> bool) -> Option<Unwritten> {
        let unwritten = RefCell::new(None);
        self.wait_for_files(&|| {
            // Another rank's flush may soon clear the failure here and retry.
            let mut engine = self.engine();
            let is_done = is_done(&engine);
            if is_done {
                *unwritten.borrow_mut() = engine.unwritten_after_flush(space);
            }
            is_done
        });
        unwritten.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::file_message::TAG_FILE;

    const SPACE: Space = Space::of_file(3);

    fn begin(flushes: &mut FlushesAtHome, left: usize) -> u64 {
        let (ask, space) = (FileAsk::Flush, SPACE);
        let message =
            FileMessage { tag: TAG_FILE, is_answer: false, ask, cause: 0, id: 0, space, padding: 0, value: u64::MAX };
        flushes.begin(FlushAtHome { from: Rank(1), message, left, cause: None })
    }

    fn left(flushes: &FlushesAtHome) -> Vec<(usize, Option<Cause>)> {
        flushes.flushes.values().map(|flush| (flush.left, flush.cause)).collect()
    }

    #[test]
    fn many_flushes_recall_a_page_twice() {
        let (mut flushes, page) = (FlushesAtHome::default(), PageId { space: SPACE, index: 7 });
        let ids: Vec<u64> = (0..5).map(|_| begin(&mut flushes, 1)).collect();
        let recalled: Vec<bool> = ids.iter().map(|id| flushes.wait_for(*id, page)).collect();
        assert_eq!(recalled, [true, false, false, false, false]);
        assert!(flushes.on_recalled(page, None), "the others may be about newer bytes");
        assert_eq!(left(&flushes), [(0, None), (1, None), (1, None), (1, None), (1, None)]);
        let later = begin(&mut flushes, 1);
        assert!(!flushes.wait_for(later, page), "it is recalled just now");
        assert!(flushes.on_recalled(page, None));
        assert_eq!(left(&flushes)[1..], [(0, None), (0, None), (0, None), (0, None), (1, None)]);
        assert!(!flushes.on_recalled(page, None));
        assert!(left(&flushes).iter().all(|(left, _)| *left == 0) && flushes.recalls.is_empty());
        let all: Vec<u64> = ids.into_iter().chain([later]).collect();
        assert_eq!(flushes.recalled, [(SPACE, all)].into_iter().collect(), "each waits for blocks, once");
    }

    #[test]
    fn a_page_that_cannot_be_written_ends_the_wait_of_all() {
        let (mut flushes, page) = (FlushesAtHome::default(), PageId { space: SPACE, index: 7 });
        for _ in 0..3 {
            let id = begin(&mut flushes, 2);
            flushes.wait_for(id, page);
        }
        assert!(!flushes.on_recalled(page, Some(Cause(28))));
        assert_eq!(left(&flushes), [(1, Some(Cause(28))); 3]);
    }
}
