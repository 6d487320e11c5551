//! Dirty pages written back before their frames are needed.

use crate::client::{Range, What};
use crate::directed::{cost, cost_of, far_apart};
use crate::job::{Job, PAGE_BYTES};
use vgasnet_protocol::{Rank, Space};

const FRAMES: u32 = 32;

fn put(job: &mut Job, index: u32) {
    let range = Range { home: 0, start_bytes: index as usize * PAGE_BYTES, len_bytes: PAGE_BYTES };
    cost(job, 0, What::Set(index as u8 | 1), range);
}

fn writes_of(job: &Job, index: u32) -> usize {
    let offset_bytes = u64::from(index) * PAGE_BYTES as u64;
    job.nodes[0].disk.writes().iter().filter(|(at, _)| *at == offset_bytes).count()
}

#[test]
fn pages_that_go_next_are_written_ahead_and_once() {
    let pages = 8 * FRAMES;
    let mut job = far_apart(1, pages, FRAMES);
    (0..pages).for_each(|index| put(&mut job, index));
    let cleaned = job.nodes[0].engine.cleaned_ahead();
    assert!(8 * cleaned >= u64::from(pages), "{cleaned} of {pages}; the reserve evicts the others ahead");
    cost_of(&mut job, |job| {
        job.nodes[0].engine.flush();
        job.rouse(0);
    });
    assert!((0..pages).all(|index| writes_of(&job, index) == 1));
    job.check_disks();
}

#[test]
fn a_working_set_that_fits_is_not_written() {
    let mut job = far_apart(1, FRAMES, FRAMES);
    for _ in 0..4 {
        (0..FRAMES).for_each(|index| put(&mut job, index));
    }
    assert_eq!((job.nodes[0].engine.cleaned_ahead(), job.nodes[0].disk.writes().len()), (0, 0));
}

#[test]
fn a_page_that_is_put_to_all_the_time_is_not_written_all_the_time() {
    let pages = 8 * FRAMES;
    let mut job = far_apart(1, pages, FRAMES);
    for index in 1..pages {
        put(&mut job, index);
        put(&mut job, 0);
    }
    let writes = writes_of(&job, 0);
    assert!(writes <= 4, "{writes} writes of a page that {pages} puts use");
}

#[test]
fn the_put_that_waits_for_the_right_to_write_is_the_first_use_of_a_page() {
    let mut job = far_apart(1, 8, 8);
    put(&mut job, 1);
    cost_of(&mut job, |job| {
        job.nodes[0].engine.flush();
        job.rouse(0);
    });
    cost_of(&mut job, |job| {
        job.nodes[0].engine.discard(Space::of_segment(Rank(0)), &(1..=1));
        job.rouse(0);
    });
    cost_of(&mut job, |job| {
        job.nodes[0].engine.fetch(Space::of_segment(Rank(0)), 1..=1);
        job.rouse(0);
    });
    let is_ahead = |job: &Job| {
        let table = &job.nodes[0].space.own.table;
        table.find(job.nodes[0].space.own_page(1)).map(|frame| table.is_ahead(frame))
    };
    assert_eq!(is_ahead(&job), Some(true));
    put(&mut job, 1);
    assert_eq!(is_ahead(&job), Some(false));
}
