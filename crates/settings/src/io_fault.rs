//! I/O errors made on purpose, for tests.

/// The direction of a storage operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoDirection {
    /// From a file into memory.
    Read,
    /// From memory into a file.
    Write,
}

/// I/O errors made on purpose: operation `nth` (1 is the next one) in `direction` fails, and the following ones until
/// `count` have failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoFault {
    /// The direction of the counted operations.
    pub direction: IoDirection,
    /// The first operation to fail, counted from 1.
    pub nth: u64,
    /// Number of failures.
    pub count: u64,
    /// The error.
    pub errno: i32,
    /// The file of the counted operations.
    pub target: IoTarget,
}

/// Files of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoTarget {
    /// The backing file.
    Backing,
    /// Named files.
    Files,
    /// The burst buffer before named files.
    Spill,
}

impl IoFault {
    /// One operation fails with `EIO`.
    pub fn once(direction: IoDirection, nth: u64) -> IoFault {
        IoFault { direction, nth, count: 1, errno: libc::EIO, target: IoTarget::Backing }
    }

    /// `count` writes find the disk full.
    pub fn full_disk(nth: u64, count: u64) -> IoFault {
        IoFault { direction: IoDirection::Write, nth, count, errno: libc::ENOSPC, target: IoTarget::Backing }
    }
}

/// Reads `read:N`, `read:N:COUNT`, the same with `write`, or `full:N:COUNT` and `quota:N:COUNT`, with the prefix
/// `file-` for named files and `spill-` for the burst buffer before them.
pub(super) fn parse(value: &str) -> Result<IoFault, String> {
    let of = |prefix, target| value.strip_prefix(prefix).map(|fault| (fault, target));
    let meant = of("file-", IoTarget::Files).or_else(|| of("spill-", IoTarget::Spill));
    let (fault, target) = meant.unwrap_or((value, IoTarget::Backing));
    parse_fault(fault).map(|fault| IoFault { target, ..fault })
}

fn parse_fault(value: &str) -> Result<IoFault, String> {
    let (kind, numbers) = value.split_once(':').ok_or("lacks a colon")?;
    let number = |text: &str| -> Result<u64, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_number && *number > 0);
        number.ok_or_else(|| "has no count from 1 after the colon".to_owned())
    };
    match (kind, numbers.split_once(':')) {
        ("read", None) => Ok(IoFault::once(IoDirection::Read, number(numbers)?)),
        ("write", None) => Ok(IoFault::once(IoDirection::Write, number(numbers)?)),
        ("read", Some((nth, count))) => {
            Ok(IoFault { count: number(count)?, ..IoFault::once(IoDirection::Read, number(nth)?) })
        }
        ("write", Some((nth, count))) => {
            Ok(IoFault { count: number(count)?, ..IoFault::once(IoDirection::Write, number(nth)?) })
        }
        ("full", Some((nth, count))) => Ok(IoFault::full_disk(number(nth)?, number(count)?)),
        ("quota", Some((nth, count))) => {
            Ok(IoFault { errno: libc::EDQUOT, ..IoFault::full_disk(number(nth)?, number(count)?) })
        }
        _ => Err("is none of read:N, write:N and full:N:COUNT".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let fault = |direction, nth, count, errno, target| Ok(IoFault { direction, nth, count, errno, target });
        assert_eq!(parse("read:3"), fault(IoDirection::Read, 3, 1, libc::EIO, IoTarget::Backing));
        assert_eq!(parse("full:2:9"), fault(IoDirection::Write, 2, 9, libc::ENOSPC, IoTarget::Backing));
        assert_eq!(parse("file-read:2:9"), fault(IoDirection::Read, 2, 9, libc::EIO, IoTarget::Files));
        assert_eq!(parse("file-write:1"), fault(IoDirection::Write, 1, 1, libc::EIO, IoTarget::Files));
        assert_eq!(parse("file-full:2:9"), fault(IoDirection::Write, 2, 9, libc::ENOSPC, IoTarget::Files));
        assert_eq!(parse("spill-write:1"), fault(IoDirection::Write, 1, 1, libc::EIO, IoTarget::Spill));
        assert_eq!(parse("file-quota:4:2"), fault(IoDirection::Write, 4, 2, libc::EDQUOT, IoTarget::Files));
    }
}
