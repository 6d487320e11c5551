//! Traces of programs: ours against the paper's policy and Belady's.

use crate::belady;
use crate::paper::Paper;
use crate::traces::{self, Trace};
use crate::twin::Twin;
use vgasnet_protocol::get_cache::{Answer, Key, Limits, Machine, Stats};

const SEED: u64 = 1;

fn limits(bytes: u64) -> Limits {
    Limits {
        chunk_bytes: (bytes / 64 * 64) as u32,
        chunks_max: 1,
        chunks_start: 1,
        entries_max: 1 << 16,
        entries_start: 64,
        len_max: 64 << 10,
        seed: SEED,
    }
}

fn start_of_next(end: &mut u64, bytes: u32) -> u64 {
    *end += u64::from(bytes);
    *end - u64::from(bytes)
}

/// Runs a trace. Each get's bytes have come before the next one.
fn run(trace: &Trace, limits: Limits) -> Stats {
    let mut machine: Machine<Twin, ()> = Machine::new(Twin::new(&limits), limits);
    let addresses: Vec<u64> = trace.sizes.iter().scan(0, |end, bytes| Some(start_of_next(end, *bytes))).collect();
    for object in trace.gets.iter().map(|object| *object as usize) {
        let key = Key { space: 0, target: 1, address: addresses[object] };
        if machine.is_dormant() && !machine.hasher().hash(&key).is_sampled() {
            machine.mirror.seen.dormant += 1;
            continue;
        }
        match machine.get(&key, trace.sizes[object].max(1), 1.0, ()) {
            Answer::Hit(part) => machine.mirror.unpin(part.entry),
            Answer::Miss { fill: Some(part), .. } => _ = machine.fill(part.entry),
            _ => {}
        }
    }
    machine.stats()
}

fn static_hits(trace: &Trace, bytes: u64) -> u64 {
    let mut uses = vec![0u64; trace.sizes.len()];
    trace.gets.iter().for_each(|o| uses[*o as usize] += 1);
    let mut all: Vec<(f64, u64, u64)> = uses.iter().zip(&trace.sizes).filter(|(u, _)| **u > 0).map(|(u, s)| { let b = u64::from(s.div_ceil(64).max(1) * 64); ((*u - 1) as f64 / b as f64, *u - 1, b) }).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut left, mut hits) = (bytes, 0);
    for (_, u, b) in all { if b <= left { left -= b; hits += u; } }
    hits
}

#[test]
fn table() {
    for trace in traces::all(SEED) {
        let all = trace.bytes();
        println!("{} gets {} bytes {}", trace.name, trace.gets.len(), all);
        for part in [16, 4, 2, 1] {
            let bytes = (all / part).max(1 << 15);
            let gets = trace.gets.len() as f64;
            let stats = run(&trace, limits(bytes));
            let optimum = belady::hits(&trace, bytes);
            let paper = Paper::new(&trace, 1 << 15, bytes).hits();
            println!(
                "  static {:.4} 1/{part:<3} {:>8} KiB: ours {:.4} paper {:.4} belady {:.4}  ratio {:.3} occ {:.3} capacity {} failing {} conflicting {} dormant {}",
                static_hits(&trace, bytes) as f64 / gets,
                bytes >> 10,
                stats.hits as f64 / gets,
                paper as f64 / gets,
                optimum as f64 / gets,
                stats.hits as f64 / optimum as f64,
                stats.bytes_used as f64 / stats.bytes_held as f64,
                stats.capacity, stats.failing, stats.conflicting, stats.dormant
            );
        }
    }
}
