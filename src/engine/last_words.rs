//! Closing reports: the bytes that each rank sends to rank 0 when its program has ended.
//!
//! A rank sends its report before it exits, so rank 0 waits for no rank that is gone. A rank unable to send one has
//! none.

use super::{Driver, Engine};
use std::time::{Duration, Instant};
use vgasnet_protocol::Rank;
use vgasnet_protocol::ordered::OrderedMap;

/// First byte of a part of a report. The offset of the part and the report's length follow, 4 bytes each, then the
/// part.
pub(super) const TAG_WORDS: u8 = 35;

/// First byte of the acknowledgement of a whole report.
pub(super) const TAG_HEARD: u8 = 36;

const HEAD_BYTES: usize = 9;

/// Maximum length of a report, in bytes.
const WORDS_BYTES_MAX: usize = 64 << 10;

/// Timeout for reports and their acknowledgement. Later ones have been lost in the network.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reports received, and the state of this rank's own.
#[derive(Debug, Default)]
pub(super) struct LastWords {
    of: OrderedMap<Rank, Words>,
    /// Number of ranks with complete reports.
    complete: usize,
    are_heard: bool,
}

#[derive(Debug)]
struct Words {
    bytes: Vec<u8>,
    missing_bytes: usize,
}

/// A part of a rank's report, from a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WordsPart {
    offset_bytes: usize,
    whole_bytes: usize,
    bytes: Box<[u8]>,
}

/// Decodes a part of a rank's report.
pub(super) fn decode(message: &[u8]) -> Option<WordsPart> {
    let (head, bytes) = message.split_at_checked(HEAD_BYTES)?;
    let number = |at: usize| Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?) as usize);
    let (offset_bytes, whole_bytes) = (number(1)?, number(5)?);
    let fits = offset_bytes.checked_add(bytes.len()).is_some_and(|end| end <= whole_bytes);
    let is_part = head[0] == TAG_WORDS && !bytes.is_empty() && fits && whole_bytes <= WORDS_BYTES_MAX;
    is_part.then(|| WordsPart { offset_bytes, whole_bytes, bytes: bytes.into() })
}

impl LastWords {
    /// Adds a part. Returns whether the rank's report is complete.
    fn take(&mut self, from: Rank, part: &WordsPart) -> Result<bool, &'static str> {
        let whole_bytes = part.whole_bytes;
        let words =
            self.of.entry(from).or_insert_with(|| Words { bytes: vec![0; whole_bytes], missing_bytes: whole_bytes });
        if words.bytes.len() != whole_bytes || part.bytes.len() > words.missing_bytes {
            return Err("last words that it has said already");
        }
        words.bytes[part.offset_bytes..][..part.bytes.len()].copy_from_slice(&part.bytes);
        words.missing_bytes -= part.bytes.len();
        let is_complete = words.missing_bytes == 0;
        self.complete += usize::from(is_complete);
        Ok(is_complete)
    }

    fn heard(&self) -> impl Iterator<Item = (Rank, &[u8])> {
        self.of.iter().filter(|(_, words)| words.missing_bytes == 0).map(|(rank, words)| (*rank, &*words.bytes))
    }
}

impl Engine {
    /// Handles a part of a rank's report.
    pub(super) fn on_words(&mut self, from: Rank, part: &WordsPart) -> Result<(), &'static str> {
        if self.space.rank != Rank(0) || from == Rank(0) {
            return Err("last words, which are for rank 0");
        }
        if self.last_words.take(from, part)? {
            self.has_event = true;
            // Through shared memory no message is lost.
            if !self.conduit.capabilities().wakes_on_arrival {
                self.outbox.send(from, &[TAG_HEARD]);
            }
        }
        Ok(())
    }

    /// Rank 0 has this rank's whole report.
    pub(super) fn on_heard(&mut self) {
        self.last_words.are_heard = true;
        self.has_event = true;
    }

    fn say_words(&mut self, words: &[u8]) {
        assert!(words.len() <= WORDS_BYTES_MAX, "{} bytes of last words", words.len());
        let part_bytes_max = self.conduit.message_bytes_max() - HEAD_BYTES;
        for (place, part) in words.chunks(part_bytes_max).enumerate() {
            let [offset, whole] = [place * part_bytes_max, words.len()].map(|bytes| (bytes as u32).to_ne_bytes());
            self.outbox.send(Rank(0), &[&[TAG_WORDS], &offset[..], &whole, part].concat());
        }
    }
}

impl Driver {
    /// Sends the report of this rank to rank 0. Called once, by any other rank. Returns when delivery is certain, or
    /// after a few seconds.
    pub fn say_last_words(&self, words: &[u8]) {
        self.engine().say_words(words);
        let is_safe = self.conduit.capabilities().wakes_on_arrival;
        let is_said = || {
            let engine = self.engine();
            engine.last_words.are_heard || (is_safe && engine.outbox.is_empty())
        };
        self.wait_until_or(&is_said, Some(Instant::now() + PATIENCE));
    }

    /// The reports received. Called by rank 0 when all programs have ended: then every rank has sent its report or is
    /// about to, unless it was lost.
    pub fn hear_last_words(&self) -> Vec<(Rank, Vec<u8>)> {
        let others = self.conduit.ranks() as usize - 1;
        let all_heard = || self.engine().last_words.complete == others;
        self.wait_until_or(&all_heard, Some(Instant::now() + PATIENCE));
        self.engine().last_words.heard().map(|(rank, bytes)| (rank, bytes.to_vec())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(offset: u32, whole: u32, part: &[u8]) -> Vec<u8> {
        [&[TAG_WORDS], &offset.to_ne_bytes()[..], &whole.to_ne_bytes(), part].concat()
    }

    #[test]
    fn parts_come_in_any_order() {
        let mut words = LastWords::default();
        let parts = [message(3, 5, b"de"), message(0, 5, b"abc")].map(|message| decode(&message).expect("a part"));
        assert_eq!(parts.each_ref().map(|part| words.take(Rank(2), part)), [Ok(false), Ok(true)]);
        assert_eq!(words.heard().collect::<Vec<_>>(), [(Rank(2), &b"abcde"[..])]);
        assert!(words.take(Rank(2), &parts[0]).is_err(), "it has said all");
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let wrong = [
            message(4, 5, b"ab"),
            message(0, 5, b""),
            message(u32::MAX, u32::MAX, b"a"),
            message(0, WORDS_BYTES_MAX as u32 + 1, b"a"),
            message(0, 5, b"a")[..8].to_vec(),
            vec![TAG_HEARD; 12],
        ];
        assert!(wrong.iter().all(|message| decode(message).is_none()));
        let mut words = LastWords::default();
        assert_eq!(words.take(Rank(1), &decode(&message(0, 5, b"abc")).expect("a part")), Ok(false));
        assert!(words.take(Rank(1), &decode(&message(0, 6, b"abc")).expect("a part")).is_err());
    }
}
