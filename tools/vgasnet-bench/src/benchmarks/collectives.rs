//! Throughput of collectives of large blocks to all ranks, compared with a copy of the same size by one thread.

use crate::Stop;
use crate::prelude::*;
use vgasnet::coll::{Call, Caller, Syncs};
use vgasnet_protocol::collectives::TEAM_ALL;
use vgasnet_protocol::collectives::plan::CollectiveKind;

/// Collectives in one measurement.
const TIMES: u32 = 4;

/// Collectives of large blocks among ranks of one host: bytes received by all ranks, compared with a copy by one
/// thread
#[derive(Args, Serialize, Deserialize)]
pub struct Collectives {
    #[command(flatten)]
    setup: Setup,

    /// Bytes received by every rank, from all ranks together
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = parse_size)]
    size: u64,

    /// Number of ranks
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = within(2..=64))]
    ranks: u32,

    /// Whether ranks see each other's memory, as on one host; off is the same as on different hosts
    #[arg(long, value_enum, default_value_t = Switch::On)]
    peer_memory: Switch,

    #[command(flatten)]
    judging: Judging,
}

impl Benchmark for Collectives {
    const NAME: &'static str = "collectives";
    const DATA: Data = Data::None;

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let least_bytes = u64::from(self.ranks);
        if self.size < least_bytes {
            return Err(Stop::usage(format!("--size {}: give at least a byte a rank, {least_bytes}", self.size)));
        }
        let job =
            |&peer_memory| Ok(Job::in_modes(self, self.ranks, true, peer_memory, &self.setup)?.with_data(self.size, 0));
        self.peer_memory.values().iter().map(job).collect()
    }

    /// Runs rounds of each collective, in alternation with copies. In each, every rank receives `spec.data_bytes`.
    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let (ranks, total_bytes) = (rank.ranks as usize, spec.data_bytes as usize);
        let kinds = [
            ("broadcast", CollectiveKind::Broadcast, total_bytes),
            ("gather_all", CollectiveKind::GatherAll, total_bytes / ranks),
            ("exchange", CollectiveKind::Exchange, total_bytes / ranks),
        ];
        let (source, destination) = (Memory::allocated(total_bytes, true), Memory::allocated(total_bytes, true));
        let mut copies = rank.is_first().then(|| PageCopies::new(total_bytes));
        let mut rows = kinds.map(|(name, kind, block_bytes)| {
            let received_bytes = received_bytes(kind, ranks, block_bytes);
            Row::labelled(name.replace('_', " ")).keep("name", name).show("received_bytes", received_bytes)
        });
        let bar = progress::bar(rank.is_first(), "collectives", u64::from(spec.repeat) * kinds.len() as u64);
        for round in 0..=spec.repeat {
            for ((_, kind, block_bytes), row) in kinds.into_iter().zip(&mut rows) {
                fill(rank, kind, &source, block_bytes, round);
                rank.barrier();
                let collective = || collective(rank, kind, &source, &destination, block_bytes);
                let seconds = rank.time(|| (0..TIMES).for_each(|_| collective()));
                check(rank, kind, &destination, block_bytes, round);
                let copied = copies.as_mut().map(|copies| copies.run());
                rank.barrier();
                // The first round only touches the memory.
                if let Some(copied) = copied.filter(|_| round > 0) {
                    row.add("seconds", seconds.as_secs_f64() / f64::from(TIMES));
                    row.add("copy_seconds", copied * row.number("received_bytes") / total_bytes as f64);
                    bar.inc(1);
                }
            }
        }
        let rows = rows.map(|row| {
            let [own, copy] = ["seconds", "copy_seconds"].map(|name| row.number("received_bytes") / row.number(name));
            let row = row
                .hide(&["seconds", "copy_seconds"])
                .show("bytes_per_second", own)
                .show("copy_bytes_per_second", copy);
            row.ratio("to_memcpy", "bytes_per_second", "copy_bytes_per_second")
        });
        let [broadcast, _, exchange] = [0, 1, 2].map(|at| rows[at].number("to_memcpy"));
        Figures::of(Row::default().rows("collectives", rows.into()))
            .target("broadcast_to_memcpy", "broadcast, all ranks, to memcpy", broadcast, Bound::AtLeast, 0.5)
            .target("exchange_to_memcpy", "exchange, all ranks, to memcpy", exchange, Bound::AtLeast, 0.5)
    }
}

/// Bytes received by ranks from other ranks. A rank's own block does not count.
fn received_bytes(kind: CollectiveKind, ranks: usize, block_bytes: usize) -> usize {
    let blocks = if kind == CollectiveKind::Broadcast { ranks - 1 } else { ranks * (ranks - 1) };
    blocks * block_bytes
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
