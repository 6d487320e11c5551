//! Whole runtimes with their own threads on the simulated conduit. Client threads drive, wait and hand over to the
//! helper, and lose no byte and no wake-up.

use crate::job::PAGE_BYTES;
use crate::runtimes::{base, start};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use vgasnet::job::Runtime;
use vgasnet::ops::{Operation, Remote};
use vgasnet_protocol::barrier::Name;
use vgasnet_sim_conduit::Settings;

const PAGES: u32 = 4;
const THREADS: usize = 2;
const OPERATIONS: u64 = 150;

/// Far longer than a run takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The cell of a writer in the page `page` of the job. No other thread writes it.
fn cell(writer: usize, page: usize) -> Remote {
    let (rank, index) = (page / PAGES as usize, page % PAGES as usize);
    Remote { rank: rank as u32, address: base(rank) + index * PAGE_BYTES + writer * 8, len_bytes: 8 }
}

fn get(runtime: &Runtime, remote: Remote) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the array is as long as the cell.
    unsafe { runtime.ops().transfer(Operation::Get(bytes.as_mut_ptr()), remote) }.expect("inside the segment");
    u64::from_le_bytes(bytes)
}

fn put(runtime: &Runtime, remote: Remote, value: u64) {
    // SAFETY: the array is as long as the cell, and lives until the put is complete.
    unsafe { runtime.ops().transfer(Operation::Put(value.to_le_bytes().as_ptr()), remote) }
        .expect("inside the segment");
}

/// A client thread: increments its own cells, reads them back, and checks that other threads' cells only grow.
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
    let runtimes = start(settings, cooperative, PAGES);
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
                runtime.driver().barrier_notify(Name::Id(1)).expect("the first barrier");
                assert_eq!(runtime.driver().barrier_wait(Name::Id(1)), Ok(true));
                for (writer, page) in (0..writers).flat_map(|writer| (0..pages).map(move |page| (writer, page))) {
                    assert_eq!(get(runtime, cell(writer, page)), last[writer][page], "cell {writer} of page {page}");
                }
                runtime.driver().leave(None);
            });
        }
    });
}

#[test]
fn runtimes_with_threads_lose_nothing() {
    let (done, watch) = channel();
    // A hanging rank would keep the test from ending, so its thread is not joined.
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
