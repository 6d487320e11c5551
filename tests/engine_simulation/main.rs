//! Whole engines under a simulated network and simulated disks. One thread draws the next event from a seed.
//!
//! The protocol's own simulation has only state machines, with one event at a time. This one adds the engine, the
//! storage server, page tables, pools and completions. Client threads pin and copy in the meantime. Other threads load
//! from and store to their rank's segment, through a mapper that only records its mappings.
//!
//! A failure prints the command that replays it. `ENGINE_SIM_SEEDS` sets how many seeds a run tries, `ENGINE_SIM_FIRST`
//! the first seed, `ENGINE_SIM_SEED` runs one.

mod blocks;
mod busy;
mod check;
mod cleaning;
mod client;
mod copies;
mod crowd;
mod directed;
mod disk;
mod files;
mod forged;
mod guests;
mod job;
mod mapped;
mod mapper;
mod model;
mod node;
mod phases;
mod pinned;
mod pins;
mod run;
mod runtimes;
mod seeds;
mod seen;
mod shape;
mod small_operations;
mod summary;
mod threads;
mod touch;
mod uncooperative;

use seeds::Seeds;

#[test]
fn random_jobs_keep_every_invariant() {
    const SEEDS: Seeds = Seeds { variable: "ENGINE_SIM", filter: "random_jobs_keep", default: 300 };
    if let Some((total, seeds)) = SEEDS.run(run::run) {
        total.assert_covers(seeds);
    }
}

/// Homes leave most invalidations to the holders, which relay them.
#[test]
fn jobs_whose_holders_tell_each_other_keep_every_invariant() {
    const SEEDS: Seeds = Seeds { variable: "ENGINE_SIM_TELLING", filter: "jobs_whose_holders", default: 100 };
    SEEDS.run(|seed| {
        run::run_as(seed + (1 << 32), |shape| shape::Shape { told_itself_max: (seed % 2) as usize, ..shape })
    });
}

/// Each rank is the home of some pages of every segment.
#[test]
fn jobs_whose_homes_take_turns_keep_every_invariant() {
    const SEEDS: Seeds = Seeds { variable: "ENGINE_SIM_HOMES", filter: "jobs_whose_homes", default: 200 };
    SEEDS.run(|seed| {
        run::run_as(seed + (2 << 32), |shape| shape::Shape {
            stripe_pages: Some(1 + (seed % 3) as u32),
            cooperative: true,
            mapper: mapper::Settings { blocks_max: 0, ..shape.mapper },
            ..shape
        })
    });
}

#[test]
fn a_seed_is_one_run() {
    for seed in [3, 4, 5] {
        assert_eq!(run::run(seed), run::run(seed));
    }
}
