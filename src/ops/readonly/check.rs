//! Detects writes to a range declared read-only.
//!
//! At the begin the range's home names the ranks that may write its pages unnoticed, and these pages are read whole, so
//! that the next write needs a request. At the end the home names the ranks that have requested to write. Pages only
//! partly in the range may be written elsewhere: of these the bytes are compared.

use super::ReadOnly;
use super::ranges::Declared;
use std::ops::Range;
use vgasnet_engine::request::{Completion, Copy, Part};
use vgasnet_engine::{Purpose, WritesSince};
use vgasnet_memory::Piece;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::writes::{NEVER, WrittenPage};
use vgasnet_settings::UserError;

/// Attempts to take away unnoticed write access by reading pages.
const TRIES: usize = 4;

/// State of a range since its begin.
pub(super) struct Watch {
    since: u64,
    /// The pages of the range, and those wholly inside it.
    pages: Range<u32>,
    whole_pages: Range<u32>,
    /// Its bytes in the other pages: address, and original contents.
    edges: Vec<(usize, Vec<u8>)>,
}

impl ReadOnly {
    /// Makes sure that later writes to a range are noticed.
    pub(super) fn watch(&self, range: &Declared, pages: Range<u32>) -> Watch {
        let home = Rank(range.rank);
        let ask = |since, purpose| self.driver.writes_since(home, since, pages.clone(), purpose);
        let (since, left) = take_rights(ask, |writable| {
            if writable.iter().any(|page| page.rank == self.space.rank.0) {
                self.driver.flush();
            }
            writable.iter().for_each(|page| self.read_whole(PageId::of_segment(home, page.index)));
        });
        let start = pages.start + u32::from(self.start_of(range.rank, pages.start) < range.start);
        let end = pages.end - u32::from(self.start_of(range.rank, pages.end) > range.end);
        let whole_pages = start..end.max(start);
        let mut unchecked = left.iter().filter(|page| whole_pages.contains(&page.index));
        if let Some(page) = unchecked.next() {
            let line = not_checked(range, page, self.start_of(range.rank, page.index), unchecked.count());
            (self.settings.report)("vgasnet_readonly_begin", &line);
        }
        let edges = [
            range.start..self.start_of(range.rank, start).min(range.end),
            self.start_of(range.rank, whole_pages.end).max(range.start)..range.end,
        ];
        let edges = edges.into_iter().filter(|edge| !edge.is_empty());
        let edges = edges.map(|edge| (edge.start, self.bytes_at(range.rank, edge))).collect();
        Watch { since, pages, whole_pages, edges }
    }

    /// Checks a range that has ended for writes.
    ///
    /// # Errors
    /// There was a write.
    pub(super) fn check_watched(&self, range: &Declared, watch: &Watch) -> Result<(), UserError> {
        let mut asked =
            self.driver.writes_since(Rank(range.rank), watch.since, watch.pages.clone(), Purpose::Check).pages;
        asked.retain(|page| page.is(WrittenPage::ASKED));
        if let Some(page) = asked.iter().find(|page| watch.whole_pages.contains(&page.index)) {
            let place = format!("the page at {:#x}", self.start_of(range.rank, page.index));
            return Err(broken(range, &format!("rank {} has written to {place}", page.rank)));
        }
        for (start, before) in &watch.edges {
            let now = self.bytes_at(range.rank, *start..start + before.len());
            let Some(at) = before.iter().zip(&now).position(|(before, now)| before != now) else { continue };
            let address = start + at;
            let is_there = |page: &&WrittenPage| {
                (self.start_of(range.rank, page.index)..self.start_of(range.rank, page.index + 1)).contains(&address)
            };
            let place = format!("the byte at {address:#x}");
            return Err(match asked.iter().find(is_there) {
                Some(page) => broken(range, &format!("rank {} has written to {place}", page.rank)),
                None => broken(range, &format!("some rank has written to {place}")),
            });
        }
        Ok(())
    }

    /// Address of a page of a rank's segment.
    pub(super) fn start_of(&self, rank: u32, index: u32) -> usize {
        self.space.segments.of(Rank(rank)).base + index as usize * self.space.page_bytes()
    }

    fn bytes_at(&self, rank: u32, range: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0_u8; range.len()];
        let pieces = self.space.pieces(rank, range.start, range.len()).expect("a declared range lies in the segment");
        self.read(pieces, bytes.as_mut_ptr());
        bytes
    }

    /// Reads a page by the protocol even if it is resident: afterwards no other rank may write it unnoticed.
    fn read_whole(&self, page: PageId) {
        let mut bytes = vec![0_u8; self.space.page_bytes()];
        let piece = Piece { page, offset_bytes: 0, len_bytes: bytes.len(), start_bytes: 0 };
        self.read(std::iter::once(piece), bytes.as_mut_ptr());
    }

    /// Reads pieces by the protocol to memory that has room for all.
    fn read(&self, pieces: impl Iterator<Item = Piece>, to: *mut u8) {
        let completion = self.driver.completions().begin();
        let counted = || Completion::Counted(completion);
        let copy = |piece: &Piece| Copy::Get(to.wrapping_add(piece.start_bytes));
        self.driver.submit(pieces.map(|piece| Part { piece, copy: copy(&piece), completion: counted() }));
        // The memory stays until all parts are done.
        self.driver.finish(completion);
    }
}

/// Takes all unnoticed write access away. `ask` queries the writes since a logical time, and `read` reads pages.
/// Returns a time after which all write requests are known, and the pages that a rank may still write without a request
/// since then.
fn take_rights(
    mut ask: impl FnMut(u64, Purpose) -> WritesSince,
    mut read: impl FnMut(&[WrittenPage]),
) -> (u64, Vec<WrittenPage>) {
    let mut known = ask(NEVER, Purpose::Watch);
    let since = known.now;
    for _ in 0..TRIES {
        known.pages.retain(|page| page.is(WrittenPage::MAY_WRITE));
        if known.pages.is_empty() {
            break;
        }
        read(&known.pages);
        known = ask(since, Purpose::Look);
    }
    known.pages.retain(|page| page.is(WrittenPage::MAY_WRITE) && !page.is(WrittenPage::ASKED));
    (since, known.pages)
}

/// The warning about writes that cannot be noticed, to a page at `address` and to some others.
fn not_checked(range: &Declared, page: &WrittenPage, address: usize, others: usize) -> UserError {
    let Declared { rank, start, end, .. } = range;
    let more = if others == 0 { String::new() } else { format!(", and {others} more") };
    UserError::new(format!(
        "warning: rank {} may still write the page at {address:#x} of rank {rank} without a word{more}, so the end of {start:#x} to {end:#x} \
         cannot tell whether it does; have all ranks end what writes there, and meet in a barrier, before the range begins",
        page.rank
    ))
}

fn broken(range: &Declared, what: &str) -> UserError {
    let Declared { rank, start, end, .. } = range;
    UserError::new(format!(
        "{what} of rank {rank}, and this rank had declared {start:#x} to {end:#x} read-only; end the range on all ranks, and meet in a \
         barrier, before it is written"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::cache::CacheId;
    use super::*;

    /// Simulates a home where rank 2 may write page 3 at each query; counts its requests.
    fn try_with(what: u32, until: usize) -> (u64, Vec<WrittenPage>, usize) {
        let (mut asked, mut reads) = (0, 0);
        let ask = |since, purpose| {
            asked += 1;
            assert_eq!((since, purpose), if asked == 1 { (NEVER, Purpose::Watch) } else { (11, Purpose::Look) });
            let page = WrittenPage { index: 3, rank: 2, what: if asked == 1 { WrittenPage::MAY_WRITE } else { what } };
            let pages = if asked > until { Vec::new() } else { vec![page] };
            WritesSince { now: 10 + asked as u64, has_forgotten: false, pages }
        };
        let (since, left) = take_rights(ask, |pages| reads += pages.len());
        (since, left, reads)
    }

    #[test]
    fn a_page_that_stays_writable_is_told_or_its_writer_has_asked() {
        assert_eq!(try_with(WrittenPage::MAY_WRITE, 1), (11, vec![], 1));
        // The last read helped.
        assert_eq!(try_with(WrittenPage::MAY_WRITE, TRIES), (11, vec![], TRIES));
        let left = WrittenPage { index: 3, rank: 2, what: WrittenPage::MAY_WRITE };
        assert_eq!(try_with(WrittenPage::MAY_WRITE, usize::MAX), (11, vec![left], TRIES));
        // The end of the range finds the write.
        assert_eq!(try_with(WrittenPage::MAY_WRITE | WrittenPage::ASKED, usize::MAX), (11, vec![], TRIES));
        let range =
            Declared { rank: 1, start: 16, end: 99, space: 0, cache: CacheId(0), get_bytes_max: 8, object_bytes: 0 };
        let line = not_checked(&range, &left, 32, 2).to_string();
        assert!(
            line.starts_with(
                "warning: rank 2 may still write the page at 0x20 of rank 1 without a word, and 2 more, so"
            ),
            "{line}"
        );
    }
}
