//! Questions between ranks about a file open on both, and their answers, as bytes.

use crate::wire::take;
use crate::{Space, layout_as_in_memory};
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// First byte of these messages.
pub const TAG_FILE: u8 = 43;

/// The question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum FileAsk {
    /// The end of the bytes written by the receiver.
    End,
    /// The receiver, as a home, writes all blocks it has of the file, and has the given dirty pages written back from
    /// any pool.
    Flush,
    /// The receiver, first member of the file's team, adds to the file's shared pointer and returns the old value.
    Take,
    /// The end of the bytes written by any member, asked of the first member of the file's team.
    Size,
    /// The end of the bytes written or being written by the receiver, which starts no write beyond it until
    /// [`FileAsk::ReleaseEnd`].
    HoldEnd,
    /// The sender no longer needs the receiver's end held.
    ReleaseEnd,
    /// The sender's job is about to end: for some seconds the receiver begins no write.
    HoldWrites,
    /// About no file: the sender is about to end the job, and the receiver, a rank of an MPI program, rescues the files that it caches. Returns
    /// the number of those that are not rescued.
    EndJob,
    /// About no file: the sender has not ended the job. The receiver no longer holds writes.
    GoOn,
    /// About no file: the receiver, a rank of an MPI program, caches no further file for writing, and returns the number of files that it
    /// still caches.
    BarCaching,
    /// About a sync by one rank alone: the error number of its failure, or 0 if it has not failed. A receiver that is a home returns the error
    /// number of a failed sync with bytes not written again since, or 0.
    Doubt,
    /// The receiver, first member of the file's team, is to have the file handed over.
    HandOver,
}

/// A superset of some pages of a file. Page n maps to bit n modulo 64, which separates a small or contiguous set well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFilter(pub u64);

impl PageFilter {
    /// All pages.
    pub const ALL: PageFilter = PageFilter(u64::MAX);

    /// The pages from `first` to `last`.
    pub fn of(first: u32, last: u32) -> PageFilter {
        debug_assert!(first <= last, "page {first} comes before page {last}");
        let count = last - first + 1;
        if count >= u64::BITS {
            PageFilter(u64::MAX)
        } else {
            PageFilter(((1_u64 << count) - 1).rotate_left(first % 64))
        }
    }

    /// Whether a page may be in the set.
    pub fn has(self, index: u32) -> bool {
        self.0 >> (index % 64) & 1 != 0
    }

    /// The union with `other`.
    #[must_use]
    pub fn with(self, other: PageFilter) -> PageFilter {
        PageFilter(self.0 | other.0)
    }
}

/// A question, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileMessage {
    /// [`TAG_FILE`].
    pub tag: u8,
    /// Whether it is an answer.
    pub is_answer: bool,
    /// The question.
    pub ask: FileAsk,
    /// In an answer: the error number of a failure, or 0.
    pub cause: u8,
    /// Identifies the question at its sender; 0 if the sender asks many ranks for one number.
    pub id: u32,
    /// The file.
    pub space: Space,
    /// Zero.
    pub padding: u32,
    /// Answer to [`FileAsk::End`], [`FileAsk::Size`] or [`FileAsk::HoldEnd`]: the end, in bytes. [`FileAsk::Flush`]: the pages, as a
    /// [`PageFilter`]. [`FileAsk::Take`]: the increment; in its answer, the old value. Answer to [`FileAsk::BarCaching`] or [`FileAsk::EndJob`]:
    /// the number. [`FileAsk::Doubt`]: the
    /// error number, also in the answer.
    pub value: u64,
}

layout_as_in_memory!(FileAsk, FileMessage);

impl FileMessage {
    /// Reads a message; `None` if the bytes are not one.
    pub fn read(mut bytes: &[u8]) -> Option<FileMessage> {
        let message: FileMessage = take(&mut bytes)?;
        (bytes.is_empty() && message.tag == TAG_FILE).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_the_pages_that_were_put_in() {
        for (first, last) in [(0, 0), (63, 64), (130, 192), (5, 67), (5, 68), (0, u32::MAX - 1)] {
            let filter = PageFilter::of(first, last);
            assert!((first..=last).take(200).all(|page| filter.has(page)), "{first}..={last}");
            let others = (1..=64).filter(|step| filter.has(last.wrapping_add(*step))).count() as u32;
            assert_eq!(others, (last - first + 1).min(64), "{first}..={last}");
        }
        assert!((0..64).all(|page| !PageFilter::default().has(page)));
        assert_eq!(PageFilter::of(1, 1).with(PageFilter::of(65, 66)), PageFilter(6));
    }

    #[test]
    fn a_message_survives_and_others_are_none() {
        let (ask, space) = (FileAsk::Flush, Space::of_file(4));
        let message =
            FileMessage { tag: TAG_FILE, is_answer: true, ask, cause: 28, id: 3, space, padding: 0, value: 1 << 40 };
        let bytes = message.as_bytes();
        assert_eq!(FileMessage::read(bytes), Some(message));
        assert!((0..bytes.len()).all(|end| FileMessage::read(&bytes[..end]).is_none()));
        let other = [&[TAG_FILE + 1], &bytes[1..]].concat();
        assert_eq!(FileMessage::read(&other), None);
    }
}
