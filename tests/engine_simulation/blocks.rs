//! Which bytes of a page reach the disk in a write-back.

use crate::client::{Range, What};
use crate::directed::{cost, cost_of, settle};
use crate::job::{Job, PAGE_BYTES};
use crate::mapper;
use crate::shape::Shape;
use crate::touch::Instruction;
use fastrand::Rng;
use vgasnet_memory as memory;
use vgasnet_protocol::coherence::Access;
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_protocol::{Rank, Space};
use vgasnet_sim_conduit::Settings;
use vgasnet_storage::BLOCK_BYTES;

const PAGES: u32 = 4;

/// Two ranks on these hosts.
fn job(hosts: [u32; 2], gap_bytes: usize) -> Job {
    let network = Settings { hosts: hosts.into(), ..Settings::immediate(2) };
    let ranks = vec![memory::Shape { pages: PAGES, frames: 8 }; 2];
    let (mapper, policy) = (mapper::Settings::WIDE, PolicyKind::default());
    Job::new(
        Shape {
            ranks,
            network,
            cooperative: true,
            stripe_pages: None,
            disk_depth: 4,
            gap_bytes,
            mapper,
            policy,
            ships: None,
            offers_max: 0,
            block_slots: 4,
            told_itself_max: 16,
        },
        &mut Rng::with_seed(1),
    )
}

/// Eight bytes in a block of rank 0's segment.
fn block(page: usize, block: usize) -> Range {
    Range { home: 0, start_bytes: page * PAGE_BYTES + block * BLOCK_BYTES + 100, len_bytes: 8 }
}

/// Writes back the dirty pages of `rank`. Returns the blocks written to rank 0's disk, as (start, length) in blocks
/// from the start of the segment.
fn written_back(job: &mut Job, rank: usize) -> Vec<(usize, usize)> {
    let before = job.nodes[0].disk.writes().len();
    cost_of(job, |job| {
        job.nodes[rank].engine.flush();
        job.rouse(rank);
    });
    job.check_disks();
    let writes = job.nodes[0].disk.writes().split_off(before);
    writes.into_iter().map(|(at, len_bytes)| (at as usize / BLOCK_BYTES, len_bytes / BLOCK_BYTES)).collect()
}

/// The client of `rank` pins a page of its segment, which fetches it into the rank's own pool, and unpins it.
fn pin(job: &mut Job, rank: usize, index: u32) {
    let mut random = Rng::with_seed(2);
    job.pin(rank, index..=index, Access::Read);
    while !job.nodes[rank].pinners.is_empty() {
        if !job.advance_pinner(rank, 0, &mut random) {
            settle(job).expect("the disks are whole");
        }
    }
    cost_of(job, |_| {});
}

#[test]
fn only_blocks_that_were_put_to_are_written() {
    let mut job = job([0, 0], 0);
    cost(&mut job, 0, What::Put, block(1, 2));
    assert_eq!(written_back(&mut job, 0), [(6, 1)], "the page was never written, the rest is zeros");
    cost(&mut job, 0, What::Put, block(1, 0));
    cost(&mut job, 0, What::Set(3), block(1, 3));
    assert_eq!(written_back(&mut job, 0), [(4, 1), (7, 1)], "what was written back is clean");
    cost(&mut job, 1, What::Put, block(1, 1));
    assert_eq!(written_back(&mut job, 1), [(5, 1)], "a neighbour gets what a holder has, with what is clean");
    cost(&mut job, 0, What::Put, Range { len_bytes: PAGE_BYTES, ..block(2, 0) });
    assert_eq!(written_back(&mut job, 0).iter().map(|(_, blocks)| blocks).sum::<usize>(), 5, "it crosses a border");
}

#[test]
fn a_page_from_the_disk_is_clean() {
    for (reader, hosts, expected) in [(0, [0, 0], 1), (1, [0, 0], 1), (1, [0, 1], 4)] {
        let mut job = job(hosts, 0);
        cost(&mut job, 0, What::Set(1), Range { home: 0, start_bytes: 0, len_bytes: PAGE_BYTES });
        assert_eq!(written_back(&mut job, 0), [(0, 4)], "it was overwritten whole");
        cost_of(&mut job, |job| {
            job.nodes[0].engine.discard(Space::of_segment(Rank(0)), &(0..=0));
            job.rouse(0);
        });
        cost(&mut job, reader, What::Put, block(0, 2));
        let blocks: usize = written_back(&mut job, reader).iter().map(|(_, blocks)| blocks).sum();
        assert_eq!(blocks, expected, "by rank {reader} on host {}", hosts[reader]);
    }
}

#[test]
fn dirty_blocks_of_a_page_that_was_handed_on_are_written_by_who_has_it() {
    for (hosts, expected) in [([0, 0], vec![(12, 1), (14, 1)]), ([0, 1], vec![(12, 4)])] {
        let mut job = job(hosts, 0);
        cost(&mut job, 1, What::Put, block(3, 0));
        // First a copy for a client that pins the page, then the right to write.
        pin(&mut job, 0, 3);
        cost(&mut job, 0, What::Put, block(3, 2));
        assert_eq!(written_back(&mut job, 0), expected);
    }
}

#[test]
fn a_page_that_is_stored_to_is_written_whole() {
    let mut job = job([0, 0], 0);
    cost_of(&mut job, |job| job.spawn(0, vec![Instruction::store(block(1, 2))]));
    assert_eq!(written_back(&mut job, 0), [(4, 4)]);
    cost(&mut job, 0, What::Put, block(1, 2));
    assert_eq!(written_back(&mut job, 0), [(6, 1)], "it is not mapped for stores any more");
}

#[test]
fn pages_side_by_side_with_little_between_them_are_written_without_gaps() {
    let mut job = job([0, 0], 2 * BLOCK_BYTES);
    for (page, at) in [(0, 3), (1, 1), (3, 1)] {
        cost(&mut job, 0, What::Put, block(page, at));
    }
    assert_eq!(written_back(&mut job, 0), [(3, 1), (4, 2), (13, 1)]);
}
