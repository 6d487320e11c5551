//! Whether anybody has written to a range while it was declared read-only.
//!
//! At the begin the range's home is asked which ranks may write its pages without a word, and those pages are read as a whole, so
//! that the next write is preceded by a word. At the end the home says who has asked to write. Pages of which only a part lies in the
//! range may be written elsewhere: of these the bytes are compared.

use super::ranges::Declared;
use super::{Operation, Ops, Remote};
use crate::engine::Purpose;
use crate::error::UserError;
use crate::memory::Piece;
use crate::request::{Completion, Copy, Part};
use std::ops::Range;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::writes::WrittenPage;

/// So often pages are read before it is given up that nobody may write them.
const TRIES: usize = 4;

/// What is known of a range from its begin.
pub(super) struct Guarded {
    since: u64,
    pages: Range<u32>,
    /// Bytes of pages that lie only partly in the range: where they begin, and what they were.
    edges: Vec<(usize, Vec<u8>)>,
}

impl Ops {
    /// Sees to it that nobody writes to a range without a word.
    pub(super) fn guard(&self, range: &Declared, pages: Range<u32>) -> Guarded {
        let home = Rank(range.rank);
        let mut since = 0;
        for _ in 0..TRIES {
            let known = self.driver.writes_since(home, u64::MAX, pages.clone(), Purpose::Check);
            since = known.now;
            let may_write: Vec<WrittenPage> =
                known.pages.into_iter().filter(|page| page.is(WrittenPage::MAY_WRITE)).collect();
            if may_write.is_empty() {
                break;
            }
            if may_write.iter().any(|page| page.rank == self.space.rank.0) {
                self.driver.flush();
            }
            may_write.iter().for_each(|page| self.read_whole(PageId::of_segment(home, page.index)));
        }
        let edges = self.edges(range).into_iter().map(|edge| (edge.start, self.bytes_at(range.rank, &edge))).collect();
        Guarded { since, pages, edges }
    }

    /// Finds a write to a range that has ended.
    ///
    /// # Errors
    /// There was one.
    pub(super) fn check_guarded(&self, range: &Declared, guarded: Guarded) -> Result<(), UserError> {
        let written =
            self.driver.writes_since(Rank(range.rank), guarded.since, guarded.pages.clone(), Purpose::Check).pages;
        let asked: Vec<WrittenPage> = written.into_iter().filter(|page| page.is(WrittenPage::ASKED)).collect();
        let edges = self.edges(range);
        let start_of = |page: &WrittenPage| self.start_of(range.rank, page.index);
        let is_edge = |page: &WrittenPage| {
            edges
                .iter()
                .any(|edge| edge.start.max(start_of(page)) < edge.end.min(start_of(page) + self.space.page_bytes()))
        };
        if let Some(page) = asked.iter().find(|page| !is_edge(page)) {
            return Err(broken(range, page.rank, &format!("the page at {:#x}", start_of(page))));
        }
        for (start, before) in &guarded.edges {
            let now = self.bytes_at(range.rank, &(*start..start + before.len()));
            let Some(at) = before.iter().zip(&now).position(|(before, now)| before != now) else { continue };
            let address = start + at;
            let writer =
                asked.iter().find(|page| (start_of(page)..start_of(page) + self.space.page_bytes()).contains(&address));
            return Err(match writer {
                Some(page) => broken(range, page.rank, &format!("the byte at {address:#x}")),
                None => UserError::new(format!(
                    "the byte at {address:#x} of rank {} has changed, {}",
                    range.rank,
                    promise(range)
                )),
            });
        }
        Ok(())
    }

    /// The parts of pages at the ends of a range that are less than a page.
    fn edges(&self, range: &Declared) -> Vec<Range<usize>> {
        let page_bytes = self.space.page_bytes();
        let base = self.space.segments[range.rank as usize].base;
        let inner_start = base + (range.start - base).next_multiple_of(page_bytes);
        let inner_end = base + (range.end - base) / page_bytes * page_bytes;
        let edges = if inner_start < inner_end {
            [range.start..inner_start, inner_end..range.end]
        } else {
            [range.start..range.end, range.end..range.end]
        };
        edges.into_iter().filter(|edge| !edge.is_empty()).collect()
    }

    fn start_of(&self, rank: u32, index: u32) -> usize {
        self.space.segments[rank as usize].base + index as usize * self.space.page_bytes()
    }

    fn bytes_at(&self, rank: u32, range: &Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0; range.len()];
        let remote = Remote { rank, address: range.start, len_bytes: range.len() };
        // SAFETY: there are as many bytes.
        let got = unsafe { self.transfer(Operation::Get(bytes.as_mut_ptr()), remote) };
        got.expect("a declared range lies in the segment");
        bytes
    }

    /// Reads a page by the protocol, however near it is: no other rank may write it without a word then.
    fn read_whole(&self, page: PageId) {
        let mut bytes = vec![0_u8; self.space.page_bytes()];
        let piece = Piece { page, offset_bytes: 0, len_bytes: bytes.len(), start_bytes: 0 };
        let completion = self.completions().begin();
        let part = Part { piece, copy: Copy::Get(bytes.as_mut_ptr()), completion: Completion::Counted(completion) };
        self.driver.submit(std::iter::once(part));
        // The bytes stay until the part is done.
        self.driver.finish(completion);
    }
}

fn broken(range: &Declared, rank: u32, what: &str) -> UserError {
    UserError::new(format!("rank {rank} has written to {what} of rank {}, {}", range.rank, promise(range)))
}

fn promise(range: &Declared) -> String {
    let Declared { start, end, .. } = range;
    format!(
        "and this rank had declared {start:#x} to {end:#x} read-only; end the range on all ranks, and meet in a barrier, before it is written"
    )
}
