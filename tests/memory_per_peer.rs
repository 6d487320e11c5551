//! The memory of a rank for each rank of its job: at most 64 bytes, apart from buffers, for any number of ranks.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use vgasnet::am::{Destination, Envelope};
use vgasnet::job::Runtime;
use vgasnet::live_bytes;
use vgasnet_conduit::{
    Arrival, Busy, Capabilities, Conduit, ConduitError, Rank, Region, RegionSizes, Sleeper, Transfer, Urgency,
};
use vgasnet_memory::{Segment, Shape, table_bytes};
use vgasnet_protocol::active_message::Args;
use vgasnet_protocol::barrier::Name;
use vgasnet_settings::{Config, Machine};
use vgasnet_storage::MemoryStorage;

/// The promised limit for each peer, in bytes.
const PER_PEER_BYTES_MAX: usize = 64;

const PAGE_BYTES: usize = 64 << 10;
const SHAPE: Shape = Shape { pages: 4, frames: 4 };

/// The conduit of rank 0, with silent ranks on other hosts.
struct Lone {
    ranks: u32,
    pool: Region,
    table: Region,
}

/// Mapped memory. Only the touched part becomes resident. It stays mapped.
fn region(len_bytes: usize) -> Region {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new range wherever the kernel finds room disturbs no other memory.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len_bytes, protection, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    Region { address: base.expose_provenance(), len_bytes }
}

impl Conduit for Lone {
    fn name(&self) -> &str {
        "lone"
    }
    fn rank(&self) -> Rank {
        Rank(0)
    }
    fn ranks(&self) -> u32 {
        self.ranks
    }
    fn host_of(&self, rank: Rank) -> u32 {
        rank.0
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { peer_memory: false, wakes_on_arrival: true, second_mapping: false, signal_safe: true }
    }
    fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ConduitError> {
        Ok(vec![mine.to_vec(); self.ranks as usize])
    }
    fn attach(&self, _sizes: RegionSizes) -> Result<(), ConduitError> {
        Ok(())
    }
    fn pool(&self, rank: Rank) -> Option<Region> {
        (rank.0 == 0).then_some(self.pool)
    }
    fn table(&self, rank: Rank) -> Option<Region> {
        (rank.0 == 0).then_some(self.table)
    }
    fn message_bytes_max(&self) -> usize {
        1024
    }
    fn send(&self, _to: Rank, _head: &[u8], _body: &[u8], _urgency: Urgency) -> Result<(), Busy> {
        Ok(())
    }
    fn put(&self, _transfer: &Transfer) -> Result<(), Busy> {
        Ok(())
    }
    fn get(&self, _transfer: &Transfer) -> Result<(), Busy> {
        Ok(())
    }
    fn poll(&self, _sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        false
    }
    fn has_arrivals(&self) -> bool {
        false
    }
    fn set_driving(&self, _driving: bool) -> bool {
        false
    }
    fn sleep(&self, _: Sleeper, _: Option<BorrowedFd<'_>>, timeout: Option<Duration>, _: &dyn Fn() -> bool) {
        std::thread::park_timeout(timeout.unwrap_or(Duration::from_secs(3600)));
    }
    fn wake(&self, _rank: Rank) {}
    fn wake_helper(&self) {}
    fn close(&self) {}
    fn note_exit(&self, _: i32) -> bool {
        true
    }

    fn exit(&self, status: i32) -> ! {
        std::process::exit(status)
    }
}

/// A rank after attaching, a message to every other rank, and an arrival at a barrier.
fn busy_rank(ranks: u32) -> Runtime {
    let shapes = vec![SHAPE; ranks as usize];
    let pool = region(vgasnet_memory::all_frames(SHAPE.frames, PAGE_BYTES) as usize * PAGE_BYTES);
    let table = region(table_bytes(SHAPE, PAGE_BYTES));
    let config = Config::from_env(std::iter::empty(), 1, &Machine { memory_available_bytes: 1 << 30 });
    let config = Config { page_bytes: PAGE_BYTES as u64, ..config.expect("the defaults are valid") };
    let size_bytes = SHAPE.pages as usize * PAGE_BYTES;
    let segments = (0..ranks as usize).map(|rank| Segment { base: (rank + 1) << 32, size_bytes }).collect();
    let storage = Box::new(MemoryStorage::new(size_bytes as u64, 2, 1));
    let conduit = Arc::new(Lone { ranks, pool, table });
    let runtime =
        Runtime::new(conduit, &config, segments, &shapes, storage, Arc::default(), |_, line| panic!("{line}"));
    let runtime = runtime.expect("a thread is left");
    let args = Args::new(&[1, 2, 3]).expect("they are few");
    let short =
        Envelope { handler: 200, payload: [].as_ptr(), payload_bytes: 0, destination: Destination::Nowhere, args };
    for rank in 1..ranks {
        // SAFETY: there is no payload.
        unsafe { runtime.am().request(rank, &short) }.expect("the first one has credit");
    }
    runtime.driver().barrier_notify(Name::Anonymous).expect("the first one");
    runtime
}

#[test]
fn at_most_64_bytes_for_each_rank_of_the_job() {
    // The first runtime allocates the memory shared by all.
    drop(busy_rank(2));
    let cost = |ranks| {
        let before = live_bytes();
        let runtime = busy_rank(ranks);
        let bytes = live_bytes() - before;
        std::mem::forget(runtime);
        bytes
    };
    let (at_100, at_1100, at_4100) = (cost(100), cost(1100), cost(4100));
    let (first, second) = ((at_1100 - at_100) / 1000, (at_4100 - at_1100) / 3000);
    println!("bytes for each rank of the job: {first} up to 1,100 ranks, {second} up to 4,100");
    assert!(first <= PER_PEER_BYTES_MAX && second <= PER_PEER_BYTES_MAX);
    // With quadratic growth, more ranks would cost more each.
    assert!(second <= first + first / 2 + 16, "{first} bytes, then {second}");
}
