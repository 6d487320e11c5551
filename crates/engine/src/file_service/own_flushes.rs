//! Flushes of a file by this rank alone.

use super::file_state::FileState;
use vgasnet_protocol::file_message::PageFilter;

/// A flush by this rank alone.
#[derive(Clone, Copy, Debug, Default)]
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

/// The pages of the flushes in progress of one file.
#[derive(Debug, Default)]
pub(super) struct OwnFlushes(Vec<PageFilter>);

impl OwnFlushes {
    /// Begins a flush of all pages that the rank has written or is writing.
    pub(super) fn begin(&mut self, state: &FileState) -> OwnFlush {
        let new = state.take_written_pages();
        self.0.push(new);
        let pages = self.0.iter().copied().fold(state.begun_pages(), PageFilter::with);
        debug_assert_eq!(pages.with(new), pages, "a flush asks for the pages written since the one before");
        OwnFlush { new, pages }
    }

    /// Ends a flush. After a failure the next flush asks for all of its pages again.
    pub(super) fn end(&mut self, flush: OwnFlush, is_refused: bool, state: &FileState) {
        debug_assert!(self.0.contains(&flush.new), "the flush is in progress");
        if let Some(at) = self.0.iter().position(|other| *other == flush.new) {
            self.0.swap_remove(at);
        }
        debug_assert!(
            flush.pages.with(flush.new) == flush.pages,
            "a flush asks for the pages written since the one before"
        );
        if is_refused {
            state.note_written_pages(flush.pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_asks_for_the_pages_of_those_in_progress_and_of_those_that_failed() {
        let (mut flushes, state) = (OwnFlushes::default(), FileState::default());
        let [first, second, third] = [1, 2, 3].map(|page| PageFilter::of(page, page));
        state.note_written_pages(first);
        let one = flushes.begin(&state);
        state.note_written_pages(second);
        let two = flushes.begin(&state);
        assert_eq!((one.filter(), two.filter()), (first, first.with(second)));
        flushes.end(one, false, &state);
        state.note_written_pages(third);
        let three = flushes.begin(&state);
        assert_eq!(three.filter(), second.with(third));
        flushes.end(two, false, &state);
        flushes.end(three, true, &state);
        assert_eq!(flushes.begin(&state).filter(), second.with(third));
    }
}
