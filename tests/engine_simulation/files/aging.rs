//! Write-behind of old dirty pages of files that no rank flushes. Time is the job's clock.

use super::FileOptions;
use super::steps::Run;
use crate::directed::{cost_of, far_apart_with};
use crate::job::{Job, PAGE_BYTES};
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vgasnet_protocol::{Rank, Space, Stripes};
use vgasnet_storage::{BLOCK_BYTES, MemoryFile};

/// Less than the engine waits, but enough to make pages old together with the time of some drives.
const MOST_MS: u64 = 5000;

/// The first file of a job.
const FILE: Space = Space::of_file(0);

/// Two ranks. Rank 0 is the home of all pages. The pools are so large that nothing else causes write-behind.
fn job(ships: Option<u64>) -> (Job, MemoryFile, Rng) {
    let (mut job, memory) = (far_apart_with(2, 4, 32, ships), MemoryFile::new(1, 7));
    let stripes = Stripes { homes: Arc::from([Rank(0)]), pages: 2 };
    let options = FileOptions { is_atomic: false, heals: false, heals_early: false };
    let space = job.open_file(&memory, &[0, 1], stripes, 6, options);
    assert_eq!(space, FILE);
    (job, memory, Rng::with_seed(9))
}

fn put(job: &mut Job, rank: usize, start_bytes: usize, len_bytes: usize, random: &mut Rng) {
    cost_of(job, |job| job.call(rank, FILE, true, vec![Run { start_bytes, len_bytes }], random));
}

/// Lets time pass, then lets all ranks drive.
fn pass(job: &mut Job, ms: u64) {
    job.clock.fetch_add(ms, Ordering::Relaxed);
    cost_of(job, |job| (0..2).for_each(|rank| job.rouse(rank)));
}

fn writes(job: &Job) -> u64 {
    job.nodes[0].disk.file_writes()
}

#[test]
fn pages_are_written_when_they_are_old_and_not_before() {
    for rank in [0, 1] {
        let (mut job, memory, mut random) = job(None);
        let begun = job.clock.load(Ordering::Relaxed);
        put(&mut job, rank, 0, 4 * PAGE_BYTES, &mut random);
        let left = begun + MOST_MS - job.clock.load(Ordering::Relaxed);
        pass(&mut job, left / 2);
        put(&mut job, rank, 5 * PAGE_BYTES, PAGE_BYTES, &mut random);
        assert_eq!(writes(&job), 0, "r{rank}: nothing is old");
        pass(&mut job, left / 2);
        let bytes = memory.bytes();
        assert!(
            bytes.len() == 4 * PAGE_BYTES && bytes.contains(&1),
            "r{rank}: four are, and are all there is on the disk"
        );
        let written = writes(&job);
        assert!((1..=4).contains(&written), "r{rank}: {written} writes");
        pass(&mut job, MOST_MS);
        assert_eq!((memory.bytes().len(), writes(&job)), (6 * PAGE_BYTES, written + 1), "r{rank}: the other one, too");
        pass(&mut job, 3 * MOST_MS);
        assert_eq!(writes(&job), written + 1, "r{rank}: what is clean has no age");
    }
}

#[test]
fn a_page_that_is_written_again_is_old_again() {
    let (mut job, _, mut random) = job(None);
    for round in 1..=3 {
        put(&mut job, 1, 0, PAGE_BYTES, &mut random);
        pass(&mut job, MOST_MS);
        assert_eq!(writes(&job), round);
    }
}

#[test]
fn blocks_are_written_when_they_are_old() {
    let (mut job, memory, mut random) = job(Some(0));
    for rank in [0, 1] {
        put(&mut job, rank, (2 * rank + 1) * BLOCK_BYTES, 100, &mut random);
    }
    assert!(job.files.seen.in_blocks > 0, "they went to blocks");
    let before = writes(&job);
    pass(&mut job, MOST_MS);
    assert!(writes(&job) > before && memory.bytes().len() == 4 * BLOCK_BYTES, "{}", memory.bytes().len());
    let after = writes(&job);
    pass(&mut job, 2 * MOST_MS);
    assert_eq!(writes(&job), after);
}
