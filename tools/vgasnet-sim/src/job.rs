//! A job: its ranks, and what happens to them in time.

use crate::conduit::Memory;
use crate::machine::Machine;
use crate::program::Program;
use crate::rank::{Common, VirtualRank};
use crate::world::{Happening, Nanos, World};
use std::sync::Arc;
use vgasnet::engine::Manner;
use vgasnet::memory::{Segment, Shape, table_bytes};
use vgasnet_conduit::{Rank, Region};

/// Where the segments would be.
const SEGMENTS_AT: usize = 1 << 45;

pub struct Job {
    pub world: Arc<World>,
    pub ranks: Vec<VirtualRank>,
}

impl Job {
    /// Ranks with segments of so many pages.
    pub fn new(machine: &Machine, ranks: u32, pages_each: u32, manner: Manner) -> Job {
        let page_bytes = machine.node.page as usize;
        let shape = Shape { pages: pages_each, frames: (machine.node.pool / machine.node.page) as u32 };
        let shapes = vec![shape; ranks as usize];
        let world = Arc::new(World::new(machine.clone(), ranks));
        let pool_bytes = vgasnet::memory::all_frames(shape.frames, page_bytes) as usize * page_bytes;
        let memories = (0..ranks)
            .map(|_| Memory { pool: addresses(pool_bytes), table: zeros(table_bytes(shape, page_bytes)) });
        let size_bytes = pages_each as usize * page_bytes;
        let segment = |rank: usize| Segment { base: SEGMENTS_AT + rank * size_bytes, size_bytes };
        let segments = (0..ranks as usize).map(segment).collect();
        let common =
            Common { world: Arc::clone(&world), memories: memories.collect(), shapes, manner, segments };
        let ranks = (0..ranks).map(|rank| VirtualRank::new(&common, Rank(rank))).collect();
        Job { world, ranks }
    }

    /// Runs a program on each rank, until all have ended and written back what they have. Returns how long that took.
    ///
    /// # Errors
    /// An engine has refused to go on, or nothing happens any more.
    pub fn run(&mut self, program: impl Fn(u32) -> Program) -> Result<Nanos, String> {
        let begun = self.world.now();
        for (rank, node) in self.ranks.iter_mut().enumerate() {
            node.begin(program(rank as u32));
        }
        self.until(|ranks| ranks.iter().all(VirtualRank::is_done))?;
        Ok(self.ranks.iter().map(|rank| rank.ended).fold(begun, Nanos::max) - begun)
    }

    fn until(&mut self, is_done: impl Fn(&[VirtualRank]) -> bool) -> Result<(), String> {
        while !is_done(&self.ranks) {
            let Some(happening) = self.world.next() else { return Err("nothing happens any more".into()) };
            match happening {
                Happening::Incoming { node, bytes, to, arrived, after } => {
                    self.world.receive(node, bytes, to, arrived, after);
                }
                Happening::Arrival { to, arrived } => self.world.deliver(to, arrived),
                Happening::Asked { by, transfer } => self.world.answer(by, &transfer),
                Happening::Disk { rank, token } => self.world.end_disk(rank, token),
                Happening::Drive(rank) => self.ranks[rank.index()].drive()?,
                Happening::Client(rank) => self.ranks[rank.index()].go_on()?,
            }
        }
        Ok(())
    }
}

/// Addresses for a pool. The engine looks at one byte, and asks for large pages, which the system then refuses.
fn addresses(len_bytes: usize) -> Region {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new range wherever the kernel finds room disturbs no other memory.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len_bytes, libc::PROT_READ, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED, "there is room for addresses");
    // SAFETY: the range was just made.
    unsafe { libc::madvise(base, len_bytes, libc::MADV_NOHUGEPAGE) };
    Region { address: base.expose_provenance(), len_bytes }
}

/// Memory of zeros that stays as long as the process.
fn zeros(len_bytes: usize) -> Region {
    let words = vec![[0_u64; 8]; len_bytes.div_ceil(64) + 64].leak();
    let address = words.as_mut_ptr().expose_provenance().next_multiple_of(4096);
    Region { address, len_bytes }
}
