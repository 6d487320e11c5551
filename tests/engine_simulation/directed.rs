//! Runs with an outcome known in advance: the messages of hits and misses, and how an I/O error ends the job.

use crate::client::{Range, What};
use crate::job::{Job, PAGE_BYTES};
use crate::mapper;
use crate::shape::Shape;
use crate::touch::Instruction;
use fastrand::Rng;
use vgasnet_memory::{self as memory, FRAMES_MIN};
use vgasnet_protocol::coherence::{
    Action, CoherenceBody, CoherenceMessage, Event, FrameId, PageId, Priority, Protocol, ToCache, ToHome,
};
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_protocol::{Limits, Rank, RankSizes, Space};
use vgasnet_settings::UserError;
use vgasnet_sim_conduit::{Settings, Traffic};

pub const LINE: Range = Range { home: 0, start_bytes: PAGE_BYTES, len_bytes: 64 };

/// Ranks on one host each, with an immediate network.
pub fn far_apart(ranks: u32, pages: u32, frames: u32) -> Job {
    far_apart_with(ranks, pages, frames, None)
}

/// The same, with `EngineOptions::ships`.
pub fn far_apart_with(ranks: u32, pages: u32, frames: u32, ships: Option<u64>) -> Job {
    Job::new(shape_far_apart(ranks, pages, frames, ships), &mut Rng::with_seed(1))
}

/// The shape of such a job.
pub fn shape_far_apart(ranks: u32, pages: u32, frames: u32, ships: Option<u64>) -> Shape {
    let network = Settings { hosts: (0..ranks).collect(), ..Settings::immediate(ranks) };
    Shape {
        ranks: vec![memory::Shape { pages, frames }; ranks as usize],
        network,
        cooperative: true,
        stripe_pages: None,
        disk_depth: 4,
        gap_bytes: 0,
        mapper: mapper::Settings::WIDE,
        policy: PolicyKind::default(),
        ships,
        offers_max: 0,
        block_slots: 4,
        told_itself_max: 16,
    }
}

/// Drives the ranks in rotation until nothing can happen.
pub fn settle(job: &mut Job) -> Result<(), UserError> {
    settle_with(job, |job| job.check())
}

/// The same, and calls `look` after each step of a rank.
pub fn settle_with(job: &mut Job, mut look: impl FnMut(&mut Job)) -> Result<(), UserError> {
    loop {
        let mut worked = false;
        for rank in 0..job.nodes.len() {
            if job.is_awake(rank) {
                job.drive(rank)?;
                worked = true;
            }
            while job.take(rank) {}
            while !job.nodes[rank].tasks.is_empty() {
                job.go_on(rank, 0);
                worked = true;
            }
            for at in (0..job.nodes[rank].operations.len()).rev() {
                worked |= job.advance(rank, at);
            }
            worked |= job.take_mail(rank);
            for at in (0..job.nodes[rank].threads.len()).rev() {
                worked |= job.advance_thread(rank, at, &mut Rng::with_seed(4));
            }
            look(job);
        }
        if !worked {
            return Ok(());
        }
    }
}

/// The traffic of an operation, from its start to its end.
pub fn cost(job: &mut Job, rank: usize, what: What, range: Range) -> Traffic {
    cost_of(job, |job| job.start(rank, what, range, &mut Rng::with_seed(2)))
}

/// The traffic caused by `start`.
pub fn cost_of(job: &mut Job, start: impl FnOnce(&mut Job)) -> Traffic {
    let before = job.hub.traffic();
    start(job);
    settle(job).expect("the disks are whole");
    job.check_quiet();
    let after = job.hub.traffic();
    Traffic { messages: after.messages - before.messages, transfers: after.transfers - before.transfers }
}

#[test]
fn a_read_that_a_holder_serves_takes_four_messages_and_one_transfer() {
    let mut job = far_apart(4, 2, 2);
    cost(&mut job, 1, What::Put, LINE);
    // First from the owner, then from readers.
    for rank in [2, 3] {
        assert_eq!(cost(&mut job, rank, What::Get, LINE), Traffic { messages: 4, transfers: 1 });
    }
    for rank in [1, 2, 3] {
        assert_eq!(cost(&mut job, rank, What::Get, LINE), Traffic::default(), "a hit costs nothing");
    }
}

#[test]
fn a_put_by_the_owner_costs_nothing() {
    let mut job = far_apart(3, 2, 2);
    // Request, grant, done. The page was never written, so nothing is transferred.
    assert_eq!(cost(&mut job, 1, What::Put, LINE), Traffic { messages: 3, transfers: 0 });
    assert_eq!(cost(&mut job, 1, What::Put, LINE), Traffic::default());
    assert_eq!(cost(&mut job, 2, What::Put, LINE), Traffic { messages: 4, transfers: 1 }, "from owner to owner");
}

#[test]
fn neighbours_share_one_copy() {
    let network = Settings::immediate(3);
    let ranks = vec![memory::Shape { pages: 2, frames: 2 }; 3];
    let (mapper, policy) = (mapper::Settings::WIDE, PolicyKind::default());
    let shape = Shape {
        ranks,
        network,
        cooperative: true,
        stripe_pages: None,
        disk_depth: 4,
        gap_bytes: 0,
        mapper,
        policy,
        ships: None,
        offers_max: 0,
        block_slots: 4,
        told_itself_max: 16,
    };
    let mut job = Job::new(shape, &mut Rng::with_seed(1));
    cost(&mut job, 1, What::Put, LINE);
    for rank in [0, 2] {
        assert_eq!(cost(&mut job, rank, What::Get, LINE), Traffic::default());
        assert_eq!(cost(&mut job, rank, What::Put, LINE), Traffic::default());
    }
}

#[test]
fn a_load_or_store_costs_what_a_get_or_put_costs_and_once_mapped_nothing() {
    for (what, instruction) in [(What::Get, Instruction::load(LINE)), (What::Put, Instruction::store(LINE))] {
        let [mut called, mut touched] = [(); 2].map(|()| {
            let mut job = far_apart(3, 2, FRAMES_MIN);
            cost(&mut job, 1, What::Put, LINE);
            cost(&mut job, 2, What::Get, LINE);
            job
        });
        let expected = cost(&mut called, 0, what, LINE);
        assert_eq!(cost_of(&mut touched, |job| job.spawn(0, vec![instruction.clone()])), expected);
        assert_eq!((touched.seen.faults, touched.seen.silent), (1, 0));
        assert_eq!(cost_of(&mut touched, |job| job.spawn(0, vec![instruction; 3])), Traffic::default());
        assert_eq!((touched.seen.faults, touched.seen.accesses, touched.seen.silent), (1, 0, 3));
    }
}

/// Rank 1 writes a page of rank 0, the page reaches rank 0's disk, and rank 2 reads it: staging in both directions.
fn use_the_disk(job: &mut Job) -> Result<(), UserError> {
    for (rank, what) in [(1, What::Set(7)), (2, What::Get)] {
        job.start(rank, what, LINE, &mut Rng::with_seed(3));
        settle(job)?;
        // There is one frame: the other page replaces this one.
        job.start(rank, What::Get, Range { start_bytes: 0, ..LINE }, &mut Rng::with_seed(3));
        settle(job)?;
    }
    Ok(())
}

#[test]
fn an_io_error_is_told_with_its_page() {
    let mut whole = far_apart(3, 2, 1);
    use_the_disk(&mut whole).expect("the disk is whole");
    let offset = PAGE_BYTES as u64;
    let mut job = far_apart(3, 2, 1);
    job.nodes[0].disk.configure(|storage| storage.fail_writes_after(0));
    let error = use_the_disk(&mut job).expect_err("the page cannot be written").to_string();
    assert!(error.starts_with(&format!("cannot write the page at offset {offset} of this rank's segment")), "{error}");
    let mut job = far_apart(3, 2, 1);
    job.nodes[0].disk.configure(|storage| storage.fail_reads_after(0));
    let error = use_the_disk(&mut job).expect_err("the page cannot be read").to_string();
    assert!(error.starts_with(&format!("cannot read the page at offset {offset} of this rank's segment")), "{error}");
}

/// Ranks on other hosts evict dirty pages of rank 0, whose disk is full. Their writes wait for space.
#[test]
fn reads_go_on_while_writes_wait_for_space() {
    let [reader, writer, elsewhere] = [4, 5, 7];
    let page = |index: usize| Range { start_bytes: index * PAGE_BYTES, ..LINE };
    let start = |job: &mut Job, rank, what, index| job.start(rank, what, page(index), &mut Rng::with_seed(5));
    let mut job = far_apart(6, 8, 1);
    // Pages 5 and 6 reach the disk.
    for index in [5, 6, elsewhere] {
        start(&mut job, writer, What::Set(index as u8), index);
        settle(&mut job).expect("the disk is whole");
    }
    job.nodes[0].disk.fill_up();
    for evictor in 1..reader {
        start(&mut job, evictor, What::Set(1), evictor);
        settle(&mut job).expect("the disk is whole");
        start(&mut job, evictor, What::Get, elsewhere);
        settle(&mut job).expect("the disk is whole");
        assert_eq!(job.nodes[evictor].operations.len(), 1, "it waits for its frame");
    }
    // Once by staging, once into a frame of the home's own pool.
    for (rank, index) in [(reader, 5), (0, 6)] {
        start(&mut job, rank, What::Get, index);
        settle(&mut job).expect("the disk is whole");
        assert!(job.nodes[rank].operations.is_empty(), "the read at rank {rank} waits for a write");
    }
    job.nodes[0].disk.give_space();
    job.rouse(0);
    settle(&mut job).expect("the disk is whole");
    job.check_quiet();
}

/// Only rank 0 has the page, and evicts it to the disk.
fn leave_to_the_disk(job: &mut Job, index: u32) {
    job.nodes[0].engine.flush();
    job.rouse(0);
    settle(job).expect("the disk is whole");
    job.nodes[0].engine.discard(Space::of_segment(Rank(0)), &(index..=index));
    job.rouse(0);
    settle(job).expect("the disk is whole");
}

#[test]
fn a_page_that_cannot_be_read_ahead_fails_only_who_wants_it() {
    let mut job = far_apart(2, 4, 4);
    cost(&mut job, 0, What::Put, LINE);
    leave_to_the_disk(&mut job, 1);
    job.nodes[0].disk.configure(|storage| storage.fail_reads_after(0));
    job.nodes[0].engine.fetch(Space::of_segment(Rank(0)), 1..=1);
    job.rouse(0);
    settle(&mut job).expect("nobody waits for the page");
    assert_eq!((job.nodes[0].engine.storage().forgotten(), job.nodes[0].engine.pending().ahead), (1, 0));
    job.start(0, What::Get, LINE, &mut Rng::with_seed(3));
    let error = settle(&mut job).expect_err("the page cannot be read").to_string();
    assert!(error.starts_with(&format!("cannot read the page at offset {PAGE_BYTES}")), "{error}");
}

#[test]
fn a_page_of_zeros_is_zeros_in_a_frame_into_which_a_read_has_failed() {
    let mut job = far_apart(1, 8, 8);
    let page = |index: usize| Range { start_bytes: index * PAGE_BYTES, ..LINE };
    cost(&mut job, 0, What::Set(1), page(1));
    leave_to_the_disk(&mut job, 1);
    // This get takes the frame that held a page, so the read-ahead gets a frame of zeros.
    cost(&mut job, 0, What::Get, page(2));
    job.nodes[0].disk.configure(|storage| storage.fail_reads_after(0));
    job.nodes[0].engine.fetch(Space::of_segment(Rank(0)), 1..=1);
    job.rouse(0);
    settle(&mut job).expect("nobody waits for the page");
    assert_eq!(job.nodes[0].engine.storage().forgotten(), 1);
    (3..8).for_each(|index| _ = cost(&mut job, 0, What::Get, page(index)));
}

#[test]
fn what_somebody_waits_for_is_read_before_what_is_read_ahead() {
    let (pages, ahead, wanted) = (48, 23, 47);
    let mut job = far_apart(2, pages, pages);
    let page = |index: u32| Range { start_bytes: index as usize * PAGE_BYTES, ..LINE };
    for index in 0..pages {
        cost(&mut job, 0, What::Set(1), page(index));
    }
    job.nodes[0].engine.flush();
    job.rouse(0);
    settle(&mut job).expect("the disk is whole");
    job.nodes[0].engine.discard(Space::of_segment(Rank(0)), &(0..=pages - 1));
    job.rouse(0);
    settle(&mut job).expect("the disk is whole");
    let before = job.nodes[0].disk.reads().len();
    job.nodes[0].engine.fetch(Space::of_segment(Rank(0)), 0..=ahead);
    // One page outside of the fetched range, and the last page of the range.
    for index in [wanted, ahead] {
        job.start(0, What::Get, page(index), &mut Rng::with_seed(3));
    }
    settle(&mut job).expect("the disk is whole");
    job.check_quiet();
    let reads = job.nodes[0].disk.reads().split_off(before);
    let place = |index: u32| reads.iter().position(|read| *read == u64::from(index) * PAGE_BYTES as u64);
    assert_eq!(reads.len(), 25, "{reads:?}");
    let soon = |index| place(index).is_some_and(|place| place <= 16);
    assert!(soon(wanted) && soon(ahead), "few that were begun are ahead of those: {reads:?}");
}

#[test]
fn a_page_that_is_overwritten_whole_is_neither_read_nor_sent() {
    let whole = Range { home: 0, start_bytes: PAGE_BYTES, len_bytes: PAGE_BYTES };
    let mut job = far_apart(4, 2, 2);
    // Request, grant, done: no rank has the page.
    assert_eq!(cost(&mut job, 1, What::Put, whole), Traffic { messages: 3, transfers: 0 });
    assert_eq!(cost(&mut job, 2, What::Get, LINE), Traffic { messages: 4, transfers: 1 });
    // Two holders give it up, one of them the dirty owner: no transfer.
    assert_eq!(cost(&mut job, 3, What::Set(5), whole), Traffic { messages: 7, transfers: 0 });
    assert_eq!(job.seen.overwritten, 2);
    // A put of a part needs the other bytes of its page.
    assert_eq!(cost(&mut job, 1, What::Put, LINE), Traffic { messages: 4, transfers: 1 });
    job.nodes[1].engine.flush();
    job.rouse(1);
    settle(&mut job).expect("the disk is whole");
    for rank in 0..4 {
        cost(&mut job, rank, What::Get, Range { start_bytes: 0, ..LINE });
    }
    let reads = job.nodes[0].disk.reads().len();
    cost(&mut job, 2, What::Put, whole);
    assert_eq!(job.nodes[0].disk.reads().len(), reads, "the page is not read");
}

#[test]
fn a_copy_that_was_dropped_before_its_home_knew_of_it_is_forgotten() {
    let (page, frame, reader) = (PageId::of_segment(Rank(0), 0), FrameId(0), Rank(1));
    let sizes = RankSizes { pages: 1, frames: 1 };
    let mut home = Protocol::new(Limits::new(Rank(0), [sizes; 2]), true);
    let mut tell = |body| {
        let mut actions = Vec::new();
        let message = CoherenceMessage { page, body: CoherenceBody::Home(body) };
        home.handle(Event::Message { from: reader, message }, &mut actions).expect("it makes sense");
        (home.home.entries(), actions)
    };
    let (_, actions) = tell(ToHome::Read { frame, priority: Priority::Now });
    let [
        Action::Send {
            message: CoherenceMessage { body: CoherenceBody::Cache(ToCache::Data { version, .. }), .. },
            ..
        },
    ] = actions[..]
    else {
        panic!("a page never written is sent at once: {actions:?}")
    };
    // `Done` was sent first.
    tell(ToHome::Forget { copy: version });
    assert_eq!(tell(ToHome::Done { version }), (0, Vec::new()));
}
