//! Small gets of pages of a neighbour's home that no rank holds. The waiting thread copies the bytes from the home's
//! blocks, or reads them from its file, and wakes nobody. [`HomeBlocks`] has the rules.
//!
//! What cannot be read so is shipped: pages that a rank holds or nobody has written, and all pages of homes whose file
//! cannot be opened here.

#[cfg(doc)]
use vgasnet_memory::HomeBlocks;

use crate::request::{Copy, Part};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vgasnet_memory::{AddressSpace, Found, Piece, RankMemory};
use vgasnet_protocol::coherence::FrameId;
use vgasnet_protocol::{Rank, Spaces};
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::{BLOCK_BYTES, BlockingReader, FileSlot, IoDirection, IoOperation, SharedFile};

/// Maximum looks for a block that leaves its place while it is copied.
const LOOKS_MAX: usize = 4;

/// The files of neighbours, opened at their first use.
pub(crate) struct NeighbourReads {
    space: Arc<AddressSpace>,
    spaces: Spaces,
    /// By the index of the home's pool; `None` if it cannot be opened.
    files: Box<[OnceLock<Option<Reader>>]>,
}

type Reader = Arc<dyn BlockingReader>;

/// A part for a thread that waits for it.
pub struct NeighbourRead {
    part: Part,
    home: Rank,
    reads: Arc<NeighbourReads>,
}

/// The end of a [`NeighbourRead`].
#[must_use]
pub enum EndedNeighbourRead {
    /// The client has its bytes. The rank is to be woken, since neighbours have read many blocks for it.
    Done(Part, Option<Rank>),
    /// The part is to be shipped.
    Refused(Part, Rank),
}

/// What has become of a block.
enum Looked {
    /// Its bytes were copied from the home's memory.
    Copied,
    /// It has been read into this mailbox of the home.
    Read(usize),
}

impl NeighbourReads {
    /// For the homes of `spaces`.
    pub(crate) fn new(space: Arc<AddressSpace>, spaces: Spaces) -> Arc<NeighbourReads> {
        let files = std::iter::repeat_with(OnceLock::new).take(space.memories.pools()).collect();
        Arc::new(NeighbourReads { space, spaces, files })
    }

    /// Whether a part, which would be shipped to its page's home, may be read by a thread of this rank.
    pub(crate) fn may_read(&self, part: &Part, home: Rank) -> bool {
        let page = part.piece.page;
        matches!(part.copy, Copy::Get(_))
            && page.space.segment().is_some()
            && self.space.memories.get(home.index()).is_some_and(|memory| {
                !memory.shown.mailboxes.is_empty() && memory.shown.pages.is_plain(self.spaces.place_at_home(page))
            })
    }

    /// The read of a part for which [`NeighbourReads::may_read`].
    pub(crate) fn read(self: &Arc<Self>, part: Part, home: Rank) -> NeighbourRead {
        NeighbourRead { part, home, reads: Arc::clone(self) }
    }

    /// The file of a home, opened at the first use.
    fn file(&self, home: Rank) -> Option<&dyn BlockingReader> {
        let pool = self.space.memories.iter().position(|(rank, _)| rank == home.index())?;
        let open = || {
            let described = self.space.pool(pool).1.shown.file.get()?;
            SharedFile::from_numbers(described).open().ok()
        };
        self.files[pool].get_or_init(open).as_deref()
    }
}

impl NeighbourRead {
    /// Reads the bytes.
    pub fn run(self) -> EndedNeighbourRead {
        let NeighbourRead { part, home, reads } = self;
        match reads.copy_all(&part, home) {
            Some(is_to_wake) => EndedNeighbourRead::Done(part, is_to_wake.then_some(home)),
            None => EndedNeighbourRead::Refused(part, home),
        }
    }
}

impl NeighbourReads {
    /// Copies all bytes of a part. Returns whether the home is to be woken, or `None` if some could not be read.
    fn copy_all(&self, part: &Part, home: Rank) -> Option<bool> {
        let memory = self.space.memories.get(home.index())?;
        let place = self.spaces.place_at_home(part.piece.page);
        let version = memory.shown.pages.version(place);
        if !memory.shown.pages.is_plain(place) {
            return None;
        }
        let first = u64::from(place) * (self.space.page_bytes() / BLOCK_BYTES) as u64;
        let (mut is_to_wake, mut reads) = (false, 0);
        for (at, bytes, start) in blocks_of(&part.piece) {
            let block = first + at as u64;
            let from = |memory: *mut u8| memory.wrapping_add(bytes.start);
            // SAFETY: the memory is of a block, mapped until the process ends. Other bytes in it are noticed, and then
            // the part is not done. The client's memory is as long as the piece.
            let copy = |memory| unsafe { part.copy.run_at(from(memory), start, bytes.len()) };
            if let Looked::Read(mailbox) = self.look(memory, home, block, &copy)? {
                copy(block_memory(memory, memory.shown.mailboxes.offset_bytes(mailbox)));
                is_to_wake |= memory.shown.mailboxes.post(mailbox, block, version);
                reads += 1;
            }
        }
        stats::count(Row::NearReads);
        stats::add(Row::BlockReads, reads);
        stats::add(Row::DiskReadBytes, reads * BLOCK_BYTES as u64);
        Some(is_to_wake)
    }

    /// Copies a block in the home's memory, or reads it into a mailbox.
    fn look(&self, memory: &RankMemory, home: Rank, block: u64, copy: &dyn Fn(*mut u8)) -> Option<Looked> {
        for _ in 0..LOOKS_MAX {
            match memory.shown.index.find(block) {
                Found::Here(shown) => {
                    copy(block_memory(memory, shown.place * BLOCK_BYTES));
                    if memory.shown.index.is_still(shown) {
                        memory.shown.index.note_use(shown);
                        return Some(Looked::Copied);
                    }
                }
                Found::Nowhere => return self.read_block(memory, home, block).map(Looked::Read),
                Found::Unknown => return None,
            }
        }
        None
    }

    /// Reads a block of a home's file into a mailbox.
    fn read_block(&self, memory: &RankMemory, home: Rank, block: u64) -> Option<usize> {
        let (file, mailboxes) = (self.file(home)?, &memory.shown.mailboxes);
        let mailbox = mailboxes.take(block as usize % mailboxes.len().max(1))?;
        let operation = IoOperation {
            direction: IoDirection::Read,
            file: FileSlot::BACKING,
            offset_bytes: block * BLOCK_BYTES as u64,
            memory: block_memory(memory, mailboxes.offset_bytes(mailbox)),
            len_bytes: BLOCK_BYTES,
            token: 0,
            is_urgent: true,
        };
        // SAFETY: the mailbox is this thread's until it posts it or gives it back. The home may write the block
        // meanwhile; each byte is then the one before or the one after, as for any get beside a put.
        let result = unsafe { file.read(&operation) };
        if result.is_err() {
            mailboxes.give_back(mailbox);
            return None;
        }
        Some(mailbox)
    }
}

fn block_memory(memory: &RankMemory, offset_bytes: usize) -> *mut u8 {
    memory.pool.frame(FrameId(0)).wrapping_add(offset_bytes)
}

/// The blocks of a piece: their places in the page, the bytes in each, and where those begin in the piece.
fn blocks_of(piece: &Piece) -> impl Iterator<Item = (usize, Range<usize>, usize)> + use<> {
    let (from, to) = (piece.offset_bytes, piece.offset_bytes + piece.len_bytes);
    (from / BLOCK_BYTES..to.div_ceil(BLOCK_BYTES)).map(move |at| {
        let start = at * BLOCK_BYTES;
        let (first, end) = (from.max(start), to.min(start + BLOCK_BYTES));
        (at, first - start..end - start, first - from)
    })
}
