//! The backing file through io_uring.
//!
//! Each operation is submitted at once, by an `io_uring_enter` of its own, so that the disk begins without waiting for
//! the next poll. The call itself takes 2 µs; what it takes beyond that is the work on the operation, mostly pinning
//! its memory (for 4 MiB 60 to 150 µs, 8 µs if registered), which a batch would not save. Operations over
//! [`INLINE_BYTES_MAX`] are handed to a thread of the kernel instead: pinning 64 MiB takes milliseconds, and once
//! the disk's queue is full the call blocks, 40 ms were seen.
//!
//! The ring is set up without `SINGLE_ISSUER`, `DEFER_TASKRUN` and `COOP_TASKRUN`. Any thread may start an operation
//! and then compute, or end, while another waits for it; with those flags the kernel would post the completion only
//! when the first one next enters it. The price: a completion interrupts the thread that started the operation, so
//! that a system call which is never restarted (`epoll_wait`) may there return `EINTR` without any signal.

use super::file::BackingFile;
use super::operation::{Operation, REQUEST_BYTES_MAX, Step};
use super::{Busy, Storage};
use crate::config::{IoDirection, format_size, format_size_about};
use io_uring::{IoUring, Probe, opcode, squeue, types};
use nix::sys::resource::{Resource, getrlimit};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::thread;

/// The kernel's limit on one registered buffer.
const BUFFER_BYTES_MAX: usize = 1 << 30;

/// The kernel's limit on registered buffers, which fits into the 16 bits of a buffer's index.
const BUFFERS_MAX: usize = 1 << 14;

/// The longest request in bytes that the submitting thread works on itself: a default page.
const INLINE_BYTES_MAX: usize = 4 << 20;

/// The index of the backing file among the ring's registered files: it is the only one.
const FILE: types::Fixed = types::Fixed(0);

/// The kernel does not give us io_uring, or not enough of it.
#[derive(Debug)]
pub struct Refused {
    /// The file, for another kind of storage.
    pub file: BackingFile,
    /// Why: `ENOSYS` and `EPERM` where it is not permitted, `ENOMEM` where memory or `ulimit -l` is short,
    /// [`io::ErrorKind::Unsupported`] where the kernel is too old for reads and writes (before 5.6).
    pub error: io::Error,
}

/// A backing file that the kernel reads and writes through io_uring.
pub struct RingStorage {
    ring: IoUring,
    file: BackingFile,
    /// The operations in flight; the index is what the kernel gives back with a completion.
    slots: Vec<Option<Operation>>,
    /// The indices of the empty slots.
    empty: Vec<usize>,
    /// The registered memory as (address, length), in the order of its indices, which is that of the addresses.
    buffers: Vec<(usize, usize)>,
    /// The most to ask the kernel for at once, in bytes: whole blocks.
    pub(super) request_bytes_max: usize,
}

impl RingStorage {
    /// Sets up a ring for `file`. `depth` is the bound on operations in flight, 1 to 4096.
    ///
    /// # Errors
    /// [`Refused`], which gives the file back.
    ///
    /// # Panics
    /// If `depth` is out of range.
    pub fn new(file: BackingFile, depth: usize) -> Result<RingStorage, Refused> {
        assert!((1..=4096).contains(&depth), "a ring of depth {depth}");
        match set_up(&file, depth) {
            Ok(ring) => Ok(RingStorage {
                ring,
                file,
                slots: (0..depth).map(|_| None).collect(),
                empty: (0..depth).rev().collect(),
                buffers: Vec::new(),
                request_bytes_max: REQUEST_BYTES_MAX,
            }),
            Err(error) => Err(Refused { file, error }),
        }
    }

    /// Pins `ranges` (address, length in bytes) once, so that operations inside them need not pin their memory each
    /// time. The memory becomes resident; it stays mapped as it is until the storage is dropped. Where the kernel
    /// refuses, operations work as before and the answer is a line about it for the user. Call at most once, with
    /// nothing in flight.
    ///
    /// # Panics
    /// If it was called before or operations are in flight.
    #[must_use]
    pub fn register(&mut self, ranges: &[(*mut u8, usize)]) -> Option<String> {
        assert!(self.buffers.is_empty() && self.in_flight() == 0, "buffers are registered once, at the start");
        let buffers = split(ranges);
        if buffers.is_empty() {
            return None;
        }
        let total_bytes: usize = buffers.iter().map(|(_, len_bytes)| len_bytes).sum();
        let error = if buffers.len() > BUFFERS_MAX {
            io::Error::from_raw_os_error(libc::EMFILE)
        } else {
            let vectors: Vec<libc::iovec> = buffers
                .iter()
                .map(|&(address, iov_len)| libc::iovec { iov_base: address as *mut libc::c_void, iov_len })
                .collect();
            // SAFETY: registering only pins the memory; it is accessed by operations, whose callers answer for it.
            match unsafe { self.ring.submitter().register_buffers(&vectors) } {
                Ok(()) => {
                    self.buffers = buffers;
                    return None;
                }
                Err(error) => error,
            }
        };
        let limit = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(0, |(soft_bytes, _)| soft_bytes);
        Some(format!(
            "the kernel refused to pin the pool of {} for I/O ({error}; the limit on locked memory is {}): each \
             operation pins its page, which takes more CPU; raise `ulimit -l` to lift this",
            format_size(total_bytes as u64),
            if limit == libc::RLIM_INFINITY { "unlimited".into() } else { format_size_about(limit) }
        ))
    }

    fn start(&mut self, direction: IoDirection, place: (u64, *mut u8, usize), token: u64) -> Result<(), Busy> {
        let operation = Operation::new(direction, place, token, self.file.size_bytes());
        let slot = self.empty.pop().ok_or(Busy)?;
        self.slots[slot] = Some(operation);
        self.queue(slot);
        self.submit();
        Ok(())
    }

    /// Puts the next request of the operation in `slot` into the submission queue.
    fn queue(&mut self, slot: usize) {
        let operation = self.slots[slot].as_ref().expect("a slot with a request holds an operation");
        let entry = self.entry(operation).user_data(slot as u64);
        // SAFETY: the file is registered for as long as the ring lives. The memory is valid and left alone until
        // `poll` hands the operation out or `drop` returns, and neither happens while the kernel has the request.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has room for one request for each slot");
    }

    fn entry(&self, operation: &Operation) -> squeue::Entry {
        let request = operation.request(self.request_bytes_max);
        let len_bytes = u32::try_from(request.len_bytes).expect("a request has at most 1 GiB");
        let (offset_bytes, pointer) = (request.offset_bytes, request.pointer);
        let entry = match (operation.direction, self.buffer_of(pointer as usize, request.len_bytes)) {
            (IoDirection::Read, Some(buffer)) => {
                opcode::ReadFixed::new(FILE, pointer, len_bytes, buffer).offset(offset_bytes).build()
            }
            (IoDirection::Read, None) => opcode::Read::new(FILE, pointer, len_bytes).offset(offset_bytes).build(),
            (IoDirection::Write, Some(buffer)) => {
                opcode::WriteFixed::new(FILE, pointer, len_bytes, buffer).offset(offset_bytes).build()
            }
            (IoDirection::Write, None) => opcode::Write::new(FILE, pointer, len_bytes).offset(offset_bytes).build(),
        };
        let is_inline = request.len_bytes <= INLINE_BYTES_MAX;
        if is_inline { entry } else { entry.flags(squeue::Flags::ASYNC) }
    }

    /// The index of the registered buffer that has the whole range, if one has.
    fn buffer_of(&self, address: usize, len_bytes: usize) -> Option<u16> {
        let index = self.buffers.partition_point(|&(start, _)| start <= address).checked_sub(1)?;
        let (start, buffer_bytes) = self.buffers[index];
        (address - start + len_bytes <= buffer_bytes).then_some(index as u16)
    }

    /// Gives the kernel what is queued. What it cannot take for want of memory stays queued for the next poll, which
    /// a completion will bring about; without anything to complete, this function goes on until the kernel does.
    fn submit(&mut self) {
        loop {
            let queued = self.ring.submission().len();
            if queued == 0 {
                return;
            }
            let in_kernel = self.in_flight() - queued;
            if !self.enter(0) && in_kernel > 0 {
                return;
            }
        }
    }

    /// Submits what is queued and waits for `want` completions; false if the kernel is too busy for that now.
    fn enter(&self, want: usize) -> bool {
        match self.ring.submitter().submit_and_wait(want) {
            Ok(_) => true,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => true,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                thread::yield_now();
                false
            }
            Err(error) => {
                // Somebody closed our descriptor. The kernel may still write to memory that unwinding would free.
                eprintln!("vgasnet: io_uring_enter: {error}: operations in flight can no longer be waited for");
                std::process::abort();
            }
        }
    }

    /// The next completion: its slot, and what the kernel says.
    fn next_completion(&mut self) -> Option<(usize, io::Result<usize>)> {
        let completion = self.ring.completion().next()?;
        let result = match completion.result() {
            negative if negative < 0 => Err(io::Error::from_raw_os_error(-negative)),
            moved_bytes => Ok(moved_bytes as usize),
        };
        Some((completion.user_data() as usize, result))
    }

    /// Ends the operation in `slot`; its token.
    fn retire(&mut self, slot: usize) -> u64 {
        let operation = self.slots[slot].take().expect("a completed slot holds an operation");
        self.empty.push(slot);
        operation.token
    }
}

impl Storage for RingStorage {
    unsafe fn read(&mut self, offset_bytes: u64, memory: *mut u8, len_bytes: usize, token: u64) -> Result<(), Busy> {
        self.start(IoDirection::Read, (offset_bytes, memory, len_bytes), token)
    }

    unsafe fn write(&mut self, offset_bytes: u64, memory: *const u8, len_bytes: usize, token: u64) -> Result<(), Busy> {
        self.start(IoDirection::Write, (offset_bytes, memory.cast_mut(), len_bytes), token)
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        while let Some((slot, result)) = self.next_completion() {
            let operation = self.slots[slot].as_mut().expect("a completed slot holds an operation");
            match operation.advance(result) {
                Step::Complete(result) => sink(self.retire(slot), result),
                Step::Continue => self.queue(slot),
            }
        }
        self.submit();
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.empty.len()
    }

    /// The ring itself: it is readable exactly while its completion queue is not empty, so that there is nothing to
    /// drain and no system call in a poll that finds nothing, which an event descriptor would need.
    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the ring keeps the descriptor open for as long as it lives, which is longer than this borrow.
        Some(unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) })
    }
}

impl Drop for RingStorage {
    /// Waits until the kernel has nothing of ours, since it would go on to write to memory that is free afterwards.
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            self.enter(1);
            while let Some((slot, _)) = self.next_completion() {
                self.retire(slot);
            }
        }
    }
}

fn set_up(file: &BackingFile, depth: usize) -> io::Result<IoUring> {
    let entries = depth.next_power_of_two() as u32;
    let ring = IoUring::builder().dontfork().build(entries)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::ReadFixed::CODE, opcode::WriteFixed::CODE];
    if !needed.iter().all(|&code| probe.is_supported(code)) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    ring.submitter().register_files(&[file.as_fd().as_raw_fd()])?;
    Ok(ring)
}

/// `ranges` in the order of their addresses, in parts that the kernel takes. A page never spans two parts, since its
/// size divides that of a part and pages lie at multiples of their size in the pool.
fn split(ranges: &[(*mut u8, usize)]) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    for &(pointer, len_bytes) in ranges {
        let starts = (0..len_bytes).step_by(BUFFER_BYTES_MAX);
        parts.extend(starts.map(|start| (pointer as usize + start, BUFFER_BYTES_MAX.min(len_bytes - start))));
    }
    parts.sort_unstable();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_split_and_sorted() {
        let (low, high) = (0x1000 as *mut u8, 0x10_0000_0000 as *mut u8);
        let ranges = [(high, (2 << 30) + 4096), (low, 4096), (high, 0)];
        let high = high as usize;
        assert_eq!(
            split(&ranges),
            [(0x1000, 4096), (high, 1 << 30), (high + (1 << 30), 1 << 30), (high + (2 << 30), 4096)]
        );
    }
}
