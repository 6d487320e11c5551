//! Whole engines under a simulated network and simulated disks, driven by one thread that draws what happens next from
//! a seed.
//!
//! The protocol's own simulation has only state machines, to which one thing happens at a time. Here the engine, the
//! storage server, page tables, pools and completions are around them. Client threads pin and copy meanwhile; others
//! load from and store to their rank's segment, through a mapper that notes what it maps.
//!
//! A failure prints the command that replays it. `ENGINE_SIM_SEEDS` sets how many seeds a run tries, `ENGINE_SIM_FIRST`
//! where it begins, `ENGINE_SIM_SEED` runs one.

mod blocks;
mod busy;
mod check;
mod cleaning;
mod client;
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

/// Homes leave most of the telling to the holders that lose a page.
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
