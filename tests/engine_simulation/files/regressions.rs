//! Bugs found by random runs, each as the shortest run that shows it. In most of them some bytes cannot be written:
//! they stay dirty, and everything else must go on.

use super::steps::Run;
use super::{Errand, FileOptions};
use crate::client::{Operation, Range, What};
use crate::directed::{cost, settle, settle_with, shape_far_apart};
use crate::job::{Job, PAGE_BYTES, Task};
use crate::shape::Shape;
use fastrand::Rng;
use std::sync::Arc;
use vgasnet_protocol::coherence::{Access, PageId};
use vgasnet_protocol::{Rank, Space, Stripes};
use vgasnet_storage::{BLOCK_BYTES, MemoryFile};

/// The cost of a request, in bytes. With it, a few blocks of a page without holders are used at its home.
const REQUEST_BYTES: u64 = 4096;

/// A few bytes from here on span two blocks.
const BORDER: usize = BLOCK_BYTES - 4;

/// Ranks on one host each. Rank 0 is the home of all files.
fn job(ranks: u32, frames: u32, block_slots: usize) -> Job {
    let shape = Shape { block_slots, ..shape_far_apart(ranks, 8, frames, Some(REQUEST_BYTES)) };
    Job::new(shape, &mut Rng::with_seed(1))
}

/// All ranks open a file of eight pages.
fn open(job: &mut Job, number: u64) -> Space {
    let memory = MemoryFile::new(number, number);
    let team: Vec<usize> = (0..job.nodes.len()).collect();
    let stripes = Stripes { homes: Arc::from([Rank(0)]), pages: 1 };
    let options = FileOptions { is_atomic: false, heals: true, heals_early: true };
    job.open_file(&memory, &team, stripes, 8, options)
}

/// From now on no block of the file can be written.
fn fill_up(job: &mut Job, space: Space) {
    let file = job.files.get(space);
    file.is_faulty = true;
    file.memory.limit_space(0);
}

fn call(job: &mut Job, rank: usize, space: Space, is_put: bool, start_bytes: usize, len_bytes: usize) {
    job.call(rank, space, is_put, vec![Run { start_bytes, len_bytes }], &mut Rng::with_seed(2));
}

/// A rank writes bytes of a file, and the job goes on until nothing can happen.
fn put(job: &mut Job, rank: usize, space: Space, start_bytes: usize, len_bytes: usize) {
    call(job, rank, space, true, start_bytes, len_bytes);
    go_on(job);
}

fn go_on(job: &mut Job) {
    settle(job).expect("no segment's disk fails");
}

fn flush(job: &mut Job, rank: usize, space: Space) {
    job.nodes[rank].engine.flush_file(space);
    job.rouse(rank);
    go_on(job);
}

/// A few bytes of the segment of rank 0.
fn of_segment(page: usize) -> Range {
    Range { home: 0, start_bytes: page * PAGE_BYTES, len_bytes: 8 }
}

/// Gives the files space and closes them. All operations must be complete.
fn close_all(job: &mut Job) {
    for (rank, node) in job.nodes.iter().enumerate() {
        assert!(node.operations.is_empty(), "an operation of r{rank} waits for ever");
    }
    let open: Vec<Space> = job.files.open.keys().copied().collect();
    open.iter().for_each(|space| job.files.get(*space).errand = Some(Errand::Close));
    let ranks = job.nodes.len();
    while (0..ranks).any(|rank| open.iter().any(|space| job.go_on_with_file(rank, *space))) {
        go_on(job);
    }
    job.check_all_closed();
    job.check_quiet();
}

/// Lets rank 0 take work until a task matches `is_it`. The task is left unfinished.
fn take_until(job: &mut Job, is_it: impl Fn(&Task) -> bool) {
    for _ in 0..20 {
        job.drive(0).expect("no segment's disk fails");
        while job.take(0) {
            let last = job.nodes[0].tasks.len() - 1;
            if is_it(&job.nodes[0].tasks[last]) {
                return;
            }
            job.go_on(0, last);
        }
    }
    panic!("the work does not come");
}

/// The engine of rank 0 does all it can, while no operation goes on.
fn work_alone(job: &mut Job) {
    while job.is_awake(0) {
        job.drive(0).expect("no segment's disk fails");
        while job.take(0) {}
        while !job.nodes[0].tasks.is_empty() {
            job.go_on(0, 0);
        }
    }
}

fn advance(job: &mut Job, rank: usize, at: usize) {
    while job.advance(rank, at) {}
}

/// A page stays pinned while its file is being closed, and is unpinned later.
#[test]
fn a_page_in_use_holds_up_nobody_but_who_closes_its_file() {
    let mut job = job(1, 4, 4);
    let space = open(&mut job, 1);
    put(&mut job, 0, space, 0, PAGE_BYTES);
    // Otherwise the flush of the close would wait for the pin.
    flush(&mut job, 0, space);
    let page = PageId { space, index: 0 };
    let pinned = job.nodes[0].space.own.table.pin(page, Access::Read).expect("it is in the pool");
    job.files.get(space).errand = Some(Errand::Close);
    // The job's checks do not know of this pin.
    let go_on = |job: &mut Job| settle_with(job, |_| ()).expect("no segment's disk fails");
    while job.go_on_with_file(0, space) {
        go_on(&mut job);
    }
    assert!(job.files.open.contains_key(&space), "it is closed under who uses it");
    for page in 0..8 {
        job.start(0, What::PutNow, of_segment(page), &mut Rng::with_seed(3));
        go_on(&mut job);
    }
    assert!(job.nodes[0].operations.is_empty(), "others wait for the page");
    assert!(job.nodes[0].space.own.table.unpin(pinned.frame), "the engine waits for that");
    close_all(&mut job);
}

/// Two puts of two blocks each, both unfinished: together they are more than half of the four slots.
#[test]
fn puts_under_way_count_where_blocks_of_files_leave_room() {
    let mut job = job(1, 4, 4);
    let space = open(&mut job, 1);
    fill_up(&mut job, space);
    for page in 0..2 {
        call(&mut job, 0, space, true, page * PAGE_BYTES + BORDER, 8);
        advance(&mut job, 0, page);
    }
    go_on(&mut job);
    flush(&mut job, 0, space);
    assert!(job.nodes[0].engine.refusal(space).is_some(), "the blocks are written");
    // A block of another page needs a slot.
    cost_of_read(&mut job, space, 2);
    close_all(&mut job);
}

/// Rank 0 reads a few bytes of a page of a file, and of its segment.
fn cost_of_read(job: &mut Job, space: Space, page: usize) {
    call(job, 0, space, false, page * PAGE_BYTES, 8);
    job.start(0, What::Get, of_segment(page), &mut Rng::with_seed(3));
    go_on(job);
    assert!(job.nodes[0].operations.is_empty(), "reads wait for blocks that cannot be written");
}

/// One put alone is more than half of the slots.
#[test]
fn a_put_of_more_blocks_than_may_be_dirty_takes_its_page() {
    let mut job = job(1, 4, 2);
    let space = open(&mut job, 1);
    fill_up(&mut job, space);
    put(&mut job, 0, space, BORDER, 8);
    flush(&mut job, 0, space);
    assert!(job.nodes[0].engine.refusal(space).is_some(), "the bytes are written");
    cost_of_read(&mut job, space, 2);
    close_all(&mut job);
}

/// Two pages may be dirty: one cannot be written, one is in use. The part is held. The unpin wakes the engine only at
/// the engine's request.
#[test]
fn a_part_that_is_held_has_a_page_written_that_is_in_use() {
    let mut job = job(1, 4, 4);
    let space = open(&mut job, 1);
    put(&mut job, 0, space, 0, PAGE_BYTES);
    call(&mut job, 0, space, true, 0, 8);
    // One step looks the page up, the next one pins it.
    (0..2).for_each(|_| assert!(job.advance(0, 0)));
    assert!(job.nodes[0].operations[0].in_use().is_some(), "the page is pinned");
    let page = PAGE_BYTES as u64;
    job.files.get(space).is_faulty = true;
    job.files.get(space).memory.configure(|faults| faults.fail_at(page..2 * page));
    for index in 1..3 {
        call(&mut job, 0, space, true, index * PAGE_BYTES, PAGE_BYTES);
        advance(&mut job, 0, index);
    }
    work_alone(&mut job);
    assert_eq!(job.nodes[0].engine.held_parts(), 1);
    advance(&mut job, 0, 0);
    go_on(&mut job);
    close_all(&mut job);
}

/// Writes of blocks are in flight and will fail, while other blocks get dirty.
#[test]
fn blocks_that_are_being_written_count_where_blocks_of_files_leave_room() {
    let mut job = job(1, 4, 4);
    let space = open(&mut job, 1);
    put(&mut job, 0, space, BORDER, 8);
    fill_up(&mut job, space);
    job.nodes[0].engine.flush_file(space);
    job.drive(0).expect("no segment's disk fails");
    assert!(job.nodes[0].disk.file_writes() > 0, "the write has begun");
    call(&mut job, 0, space, true, PAGE_BYTES + BORDER, 8);
    advance(&mut job, 0, 0);
    go_on(&mut job);
    flush(&mut job, 0, space);
    cost_of_read(&mut job, space, 2);
    close_all(&mut job);
}

/// A frame that serves for blocks is wanted for pages again, and has a block that cannot be written.
#[test]
fn a_block_that_cannot_be_written_is_used_though_its_frame_is_to_leave() {
    let mut job = job(1, 8, 4);
    let space = open(&mut job, 1);
    // Blocks are read until a frame serves for them.
    for page in 0..8 {
        cost(&mut job, 0, What::Set(9), Range { len_bytes: PAGE_BYTES, ..of_segment(page) });
    }
    while !job.nodes[0].engine.discard_all() {
        job.rouse(0);
        go_on(&mut job);
    }
    for turn in 0..64 {
        job.start(
            0,
            What::Get,
            Range { start_bytes: turn % 32 * BLOCK_BYTES, ..of_segment(0) },
            &mut Rng::with_seed(3),
        );
        go_on(&mut job);
    }
    assert!(job.nodes[0].engine.frames_for_blocks() > 0, "no frame serves for blocks");
    fill_up(&mut job, space);
    // Half of the slots, so some of the blocks are in frames.
    for block in 0..4 {
        put(&mut job, 0, space, block * PAGE_BYTES, 8);
    }
    flush(&mut job, 0, space);
    assert!(job.nodes[0].engine.refusal(space).is_some(), "the blocks are written");
    // These pages need the frames.
    for page in 0..8 {
        job.start(0, What::Set(7), Range { len_bytes: PAGE_BYTES, ..of_segment(page) }, &mut Rng::with_seed(3));
        go_on(&mut job);
    }
    for block in 0..4 {
        call(&mut job, 0, space, false, block * PAGE_BYTES, 8);
        go_on(&mut job);
    }
    close_all(&mut job);
}

/// A rank has the right to overwrite a page, and the page is not dirty yet.
#[test]
fn a_page_that_is_being_overwritten_counts_as_dirty() {
    let mut job = job(1, 2, 4);
    let space = open(&mut job, 1);
    call(&mut job, 0, space, true, 0, PAGE_BYTES);
    advance(&mut job, 0, 0);
    take_until(&mut job, |task| matches!(task, Task::Fill { .. }));
    call(&mut job, 0, space, true, PAGE_BYTES, PAGE_BYTES);
    advance(&mut job, 0, 1);
    assert_eq!(job.nodes[0].engine.held_parts(), 1, "two pages of two frames get dirty");
    go_on(&mut job);
    close_all(&mut job);
}

/// A part waits, and each attempt to carry it out starts the write-back of another page. The write must start in the
/// same drive, since there may be no other.
#[test]
fn what_a_part_that_is_held_has_written_is_begun_in_the_same_drive() {
    let mut job = job(1, 8, 4);
    let space = open(&mut job, 1);
    // The pages are not adjacent, so each is a write of its own.
    [0, 2].into_iter().for_each(|index| put(&mut job, 0, space, index * PAGE_BYTES, PAGE_BYTES));
    for (at, index) in [4, 5].into_iter().enumerate() {
        call(&mut job, 0, space, true, index * PAGE_BYTES, PAGE_BYTES);
        advance(&mut job, 0, at);
        take_until(&mut job, |task| matches!(task, Task::Fill { .. }));
    }
    call(&mut job, 0, space, true, 6 * PAGE_BYTES, PAGE_BYTES);
    advance(&mut job, 0, 2);
    assert_eq!(job.nodes[0].engine.held_parts(), 1, "four pages of eight frames get dirty");
    assert_eq!(job.nodes[0].disk.file_writes(), 0);
    job.drive(0).expect("no segment's disk fails");
    assert_eq!(job.nodes[0].disk.file_writes(), 2, "one for the part when it came, one when it was looked at again");
    go_on(&mut job);
    close_all(&mut job);
}

/// In a small pool two dirty pages are many. A write to one triggers the write-back of the other, and the next write to
/// that page would wait for it.
#[test]
fn pages_that_get_dirty_again_at_once_are_not_written_each_time() {
    let mut job = job(1, 4, 4);
    let space = open(&mut job, 1);
    for round in 0..20 {
        let len_bytes = if round == 0 { PAGE_BYTES } else { 8 };
        [0, 2].into_iter().for_each(|index| put(&mut job, 0, space, index * PAGE_BYTES, len_bytes));
    }
    assert_eq!(job.nodes[0].disk.file_writes(), 1);
    close_all(&mut job);
}

/// A file is read ahead up to the end of its written bytes, even if no rank has asked for its size since.
#[test]
fn what_was_written_may_be_read_ahead() {
    let mut job = job(1, 16, 4);
    let space = open(&mut job, 1);
    let end = job.nodes[0].engine.end_of(space);
    put(&mut job, 0, space, 7 * PAGE_BYTES, 8);
    assert_eq!((end, job.nodes[0].engine.end_of(space)), (0, 8));
    close_all(&mut job);
}

/// A page is to be discarded, and is about to be written for a part that waits.
#[test]
fn a_page_that_is_about_to_be_written_behind_may_be_discarded() {
    let mut job = job(1, 4, 4);
    let space = open(&mut job, 1);
    put(&mut job, 0, space, 0, PAGE_BYTES);
    for index in 1..3 {
        call(&mut job, 0, space, true, index * PAGE_BYTES, PAGE_BYTES);
        advance(&mut job, 0, index - 1);
    }
    assert_eq!(job.nodes[0].engine.held_parts(), 1);
    job.nodes[0].engine.discard(space, &(0..=0));
    go_on(&mut job);
    close_all(&mut job);
}

/// Rank 1 flushes its writes to two pages, now dirty in rank 2's pool: rank 2 wrote to page 0 later, and had page 3
/// already.
#[test]
fn a_flush_reaches_pages_in_other_pools() {
    let mut job = job(3, 16, 4);
    let space = open(&mut job, 1);
    put(&mut job, 1, space, 0, PAGE_BYTES);
    put(&mut job, 2, space, 0, PAGE_BYTES / 2);
    put(&mut job, 2, space, 3 * PAGE_BYTES, PAGE_BYTES);
    put(&mut job, 1, space, 3 * PAGE_BYTES, 8);
    // A dirty page of another rank, which the flush leaves alone.
    put(&mut job, 2, space, 4 * PAGE_BYTES, PAGE_BYTES);
    let dirty = |job: &Job, index| {
        let home = &job.nodes[0].engine.protocol().home;
        home.dirty_owner(vgasnet_protocol::coherence::PageId { space, index })
    };
    assert!([0, 3, 4].iter().all(|index| dirty(&job, *index) == Some(Rank(2))), "they are dirty at rank 2");
    job.begin_flush(1, space);
    while job.go_on_with_file(1, space) || job.is_awake(0) {
        go_on(&mut job);
    }
    assert_eq!(job.files.seen.flushes, 1);
    assert_eq!([0, 3, 4].map(|index| dirty(&job, index)), [None, None, Some(Rank(2))]);
    close_all(&mut job);
}

/// The blocks of one file cannot be written, and are as many as may be dirty.
#[test]
fn a_put_to_another_file_does_not_wait_for_blocks_that_cannot_be_written() {
    let mut job = job(1, 4, 4);
    let [full, other] = [1, 2].map(|number| open(&mut job, number));
    [full, other].into_iter().for_each(|space| fill_up(&mut job, space));
    put(&mut job, 0, full, BORDER, 8);
    flush(&mut job, 0, full);
    put(&mut job, 0, other, 0, 8);
    assert_eq!(job.files.seen.failed_writes, 0, "the put has its page");
    cost_of_read(&mut job, other, 2);
    close_all(&mut job);
}

/// A put waits for blocks, and some of them belong to a file that cannot be written. Another put to this file is
/// unfinished, and dirties more.
#[test]
fn a_put_does_not_wait_for_blocks_that_get_dirty_after_the_file_was_refused() {
    let mut job = job(1, 4, 4);
    let [full, other] = [1, 2].map(|number| open(&mut job, number));
    [full, other].into_iter().for_each(|space| fill_up(&mut job, space));
    put(&mut job, 0, full, 0, 8);
    call(&mut job, 0, full, true, PAGE_BYTES, 8);
    advance(&mut job, 0, 0);
    take_until(&mut job, |task| matches!(task, Task::Blocks(..)));
    job.nodes[0].engine.flush_file(full);
    let drives = (0..20).find(|_| {
        job.drive(0).expect("no segment's disk fails");
        job.nodes[0].engine.refusal(full).is_some()
    });
    assert!(drives.is_some(), "the block is written");
    call(&mut job, 0, other, true, 0, 8);
    advance(&mut job, 0, 1);
    go_on(&mut job);
    assert_eq!(job.files.seen.failed_writes, 1, "the put is told why");
    cost_of_read(&mut job, other, 2);
    close_all(&mut job);
}

/// A flush fails for a page in another pool. The next flush asks for the page again.
#[test]
fn a_flush_after_one_that_was_refused_reaches_the_same_pages() {
    let mut job = job(3, 16, 4);
    let space = open(&mut job, 1);
    let whole = Run { start_bytes: 0, len_bytes: PAGE_BYTES };
    job.call(1, space, true, vec![whole], &mut Rng::with_seed(3));
    let is_noted = |operation: &Operation| operation.call.as_ref().is_some_and(|call| call.is_noted);
    assert!(!is_noted(&job.nodes[1].operations[0]), "its end is noted, which the flush takes");
    go_on(&mut job);
    put(&mut job, 2, space, 0, PAGE_BYTES / 2);
    let dirty = |job: &Job| {
        let home = &job.nodes[0].engine.protocol().home;
        home.dirty_owner(vgasnet_protocol::coherence::PageId { space, index: 0 })
    };
    let flush_alone = |job: &mut Job| {
        job.begin_flush(1, space);
        while job.go_on_with_file(1, space) || job.is_awake(1) {
            go_on(job);
        }
        (job.files.seen.flushes, job.files.seen.failed_flushes)
    };
    fill_up(&mut job, space);
    assert_eq!((flush_alone(&mut job), dirty(&job)), ((1, 1), Some(Rank(2))));
    job.files.get(space).heal();
    assert_eq!((flush_alone(&mut job), dirty(&job)), ((2, 1), None));
    close_all(&mut job);
}

/// A rank has read a page. Its message to the home is still in flight when all ranks have settled the file.
#[test]
fn a_file_is_cut_when_its_homes_know_that_nothing_is_under_way() {
    let mut job = job(2, 4, 4);
    let space = open(&mut job, 1);
    put(&mut job, 1, space, 0, PAGE_BYTES);
    flush(&mut job, 1, space);
    job.nodes[1].engine.discard(space, &(0..=0));
    job.rouse(1);
    go_on(&mut job);
    job.nodes[1].engine.fetch(space, 0..=0);
    let is_here = |job: &Job| {
        job.nodes[1].engine.is_quiet_about(space) && job.nodes[1].engine.protocol().cache.copies().next().is_some()
    };
    while !is_here(&job) {
        for rank in [0, 1] {
            job.drive(rank).expect("no segment's disk fails");
            while !is_here(&job) && job.take(rank) {
                job.go_on(rank, 0);
            }
            if is_here(&job) {
                break;
            }
        }
    }
    assert!(!job.nodes[0].engine.is_quiet_at_home(space), "its Done is on its way");
    go_on(&mut job);
    assert!(job.nodes[0].engine.is_quiet_at_home(space));
    job.files.get(space).errand = Some(Errand::SetSize(0));
    while (0..2).any(|rank| job.go_on_with_file(rank, space)) {
        go_on(&mut job);
    }
    close_all(&mut job);
}

/// The last action of a rank is a flush that has the rank itself as home and nothing to write.
#[test]
fn a_flush_of_nothing_ends_in_the_drive_that_takes_it_in() {
    let mut job = job(1, 4, 4);
    let space = open(&mut job, 1);
    job.begin_flush(0, space);
    while job.go_on_with_file(0, space) || job.is_awake(0) {
        go_on(&mut job);
    }
    assert_eq!(job.files.seen.flushes, 1, "a flush waits for ever");
    close_all(&mut job);
}
