//! Pages evicted from their last pool, which move to idle frames of another rank.

use crate::client::{Range, What};
use crate::directed::{cost, cost_of, shape_far_apart};
use crate::job::{Job, PAGE_BYTES};
use crate::shape::Shape;
use fastrand::Rng;
use vgasnet_protocol::guests::offers_max;

const FRAMES: u32 = 32;
const PAGES: u32 = 48;

fn job(ranks: u32, offers_max: u32) -> Job {
    job_that_ships(ranks, offers_max, None)
}

fn job_that_ships(ranks: u32, offers_max: u32, ships: Option<u64>) -> Job {
    let shape = Shape { offers_max, ..shape_far_apart(ranks, PAGES, FRAMES, ships) };
    let mut job = Job::new(shape, &mut Rng::with_seed(1));
    for home in 0..ranks as usize {
        (0..PAGES).for_each(|index| go(&mut job, home, What::Set(index as u8 | 1), home, index));
    }
    for rank in 0..ranks as usize {
        cost_of(&mut job, |job| {
            job.nodes[rank].engine.flush();
            job.rouse(rank);
        });
    }
    // Until no rank has any page, since evicted pages move to other ranks.
    for rank in (0..2 * ranks as usize).map(|at| at % ranks as usize) {
        cost_of(&mut job, |job| {
            job.nodes[rank].engine.discard_all();
            job.rouse(rank);
        });
    }
    job
}

fn go(job: &mut Job, rank: usize, what: What, home: usize, index: u32) {
    let range = Range { home, start_bytes: index as usize * PAGE_BYTES, len_bytes: PAGE_BYTES };
    cost(job, rank, what, range);
}

/// A rank reads all pages of its own segment. Returns how many came from its disk.
fn read_all(job: &mut Job, rank: usize) -> usize {
    let before = job.nodes[rank].disk.reads().len();
    (0..PAGES).for_each(|index| go(job, rank, What::Get, rank, index));
    job.nodes[rank].disk.reads().len() - before
}

fn guests(job: &Job, rank: usize) -> u32 {
    job.nodes[rank].engine.frames().guests()
}

#[test]
fn what_does_not_fit_a_pool_is_read_from_the_disk_once_while_others_are_idle() {
    let mut alone = job(2, 0);
    let pages = PAGES as usize;
    assert_eq!(read_all(&mut alone, 0), pages);
    assert!(read_all(&mut alone, 0) >= pages - FRAMES as usize);
    let mut job = job(2, offers_max(FRAMES));
    assert_eq!(read_all(&mut job, 0), pages);
    assert!(guests(&job, 1) >= PAGES - FRAMES, "{} guests", guests(&job, 1));
    let later: Vec<usize> = (0..6).map(|_| read_all(&mut job, 0)).collect();
    let settled: usize = later[1..].iter().sum();
    assert!(later[0] < pages / 4 && settled < pages / 4, "{later:?} of {pages} pages were read again");
}

#[test]
fn a_rank_that_needs_its_pool_keeps_nothing_for_others() {
    let mut job = job(2, offers_max(FRAMES));
    let came = job.nodes[1].engine.guests_came();
    for _ in 0..2 {
        read_all(&mut job, 1);
    }
    for index in 0..PAGES {
        go(&mut job, 0, What::Get, 0, index);
        go(&mut job, 1, What::Get, 1, index);
    }
    assert!(job.nodes[1].engine.guests_came() - came <= 8, "{} guests", job.nodes[1].engine.guests_came() - came);
}

#[test]
fn guests_leave_when_the_rank_needs_its_frames() {
    let mut job = job(2, offers_max(FRAMES));
    read_all(&mut job, 0);
    assert!(guests(&job, 1) > 0);
    read_all(&mut job, 1);
    read_all(&mut job, 1);
    assert_eq!(guests(&job, 1), 0);
}

#[test]
fn a_write_reaches_a_page_that_is_kept_elsewhere() {
    let mut job = job(3, offers_max(FRAMES));
    read_all(&mut job, 0);
    let kept = guests(&job, 1) + guests(&job, 2);
    for index in 0..PAGES {
        go(&mut job, 0, What::Set(7), 0, index);
    }
    assert!(kept > 0);
    // The model compares the bytes of each get.
    for rank in 0..3 {
        (0..PAGES).for_each(|index| go(&mut job, rank, What::Get, 0, index));
    }
}

/// Puts eight bytes of a page.
fn put_bytes(job: &mut Job, rank: usize, index: u32) -> u64 {
    let range = Range { home: 0, start_bytes: index as usize * PAGE_BYTES + 64, len_bytes: 8 };
    cost(job, rank, What::Put, range).transfers
}

#[test]
fn a_small_put_by_the_home_or_to_it_has_guests_leave_and_moves_no_page() {
    let mut job = job_that_ships(3, offers_max(FRAMES), Some(64));
    read_all(&mut job, 0);
    read_all(&mut job, 0);
    let kept_by_others = |job: &Job, index: u32| {
        let page = job.nodes[0].space.own_page(index);
        job.nodes[0].engine.protocol().home.has_only_guests(page) && job.nodes[0].engine.protocol().home.has_entry(page)
    };
    let pages: Vec<u32> = (0..PAGES).filter(|index| kept_by_others(&job, *index)).collect();
    assert!(pages.len() > 4, "{pages:?}");
    for (at, index) in pages.into_iter().enumerate() {
        // A rank on another host asks the home.
        let rank = if at % 2 == 0 { 0 } else { (1..3).find(|rank| guests(&job, *rank) == 0).unwrap_or(0) };
        assert_eq!(put_bytes(&mut job, rank, index), 0, "page {index} by {rank}");
        assert!(!kept_by_others(&job, index), "page {index} is kept");
    }
    // The model compares the bytes of each get.
    for rank in 0..3 {
        (0..PAGES).for_each(|index| go(&mut job, rank, What::Get, 0, index));
    }
}

#[test]
fn where_all_ranks_are_at_work_hardly_any_page_is_offered() {
    let mut job = job(3, offers_max(FRAMES));
    let round = |job: &mut Job| {
        for index in 0..PAGES {
            (0..3).for_each(|rank| go(job, rank, What::Get, rank, index));
        }
    };
    (0..2).for_each(|_| round(&mut job));
    let before = job.hub.traffic().messages;
    (0..4).for_each(|_| round(&mut job));
    let messages = job.hub.traffic().messages - before;
    // Each rank reads its own pages, so all messages are about offers.
    let pages = u64::from(4 * 3 * PAGES);
    assert!(messages <= pages / 20, "{messages} messages for {pages} pages");
}
