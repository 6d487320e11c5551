//! I/O errors made on purpose, for tests.

/// The direction of a storage operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoDirection {
    /// From a file into memory.
    Read,
    /// From memory into a file.
    Write,
}

/// I/O errors made on purpose: operation `nth` (1 is the next one) in `direction` fails, and those after it until `count`
/// have failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoFault {
    /// Which operations are counted.
    pub direction: IoDirection,
    /// The first one that fails, counted from 1.
    pub nth: u64,
    /// How many fail.
    pub count: u64,
    /// The error.
    pub errno: i32,
    /// Operations on named files are counted, in place of those on the backing file.
    pub on_files: bool,
}

impl IoFault {
    /// One operation fails with `EIO`.
    pub fn once(direction: IoDirection, nth: u64) -> IoFault {
        IoFault { direction, nth, count: 1, errno: libc::EIO, on_files: false }
    }

    /// So many writes find the disk full.
    pub fn full_disk(nth: u64, count: u64) -> IoFault {
        IoFault { direction: IoDirection::Write, nth, count, errno: libc::ENOSPC, on_files: false }
    }
}

/// Reads `read:N`, `read:N:COUNT`, the same with `write`, or `full:N:COUNT`, with `file-` before it for named files.
pub(super) fn parse(value: &str) -> Result<IoFault, String> {
    match value.strip_prefix("file-") {
        Some(fault) => parse_fault(fault).map(|fault| IoFault { on_files: true, ..fault }),
        None => parse_fault(value),
    }
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
        _ => Err("is none of read:N, write:N and full:N:COUNT".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let fault = |direction, nth, count, errno, on_files| Ok(IoFault { direction, nth, count, errno, on_files });
        assert_eq!(parse("read:3"), fault(IoDirection::Read, 3, 1, libc::EIO, false));
        assert_eq!(parse("full:2:9"), fault(IoDirection::Write, 2, 9, libc::ENOSPC, false));
        assert_eq!(parse("file-read:2:9"), fault(IoDirection::Read, 2, 9, libc::EIO, true));
        assert_eq!(parse("file-write:1"), fault(IoDirection::Write, 1, 1, libc::EIO, true));
        assert_eq!(parse("file-full:2:9"), fault(IoDirection::Write, 2, 9, libc::ENOSPC, true));
    }
}
