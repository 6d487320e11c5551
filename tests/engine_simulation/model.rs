//! The model: the newest bytes of every segment, and of the shared files.

use crate::job::PAGE_BYTES;
use std::collections::BTreeMap;
use vgasnet_engine::request::Copy;
use vgasnet_memory::{Piece, RankMemory};
use vgasnet_protocol::coherence::{FrameId, PageId};
use vgasnet_protocol::{Rank, Space, Spaces, Stripes};

/// The newest bytes of every page.
pub struct Model {
    spaces: BTreeMap<Space, Vec<Box<[u8; PAGE_BYTES]>>>,
    segments: Spaces,
    /// The homes of the open files.
    stripes: BTreeMap<Space, Stripes>,
    /// Some rank breaks the protocol, so bytes may have any value.
    pub is_tainted: bool,
}

impl Model {
    /// Segments of the first ranks, all zeros.
    pub fn new(segments: Spaces, ranks: u32) -> Model {
        let of_segments = (0..ranks).map(|rank| Space::of_segment(Rank(rank)));
        let spaces = of_segments.map(|space| (space, zeros(segments.pages(space)))).collect();
        Model { spaces, segments, stripes: BTreeMap::new(), is_tainted: false }
    }

    /// Adds an open file. It has these bytes, and zeros up to the end of the pages.
    pub fn add_file(&mut self, space: Space, stripes: Stripes, bytes: &[u8], pages: u32) {
        let mut its = zeros(pages);
        its.iter_mut()
            .zip(bytes.chunks(PAGE_BYTES))
            .for_each(|(page, bytes)| page[..bytes.len()].copy_from_slice(bytes));
        self.spaces.insert(space, its);
        self.stripes.insert(space, stripes);
    }

    /// Shortens a file to this many bytes.
    pub fn cut_file(&mut self, space: Space, bytes: u64) {
        for (index, page) in self.spaces.get_mut(&space).expect("it is known").iter_mut().enumerate() {
            let kept = (bytes as usize).saturating_sub(index * PAGE_BYTES).min(PAGE_BYTES);
            page[kept..].fill(0);
        }
    }

    /// Removes a closed file.
    pub fn remove_file(&mut self, space: Space) {
        self.spaces.remove(&space);
        self.stripes.remove(&space);
    }

    /// The home of a page.
    pub fn home_of(&self, page: PageId) -> usize {
        let home = match page.space.segment() {
            Some(_) => self.segments.home(page),
            None => self.stripes[&page.space].home(page.index),
        };
        home.index()
    }

    /// The place of a segment's page in the backing file of its home.
    pub fn place_of(&self, page: PageId) -> u32 {
        self.segments.place_at_home(page)
    }

    /// The page at a place of a home's backing file.
    pub fn page_at(&self, home: usize, place: u32) -> PageId {
        self.segments.page_at_place(Rank(home as u32), place)
    }

    /// All bytes of a space.
    pub fn bytes(&self, space: Space) -> Vec<u8> {
        self.spaces[&space].iter().flat_map(|page| page.iter().copied()).collect()
    }

    pub fn page(&self, page: PageId) -> &[u8; PAGE_BYTES] {
        &self.spaces[&page.space][page.index as usize]
    }

    /// Carries a copy out in a frame, compares the bytes it read, and records the bytes it wrote.
    ///
    /// # Safety
    /// The page in the frame is pinned for [`Copy::access`], and the piece is inside that page. The client's memory is
    /// valid for the length of the piece.
    pub unsafe fn copy(&mut self, copy: &Copy, memory: &RankMemory, frame: FrameId, piece: &Piece) {
        // SAFETY: the page is pinned for the copy, and the client's memory is as long as the piece.
        unsafe {
            copy.run(memory, frame, piece);
            self.note(copy, piece);
        }
    }

    /// Compares the bytes read by a finished copy, and records the bytes it wrote.
    ///
    /// # Safety
    /// The client's memory is valid for the length of the piece.
    pub unsafe fn note(&mut self, copy: &Copy, piece: &Piece) {
        let range = piece.offset_bytes..piece.offset_bytes + piece.len_bytes;
        let space = self.spaces.get_mut(&piece.page.space).expect("the space is known");
        let newest = &mut space[piece.page.index as usize][range];
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
            Copy::MakeResident(_) | Copy::Pin(_) | Copy::ReadAhead => {}
        }
    }
}

fn zeros(pages: u32) -> Vec<Box<[u8; PAGE_BYTES]>> {
    (0..pages).map(|_| Box::new([0; PAGE_BYTES])).collect()
}
