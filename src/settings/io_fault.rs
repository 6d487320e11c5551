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
    /// Operations on files with names are counted, else those on the backing file.
    pub of_files: bool,
    /// Which of them.
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
        IoFault { of_files: false, direction, nth, count: 1, errno: libc::EIO }
    }

    /// So many writes find the disk full.
    pub fn full_disk(nth: u64, count: u64) -> IoFault {
        IoFault { of_files: false, direction: IoDirection::Write, nth, count, errno: libc::ENOSPC }
    }
}

/// Reads `read:N`, `write:N` or `full:N:COUNT`; `file-` before them, and then a count, for files with names.
pub(super) fn parse(value: &str) -> Result<IoFault, String> {
    let (kind, numbers) = value.split_once(':').ok_or("lacks a colon")?;
    let number = |text: &str| -> Result<u64, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_number && *number > 0);
        number.ok_or_else(|| "has no count from 1 after the colon".to_owned())
    };
    let numbers_of = |(nth, count): (&str, &str)| Ok::<_, String>((number(nth)?, number(count)?));
    if let (Some(kind), Some(both)) = (kind.strip_prefix("file-"), numbers.split_once(':')) {
        let ((nth, count), once) = (numbers_of(both)?, |direction| IoFault::once(direction, 1));
        let fault = match kind {
            "read" => once(IoDirection::Read),
            "write" => once(IoDirection::Write),
            "full" => IoFault::full_disk(1, 1),
            _ => return Err("is none of file-read, file-write and file-full".into()),
        };
        return Ok(IoFault { of_files: true, nth, count, ..fault });
    }
    match (kind, numbers.split_once(':')) {
        ("read", None) => Ok(IoFault::once(IoDirection::Read, number(numbers)?)),
        ("write", None) => Ok(IoFault::once(IoDirection::Write, number(numbers)?)),
        ("full", Some((nth, count))) => Ok(IoFault::full_disk(number(nth)?, number(count)?)),
        _ => Err("is none of read:N, write:N, full:N:COUNT, and these of files".into()),
    }
}
