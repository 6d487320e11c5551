//! Program traces: this cache against the paper's policy and Belady's.

use crate::belady;
use crate::paper::Paper;
use crate::traces::{self, Trace};
use crate::twin::Twin;
use vgasnet_protocol::get_cache::{Answer, Key, Limits, Machine, Stats, UNIT_BYTES, Want, units_of};

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

/// Runs a trace.
fn run(trace: &Trace, limits: Limits) -> Stats {
    run_weighted(trace, limits, |_| 1.0)
}

/// Runs a trace with weights of objects. Each get's bytes arrive before the next get.
fn run_weighted(trace: &Trace, limits: Limits, weight: impl Fn(usize) -> f32) -> Stats {
    let mut machine: Machine<Twin, ()> = Machine::new(Twin::new(&limits), limits);
    let addresses: Vec<u64> = trace.sizes.iter().scan(0, |end, bytes| Some(start_of_next(end, *bytes))).collect();
    for object in trace.gets.iter().map(|object| *object as usize) {
        let key = Key { space: 0, target: 1, address: addresses[object] };
        if machine.is_dormant() && !machine.hasher().hash(&key).is_sampled() {
            machine.mirror.seen.dormant += 1;
            continue;
        }
        match machine.get(&key, &Want::all(trace.sizes[object].max(1), weight(object)), ()) {
            Answer::Hit(part) => machine.mirror.unpin(part.entry),
            Answer::Miss { fill: Some(part), .. } => _ = machine.fill(part.entry),
            _ => {}
        }
    }
    machine.stats()
}

/// Hits of a static cache of the objects used most often per byte: the optimum with known frequencies and unknown
/// order.
fn static_hits(trace: &Trace, bytes: u64) -> u64 {
    let mut uses = vec![0u64; trace.sizes.len()];
    trace.gets.iter().for_each(|object| uses[*object as usize] += 1);
    let used = uses.iter().zip(&trace.sizes).filter(|(uses, _)| **uses > 0);
    let mut all: Vec<(u64, u64)> = used.map(|(uses, bytes)| (uses - 1, u64::from(units_of(*bytes)))).collect();
    all.sort_by(|one, other| (other.0 * one.1).cmp(&(one.0 * other.1)));
    let (mut left, mut hits) = (bytes / u64::from(UNIT_BYTES), 0);
    for (uses, units) in all {
        if units <= left {
            (left, hits) = (left - units, hits + uses);
        }
    }
    hits
}

/// The best expected hit ratio with independent draws, each object's probability proportional to its size, for any
/// content of `bytes`: the objects used most often per unit. Belady's policy knows the draws in advance.
fn drawn_by_size(trace: &Trace, bytes: u64) -> f64 {
    let mut is_used = vec![false; trace.sizes.len()];
    trace.gets.iter().for_each(|object| is_used[*object as usize] = true);
    let used = trace.sizes.iter().zip(is_used).filter(|(_, is_used)| *is_used);
    let mut all: Vec<(f64, f64)> = used.map(|(bytes, _)| (f64::from(*bytes), f64::from(units_of(*bytes)))).collect();
    all.sort_by(|one, other| (other.0 / other.1).total_cmp(&(one.0 / one.1)));
    let (mut left, mut drawn) = ((bytes / u64::from(UNIT_BYTES)) as f64, 0.0);
    for (often, units) in &all {
        let part = (left / units).min(1.0);
        (left, drawn) = (left - part * units, drawn + part * often);
    }
    drawn / all.iter().map(|(often, _)| often).sum::<f64>()
}

/// Results for a cache of one chunk: this one, and the others.
struct Row {
    ours: Stats,
    paper: u64,
    belady: u64,
}

fn row(trace: &Trace, bytes: u64) -> Row {
    let row = Row {
        ours: run(trace, limits(bytes)),
        paper: Paper::new(trace, 1 << 15, bytes).hits(),
        belady: belady::hits(trace, bytes),
    };
    let share = |hits: u64| hits as f64 / trace.gets.len() as f64;
    println!(
        "{:<13} {:>6} KiB: hits {:.4}, paper {:.4}, most by use {:.4}, Belady {:.4}",
        trace.name,
        bytes >> 10,
        share(row.ours.hits),
        share(row.paper),
        share(static_hits(trace, bytes)),
        share(row.belady)
    );
    row
}

#[test]
fn no_fewer_gets_hit_than_by_the_papers_policy() {
    for trace in traces::all(SEED) {
        for part in [16, 8, 4, 3, 2, 1] {
            let bytes = (trace.bytes() / part).max(1 << 15).next_multiple_of(64);
            let row = row(&trace, bytes);
            assert!(row.ours.hits >= row.paper, "{}, a part of {part}", trace.name);
            let is_at_least = |percent: u64| row.ours.hits * 100 >= row.belady * percent;
            assert!(trace.name != "lcc" || part > 1 || is_at_least(90));
            assert!(!["mixed normal", "zipf"].contains(&trace.name) || part > 4 || is_at_least(90), "{}", trace.name);
        }
    }
}

/// With less memory than all lists need, nine tenths of Belady's hits for the local clustering coefficient exceed the
/// expectation of any policy without knowledge of the order. Lists are used in proportion to their length, so all have
/// about the same value per byte. With degrees as weights, this cache comes close to the expectation.
#[test]
fn lists_of_neighbours_hit_as_can_be_expected() {
    for seed in [SEED, SEED + 1, SEED + 2] {
        let trace = traces::lcc(seed);
        let mean = trace.bytes() as f32 / trace.sizes.len() as f32;
        for part in [4, 2] {
            let bytes = (trace.bytes() / part).next_multiple_of(64);
            let share = |hits: u64| hits as f64 / trace.gets.len() as f64;
            let ours = share(run(&trace, limits(bytes)).hits);
            let weighted = run_weighted(&trace, limits(bytes), |object| trace.sizes[object] as f32 / mean);
            let weighted = share(weighted.hits);
            let (expected, belady) = (drawn_by_size(&trace, bytes), share(belady::hits(&trace, bytes)));
            let paper = share(Paper::new(&trace, 1 << 15, bytes).hits());
            println!(
                "lcc {seed}, a part of {part}: hits {ours:.4}, by degree {weighted:.4}, to be expected {expected:.4}, \
                 by use {:.4}, Belady {belady:.4}, paper {paper:.4}",
                share(static_hits(&trace, bytes))
            );
            assert!(0.9 * belady > expected, "it is out of reach");
            assert!(weighted >= 0.85 * expected && weighted >= 1.05 * paper, "seed {seed}, a part of {part}");
            // Among lists used once the short ones stay: nothing shows them to be used less often.
            assert!(ours >= 0.98 * paper, "seed {seed}, a part of {part}");
        }
    }
}

#[test]
fn little_memory_is_lost_between_entries() {
    for trace in [traces::mixed_normal(SEED), traces::zipf(SEED)] {
        for part in [8, 4, 2] {
            let bytes = trace.bytes() / part;
            let ours = run(&trace, limits(bytes));
            let occupancy = ours.bytes_used as f64 / ours.bytes_held as f64;
            let paper = Paper::new(&trace, 1 << 15, bytes).occupancy();
            println!("{}, a part of {part}: {occupancy:.3} used, paper {paper:.3}", trace.name);
            assert!(occupancy >= 0.9, "{}", trace.name);
        }
    }
}

#[test]
fn a_cache_that_begins_badly_soon_does_as_well() {
    for trace in [traces::lcc(SEED), traces::barnes_hut(SEED), traces::zipf(SEED)] {
        let chunk_bytes = ((trace.bytes() / 16).max(16 << 10) as u32).next_multiple_of(64);
        let chunks_max = (trace.bytes() / u64::from(chunk_bytes)) as u32;
        let missed = |entries_start: u32, chunks_start: u32| {
            let limits = Limits { chunk_bytes, chunks_max, chunks_start, entries_start, ..limits(1 << 20) };
            trace.gets.len() as u64 - run(&trace, limits).hits
        };
        let best = missed(1 << 16, chunks_max);
        for entries in [1, 512, 1 << 16] {
            for chunks in [1, 4, chunks_max] {
                let missed = missed(entries, chunks);
                println!("{} from {entries} entries, {chunks} chunks: {missed} missed, {best} at best", trace.name);
                assert!(missed * 10 <= best * 11, "{}", trace.name);
            }
        }
    }
}

#[test]
fn recent_entries_are_counted_right_while_memory_grows_and_shrinks() {
    let limits = Limits { chunk_bytes: 8 << 10, chunks_max: 8, ..limits(64 << 10) };
    let mut machine: Machine<Twin, ()> = Machine::new(Twin::new(&limits), limits);
    let mut random = fastrand::Rng::with_seed(SEED);
    for cycle in 0..12_u64 {
        for at in 0..24_000_u64 {
            // A scan makes the cache dormant and shrinks it. Afterwards the same keys are used repeatedly.
            let number = if cycle % 2 == 0 { cycle << 32 | at } else { random.u64(0..600) };
            let key = Key { space: 0, target: 1, address: number << 13 };
            if machine.is_dormant() && !machine.hasher().hash(&key).is_sampled() {
                machine.mirror.seen.dormant += 1;
                continue;
            }
            match machine.get(&key, &Want::all(1 + (number % 4096) as u32, 1.0), ()) {
                Answer::Hit(part) => machine.mirror.unpin(part.entry),
                Answer::Miss { fill: Some(part), .. } => _ = machine.fill(part.entry),
                _ => {}
            }
            let (units, of_entries) = machine.window_units();
            assert_eq!(units, of_entries, "get {at} of cycle {cycle}");
        }
    }
}
