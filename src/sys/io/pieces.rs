//! Carries bytes between a segment and calls that need ordinary memory, piece by piece.

use super::{BASE, SIZE_BYTES, touches};
use crate::sys::copy_bytes;
use crate::sys::errno::{keep_errno, set_errno};
use libc::iovec;
use std::alloc::{Layout, alloc, dealloc};
use std::sync::atomic::Ordering;

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the call to memory.
    In,
    /// From memory to the call.
    Out,
}

/// How a call may be carried out.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub(super) direction: Direction,
    /// The call is made again after one that took all it was given.
    pub(super) goes_on: bool,
    /// The most bytes of a segment in one call.
    pub(super) piece_bytes: usize,
}

impl Manner {
    /// Whether the call is about a message, which is never split.
    pub(super) fn is_message(&self) -> bool {
        self.piece_bytes == MESSAGE_BYTES_MAX
    }
}

/// A piece of a call that may be split.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// More than any message has that the kernel takes.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Files that are opened with O_DIRECT need buffers that are aligned like this, as far as the client's memory is.
const ALIGNMENT: usize = 4096;

/// A range of memory, all of it in the segment, or none.
#[derive(Clone, Copy)]
struct Part {
    address: usize,
    len_bytes: usize,
    is_in_segment: bool,
}

/// The ordinary memory for the segment's bytes of a piece.
struct Buffer {
    start: *mut u8,
    layout: Layout,
}

impl Buffer {
    fn new(len_bytes: usize) -> Option<Buffer> {
        let layout = Layout::from_size_align(len_bytes, ALIGNMENT).ok()?;
        // SAFETY: the layout is not empty: a piece has room for its alignment.
        let start = unsafe { alloc(layout) };
        (!start.is_null()).then_some(Buffer { start, layout })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was allocated like this.
        keep_errno(|| unsafe { dealloc(self.start, self.layout) });
    }
}

/// What one call is given.
struct Piece {
    vectors: Vec<iovec>,
    /// For each vector the address in the segment whose bytes are in the buffer, or 0.
    homes: Vec<usize>,
    len_bytes: usize,
}

/// Splits memory at the borders of the segment.
fn parts(memory: &[iovec]) -> impl Iterator<Item = Part> + '_ {
    let (base, size_bytes) = (BASE.load(Ordering::Relaxed), SIZE_BYTES.load(Ordering::Acquire));
    memory.iter().flat_map(move |vector| {
        let (start, end) = (vector.iov_base.addr(), vector.iov_base.addr().saturating_add(vector.iov_len));
        let (begin, stop) = (base.clamp(start, end), (base + size_bytes).clamp(start, end));
        let [before, inside, after] = if touches(vector.iov_base, vector.iov_len) {
            [start..begin, begin..stop, stop..end]
        } else {
            [start..end, end..end, end..end]
        };
        [(before, false), (inside, true), (after, false)]
            .map(|(range, is_in_segment)| Part { address: range.start, len_bytes: range.len(), is_in_segment })
            .into_iter()
            .filter(|part| part.len_bytes > 0)
    })
}

/// Where in the buffer bytes of this part begin, if `used` bytes of it are: large parts keep their alignment.
fn place(used: usize, part: &Part) -> usize {
    if part.len_bytes < ALIGNMENT { used } else { used + part.address.wrapping_sub(used) % ALIGNMENT }
}

impl Piece {
    /// What follows after `done` bytes of `memory`, as much as the buffer has room for.
    fn after(done: usize, memory: &[iovec], buffer: &Buffer) -> Piece {
        let mut piece = Piece { vectors: Vec::new(), homes: Vec::new(), len_bytes: 0 };
        let (mut skip, mut used) = (done, 0);
        for mut part in parts(memory) {
            let skipped = skip.min(part.len_bytes);
            (skip, part.address, part.len_bytes) = (skip - skipped, part.address + skipped, part.len_bytes - skipped);
            if part.len_bytes == 0 {
                continue;
            }
            let at = place(used, &part);
            let room = if part.is_in_segment { buffer.layout.size().saturating_sub(at) } else { part.len_bytes };
            let len_bytes = part.len_bytes.min(room);
            if len_bytes > 0 {
                piece.push(Part { len_bytes, ..part }, buffer.start.wrapping_add(at));
                used = if part.is_in_segment { at + len_bytes } else { used };
            }
            if len_bytes < part.len_bytes {
                break;
            }
        }
        piece
    }

    fn push(&mut self, part: Part, copy: *mut u8) {
        let memory = if part.is_in_segment { copy } else { std::ptr::with_exposed_provenance_mut(part.address) };
        self.vectors.push(iovec { iov_base: memory.cast(), iov_len: part.len_bytes });
        self.homes.push(if part.is_in_segment { part.address } else { 0 });
        self.len_bytes += part.len_bytes;
    }

    /// Copies the first `count` bytes between the buffer and the segment.
    ///
    /// # Safety
    /// The buffer that the piece was made for is there, and the segment's bytes may be loaded or stored.
    unsafe fn copy(&self, direction: Direction, count: usize) {
        let mut left = count;
        for (vector, home) in self.vectors.iter().zip(&self.homes) {
            let len_bytes = vector.iov_len.min(left);
            left -= len_bytes;
            if *home == 0 {
                continue;
            }
            let segment = std::ptr::with_exposed_provenance_mut::<u8>(*home);
            let buffer = vector.iov_base.cast::<u8>();
            // SAFETY: the vector is a part of the buffer, of which nobody else knows; the segment is valid, as this
            // function asks for.
            unsafe {
                match direction {
                    Direction::In => copy_bytes(buffer, segment, len_bytes),
                    Direction::Out => copy_bytes(segment, buffer, len_bytes),
                }
            }
        }
    }
}

/// Makes calls about ordinary memory for one about `memory`. `call` is given vectors, and how many bytes were carried
/// before. It answers how many of theirs it has carried, or a negative number and sets the error number. The answer is
/// that of one call about all of the memory.
///
/// # Safety
/// The parts of the memory that lie in the segment may be loaded from or stored to.
pub(super) unsafe fn carry(memory: &[iovec], manner: Manner, mut call: impl FnMut(&[iovec], usize) -> isize) -> isize {
    let needed = || {
        let in_segment = parts(memory).filter(|part| part.is_in_segment);
        in_segment.fold(0, |used: usize, part| place(used, &part).saturating_add(part.len_bytes))
    };
    // The error number is the calls' own.
    let Some(buffer) = keep_errno(|| Buffer::new(needed().clamp(1, manner.piece_bytes + ALIGNMENT))) else {
        set_errno(libc::ENOMEM);
        return -1;
    };
    let total = memory.iter().fold(0, |total: usize, vector| total.saturating_add(vector.iov_len));
    let mut done = 0;
    loop {
        let piece = keep_errno(|| Piece::after(done, memory, &buffer));
        if manner.direction == Direction::Out {
            // SAFETY: the segment may be loaded from.
            unsafe { piece.copy(Direction::Out, piece.len_bytes) };
        }
        let answer = call(&piece.vectors, done);
        let carried = usize::try_from(answer).unwrap_or_default();
        if manner.direction == Direction::In {
            // SAFETY: the segment may be stored to.
            unsafe { piece.copy(Direction::In, carried.min(piece.len_bytes)) };
        }
        // A datagram may be longer than the memory (MSG_TRUNC).
        done += carried;
        let is_over = carried != piece.len_bytes || done >= total || !manner.goes_on;
        keep_errno(|| drop(piece));
        if is_over {
            return if answer < 0 && done == 0 { answer } else { done as isize };
        }
    }
}
