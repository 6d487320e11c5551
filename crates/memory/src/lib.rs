//! The memory of a job as this rank sees it: the places of the segments, the frame of each page, and the frames mapped
//! in the segment. The hit path ends here, in atomics.

mod address_space;
mod block_mapper;
mod block_places;
mod dirty_blocks;
mod frames;
mod home_blocks;
mod large_pages;
mod loans;
mod mapped_frames;
mod mapped_order;
mod mapping_room;
mod neighbours;
mod open_pages;
mod page_mapper;
mod page_table;
mod pool;
mod rank_memory;
mod read_copies;
mod reservation;
mod scalar;
mod segment_view;
mod segments;
mod shortcut;
mod translations;
mod unmapping;
mod userfaultfd;

pub use address_space::{
    AddressSpace, Piece, Pieces, STAGING_FRAMES_MIN, Shape, all_frames, block_frames, memories, staging_frames,
    table_bytes,
};
pub use block_mapper::{BlockMapper, MAPPED_BLOCK_BYTES, RemapBlocks};
pub use dirty_blocks::{DIRTY_BLOCK_BYTES, DirtyBlocks, Extent};
pub use frames::Frames;
pub use home_blocks::{
    BlockIndex, FileOffer, Found, HomeBlocks, Mailboxes, PlainPages, SHOWN_BLOCK_BYTES, ShownBlock, mailboxes,
};
pub use large_pages::LargePages;
pub use loans::{Lender, Loans};
pub use mapping_room::MappingRoom;
pub use neighbours::Memories;
pub use page_mapper::{PageMapper, RemapMapper};
pub use page_table::{Closing, Directory, PageTable, Pinned};
pub use pool::Pool;
pub use rank_memory::{FILE_POINTERS, RankMemory};
pub use read_copies::{BlockCopier, READ_COPIES_MIN, ReadCopies};
pub use reservation::{Reservation, guard_end};
pub use scalar::Scalar;
pub use segment_view::{FRAMES_MIN, PageAccess, SegmentView, mapping_refused};
pub use segments::{STRIPE_BYTES, Segment, Segments, with_homes};
pub use shortcut::Shortcut;
pub use translations::{Put, Translations};
pub use userfaultfd::offers_copies;
