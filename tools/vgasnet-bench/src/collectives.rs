//! Throughput of collectives of large blocks to all ranks, compared with a copy of the same size by one thread.

use crate::baseline::PageCopies;
use crate::plan::Spec;
use crate::rank::{Rank, fail};
use serde::{Deserialize, Serialize};
use vgasnet::coll::{Call, Caller, Syncs};
use vgasnet_measuring::memory::Memory;
use vgasnet_measuring::progress;
use vgasnet_protocol::collectives::TEAM_ALL;
use vgasnet_protocol::collectives::plan::CollectiveKind;

/// Collectives in one measurement.
const TIMES: u32 = 4;

/// Measurements of rank 0 by round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    pub collectives: Vec<Timed>,
}

/// A collective. Its rounds alternate with rounds of the others and with copies.
#[derive(Debug, Serialize, Deserialize)]
pub struct Timed {
    pub name: String,
    /// Total bytes received by ranks from other ranks.
    pub received_bytes: usize,
    pub seconds_each: Vec<f64>,
    /// `memcpy` of the same number of bytes by one thread while the others wait.
    pub copy_seconds_each: Vec<f64>,
}

/// Runs rounds of each collective. In each, every rank receives `spec.data_bytes`.
pub fn run(rank: &Rank, spec: &Spec) -> Option<Found> {
    let (ranks, total_bytes) = (rank.ranks as usize, spec.data_bytes as usize);
    let kinds = [
        ("broadcast", CollectiveKind::Broadcast, total_bytes),
        ("gather_all", CollectiveKind::GatherAll, total_bytes / ranks),
        ("exchange", CollectiveKind::Exchange, total_bytes / ranks),
    ];
    let timed = |(name, kind, block_bytes): (&str, CollectiveKind, usize)| {
        // A rank's own block does not count.
        let blocks = if kind == CollectiveKind::Broadcast { ranks - 1 } else { ranks * (ranks - 1) };
        let received_bytes = blocks * block_bytes;
        Timed { name: name.into(), received_bytes, seconds_each: vec![], copy_seconds_each: vec![] }
    };
    let mut found = Found { collectives: kinds.into_iter().map(timed).collect() };
    let (source, destination) = (Memory::allocated(total_bytes, true), Memory::allocated(total_bytes, true));
    let mut copies = rank.is_first().then(|| PageCopies::new(total_bytes));
    let bar = progress::bar(rank.is_first(), "collectives", u64::from(spec.repeat) * kinds.len() as u64);
    for round in 0..=spec.repeat {
        for (at, (_, kind, block_bytes)) in kinds.into_iter().enumerate() {
            fill(rank, kind, &source, block_bytes, round);
            rank.barrier();
            let seconds =
                rank.time(|| (0..TIMES).for_each(|_| collective(rank, kind, &source, &destination, block_bytes)));
            check(rank, kind, &destination, block_bytes, round);
            let copied = copies.as_mut().map(|copies| copies.run());
            rank.barrier();
            // The first round only touches the memory.
            if let Some(copied) = copied.filter(|_| round > 0) {
                let timed = &mut found.collectives[at];
                timed.seconds_each.push(seconds.as_secs_f64() / f64::from(TIMES));
                timed.copy_seconds_each.push(copied * timed.received_bytes as f64 / total_bytes as f64);
                bar.inc(1);
            }
        }
    }
    rank.is_first().then_some(found)
}

fn collective(rank: &Rank, kind: CollectiveKind, source: &Memory, destination: &Memory, block_bytes: usize) {
    let call = Call {
        kind,
        team: TEAM_ALL,
        caller: Caller { me: rank.me, nth: 0 },
        root: 0,
        source: source.start().expose_provenance(),
        destination: destination.start().expose_provenance(),
        block_bytes,
        reduce: None,
        sync: Syncs { all_in: false, all_out: true },
    };
    // SAFETY: source and destination have room for the blocks of all ranks. Only this thread uses them.
    if let Err(error) = unsafe { rank.runtime.coll().run(&call) } {
        fail(error.to_string());
    }
}

/// The first byte of a block sent from one rank to another.
fn mark(kind: CollectiveKind, from: u32, to: u32, round: u32) -> u8 {
    let to = if kind == CollectiveKind::Exchange { to } else { 0 };
    (1 + from * 31 + to * 7 + round * 3) as u8
}

fn fill(rank: &Rank, kind: CollectiveKind, source: &Memory, block_bytes: usize, round: u32) {
    let blocks = if kind == CollectiveKind::Exchange { rank.ranks } else { 1 };
    for to in 0..blocks {
        let start = to as usize * block_bytes;
        // SAFETY: the memory has the blocks of all ranks. No collective is in flight.
        unsafe {
            let mark = mark(kind, rank.me, to, round);
            source.start().add(start).write(mark);
            source.start().add(start + block_bytes - 1).write(mark);
        }
    }
}

fn check(rank: &Rank, kind: CollectiveKind, destination: &Memory, block_bytes: usize, round: u32) {
    let blocks = if kind == CollectiveKind::Broadcast { 1 } else { rank.ranks };
    for from in 0..blocks {
        let start = from as usize * block_bytes;
        // SAFETY: the memory has the blocks of all ranks. No collective is in flight.
        let ends = unsafe { [start, start + block_bytes - 1].map(|at| destination.start().add(at).read()) };
        if ends != [mark(kind, from, rank.me, round); 2] {
            fail(format!("{kind:?}: the block of rank {from} has arrived wrong"));
        }
    }
}
