//! Whole runtimes with their own threads, on the simulated conduit and a storage in memory.

use crate::job::PAGE_BYTES;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use vgasnet::job::Runtime;
use vgasnet_conduit::{Rank, RegionSizes};
use vgasnet_memory::{self as memory, Segment};
use vgasnet_settings::UserError;
use vgasnet_settings::{Config, Machine};
use vgasnet_sim_conduit::{Hub, Settings};
use vgasnet_storage::{Busy, FileSlot, IoOperation, MemoryStorage, NamedFile, Storage};

const FRAMES: u32 = 2;

/// A storage in memory. Its doorbell rings all the time while operations are in flight. A real doorbell rings when they
/// complete.
struct Ringing {
    storage: MemoryStorage,
    doorbell: EventFd,
}

impl Ringing {
    fn new(storage: MemoryStorage) -> Ringing {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ringing { storage, doorbell: EventFd::from_value_and_flags(0, flags).expect("a descriptor is left") }
    }

    fn ring(&self) {
        self.doorbell.write(1).expect("its count is far from its end");
    }
}

impl Storage for Ringing {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        self.ring();
        // SAFETY: the memory is valid. It is left to the operation until the token comes back, and the inner storage
        // hands the token out.
        unsafe { self.storage.start(operation) }
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let _ = self.doorbell.read();
        self.storage.poll(sink);
        if self.storage.in_flight() > 0 {
            self.ring();
        }
    }

    fn in_flight(&self) -> usize {
        self.storage.in_flight()
    }

    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot {
        self.storage.add_file(file)
    }

    fn remove_file(&mut self, slot: FileSlot) {
        self.storage.remove_file(slot);
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.doorbell.as_fd())
    }
}

fn fail(call: &str, error: &UserError) -> ! {
    eprintln!("the job would end: {call}: {error}");
    std::process::abort()
}

/// The first address of a rank's segment.
pub fn base(rank: usize) -> usize {
    (rank + 1) << 32
}

/// A runtime for each rank, with segments of `pages` pages and pools of two.
pub fn start(settings: &Settings, cooperative: bool, pages: u32) -> Vec<Runtime> {
    let ranks = settings.hosts.len();
    let shapes = vec![memory::Shape { pages, frames: FRAMES }; ranks];
    let hub = Hub::new(settings.clone());
    let sizes = RegionSizes {
        pool_bytes: memory::all_frames(FRAMES, PAGE_BYTES) as usize * PAGE_BYTES,
        table_bytes: memory::table_bytes(shapes[0], PAGE_BYTES),
    };
    hub.attach_all(&vec![sizes; ranks]);
    let config = Config::from_env(std::iter::empty(), 1, &Machine { memory_available_bytes: 1 << 30 });
    let mut config = config.expect("the defaults are valid");
    (config.page_bytes, config.caching.cooperative) = (PAGE_BYTES as u64, cooperative);
    let segment = |rank| Segment { base: base(rank), size_bytes: pages as usize * PAGE_BYTES };
    let rank = |rank: usize| {
        let storage = MemoryStorage::new(u64::from(pages) * PAGE_BYTES as u64, 2, settings.seed + rank as u64);
        let conduit = Arc::new(hub.conduit(Rank(rank as u32)));
        let segments = (0..ranks).map(segment).collect();
        Runtime::new(conduit, &config, segments, &shapes, Box::new(Ringing::new(storage)), Arc::default(), fail)
    };
    (0..ranks).map(|at| rank(at).expect("a thread is left")).collect()
}
