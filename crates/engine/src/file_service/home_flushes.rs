//! Flushes of shared files by single ranks, at a home of the file. The home writes its blocks and recalls the pages that
//! are dirty in some pool. Then it drains spilled data, if its node has a burst buffer.

use std::collections::BTreeMap;
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_protocol::file_message::FileMessage;
use vgasnet_protocol::{Rank, Space};

/// A flush in progress.
#[derive(Debug)]
struct Flush {
    from: Rank,
    message: FileMessage,
    /// Pages still to be written back.
    left: usize,
    /// The first failure.
    cause: Option<Cause>,
}

/// The flushes in progress at a home. All flushes of a file that have reached the same stage advance together, so the
/// cost does not depend on their number.
#[derive(Debug, Default)]
pub struct HomeFlushes {
    flushes: BTreeMap<u64, Flush>,
    last: u64,
    recalls: BTreeMap<PageId, Recalls>,
    /// Flushes with all pages written or failed, which wait for blocks.
    recalled: BTreeMap<Space, Vec<u64>>,
    /// Flushes waiting for spilled data to reach the file.
    draining: BTreeMap<Space, Vec<u64>>,
}

/// The flushes waiting for the write-back of a page. Flushes that begin during a write-back share another one, since
/// the bytes in flight may be older than their writes.
#[derive(Debug)]
struct Recalls {
    now: Vec<u64>,
    next: Vec<u64>,
}

impl HomeFlushes {
    /// Whether no flush is in progress.
    pub fn is_idle(&self) -> bool {
        self.flushes.is_empty()
    }

    /// Begins a flush of a file with these dirty pages. Returns the pages to be recalled now.
    pub fn begin(&mut self, from: Rank, message: FileMessage, mut dirty: Vec<PageId>) -> Vec<PageId> {
        debug_assert!(!message.is_answer, "a flush is asked for");
        self.last += 1;
        let id = self.last;
        if dirty.is_empty() {
            self.recalled.entry(message.space).or_default().push(id);
        }
        self.flushes.insert(id, Flush { from, message, left: dirty.len(), cause: None });
        debug_assert!(dirty.iter().all(|page| page.space == message.space), "a flush is of one file");
        dirty.retain(|page| self.wait_for(id, *page));
        dirty
    }

    /// Makes a flush wait for a page. Returns whether the page is to be recalled now.
    fn wait_for(&mut self, flush: u64, page: PageId) -> bool {
        if let Some(recalls) = self.recalls.get_mut(&page) {
            recalls.next.push(flush);
            return false;
        }
        debug_assert!(self.flushes.contains_key(&flush), "flush {flush} is in progress");
        self.recalls.insert(page, Recalls { now: vec![flush], next: Vec::new() });
        true
    }

    /// A page is written back or has failed. Returns whether to recall it again.
    pub fn on_recalled(&mut self, page: PageId, cause: Option<Cause>) -> bool {
        let Some(Recalls { now, next }) = self.recalls.remove(&page) else { return false };
        // A failure holds for the later flushes, too.
        let (ended, next) = if cause.is_some() { ([now, next].concat(), Vec::new()) } else { (now, next) };
        for id in ended {
            let flush = self.flushes.get_mut(&id).expect("it waits for the page");
            assert!(flush.left > 0, "each page of a flush is recalled once");
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

    /// The files with flushes that wait for blocks.
    pub fn recalled(&self) -> Vec<Space> {
        self.recalled.keys().copied().collect()
    }

    /// The files with flushes that wait for spilled data.
    pub fn draining(&self) -> Vec<Space> {
        self.draining.keys().copied().collect()
    }

    /// The blocks of a file are written: its flushes wait for spilled data.
    pub fn drain(&mut self, space: Space) {
        let ids = self.recalled.remove(&space).unwrap_or_default();
        debug_assert!(ids.iter().all(|id| self.flushes[id].left == 0), "the pages of the flushes are written");
        self.draining.entry(space).or_default().extend(ids);
    }

    /// The flushes that waited for a file's blocks have ended. Returns their answers.
    pub fn end_recalled(&mut self, space: Space, written: Result<(), Cause>) -> Vec<(Rank, FileMessage)> {
        let ids = self.recalled.remove(&space).unwrap_or_default();
        self.end(ids, written)
    }

    /// The flushes that waited for a file's spilled data have ended. Returns their answers.
    pub fn end_draining(&mut self, space: Space, written: Result<(), Cause>) -> Vec<(Rank, FileMessage)> {
        let ids = self.draining.remove(&space).unwrap_or_default();
        self.end(ids, written)
    }

    fn end(&mut self, ids: Vec<u64>, written: Result<(), Cause>) -> Vec<(Rank, FileMessage)> {
        let answer = |id| {
            let Flush { from, message, cause, left } = self.flushes.remove(&id).expect("it is in progress");
            assert_eq!(left, 0, "a flush ends after its last page");
            debug_assert!(
                !self.recalls.values().any(|recalls| recalls.now.contains(&id) || recalls.next.contains(&id)),
                "no page is recalled for a flush that ends"
            );
            let cause = written.err().or(cause).map_or(0, Cause::to_byte);
            (from, FileMessage { is_answer: true, cause, ..message })
        };
        ids.into_iter().map(answer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::file_message::{FileAsk, TAG_FILE};

    const SPACE: Space = Space::of_file(3);
    const PAGE: PageId = PageId { space: SPACE, index: 7 };
    const OTHER: PageId = PageId { space: SPACE, index: 8 };

    /// Begins a flush with these dirty pages. Returns the pages to be recalled.
    fn begin(flushes: &mut HomeFlushes, id: u32, dirty: &[PageId]) -> Vec<PageId> {
        let (ask, space) = (FileAsk::Flush, SPACE);
        let message =
            FileMessage { tag: TAG_FILE, is_answer: false, ask, cause: 0, id, space, padding: 0, value: u64::MAX };
        flushes.begin(Rank(1), message, dirty.to_vec())
    }

    fn left(flushes: &HomeFlushes) -> Vec<(usize, Option<Cause>)> {
        flushes.flushes.values().map(|flush| (flush.left, flush.cause)).collect()
    }

    fn ids_and_causes(answers: Vec<(Rank, FileMessage)>) -> Vec<(u32, Option<Cause>)> {
        answers.into_iter().map(|(_, answer)| (answer.id, Cause::of_byte(answer.cause))).collect()
    }

    #[test]
    fn many_flushes_recall_a_page_twice() {
        let mut flushes = HomeFlushes::default();
        let recalled: Vec<bool> = (1..=5).map(|id| !begin(&mut flushes, id, &[PAGE]).is_empty()).collect();
        assert_eq!(recalled, [true, false, false, false, false]);
        assert!(flushes.on_recalled(PAGE, None), "the others may be about newer bytes");
        assert_eq!(left(&flushes), [(0, None), (1, None), (1, None), (1, None), (1, None)]);
        assert!(begin(&mut flushes, 6, &[PAGE]).is_empty(), "it is recalled just now");
        assert!(flushes.on_recalled(PAGE, None));
        assert_eq!(left(&flushes)[1..], [(0, None), (0, None), (0, None), (0, None), (1, None)]);
        assert!(!flushes.on_recalled(PAGE, None));
        assert!(left(&flushes).iter().all(|(left, _)| *left == 0) && flushes.recalls.is_empty());
        let answers = ids_and_causes(flushes.end_recalled(SPACE, Ok(())));
        assert_eq!(answers, (1..=6).map(|id| (id, None)).collect::<Vec<_>>(), "each waits for blocks, once");
        assert!(flushes.is_idle());
    }

    #[test]
    fn a_page_that_cannot_be_written_ends_the_wait_of_all() {
        let mut flushes = HomeFlushes::default();
        (1..=3).for_each(|id| _ = begin(&mut flushes, id, &[PAGE, OTHER]));
        assert!(!flushes.on_recalled(PAGE, Some(Cause(28))));
        assert_eq!(left(&flushes), [(1, Some(Cause(28))); 3]);
    }

    #[test]
    fn a_flush_waits_for_pages_then_blocks_then_spilled_data() {
        let mut flushes = HomeFlushes::default();
        assert_eq!(begin(&mut flushes, 1, &[PAGE, OTHER]), [PAGE, OTHER]);
        assert!(!flushes.on_recalled(OTHER, Some(Cause(5))) && flushes.recalled().is_empty());
        assert!(!flushes.on_recalled(PAGE, None));
        assert_eq!((flushes.recalled(), flushes.draining()), (vec![SPACE], vec![]));
        flushes.drain(SPACE);
        begin(&mut flushes, 2, &[]);
        assert_eq!((flushes.recalled(), flushes.draining()), (vec![SPACE], vec![SPACE]));
        assert_eq!(ids_and_causes(flushes.end_draining(SPACE, Ok(()))), [(1, Some(Cause(5)))]);
        assert_eq!(ids_and_causes(flushes.end_recalled(SPACE, Err(Cause(28)))), [(2, Some(Cause(28)))]);
        assert!(flushes.is_idle() && flushes.recalled().is_empty() && flushes.draining().is_empty());
    }
}
