//! Without cooperative caching, ranks get pages of a file through the pool of the page's home.

use crate::client::{Range, What};
use crate::directed::{cost_of, far_apart, settle};
use crate::job::{Job, PAGE_BYTES};
use fastrand::Rng;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::PageId;

fn job(ranks: u32, pages: u32, frames: u32) -> Job {
    let mut shape = far_apart(ranks, pages, frames).shape;
    shape.cooperative = false;
    Job::new(shape, &mut Rng::with_seed(1))
}

fn start(job: &mut Job, rank: usize, what: What, home: usize, index: usize) {
    let range = Range { home, start_bytes: index * PAGE_BYTES, len_bytes: 64 };
    job.start(rank, what, range, &mut Rng::with_seed(3));
}

fn operate(job: &mut Job, rank: usize, what: What, home: usize, index: usize) {
    start(job, rank, what, home, index);
    settle(job).expect("the disks are whole");
    assert!(job.nodes[rank].operations.is_empty(), "it is done");
}

#[test]
fn the_home_keeps_what_it_reads_for_others() {
    let mut job = job(3, 2, 2);
    operate(&mut job, 0, What::Set(7), 0, 0);
    cost_of(&mut job, |job| {
        job.nodes[0].engine.discard_all();
        job.rouse(0);
    });
    let (home, page) = (Rank(0), PageId::of_segment(Rank(0), 0));
    let has_page = |job: &Job| job.nodes[home.index()].engine.protocol().cache.contains(page);
    let reads = |job: &Job| job.nodes[home.index()].disk.reads().iter().filter(|at| **at == 0).count();
    assert!(!has_page(&job));
    let before = reads(&job);
    operate(&mut job, 1, What::Get, 0, 0);
    assert!(has_page(&job) && reads(&job) == before + 1);
    operate(&mut job, 2, What::Get, 0, 0);
    assert_eq!(reads(&job), before + 1, "the home serves the second from its pool");
}

#[test]
fn homes_whose_only_frames_wait_for_each_others_pages_serve_both() {
    let mut job = job(2, 2, 1);
    for home in [0, 1] {
        operate(&mut job, home, What::Set(7), home, 0);
        operate(&mut job, home, What::Get, home, 1);
    }
    for _ in 0..3 {
        start(&mut job, 0, What::Get, 1, 0);
        start(&mut job, 1, What::Get, 0, 0);
        settle(&mut job).expect("the disks are whole");
        assert!(job.nodes.iter().all(|node| node.operations.is_empty()), "neither waits for the other");
        [0, 1].into_iter().for_each(|rank| operate(&mut job, rank, What::Get, rank, 1));
    }
}
