//! What the neighbours of a home see of its file, so that their small gets need no message ([`HomeBlocks`]).

use super::StorageServer;
use vgasnet_memory::{AddressSpace, HomeBlocks, SHOWN_BLOCK_BYTES};
use vgasnet_protocol::coherence::{FrameId, PageId};
use vgasnet_storage::{BLOCK_BYTES, FileSlot, SharedFile, Storage};

const _: () = assert!(SHOWN_BLOCK_BYTES == BLOCK_BYTES);

/// Offers the backing file to neighbours, if other processes can open it. Returns what they see, and how many of
/// `slots` blocks from `first_offset_bytes` of the pool's memory on are left: the others are mailboxes.
pub(super) fn offer(
    space: &AddressSpace,
    storage: &dyn Storage,
    first_offset_bytes: usize,
    slots: usize,
) -> (HomeBlocks, usize) {
    let shown = space.own.shown;
    let file = storage.reader(FileSlot::BACKING).and_then(|reader| reader.shared());
    let Some(file) = file.filter(|_| space.memories.pools() > 1 && !shown.mailboxes.is_empty()) else {
        return (HomeBlocks::default(), slots);
    };
    shown.file.give(SharedFile::to_numbers(file));
    let before_mailboxes = (shown.mailboxes.offset_bytes(0) - first_offset_bytes) / BLOCK_BYTES;
    (shown, slots.min(before_mailboxes))
}

impl StorageServer {
    /// Shows a page of this home to neighbours, or ceases to, before another rank may hold it.
    pub(crate) fn show_page(&mut self, page: PageId, is_plain: bool) {
        if let Some(place) = self.files.try_number(page).filter(|place| place.is_of_segment()) {
            self.shown.pages.set(place.index(), is_plain);
        }
    }

    /// For checks: whether neighbours see a page of this home.
    pub(crate) fn is_shown(&self, page: PageId) -> bool {
        let place = self.files.try_number(page).filter(|place| place.is_of_segment());
        place.is_some_and(|place| self.shown.pages.is_plain(place.index()))
    }

    /// Takes in the blocks that neighbours have read. Returns their number.
    pub(crate) fn take_in_blocks(&mut self) -> u32 {
        let HomeBlocks { pages, mailboxes, .. } = self.shown;
        if !mailboxes.has_posted() {
            return 0;
        }
        let (memory, mut count) = (self.space.own.pool.frame(FrameId(0)), 0);
        mailboxes.collect(|mailbox, block, version| {
            let place = self.blocks.page_of(block);
            if pages.version(place.index()) == version && pages.is_plain(place.index()) {
                debug_assert!(self.operations.of_page(place).is_none(), "no rank is about to hold a plain page");
                let from = memory.wrapping_add(mailboxes.offset_bytes(mailbox));
                count += u32::from(self.blocks.take_in(block, from));
            }
        });
        count
    }
}
