//! For unit tests: an address space in memory of this process.

use vgasnet_conduit::Region;
use vgasnet_memory::{AddressSpace, DirtyBlocks, HomeBlocks, Memories, PageTable, Pool, RankMemory, Segment, Segments};
use vgasnet_protocol::Rank;

/// The only rank with memory here.
pub(crate) const OWN: Rank = Rank(0);

/// A space with a pool of this many frames and its tables.
pub(crate) fn space(frames: u32, page_bytes: usize) -> AddressSpace {
    let region = |len_bytes: usize| {
        let memory = vec![0_u128; (len_bytes + page_bytes).div_ceil(16)].leak();
        Region { address: memory.as_mut_ptr().expose_provenance().next_multiple_of(page_bytes), len_bytes }
    };
    let pool = region(frames as usize * page_bytes);
    let memory = RankMemory {
        table: PageTable::new(region(PageTable::bytes(frames)), frames),
        pool: Pool::new(pool, region(page_bytes), page_bytes),
        hints: region(page_bytes),
        blocks: DirtyBlocks::new(region(16 * page_bytes), frames, page_bytes),
        meeting: region(page_bytes),
        file_pointers: region(page_bytes),
        shown: HomeBlocks::default(),
    };
    let segments = [Segment { base: 1 << 40, size_bytes: 1000 * page_bytes }];
    AddressSpace::new(OWN, Segments::new(segments), Memories::new([(OWN.0, memory)]))
}
