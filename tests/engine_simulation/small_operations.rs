//! Small operations carried out at the rank with the page: their messages, and the bytes they read and write.

use crate::client::{Range, What};
use crate::directed::{cost, cost_of, far_apart_with, settle, shape_far_apart};
use crate::job::{Job, PAGE_BYTES};
use crate::shape::Shape;
use fastrand::Rng;
use vgasnet_protocol::byte_message::{AtomicOp, Operands};
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::{Rank, Space};
use vgasnet_sim_conduit::Traffic;
use vgasnet_storage::BLOCK_BYTES;

/// A request and its answer.
const ROUND_TRIP: Traffic = Traffic { messages: 2, transfers: 0 };

/// The cost of a request, in bytes, in jobs that move a page after a few requests.
const REQUEST_BYTES: u64 = 4096;

fn job(ranks: u32) -> Job {
    far_apart_with(ranks, 4, 4, Some(REQUEST_BYTES))
}

/// A few bytes of a block of a page of rank 0.
fn at(page: usize, block: usize) -> Range {
    Range { home: 0, start_bytes: page * PAGE_BYTES + block * BLOCK_BYTES + 64, len_bytes: 8 }
}

/// Writes all pages of rank 0's segment to its disk, and empties all pools.
fn write_all(job: &mut Job) {
    for page in 0..4 {
        cost(job, 0, What::Set(9), Range { home: 0, start_bytes: page * PAGE_BYTES, len_bytes: PAGE_BYTES });
    }
    empty(job);
}

fn empty(job: &mut Job) {
    for rank in 0..job.nodes.len() {
        while !job.nodes[rank].engine.discard_all() {
            cost_of(job, |job| job.rouse(rank));
        }
    }
    cost_of(job, |_| {});
}

/// The holders of a page of rank 0.
fn holders(job: &Job, page: u32) -> Vec<usize> {
    let home = &job.nodes[0].engine.protocol().home;
    home.holders(PageId::of_segment(Rank(0), page)).map(|holder| holder.rank.index()).collect()
}

#[test]
fn a_get_of_a_page_on_the_disk_reads_a_block_and_is_a_round_trip() {
    let mut job = job(2);
    write_all(&mut job);
    let before = job.nodes[0].disk.reads().len();
    assert_eq!(cost(&mut job, 1, What::Get, at(1, 2)), ROUND_TRIP);
    let block = (PAGE_BYTES + 2 * BLOCK_BYTES) as u64;
    assert_eq!(job.nodes[0].disk.reads()[before..], [block]);
    // The block is in memory from now on, for the home as well.
    assert_eq!(cost(&mut job, 0, What::Get, at(1, 2)), Traffic::default());
    assert_eq!(job.nodes[0].disk.reads()[before..], [block]);
    assert_eq!(holders(&job, 1), []);
}

#[test]
fn a_put_writes_no_disk_and_a_page_that_is_read_has_it() {
    let mut job = job(2);
    write_all(&mut job);
    let before = job.nodes[0].disk.writes().len();
    assert_eq!(cost(&mut job, 1, What::Put, at(1, 2)), ROUND_TRIP);
    assert_eq!(job.nodes[0].disk.writes().len(), before);
    let laid_over = job.seen.laid_over;
    // The simulation compares every byte.
    cost(&mut job, 1, What::Get, Range { home: 0, start_bytes: PAGE_BYTES, len_bytes: PAGE_BYTES });
    assert_eq!((holders(&job, 1), job.seen.laid_over), (vec![1], laid_over + 1));
}

#[test]
fn a_page_that_nobody_has_written_is_zeros_without_a_read() {
    let mut job = job(2);
    assert_eq!(cost(&mut job, 1, What::Get, at(2, 1)), ROUND_TRIP);
    assert_eq!(cost(&mut job, 1, What::Put, at(2, 1)), ROUND_TRIP);
    assert_eq!(cost(&mut job, 0, What::Get, at(2, 1)), Traffic::default());
    assert!(job.nodes[0].disk.reads().is_empty());
}

#[test]
fn a_block_that_nobody_has_written_is_zeros_without_a_read() {
    let mut job = far_apart_with(2, 8, 4, Some(REQUEST_BYTES));
    let reads = |job: &Job| job.nodes[0].disk.reads().len();
    for page in 0..6 {
        (0..2).for_each(|block| _ = cost(&mut job, 1, What::Put, at(page, 2 * block)));
        cost(&mut job, 0, What::Get, at(page, 1));
    }
    assert_eq!(reads(&job), 0, "their pages are written, in other blocks");
    cost(&mut job, 0, What::Get, at(0, 2));
    assert_eq!(reads(&job), 1, "it was written, and has made room for others");
    empty(&mut job);
    job.check_disks();
}

#[test]
fn the_owner_of_a_page_does_what_others_ask_and_keeps_it() {
    let mut job = job(3);
    cost(&mut job, 1, What::Set(3), Range { home: 0, start_bytes: 0, len_bytes: PAGE_BYTES });
    assert_eq!(holders(&job, 0), [1]);
    // To the home, on to the owner, and back.
    let by_way_of_home = Traffic { messages: 4, transfers: 0 };
    assert_eq!(cost(&mut job, 2, What::Put, at(0, 1)), by_way_of_home);
    assert_eq!(cost(&mut job, 0, What::Get, at(0, 1)), ROUND_TRIP);
    let add = What::Atomic((AtomicOp::Add, Operands { operand: 5, compare: 0 }));
    assert_eq!(cost(&mut job, 2, add, at(0, 1)), by_way_of_home);
    assert_eq!(holders(&job, 0), [1]);
}

#[test]
fn a_page_moves_when_shipping_has_cost_as_much() {
    let mut job = job(2);
    write_all(&mut job);
    let ships = (0..).take_while(|turn| cost(&mut job, 1, What::Get, at(1, turn % 4)) == ROUND_TRIP).count();
    // Four requests with their bytes cost less than one request with a page. Five cost more.
    assert_eq!((ships, holders(&job, 1)), (4, vec![1]));
}

#[test]
fn ranks_that_write_a_page_in_turns_do_not_move_it() {
    let mut job = job(3);
    write_all(&mut job);
    for turn in 0..40 {
        let rank = 1 + turn % 2;
        assert_eq!(cost(&mut job, rank, What::Put, at(1, rank)), ROUND_TRIP, "turn {turn}");
    }
    assert_eq!(holders(&job, 1), []);
}

#[test]
fn dirty_blocks_are_written_behind_and_read_again() {
    let mut job = job(2);
    write_all(&mut job);
    let before = job.nodes[0].disk.writes().len();
    // A write to more blocks would move the page.
    for page in 0..4 {
        (0..2).for_each(|block| _ = cost(&mut job, 1, What::Put, at(page, block)));
    }
    let writes = &job.nodes[0].disk.writes()[before..];
    assert!(writes.len() >= 4 && writes.iter().all(|(_, len_bytes)| *len_bytes == BLOCK_BYTES), "{writes:?}");
    assert_eq!(cost(&mut job, 0, What::Get, at(1, 0)), Traffic::default());
    empty(&mut job);
    job.check_disks();
}

#[test]
fn blocks_that_are_used_again_stay_while_no_page_is_asked_for() {
    let mut job = far_apart_with(1, 32, 16, Some(64));
    let page = |page: usize| Range { home: 0, start_bytes: page * PAGE_BYTES, len_bytes: PAGE_BYTES };
    (0..32).for_each(|index| _ = cost(&mut job, 0, What::Set(9), page(index)));
    empty(&mut job);
    let mut reads_of_round = || {
        let before = job.nodes[0].disk.reads().len();
        (0..24).for_each(|page| _ = cost(&mut job, 0, What::Get, at(page, page % 4)));
        job.nodes[0].disk.reads().len() - before
    };
    assert_eq!(reads_of_round(), 24, "there are four slots");
    let rounds = (1..).take_while(|_| reads_of_round() > 0).take(12).count();
    assert!(rounds < 12 && job.nodes[0].engine.frames_for_blocks() >= 5, "{rounds} rounds");
    // Pages get the frames back, even with dirty blocks.
    (0..24).for_each(|page| _ = cost(&mut job, 0, What::Put, at(page, page % 4)));
    (0..48).for_each(|read| _ = cost(&mut job, 0, What::Get, page(read % 32)));
    assert_eq!(job.nodes[0].engine.frames_for_blocks(), 0);
    empty(&mut job);
    job.check_disks();
}

#[test]
fn a_page_that_is_written_frees_its_blocks_for_who_waits() {
    let shape = Shape { block_slots: 2, ..shape_far_apart(2, 4, 4, Some(REQUEST_BYTES)) };
    let mut job = Job::new(shape, &mut Rng::with_seed(1));
    write_all(&mut job);
    // A dirty block stays while the home has the newer page.
    cost(&mut job, 1, What::Put, at(1, 0));
    cost(&mut job, 0, What::Set(5), Range { home: 0, start_bytes: PAGE_BYTES, len_bytes: PAGE_BYTES });
    let two_blocks = Range { len_bytes: 8, start_bytes: 2 * PAGE_BYTES + BLOCK_BYTES - 4, home: 0 };
    cost_of(&mut job, |job| {
        job.nodes[0].engine.discard(Space::of_segment(Rank(0)), &(1..=1));
        job.start(1, What::Get, two_blocks, &mut Rng::with_seed(2));
    });
    assert_eq!(holders(&job, 1), []);
}

#[test]
fn a_put_waits_for_the_write_of_its_block_whatever_is_read_meanwhile() {
    let shape = Shape { block_slots: 2, ..shape_far_apart(2, 4, 4, Some(REQUEST_BYTES)) };
    let mut job = Job::new(shape, &mut Rng::with_seed(1));
    write_all(&mut job);
    cost(&mut job, 1, What::Put, at(1, 0));
    cost(&mut job, 1, What::Put, at(2, 0));
    job.nodes[0].disk.fill_up();
    // This block finds no free slot until the two dirty ones are written. The writes wait for space.
    job.start(1, What::Get, at(3, 0), &mut Rng::with_seed(2));
    settle(&mut job).expect("the disks are whole");
    job.start(1, What::Put, at(1, 0), &mut Rng::with_seed(3));
    settle(&mut job).expect("the disks are whole");
    job.start(0, What::Get, at(1, 0), &mut Rng::with_seed(4));
    settle(&mut job).expect("the disks are whole");
    assert!(job.nodes[0].operations.is_empty(), "the block may be read");
    assert_eq!(job.nodes[1].operations.len(), 2, "the put would change what is being written");
    job.nodes[0].disk.give_space();
    job.rouse(0);
    settle(&mut job).expect("the disks are whole");
    job.check_quiet();
    empty(&mut job);
    job.check_disks();
}
