//! What vgasnet is meant to reach, and whether it does.

use crate::baseline::median;
use crate::hit::Found;
use crate::plan::Job;
use serde::Serialize;

/// Memory that a rank may take besides its pool.
const BESIDES_POOL_BYTES: u64 = 64 << 20;

/// Which side of the target is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    AtMost,
    AtLeast,
}

/// One figure, in the unit that its name says, and what it should be.
#[derive(Debug, Serialize)]
pub struct Target {
    pub name: &'static str,
    #[serde(skip)]
    pub meaning: &'static str,
    pub measured: f64,
    pub bound: Bound,
    pub target: f64,
    /// How far it is reached: 1 is exactly, more is better.
    pub ratio: f64,
    pub reached: bool,
}

fn target(name: &'static str, meaning: &'static str, measured: f64, bound: Bound, target: f64) -> Target {
    let ratio = if bound == Bound::AtMost { target / measured } else { measured / target };
    Target { name, meaning, measured, bound, target, ratio, reached: ratio >= 1.0 }
}

/// All of them.
pub fn judge(job: &Job, found: &Found) -> Vec<Target> {
    let hit = |copies: &[f64], gets: &[f64]| median(copies) / median(gets);
    let one = hit(&found.copy_4_mib_one_source_seconds_each, &found.get_4_mib_hit_one_source_seconds_each);
    let turns = hit(&found.copy_4_mib_sources_in_turn_seconds_each, &found.get_4_mib_hit_sources_in_turn_seconds_each);
    let cold = median(&found.plain_seconds_each) / median(&found.cold_read_seconds_each);
    let allowed_bytes = u64::from(job.ranks) * (job.config.pool_bytes + BESIDES_POOL_BYTES);
    let memory = found.pss_bytes_all_ranks as f64 / allowed_bytes as f64;
    let busy = median(&found.busy_home_32_mib_seconds_each);
    [
        target(
            "get_8_bytes_hit_ns",
            "8-byte get that hits, ns",
            median(&found.get_8_bytes_hit_ns_each),
            Bound::AtMost,
            60.0,
        ),
        target(
            "get_4_mib_hit_one_source_to_memcpy",
            "4 MiB get that hits to memcpy, one source",
            one,
            Bound::AtLeast,
            0.9,
        ),
        target("get_4_mib_hit_sources_in_turn_to_memcpy", "the same, sources in turn", turns, Bound::AtLeast, 0.9),
        target("cold_read_to_plain", "cold sequential read to plain reads", cold, Bound::AtLeast, 0.7),
        target("busy_home_32_mib_seconds", "32 MiB from a rank that computes, s", busy, Bound::AtMost, 0.5),
        target("memory_to_allowed", "memory to ranks x (pool + 64 MiB)", memory, Bound::AtMost, 1.0),
    ]
    .into()
}
