//! The parts of closing reports: the bytes that each rank sends to rank 0 when its program has ended.

use std::collections::BTreeMap;
use vgasnet_protocol::Rank;

/// First byte of a part of a report. The offset of the part and the report's length follow, 4 bytes each, then the
/// part.
pub(crate) const TAG_REPORT: u8 = 35;

/// First byte of the acknowledgement of a whole report.
pub(crate) const TAG_REPORT_TAKEN: u8 = 36;

const HEAD_BYTES: usize = 9;

/// Maximum length of a report, in bytes.
const REPORT_BYTES_MAX: usize = 64 << 10;

/// The reports received, and the state of this rank's own.
#[derive(Debug, Default)]
pub(super) struct ClosingReports {
    of: BTreeMap<Rank, Report>,
    /// Number of ranks with complete reports.
    complete: usize,
    is_own_taken: bool,
}

#[derive(Debug)]
struct Report {
    bytes: Vec<u8>,
    missing_bytes: usize,
}

/// A part of a rank's report, from a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReportPart {
    offset_bytes: usize,
    whole_bytes: usize,
    bytes: Box<[u8]>,
}

/// Decodes a part of a rank's report.
pub(crate) fn decode(message: &[u8]) -> Option<ReportPart> {
    let (head, bytes) = message.split_at_checked(HEAD_BYTES)?;
    let number = |at: usize| Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?) as usize);
    let (offset_bytes, whole_bytes) = (number(1)?, number(5)?);
    let fits = offset_bytes.checked_add(bytes.len()).is_some_and(|end| end <= whole_bytes);
    let is_part = head[0] == TAG_REPORT && !bytes.is_empty() && fits && whole_bytes <= REPORT_BYTES_MAX;
    is_part.then(|| ReportPart { offset_bytes, whole_bytes, bytes: bytes.into() })
}

impl ClosingReports {
    /// Adds a part. Returns whether the rank's report is complete.
    pub(super) fn take(&mut self, from: Rank, part: &ReportPart) -> Result<bool, &'static str> {
        let whole_bytes = part.whole_bytes;
        let report =
            self.of.entry(from).or_insert_with(|| Report { bytes: vec![0; whole_bytes], missing_bytes: whole_bytes });
        if report.bytes.len() != whole_bytes || part.bytes.len() > report.missing_bytes {
            return Err("a closing report that it has sent already");
        }
        report.bytes[part.offset_bytes..][..part.bytes.len()].copy_from_slice(&part.bytes);
        report.missing_bytes -= part.bytes.len();
        debug_assert!(report.missing_bytes < whole_bytes, "a part has bytes");
        let is_complete = report.missing_bytes == 0;
        self.complete += usize::from(is_complete);
        debug_assert!(self.complete <= self.of.len(), "each report is completed once");
        Ok(is_complete)
    }

    /// Rank 0 has this rank's whole report.
    pub(super) fn on_taken(&mut self) {
        self.is_own_taken = true;
    }

    /// Whether rank 0 has this rank's whole report.
    pub(super) fn is_own_taken(&self) -> bool {
        self.is_own_taken
    }

    /// Number of ranks with complete reports.
    pub(super) fn count(&self) -> usize {
        self.complete
    }

    /// The complete reports.
    pub(super) fn complete(&self) -> impl Iterator<Item = (Rank, &[u8])> {
        self.of.iter().filter(|(_, report)| report.missing_bytes == 0).map(|(rank, report)| (*rank, &*report.bytes))
    }
}

/// The messages of a rank's report, to rank 0.
pub(super) fn messages(report: &[u8], message_bytes_max: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
    assert!(report.len() <= REPORT_BYTES_MAX, "{} bytes of a closing report", report.len());
    assert!(message_bytes_max > HEAD_BYTES, "a message of {message_bytes_max} bytes has no room for a part");
    let part_bytes_max = message_bytes_max - HEAD_BYTES;
    report.chunks(part_bytes_max).enumerate().map(move |(place, part)| {
        let [offset, whole] = [place * part_bytes_max, report.len()].map(|bytes| (bytes as u32).to_ne_bytes());
        [&[TAG_REPORT], &offset[..], &whole, part].concat()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(offset: u32, whole: u32, part: &[u8]) -> Vec<u8> {
        [&[TAG_REPORT], &offset.to_ne_bytes()[..], &whole.to_ne_bytes(), part].concat()
    }

    #[test]
    fn parts_come_in_any_order() {
        let mut reports = ClosingReports::default();
        let parts = [message(3, 5, b"de"), message(0, 5, b"abc")].map(|message| decode(&message).expect("a part"));
        assert_eq!(parts.each_ref().map(|part| reports.take(Rank(2), part)), [Ok(false), Ok(true)]);
        assert_eq!(reports.complete().collect::<Vec<_>>(), [(Rank(2), &b"abcde"[..])]);
        assert!(reports.take(Rank(2), &parts[0]).is_err(), "it has sent all");
    }

    #[test]
    fn the_messages_of_a_report_are_its_parts() {
        let report: Vec<u8> = (0..100).collect();
        let mut reports = ClosingReports::default();
        let taken: Vec<bool> = messages(&report, HEAD_BYTES + 40)
            .map(|message| reports.take(Rank(2), &decode(&message).expect("a part")).expect("it is new"))
            .collect();
        assert_eq!(taken, [false, false, true]);
        assert_eq!(reports.complete().collect::<Vec<_>>(), [(Rank(2), &*report)]);
    }

    #[test]
    fn malformed_parts_are_refused() {
        let wrong = [
            message(4, 5, b"ab"),
            message(0, 5, b""),
            message(u32::MAX, u32::MAX, b"a"),
            message(0, REPORT_BYTES_MAX as u32 + 1, b"a"),
            message(0, 5, b"a")[..8].to_vec(),
            vec![TAG_REPORT_TAKEN; 12],
        ];
        assert!(wrong.iter().all(|message| decode(message).is_none()));
        let mut reports = ClosingReports::default();
        assert_eq!(reports.take(Rank(1), &decode(&message(0, 5, b"abc")).expect("a part")), Ok(false));
        assert!(reports.take(Rank(1), &decode(&message(0, 6, b"abc")).expect("a part")).is_err());
    }
}
