//! Copies bytes between a segment and calls that need ordinary memory, piece by piece.

use super::{BASE, SIZE_BYTES, touches};
use crate::alternate_stack::off_the_segment;
use crate::copy_bytes;
use crate::errno::{keep_errno, set_errno};
use libc::iovec;
use std::alloc::{Layout, alloc, dealloc};
use std::sync::atomic::Ordering;

/// Direction of the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the call to memory.
    In,
    /// From memory to the call.
    Out,
}

/// The rules for splitting a call.
#[derive(Clone, Copy)]
pub(super) struct SplitRules {
    pub(super) direction: Direction,
    /// The call is repeated after one that took all of its bytes.
    pub(super) goes_on: bool,
    /// Maximum bytes of a segment in one call.
    pub(super) piece_bytes: usize,
}

impl SplitRules {
    /// Whether the call is for a message, which is never split.
    pub(super) fn is_message(&self) -> bool {
        self.piece_bytes == MESSAGE_BYTES_MAX
    }
}

/// Size of a piece of a call that may be split, in bytes.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// More than any message that the kernel accepts, in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Files opened with O_DIRECT need buffers with this alignment, as far as the client's memory has it.
const ALIGNMENT: usize = 4096;

/// A range of memory, either all in the segment or all outside.
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
        // SAFETY: it was allocated with this layout.
        keep_errno(|| unsafe { dealloc(self.start, self.layout) });
    }
}

/// The vectors for one call.
struct Piece {
    vectors: Vec<iovec>,
    /// For each vector the segment's address of the bytes in the buffer, or 0.
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

/// Offset in the buffer of this part's bytes, with `used` bytes of it in use: large parts keep their alignment.
fn place(used: usize, part: &Part) -> usize {
    if part.len_bytes < ALIGNMENT { used } else { used + part.address.wrapping_sub(used) % ALIGNMENT }
}

impl Piece {
    /// The piece after `done` bytes of `memory`, as much as the buffer has room for.
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
    /// The buffer of the piece exists, and the segment's bytes may be loaded or stored.
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
            // SAFETY: the vector is a part of the buffer, which is private; the segment is valid, as this function
            // requires.
            unsafe {
                match direction {
                    Direction::In => copy_bytes(buffer, segment, len_bytes),
                    Direction::Out => copy_bytes(segment, buffer, len_bytes),
                }
            }
        }
    }
}

/// Replaces one call on `memory` by calls on ordinary memory. `call` gets vectors, and the number of bytes carried
/// before. It returns how many of the vectors' bytes it has carried, or a negative number with errno set. The result is
/// that of one call on all of the memory. It runs on a stack outside of the segment, since the heap has a lock, and the
/// kernel may read variables of `call`.
///
/// # Safety
/// The parts of the memory in the segment may be loaded from or stored to.
pub(super) unsafe fn carry(memory: &[iovec], rules: SplitRules, call: impl FnMut(&[iovec], usize) -> isize) -> isize {
    // SAFETY: as this function requires.
    off_the_segment(|| unsafe { carry_here(memory, rules, call) })
}

/// # Safety
/// As for [`carry`].
unsafe fn carry_here(memory: &[iovec], rules: SplitRules, mut call: impl FnMut(&[iovec], usize) -> isize) -> isize {
    let needed = || {
        let in_segment = parts(memory).filter(|part| part.is_in_segment);
        in_segment.fold(0, |used: usize, part| place(used, &part).saturating_add(part.len_bytes))
    };
    // The calls' own errno is kept.
    let Some(buffer) = keep_errno(|| Buffer::new(needed().clamp(1, rules.piece_bytes + ALIGNMENT))) else {
        set_errno(libc::ENOMEM);
        return -1;
    };
    let total = memory.iter().fold(0, |total: usize, vector| total.saturating_add(vector.iov_len));
    let mut done = 0;
    loop {
        let piece = keep_errno(|| Piece::after(done, memory, &buffer));
        if rules.direction == Direction::Out {
            // SAFETY: the segment may be loaded from.
            unsafe { piece.copy(Direction::Out, piece.len_bytes) };
        }
        let answer = call(&piece.vectors, done);
        let carried = usize::try_from(answer).unwrap_or_default();
        if rules.direction == Direction::In {
            // SAFETY: the segment may be stored to.
            unsafe { piece.copy(Direction::In, carried.min(piece.len_bytes)) };
        }
        // A datagram may be longer than the memory (MSG_TRUNC).
        done += carried;
        let is_over = carried != piece.len_bytes || done >= total || !rules.goes_on;
        keep_errno(|| drop(piece));
        if is_over {
            return if answer < 0 && done == 0 { answer } else { done as isize };
        }
    }
}
