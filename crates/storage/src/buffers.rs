//! Registered buffers: memory pinned once and known to the kernel by an index, so operations need not pin it again.
//!
//! The pool is registered in chunks. The kernel's table has one entry for each chunk, filled by the first operation in
//! the chunk. An unused chunk takes no memory.

use io_uring::Submitter;
use nix::sys::resource::{Resource, getrlimit};
use std::fs;
use std::io;

use vgasnet_settings::{format_size, format_size_about};

/// The kernel's limit on registered buffers. Indices fit into the 16 bits of a request's buffer index.
const BUFFERS_MAX: usize = 1 << 14;

/// Bit number of the capability that lifts the limit on locked memory.
const CAP_IPC_LOCK: u32 = 14;

/// Takes a line for the user.
pub(super) type Sink = Box<dyn FnOnce(&str) + Send>;

/// The registrable memory, and the chunks registered so far.
#[derive(Default)]
pub(super) struct Buffers {
    ranges: Vec<Range>,
    chunk_bytes: usize,
    /// Whether a chunk is registered, by its index in the kernel's table.
    is_registered: Vec<bool>,
    registered_bytes: usize,
    /// The kernel refused a chunk or the whole table. It is not asked again: each operation would pay for a system
    /// call.
    is_refused: bool,
    /// Takes the one line about a refusal or a limit; `None` afterwards.
    warn: Option<Sink>,
}

/// A registrable range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    address: usize,
    len_bytes: usize,
    /// The index of its first chunk.
    first: usize,
}

impl Buffers {
    /// Creates an empty table for `ranges` (address, length in bytes), with chunks in multiples of `page_bytes`. `warn`
    /// is called at most once: now, or when the kernel refuses a chunk.
    pub(super) fn new(ring: &Submitter<'_>, ranges: &[(*mut u8, usize)], page_bytes: usize, warn: Sink) -> Buffers {
        assert!(page_bytes > 0, "a chunk has a size");
        let chunk_bytes = chunk_bytes(ranges, page_bytes);
        let (ranges, count) = place(ranges, chunk_bytes);
        let is_registered = vec![false; count];
        let warn = Some(warn);
        let mut buffers = Buffers { ranges, chunk_bytes, is_registered, registered_bytes: 0, is_refused: false, warn };
        if count == 0 {
            return buffers;
        }
        if let Err(error) = ring.register_buffers_sparse(count as u32) {
            buffers.refuse(&error);
        } else if let Some(limit_bytes) = memlock_bytes().filter(|limit| *limit < buffers.total_bytes() as u64) {
            buffers.say(format!(
                "the limit on locked memory, {}, is less than {}, the pool and its staging frames: memory beyond the \
                 limit is pinned at each I/O operation instead of once, which takes more CPU; raise `ulimit -l` to lift this",
                format_size_about(limit_bytes),
                format_size(buffers.total_bytes() as u64),
            ));
        }
        buffers
    }

    /// The index of the chunk that contains all of `len_bytes` bytes at `address`. Registers the chunk if necessary;
    /// `None` if no chunk contains them or the kernel refuses.
    pub(super) fn index_of(&mut self, ring: &Submitter<'_>, address: usize, len_bytes: usize) -> Option<u16> {
        let (index, chunk) = self.chunk_of(address, len_bytes)?;
        if !self.is_registered[index] {
            self.register(ring, index, chunk)?;
        }
        Some(index as u16)
    }

    /// Bytes of registered memory.
    pub(super) fn registered_bytes(&self) -> usize {
        self.registered_bytes
    }

    /// The index, and the address and length, of the chunk that contains the whole range, if there is one.
    fn chunk_of(&self, address: usize, len_bytes: usize) -> Option<(usize, (usize, usize))> {
        let range = self.ranges.partition_point(|range| range.address <= address).checked_sub(1)?;
        let range = self.ranges[range];
        let number = (address - range.address) / self.chunk_bytes;
        let start_bytes = number * self.chunk_bytes;
        let end_bytes = (start_bytes + self.chunk_bytes).min(range.len_bytes);
        let is_inside = address - range.address + len_bytes <= end_bytes;
        is_inside.then(|| (range.first + number, (range.address + start_bytes, end_bytes - start_bytes)))
    }

    #[cold]
    fn register(&mut self, ring: &Submitter<'_>, index: usize, (address, iov_len): (usize, usize)) -> Option<()> {
        if self.is_refused {
            return None;
        }
        let vector = libc::iovec { iov_base: address as *mut libc::c_void, iov_len };
        // SAFETY: registering only pins the memory. It stays mapped during the lifetime of the storage, as
        // `RingStorage::register` requires. Only operations access it, under conditions of their own.
        match unsafe { ring.register_buffers_update(index as u32, &[vector], None) } {
            Ok(()) => {
                self.is_registered[index] = true;
                self.registered_bytes += iov_len;
                Some(())
            }
            Err(error) => {
                self.refuse(&error);
                None
            }
        }
    }

    fn refuse(&mut self, error: &io::Error) {
        self.is_refused = true;
        let limit = memlock_bytes().map_or_else(|| "unlimited".into(), format_size_about);
        self.say(format!(
            "the kernel refused to pin more than {} of the pool and its staging frames, {}, for I/O ({error}; the limit on locked memory is \
             {limit}, and Linux is needed from 5.19): operations on other pages pin them each time, which takes more \
             CPU; raise `ulimit -l` to lift this",
            format_size(self.registered_bytes as u64),
            format_size(self.total_bytes() as u64),
        ));
    }

    fn say(&mut self, line: String) {
        if let Some(warn) = self.warn.take() {
            warn(&line);
        }
    }

    fn total_bytes(&self) -> usize {
        self.ranges.iter().map(|range| range.len_bytes).sum()
    }
}

/// The length of a chunk: the smallest multiple of `page_bytes` for which the kernel's table has enough entries.
fn chunk_bytes(ranges: &[(*mut u8, usize)], page_bytes: usize) -> usize {
    let chunks =
        |pages: usize| ranges.iter().map(|(_, len_bytes)| len_bytes.div_ceil(pages * page_bytes)).sum::<usize>();
    assert!(ranges.len() <= BUFFERS_MAX / 2, "{} ranges to register; the maximum is half of the table", ranges.len());
    // Each range wastes less than one chunk, so with a small number of ranges the loop ends soon.
    let mut pages = (chunks(1) / BUFFERS_MAX).max(1);
    while chunks(pages) > BUFFERS_MAX {
        pages += 1;
    }
    pages * page_bytes
}

/// `ranges` sorted by address, with the indices of their chunks, and the total number of chunks.
fn place(ranges: &[(*mut u8, usize)], chunk_bytes: usize) -> (Vec<Range>, usize) {
    let mut sorted: Vec<(usize, usize)> =
        ranges.iter().map(|&(pointer, len_bytes)| (pointer as usize, len_bytes)).collect();
    sorted.retain(|(_, len_bytes)| *len_bytes > 0);
    sorted.sort_unstable();
    let mut count = 0;
    let mut placed = Vec::with_capacity(sorted.len());
    for (address, len_bytes) in sorted {
        placed.push(Range { address, len_bytes, first: count });
        count += len_bytes.div_ceil(chunk_bytes);
    }
    (placed, count)
}

/// The limit on memory this thread may pin, if one applies. A capability inside a user namespace looks like an
/// exemption here although the kernel does not honour it; the kernel's refusal then shows the limit.
pub fn memlock_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    let (limit_bytes, _) = getrlimit(Resource::RLIMIT_MEMLOCK).ok()?;
    (effective >> CAP_IPC_LOCK & 1 == 0 && limit_bytes != libc::RLIM_INFINITY).then_some(limit_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 1 << 16;
    const LOW: usize = 0x10_0000;
    const HIGH: usize = 0x10_0000_0000;

    fn at(address: usize, len_bytes: usize) -> (*mut u8, usize) {
        (address as *mut u8, len_bytes)
    }

    fn buffers(ranges: &[(*mut u8, usize)], chunk_bytes: usize) -> Buffers {
        let (ranges, count) = place(ranges, chunk_bytes);
        Buffers { ranges, chunk_bytes, is_registered: vec![false; count], ..Buffers::default() }
    }

    #[test]
    fn every_chunk_has_an_index_and_no_other_memory_has() {
        let buffers = buffers(&[at(HIGH, 2 * PAGE + 4096), at(LOW, PAGE), at(LOW - 4096, 0)], PAGE);
        assert_eq!(buffers.is_registered.len(), 4);
        assert_eq!(buffers.chunk_of(LOW, PAGE), Some((0, (LOW, PAGE))));
        assert_eq!(buffers.chunk_of(HIGH + 4096, 4096), Some((1, (HIGH, PAGE))));
        assert_eq!(buffers.chunk_of(HIGH + PAGE, PAGE), Some((2, (HIGH + PAGE, PAGE))));
        assert_eq!(buffers.chunk_of(HIGH + 2 * PAGE, 4096), Some((3, (HIGH + 2 * PAGE, 4096))));
        let outside =
            [(LOW - 1, 1), (LOW, PAGE + 1), (LOW + PAGE, 1), (HIGH + PAGE - 1, 2), (HIGH + 2 * PAGE, PAGE), (0, 1)];
        for (address, len_bytes) in outside {
            assert_eq!(buffers.chunk_of(address, len_bytes), None, "{address:#x} {len_bytes}");
        }
    }

    #[test]
    fn chunks_are_as_small_as_the_kernel_s_table_allows() {
        for (pages, chunk_pages) in [
            (1, 1),
            (BUFFERS_MAX, 1),
            (BUFFERS_MAX + 1, 2),
            (2 * BUFFERS_MAX, 2),
            (2 * BUFFERS_MAX + 1, 3),
            (180_000, 11),
        ] {
            assert_eq!(chunk_bytes(&[at(LOW, pages * PAGE)], PAGE), chunk_pages * PAGE, "{pages}");
        }
        let two = [at(LOW, (BUFFERS_MAX - 1) * PAGE), at(HIGH, PAGE + 1)];
        assert_eq!(chunk_bytes(&two, PAGE), 2 * PAGE);
        assert_eq!(chunk_bytes(&[], PAGE), PAGE);
    }
}
