//! Moves bytes between a program's memory and a file seen through a view.

use crate::cached_files::CachedFile;
use crate::layout::Kept;
use crate::vgasnet::{Failed, Piece};
use crate::view::{Extent, View};

/// Maximum number of places and pieces for one call of vgasnet, unless all have to be one step.
const ENTRIES_MAX: usize = 1 << 14;

/// The memory of a read or a write: elements of a datatype. It is the access's until the access is complete.
#[derive(Clone, Debug)]
pub struct Memory {
    is_write: bool,
    /// Address of the first element.
    base: usize,
    count: u64,
    layout: Kept,
}

impl Memory {
    /// Memory of `count` elements from `base` on; `None` if the number of bytes overflows.
    ///
    /// # Safety
    /// MPI's caller has passed these elements to a write if `is_write`, else to a read. Until it is complete, by MPI's
    /// rules, the elements of a write are readable, and nobody writes them; the elements of a read are writable, and
    /// nobody else accesses them. The value is used no longer.
    pub unsafe fn new(is_write: bool, (base, count): (usize, u64), layout: Kept) -> Option<Memory> {
        count.checked_mul(layout.size).is_some().then_some(Memory { is_write, base, count, layout })
    }

    /// Whether it is written to a file.
    pub fn is_write(&self) -> bool {
        self.is_write
    }

    /// Bytes of data.
    pub fn bytes(&self) -> u64 {
        self.count * self.layout.size
    }

    fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let piece =
            |address: i64, len: u64| Piece { address: self.base.wrapping_add(address as usize), len: len as usize };
        self.layout.elements(self.count).map(move |run| piece(run.at, run.len))
    }
}

/// A move of bytes between memory and a file seen through a view.
#[derive(Clone, Debug)]
pub struct Transfer<'a> {
    pub view: &'a View,
    pub position: u64,
    pub memory: Memory,
}

impl Transfer<'_> {
    /// The place and the piece, if there is exactly one of each.
    #[inline]
    pub fn block(&self) -> Option<(Extent, Piece)> {
        let bytes = self.memory.bytes();
        let run = self.memory.layout.block_of(self.memory.count)?;
        let address = self.memory.base.wrapping_add(run.at as usize);
        Some((self.view.block(self.position, bytes)?, Piece { address, len: bytes as usize }))
    }

    /// Performs the transfer. Returns the number of bytes moved.
    #[inline]
    pub fn run(&self, file: &CachedFile) -> Result<u64, Failed> {
        let bytes = self.memory.bytes();
        if bytes == 0 {
            return Ok(0);
        }
        let Some((place, piece)) = self.block() else { return self.run_in_batches(file) };
        // SAFETY: the piece is the whole memory.
        unsafe { self.move_bytes(file, &[place], &[piece], bytes) }
    }

    /// Moves `bytes` bytes between places and pieces. Returns the number of bytes moved.
    ///
    /// # Safety
    /// The pieces are parts of the memory.
    #[inline]
    unsafe fn move_bytes(
        &self,
        file: &CachedFile,
        places: &[Extent],
        pieces: &[Piece],
        bytes: u64,
    ) -> Result<u64, Failed> {
        // SAFETY: the pieces are of the memory, as the caller promises. By the promise to `Memory::new` it is readable
        // if the access is a write, else writable, and nobody is in the way: the access is not complete before this
        // returns.
        unsafe {
            if self.memory.is_write { file.write(places, pieces).map(|()| bytes) } else { file.read(places, pieces) }
        }
    }

    fn run_in_batches(&self, file: &CachedFile) -> Result<u64, Failed> {
        let bytes = self.memory.bytes();
        let entries_max = if file.is_atomic() { usize::MAX } else { ENTRIES_MAX };
        let mut batches = Batches {
            places: self.view.places(self.position, bytes),
            pieces: self.memory.pieces(),
            place: None,
            piece: None,
            entries_max,
        };
        let (mut places, mut pieces) = (Vec::new(), Vec::new());
        let mut moved = 0;
        while let Some(wanted) = batches.next(&mut places, &mut pieces) {
            // SAFETY: the batch has pieces of the memory, or parts of them.
            let done = unsafe { self.move_bytes(file, &places, &pieces, wanted)? };
            moved += done;
            if done < wanted {
                break;
            }
        }
        Ok(moved)
    }
}

/// Splits both lists into batches with equal numbers of bytes in places and pieces.
struct Batches<P, M> {
    places: P,
    pieces: M,
    /// The remainders of split entries.
    place: Option<Extent>,
    piece: Option<Piece>,
    entries_max: usize,
}

impl<P: Iterator<Item = Extent>, M: Iterator<Item = Piece>> Batches<P, M> {
    /// Fills both lists with the next batch. Returns its number of bytes.
    fn next(&mut self, places: &mut Vec<Extent>, pieces: &mut Vec<Piece>) -> Option<u64> {
        places.clear();
        pieces.clear();
        let mut bytes = 0;
        // Whether the remainder continues the last entry.
        let (mut goes_on, mut goes_on_here) = (false, false);
        while places.len().max(pieces.len()) < self.entries_max {
            let (Some(place), Some(piece)) =
                (self.place.take().or_else(|| self.places.next()), self.piece.take().or_else(|| self.pieces.next()))
            else {
                break;
            };
            let len = place.len.min(piece.len as u64);
            match places.last_mut() {
                Some(last) if goes_on => last.len += len,
                _ => places.push(Extent { len, ..place }),
            }
            match pieces.last_mut() {
                Some(last) if goes_on_here => last.len += len as usize,
                _ => pieces.push(Piece { len: len as usize, ..piece }),
            }
            (goes_on, goes_on_here) = (len < place.len, len < piece.len as u64);
            self.place = goes_on.then(|| Extent { offset: place.offset + len, len: place.len - len });
            let tail = |piece: Piece| Piece { address: piece.address + len as usize, len: piece.len - len as usize };
            self.piece = goes_on_here.then(|| tail(piece));
            bytes += len;
        }
        (bytes > 0).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs of file offset and memory address that all batches together give.
    fn pairs(places: &[(u64, u64)], pieces: &[(usize, usize)], entries_max: usize) -> Vec<(u64, usize)> {
        let mut batches = Batches {
            places: places.iter().map(|(offset, len)| Extent { offset: *offset, len: *len }),
            pieces: pieces.iter().map(|(address, len)| Piece { address: *address, len: *len }),
            place: None,
            piece: None,
            entries_max,
        };
        let (mut all, mut of_file, mut of_memory) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(bytes) = batches.next(&mut of_file, &mut of_memory) {
            assert!(of_file.len().max(of_memory.len()) <= entries_max);
            let file: Vec<u64> = of_file.iter().flat_map(|place| place.offset..place.offset + place.len).collect();
            let memory: Vec<usize> =
                of_memory.iter().flat_map(|piece| piece.address..piece.address + piece.len).collect();
            assert_eq!((file.len(), memory.len()), (bytes as usize, bytes as usize));
            all.extend(file.into_iter().zip(memory));
        }
        all
    }

    #[test]
    fn batches_have_all_bytes_in_order() {
        let (places, pieces) = ([(0, 10), (20, 1), (30, 9), (50, 4)], [(1000, 3), (2000, 14), (3000, 1), (4000, 6)]);
        let whole = pairs(&places, &pieces, usize::MAX);
        assert_eq!(whole.len(), 24);
        assert_eq!((whole[3], whole[10], whole[23]), ((3, 2000), (20, 2007), (53, 4005)));
        for entries_max in 1..6 {
            assert_eq!(pairs(&places, &pieces, entries_max), whole);
        }
    }

    #[test]
    fn entries_that_go_on_are_one() {
        let mut batches = Batches {
            places: [Extent { offset: 0, len: 8 }].into_iter(),
            pieces: (0..8).map(|at| Piece { address: 16 * at, len: 1 }),
            place: None,
            piece: None,
            entries_max: 100,
        };
        let (mut places, mut pieces) = (Vec::new(), Vec::new());
        assert_eq!(batches.next(&mut places, &mut pieces), Some(8));
        assert_eq!((places, pieces.len()), (vec![Extent { offset: 0, len: 8 }], 8));
    }
}
