//! The access of a fault on AArch64: the kernel leaves the exception's syndrome (ESR) among the records behind the
//! registers of a signal's context.

use vgasnet_protocol::coherence::Access;

/// The record of the syndrome (`ESR_MAGIC`).
const SYNDROME: u32 = 0x4553_5201;

const HEAD_BYTES: usize = 8;

/// An exception's class is above these bits; the class of a data abort in a process.
const CLASS_SHIFT: u32 = 26;
const DATA_ABORT: u64 = 0x24;

/// A write, in the syndrome of a data abort. Cache maintenance (CM) is flagged as a write, too, but needs read access
/// only.
const WRITE: u64 = 1 << 6;
const CACHE: u64 = 1 << 8;

/// The access in the records, if they contain the syndrome of a data abort. A record begins with its kind and its size.
pub(super) fn access_of(mut records: &[u8]) -> Option<Access> {
    loop {
        let number = |at: usize| Some(u32::from_ne_bytes(records.get(at..at + 4)?.try_into().ok()?));
        let (kind, size_bytes) = (number(0)?, number(4)? as usize);
        if kind == SYNDROME {
            let syndrome = u64::from_ne_bytes(records.get(HEAD_BYTES..HEAD_BYTES + 8)?.try_into().ok()?);
            let access = if syndrome & (WRITE | CACHE) == WRITE { Access::Write } else { Access::Read };
            return (syndrome >> CLASS_SHIFT & 0x3f == DATA_ABORT).then_some(access);
        }
        // The last record has no kind and no size.
        records = records.get(size_bytes..).filter(|_| size_bytes >= HEAD_BYTES)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, contents: &[u64]) -> Vec<u8> {
        let size_bytes = (HEAD_BYTES + 8 * contents.len()) as u32;
        let contents = contents.iter().flat_map(|word| word.to_ne_bytes());
        kind.to_ne_bytes().into_iter().chain(size_bytes.to_ne_bytes()).chain(contents).collect()
    }

    #[test]
    fn the_syndrome_tells_loads_from_stores() {
        // A record of the floating-point registers.
        let other = record(0x4650_8001, &[7; 65]);
        let of = |syndrome| access_of(&[other.clone(), record(SYNDROME, &[syndrome]), vec![0; 64]].concat());
        assert_eq!(of(0x9200_0047), Some(Access::Write));
        assert_eq!(of(0x9200_0007), Some(Access::Read));
        assert_eq!(of(0x9200_0147), Some(Access::Read), "a cache is maintained");
        assert_eq!(of(0x8200_0047), None, "no data abort");
    }

    #[test]
    fn records_without_it_tell_nothing() {
        let other = record(0x4650_8001, &[7; 65]);
        assert_eq!(access_of(&[other.clone(), vec![0; 64]].concat()), None);
        assert_eq!((access_of(&other), access_of(&[]), access_of(&record(SYNDROME, &[]))), (None, None, None));
        assert_eq!(access_of(&[3, 0, 0, 0, 4, 0, 0, 0, 9, 9, 9, 9]), None, "a size that no record has");
    }
}
