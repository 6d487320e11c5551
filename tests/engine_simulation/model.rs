//! The model: the newest bytes of every segment.

use crate::job::PAGE_BYTES;
use vgasnet::memory::{Piece, RankMemory};
use vgasnet::request::Copy;
use vgasnet_protocol::coherence::{FrameId, PageId};

/// The newest bytes of every page, one list a rank.
pub struct Model {
    pages: Vec<Vec<Box<[u8; PAGE_BYTES]>>>,
    /// Some rank does not keep the protocol: bytes may be any.
    pub is_tainted: bool,
}

/// The rank whose segment has the page.
pub fn home_of(page: PageId) -> usize {
    page.space.segment().expect("all pages are of segments").index()
}

impl Model {
    /// Segments with these numbers of pages, all zeros.
    pub fn new(pages: impl Iterator<Item = u32>) -> Model {
        let segment = |pages| (0..pages).map(|_| Box::new([0; PAGE_BYTES])).collect();
        Model { pages: pages.map(segment).collect(), is_tainted: false }
    }

    pub fn page(&self, page: PageId) -> &[u8; PAGE_BYTES] {
        &self.pages[home_of(page)][page.index as usize]
    }

    /// Carries a copy out in a frame, compares the bytes that it read, and notes those that it wrote.
    ///
    /// # Safety
    /// The page in the frame is pinned for [`Copy::access`], and the piece is inside that page. The client's memory is
    /// valid for as many bytes as the piece has.
    pub unsafe fn copy(&mut self, copy: &Copy, memory: &RankMemory, frame: FrameId, piece: &Piece) {
        // SAFETY: the page is pinned for the copy, and the client's memory is as long as the piece.
        unsafe {
            copy.run(memory, frame, piece);
            self.note(copy, piece);
        }
    }

    /// A copy was carried out: compares the bytes that it read, and notes those that it wrote.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes as the piece has.
    pub unsafe fn note(&mut self, copy: &Copy, piece: &Piece) {
        let range = piece.offset_bytes..piece.offset_bytes + piece.len_bytes;
        let newest = &mut self.pages[home_of(piece.page)][piece.page.index as usize][range];
        // SAFETY: the client's memory is as long as the piece, and no other thread uses it.
        let client = |memory: *const u8| unsafe { std::slice::from_raw_parts(memory, piece.len_bytes) };
        match copy {
            Copy::Get(to) => {
                let at = client(*to).iter().zip(newest.iter()).position(|(got, new)| got != new);
                assert!(self.is_tainted || at.is_none(), "old bytes were read at {at:?} of {piece:?}");
            }
            Copy::Put(from) => newest.copy_from_slice(client(*from)),
            Copy::PutOwned(bytes, _) => newest.copy_from_slice(bytes),
            Copy::Set(byte) => newest.fill(*byte),
            Copy::Atomic(atomic) => {
                let number = |bytes: &[u8]| match bytes.first_chunk() {
                    Some(all) => u64::from_ne_bytes(*all),
                    None => u64::from(u32::from_ne_bytes(bytes.try_into().expect("numbers are of 4 or 8 bytes"))),
                };
                let old = number(newest);
                assert!(self.is_tainted || number(client(atomic.old)) == old, "an old number was changed: {piece:?}");
                if let Some(new) = atomic.op.apply(old, atomic.operands, piece.len_bytes) {
                    newest.copy_from_slice(&new.to_ne_bytes()[..piece.len_bytes]);
                }
            }
            Copy::MakeResident(_) | Copy::Pin(_) => {}
        }
    }
}
