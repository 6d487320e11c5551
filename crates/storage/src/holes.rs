//! Space for a part of a file on a file system that cannot reserve any: zeros are written into the holes.

use super::BLOCK_BYTES;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use vgasnet_conduit::blocking_signals;

/// Maximum bytes of zeros in one write.
const ZEROS_BYTES: usize = 64 * BLOCK_BYTES;

/// Writes zeros to the holes in a range and extends the file to the end of the range. Nothing else writes there
/// meanwhile.
pub(super) fn fill(file: &File, range: Range<u64>) -> io::Result<()> {
    // Holes have the granularity of the file system's blocks, which may be finer than direct I/O allows. The file may
    // have lost its name.
    let buffered = OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let zeros = vec![0; ZEROS_BYTES];
    let mut at = range.start;
    while let Some(hole) = next_hole(buffered.as_raw_fd(), at..range.end)? {
        at = hole.start;
        while at < hole.end {
            let count = (hole.end - at).min(ZEROS_BYTES as u64);
            blocking_signals(|| buffered.write_all_at(&zeros[..count as usize], at))?;
            at += count;
        }
    }
    // Syncing reports disk errors here, and leaves no dirty page in the cache under later direct writes.
    buffered.sync_data()
}

/// The first hole in a range. Everything behind the end of a file is a hole.
fn next_hole(descriptor: RawFd, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    if range.is_empty() {
        return Ok(None);
    }
    let (start, data) = match seek(descriptor, range.start, libc::SEEK_HOLE) {
        Ok(start) => (start, seek(descriptor, start, libc::SEEK_DATA)),
        // The range begins behind the end of the file.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => (range.start, Err(error)),
        Err(error) => return Err(error),
    };
    let end = match data {
        Ok(end) => end.min(range.end),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => range.end,
        Err(error) => return Err(error),
    };
    Ok((start < end).then_some(start..end))
}

fn seek(descriptor: RawFd, from: u64, whence: libc::c_int) -> io::Result<u64> {
    let from = libc::off_t::try_from(from).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: the call takes numbers only, and the descriptor is open.
    let found = unsafe { libc::lseek(descriptor, from, whence) };
    u64::try_from(found).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_get_zeros_and_bytes_stay() {
        let path = std::env::temp_dir().join(format!("vgasnet-holes-{}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let size = 4 * ZEROS_BYTES + 700;
        let mut model = vec![0; size];
        for (at, len) in [(0, 1), (ZEROS_BYTES + 5, 9000), (3 * ZEROS_BYTES, 10)] {
            model[at..at + len].fill(7);
            file.write_all_at(&model[at..at + len], at as u64).unwrap();
        }
        fill(&file, 0..size as u64).unwrap();
        let mut is = vec![1; size + 1];
        assert_eq!(file.read_at(&mut is, 0).unwrap(), size);
        assert!(is[..size] == model);
        assert_eq!(next_hole(file.as_raw_fd(), 0..size as u64).unwrap(), None);
        fill(&file, 10..20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), size as u64, "it does not become shorter");
    }
}
