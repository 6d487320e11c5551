//! Charts of `gets`: times by size, and draws by memory of the cache.

use super::{Bar, Chart, draw};
use crate::report::{GetsFigures, Run};
use vgasnet_settings::format_size_about;

/// A get by size next to its baselines; all draws by memory; hits and occupancy by memory.
pub fn gets(runs: &[Run<GetsFigures>]) -> Result<String, String> {
    let sizes = runs.iter().filter_map(|run| run.figures.sizes.as_ref()).flat_map(|sizes| &sizes.rows);
    let label = |size_bytes: usize| format!("{size_bytes} bytes");
    let hits = sizes.clone().map(|row| Bar {
        label: label(row.latency.size_bytes),
        value: row.hit_ns,
        reference: row.copy_ns,
    });
    let misses =
        sizes.map(|row| Bar { label: label(row.latency.size_bytes), value: row.miss_us, reference: row.uncached_us });
    let drawn = runs.iter().filter_map(|run| run.figures.drawn.as_ref());
    let memory = |cache_bytes: u64| format!("{} for copies", format_size_about(cache_bytes));
    let times = drawn.clone().map(|drawn| Bar {
        label: memory(drawn.drawn.cache_bytes),
        value: drawn.seconds,
        reference: drawn.uncached_seconds,
    });
    let ratios = drawn.map(|drawn| Bar {
        label: memory(drawn.drawn.cache_bytes),
        value: drawn.hit_ratio,
        reference: drawn.occupancy_last,
    });
    draw(&[
        Chart { title: "A get that hits; in grey memcpy (Figure 7)".into(), unit: "ns", bars: hits.collect() },
        Chart {
            title: "A get that misses; in grey an uncached one (Figure 8)".into(),
            unit: "us",
            bars: misses.collect(),
        },
        Chart { title: "All draws by memory; in grey uncached (Figure 9)".into(), unit: "s", bars: times.collect() },
        Chart {
            title: "Hits of all draws; in grey the part of the memory in use (Figures 10, 11)".into(),
            unit: "part",
            bars: ratios.collect(),
        },
    ])
}
