//! Whole runtimes with their own threads on the simulated conduit: nothing is lost, late or slept through when client
//! threads lead, follow and hand over to the helper.

use crate::job::PAGE_BYTES;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use vgasnet::barrier::Name;
use vgasnet::config::{Config, Machine};
use vgasnet::error::UserError;
use vgasnet::ops::{Client, Remote};
use vgasnet::runtime::{self, Runtime};
use vgasnet::space::Segment;
use vgasnet::storage::{Busy, MemoryStorage, Storage};
use vgasnet_conduit::{Rank, RegionSizes};
use vgasnet_sim::{Hub, Settings};

const PAGES: u32 = 4;
const FRAMES: u32 = 2;
const THREADS: usize = 2;
const OPERATIONS: u64 = 150;

/// Far more than a run takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A storage in memory that rings while it has something in flight, as a real one does when that is complete.
struct Ringing {
    storage: MemoryStorage,
    bell: EventFd,
}

impl Ringing {
    fn new(storage: MemoryStorage) -> Ringing {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ringing { storage, bell: EventFd::from_value_and_flags(0, flags).expect("a descriptor is left") }
    }

    fn ring(&self) {
        self.bell.write(1).expect("its count is far from its end");
    }
}

impl Storage for Ringing {
    unsafe fn read(&mut self, offset_bytes: u64, memory: *mut u8, len_bytes: usize, token: u64) -> Result<(), Busy> {
        self.ring();
        // SAFETY: the caller keeps the same promises to this function.
        unsafe { self.storage.read(offset_bytes, memory, len_bytes, token) }
    }

    unsafe fn write(&mut self, offset_bytes: u64, memory: *const u8, len_bytes: usize, token: u64) -> Result<(), Busy> {
        self.ring();
        // SAFETY: the caller keeps the same promises to this function.
        unsafe { self.storage.write(offset_bytes, memory, len_bytes, token) }
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let _ = self.bell.read();
        self.storage.poll(sink);
        if self.storage.in_flight() > 0 {
            self.ring();
        }
    }

    fn in_flight(&self) -> usize {
        self.storage.in_flight()
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }
}

fn fail(error: &UserError) -> ! {
    eprintln!("the job would end: {error}");
    std::process::abort()
}

fn base(rank: usize) -> usize {
    (rank + 1) << 32
}

fn start(settings: &Settings, cooperative: bool) -> Vec<Runtime> {
    let ranks = settings.hosts.len();
    let shapes = vec![runtime::Shape { pages: PAGES, frames: FRAMES }; ranks];
    let hub = Hub::new(settings.clone());
    let sizes = RegionSizes {
        pool_bytes: (FRAMES + runtime::STAGING_FRAMES) as usize * PAGE_BYTES,
        table_bytes: runtime::table_bytes(&shapes, shapes[0]),
    };
    hub.attach_all(&vec![sizes; ranks]);
    let config = Config::from_env(std::iter::empty(), 1, &Machine { memory_available_bytes: 1 << 30 });
    let mut config = config.expect("the defaults are valid");
    (config.page_bytes, config.cooperative) = (PAGE_BYTES as u64, cooperative);
    let segment = |rank| Segment { base: base(rank), size_bytes: PAGES as usize * PAGE_BYTES };
    let rank = |rank: usize| {
        let storage = MemoryStorage::new(u64::from(PAGES) * PAGE_BYTES as u64, 2, settings.seed + rank as u64);
        let conduit = Arc::new(hub.conduit(Rank(rank as u32)));
        let segments = (0..ranks).map(segment).collect();
        Runtime::new(conduit, &config, segments, &shapes, Box::new(Ringing::new(storage)), fail)
    };
    (0..ranks).map(|at| rank(at).expect("a thread is left")).collect()
}

/// Where a writer's cell is in the page `page` of the job: a place that no one else writes.
fn cell(writer: usize, page: usize) -> Remote {
    let (rank, index) = (page / PAGES as usize, page % PAGES as usize);
    Remote { rank: rank as u32, address: base(rank) + index * PAGE_BYTES + writer * 8, len_bytes: 8 }
}

fn get(runtime: &Runtime, remote: Remote) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the bytes are as many as the cell has.
    unsafe { runtime.transfer(Client::Get(bytes.as_mut_ptr()), remote) }.expect("inside the segment");
    u64::from_le_bytes(bytes)
}

fn put(runtime: &Runtime, remote: Remote, value: u64) {
    // SAFETY: as in `get`.
    unsafe { runtime.transfer(Client::Put(value.to_le_bytes().as_ptr()), remote) }.expect("inside the segment");
}

/// One client thread: counts its own cells up, reads them back, and sees those of others only grow.
fn client(runtime: &Runtime, writer: usize, writers: usize, pages: usize, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut own = vec![0; pages];
    let mut seen = vec![vec![0; pages]; writers];
    for _ in 0..OPERATIONS {
        let page = random.usize(0..pages);
        if random.u32(0..3) == 0 {
            own[page] += 1;
            put(runtime, cell(writer, page), own[page]);
        } else {
            let other = random.usize(0..writers);
            let value = get(runtime, cell(other, page));
            assert!(value >= seen[other][page], "cell {other} of page {page} went back to {value}");
            assert!(other != writer || value == own[page], "the own cell of page {page} is {value}");
            seen[other][page] = value;
        }
    }
    own
}

fn play(settings: &Settings, cooperative: bool) {
    let runtimes = start(settings, cooperative);
    let (writers, pages) = (runtimes.len() * THREADS, runtimes.len() * PAGES as usize);
    let clients = |at: usize| {
        let runtime = &runtimes[at / THREADS];
        move || client(runtime, at, writers, pages, settings.seed * 1000 + at as u64)
    };
    let last: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|at| scope.spawn(clients(at))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client is content")).collect()
    });
    thread::scope(|scope| {
        for runtime in &runtimes {
            let last = &last;
            scope.spawn(move || {
                runtime.barrier_notify(Name::Id(1)).expect("the first barrier");
                assert_eq!(runtime.barrier_wait(Name::Id(1)), Ok(true));
                for (writer, page) in (0..writers).flat_map(|writer| (0..pages).map(move |page| (writer, page))) {
                    assert_eq!(get(runtime, cell(writer, page)), last[writer][page], "cell {writer} of page {page}");
                }
                runtime.leave(&|| false);
            });
        }
    });
}

#[test]
fn runtimes_with_threads_lose_nothing() {
    let (done, watch) = channel();
    // A rank that hangs would keep the test from ending: its thread is left behind then.
    thread::spawn(move || {
        for seed in 0..8 {
            let hosts: Vec<u32> = [vec![0, 0, 1], vec![0, 1], vec![0, 0, 0, 0]][seed as usize % 3].clone();
            let (delay_percent, busy_percent) = [(0, 0), (30, 20), (80, 40)][seed as usize / 3 % 3];
            let peer_memory = seed % 2 == 0;
            let settings = Settings { hosts, peer_memory, seed, delay_percent, delay_polls_max: 6, busy_percent };
            play(&settings, seed % 4 != 3);
            done.send(settings).expect("the test waits");
        }
    });
    let mut last = None;
    for seed in 0..8 {
        last = Some(
            watch.recv_timeout(PATIENCE).unwrap_or_else(|why| panic!("seed {seed} hangs or failed: {why}, {last:?}")),
        );
    }
}
