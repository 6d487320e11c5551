//! I/O errors made on purpose, for tests.

/// The direction of a storage operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoDirection {
    /// From the backing file into memory.
    Read,
    /// From memory into the backing file.
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
}

impl IoFault {
    /// One operation fails with `EIO`.
    pub fn once(direction: IoDirection, nth: u64) -> IoFault {
        IoFault { direction, nth, count: 1, errno: libc::EIO }
    }

    /// So many writes find the disk full.
    pub fn full_disk(nth: u64, count: u64) -> IoFault {
        IoFault { direction: IoDirection::Write, nth, count, errno: libc::ENOSPC }
    }
}

/// Reads `read:N`, `write:N` or `full:N:COUNT`.
pub(super) fn parse(value: &str) -> Result<IoFault, String> {
    let (kind, numbers) = value.split_once(':').ok_or("lacks a colon")?;
    let number = |text: &str| -> Result<u64, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_number && *number > 0);
        number.ok_or_else(|| "has no count from 1 after the colon".to_owned())
    };
    match (kind, numbers.split_once(':')) {
        ("read", None) => Ok(IoFault::once(IoDirection::Read, number(numbers)?)),
        ("write", None) => Ok(IoFault::once(IoDirection::Write, number(numbers)?)),
        ("full", Some((nth, count))) => Ok(IoFault::full_disk(number(nth)?, number(count)?)),
        _ => Err("is none of read:N, write:N and full:N:COUNT".into()),
    }
}
