//! Small gets of pages of a neighbour's home that no rank holds. The waiting thread copies the bytes from the home's
//! blocks, or reads them from its file, and wakes nobody. [`HomeBlocks`] has the rules.
//!
//! What cannot be read so is shipped: pages that a rank holds or nobody has written, and all pages of homes whose file
//! cannot be opened here.

#[cfg(doc)]
use vgasnet_memory::HomeBlocks;

use crate::request::{Copy, Part};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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
    /// By the index of the home's pool; `None` if it can never be opened.
    files: Box<[OnceLock<Option<Reader>>]>,
    /// Held while a file is opened.
    opening: Mutex<()>,
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

impl NeighbourReads {
    /// For the homes of `spaces`.
    pub(crate) fn new(space: Arc<AddressSpace>, spaces: Spaces) -> Arc<NeighbourReads> {
        let files = std::iter::repeat_with(OnceLock::new).take(space.memories.pools()).collect();
        Arc::new(NeighbourReads { space, spaces, files, opening: Mutex::default() })
    }

    /// Whether a part, which would be shipped to its page's home, may be read by a thread of this rank.
    pub(crate) fn may_read(&self, part: &Part, home: Rank) -> bool {
        let page = part.piece.page;
        if !matches!(part.copy, Copy::Get(_)) || page.space.segment().is_none() {
            return false;
        }
        let Some((pool, memory)) = self.memory(home) else { return false };
        let shown = &memory.shown;
        let is_closed = matches!(self.files[pool].get(), Some(None));
        !is_closed && !shown.mailboxes.is_empty() && shown.pages.is_plain(self.spaces.place_at_home(page))
    }

    /// Whether a home of this host has the first block of a piece in its file only.
    pub(crate) fn lacks_block(&self, piece: &Piece, home: Rank) -> bool {
        let each = (self.space.page_bytes() / BLOCK_BYTES) as u64;
        let place = self.spaces.place_at_home(piece.page);
        let block = u64::from(place) * each + (piece.offset_bytes / BLOCK_BYTES) as u64;
        self.memory(home).is_some_and(|(_, memory)| {
            memory.shown.pages.is_plain(place) && memory.shown.index.find(block) == Found::Nowhere
        })
    }

    /// The read of a part for which [`NeighbourReads::may_read`].
    pub(crate) fn read(self: &Arc<Self>, part: Part, home: Rank) -> NeighbourRead {
        NeighbourRead { part, home, reads: Arc::clone(self) }
    }

    /// The index of a home's pool, and its memory, if it is mapped here.
    fn memory(&self, home: Rank) -> Option<(usize, &RankMemory)> {
        let pool = self.space.memories.find(home.index())?;
        Some((pool, self.space.pool(pool).1))
    }

    /// The file of the home with this pool, opened at the first use.
    fn file(&self, pool: usize) -> Option<&dyn BlockingReader> {
        let file = &self.files[pool];
        if file.get().is_none() {
            let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(opened) = file.get() {
                return opened.as_deref();
            }
            let described = self.space.pool(pool).1.shown.file.get()?;
            let opened = match SharedFile::from_numbers(described).open() {
                Ok(opened) => Some(opened),
                Err(error) if is_transient(&error) => return None,
                Err(_) => None,
            };
            let is_first = file.set(opened).is_ok();
            debug_assert!(is_first, "one thread opens a file");
        }
        file.get()?.as_deref()
    }
}

/// Whether another attempt may do: there are no descriptors, or there is no memory.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR))
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

/// The home of a part, as this rank sees it.
struct Neighbour<'a> {
    pool: usize,
    memory: &'a RankMemory,
    /// The version of the page before its bytes are read.
    version: u32,
}

impl NeighbourReads {
    /// Copies all bytes of a part. Returns whether the home is to be woken, or `None` if some could not be read. The part
    /// is then shipped, which wakes the home.
    fn copy_all(&self, part: &Part, home: Rank) -> Option<bool> {
        let (pool, memory) = self.memory(home)?;
        let place = self.spaces.place_at_home(part.piece.page);
        let neighbour = Neighbour { pool, memory, version: memory.shown.pages.version(place) };
        if !memory.shown.pages.is_plain(place) {
            return None;
        }
        let first = u64::from(place) * (self.space.page_bytes() / BLOCK_BYTES) as u64;
        let mut is_to_wake = false;
        for (at, bytes, start) in blocks_of(&part.piece) {
            // SAFETY: the memory is of a block, mapped until the process ends. Other bytes in it are noticed, and then
            // the part is not done. The client's memory is as long as the piece.
            let copy = |memory: *mut u8| unsafe { part.copy.run_at(memory.add(bytes.start), start, bytes.len()) };
            is_to_wake |= self.copy_block(&neighbour, first + at as u64, &copy)?;
        }
        stats::count(Row::NearReads);
        Some(is_to_wake)
    }

    /// Copies a block in the home's memory or in a mailbox, or reads it into one. Returns whether the home is to be
    /// woken.
    fn copy_block(&self, neighbour: &Neighbour<'_>, block: u64, copy: &dyn Fn(*mut u8)) -> Option<bool> {
        let Neighbour { memory, version, .. } = *neighbour;
        let (index, mailboxes) = (&memory.shown.index, &memory.shown.mailboxes);
        for _ in 0..LOOKS_MAX {
            match index.find(block) {
                Found::Here(shown) => {
                    copy(block_memory(memory, shown.place * BLOCK_BYTES));
                    if index.is_still(shown) {
                        index.note_use(shown);
                        return Some(false);
                    }
                }
                Found::Nowhere => {
                    let copy_posted = |mailbox| copy(block_memory(memory, mailboxes.offset_bytes(mailbox)));
                    let posted = mailboxes.with_posted(block, version, copy_posted);
                    return posted.or_else(|| self.read_block(neighbour, block, copy));
                }
                Found::Unknown => return None,
            }
        }
        None
    }

    /// Reads a block of a home's file into a mailbox, and posts it. Returns whether the home is to be woken.
    fn read_block(&self, neighbour: &Neighbour<'_>, block: u64, copy: &dyn Fn(*mut u8)) -> Option<bool> {
        let Neighbour { pool, memory, version } = *neighbour;
        let (file, mailboxes) = (self.file(pool)?, &memory.shown.mailboxes);
        let mailbox = mailboxes.take(block)?;
        let bytes = block_memory(memory, mailboxes.offset_bytes(mailbox));
        let operation = IoOperation {
            direction: IoDirection::Read,
            file: FileSlot::BACKING,
            offset_bytes: block * BLOCK_BYTES as u64,
            memory: bytes,
            len_bytes: BLOCK_BYTES,
            token: 0,
            is_urgent: true,
        };
        // SAFETY: the mailbox is this thread's until it posts it or gives it back. The home may write the block
        // meanwhile; each byte is then the one before or the one after, as for any get beside a put.
        if unsafe { file.read(&operation) }.is_err() {
            mailboxes.give_back(mailbox);
            return None;
        }
        stats::count(Row::BlockReads);
        stats::add(Row::DiskReadBytes, BLOCK_BYTES as u64);
        copy(bytes);
        Some(mailboxes.post(mailbox, block, version))
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
