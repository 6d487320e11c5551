//! Runs the production engines of many ranks in virtual time against a model of a cluster.

mod conduit;
mod disk;
mod job;
mod machine;
mod program;
mod rank;
mod world;

use clap::Parser;
use job::Job;
use machine::Machine;
use program::{Data, Order, Program};
use rank::VirtualRank;
use std::path::PathBuf;
use std::process::ExitCode;
use vgasnet::engine::Manner;
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_protocol::shipping::REQUEST_BYTES;

#[derive(Parser)]
#[command(about, long_about = None)]
struct Options {
    /// The machine file.
    machine: PathBuf,
    /// How many ranks.
    #[arg(short = 'n', long, default_value_t = 4)]
    ranks: u32,
    /// The order of accesses.
    #[arg(long, value_enum, default_value = "sequential")]
    order: Order,
    /// All data, in pools of one rank.
    #[arg(long, default_value_t = 2.0)]
    data: f64,
    /// Pools and data are so much smaller than the machine's.
    #[arg(long, default_value_t = 64)]
    scale: u64,
    /// Bytes of an access; a page by default.
    #[arg(long)]
    bytes: Option<usize>,
    /// Puts, not gets.
    #[arg(long)]
    put: bool,
    /// Ranks do not use each other's pools.
    #[arg(long)]
    uncooperative: bool,
    /// Small accesses move pages.
    #[arg(long)]
    no_ship: bool,
    /// The data is spread over the segments of all ranks, not in that of the first.
    #[arg(long)]
    spread: bool,
    /// How often the data is gone through.
    #[arg(long, default_value_t = 2)]
    passes: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("vgasnet-sim: {line}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut machine = Machine::read(&options.machine)?;
    let page_bytes = machine.node.page as usize;
    machine.node.pool = (machine.node.pool / options.scale).max(16 * machine.node.page);
    let frames = machine.node.pool / machine.node.page;
    let homes = if options.spread { options.ranks } else { 1 };
    let pages_each = ((frames as f64 * options.data / f64::from(homes)).ceil() as u32).max(1);
    let data = Data { homes, pages_each, page_bytes };
    let manner = Manner {
        policy: PolicyKind::default(),
        cooperative: !options.uncooperative,
        ships: (!options.no_ship).then_some(REQUEST_BYTES),
    };
    let ranks = options.ranks;
    let mut job = Job::new(&machine, ranks, data, manner);
    let len_bytes = options.bytes.unwrap_or(page_bytes);
    let filled = job.run(|rank| Program::fill(data, rank, ranks))?;
    job.flush()?;
    println!("filled in {:.3} s", filled as f64 / 1e9);
    for pass in 0..options.passes {
        let before = job.world.traffic();
        let seed = |rank: u32| options.seed.wrapping_mul(1_000_003) + (u64::from(rank) << 16) + pass;
        let took = job.run(|rank| Program::of_all(data, options.order, len_bytes, options.put, seed(rank)))?;
        let traffic = job.world.traffic();
        let sum = |of: fn(&VirtualRank) -> u64| job.ranks.iter().map(of).sum::<u64>();
        let (hits, misses, waited) = (sum(|rank| rank.hits), sum(|rank| rank.misses), sum(|rank| rank.waited));
        let bytes = (data.pieces(len_bytes) * len_bytes as u64) as f64;
        println!(
            "pass {pass}: {:.3} s, {:.1} MB/s a rank, {hits} hits, {misses} misses of {:.1} us, {:.2} messages a miss, {} transfers, {} reads, {} writes",
            took as f64 / 1e9,
            bytes / (took as f64 / 1e9) / 1e6,
            waited as f64 / misses.max(1) as f64 / 1e3,
            (traffic.messages - before.messages) as f64 / misses.max(1) as f64,
            traffic.transfers - before.transfers,
            traffic.disk_reads - before.disk_reads,
            traffic.disk_writes - before.disk_writes,
        );
    }
    Ok(())
}
