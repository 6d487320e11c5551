//! Arrays that fit the pool, compared with the allocator's memory.

use super::arrays::{ARRAYS, Arrays};
use super::scalar;
use crate::prelude::*;
use std::collections::VecDeque;

/// Turns of each memory in one repetition.
const TURNS: u32 = 16;

/// Minimum bytes in one measurement: a triad of microseconds would measure the clock.
const MEASURED_BYTES_MIN: u64 = 128 << 20;

/// The memories in the order of their measurement.
const MEMORIES: [&str; 3] = ["segment", "malloc", "malloc_large_pages"];

pub fn run(segment: &mut Arrays<'_>, array_bytes: u64, spec: &Spec) -> Figures {
    segment.initialise();
    let (mut seconds_each, mut large_page_bytes): ([Vec<f64>; 3], [u64; 3]) = Default::default();
    let mut allocated = VecDeque::new();
    let bar = progress::bar(true, "triads in memory", u64::from(spec.repeat * TURNS));
    for repetition in 0..spec.repeat {
        // The place of memory matters. Each repetition has different memory, because the previous one is not free yet.
        let plain = Memory::allocated(spec.data_bytes as usize, false);
        let large = Memory::allocated(spec.data_bytes as usize, true);
        // SAFETY: the memory is sufficiently aligned, as long as the arrays and zeroed. It outlives the arrays.
        let arrays = |memory: &Memory| unsafe { Arrays::new(memory.start(), array_bytes, spec.seed) };
        let mut memories = [&mut *segment, &mut arrays(&plain), &mut arrays(&large)];
        memories[1..].iter_mut().for_each(|arrays| arrays.initialise());
        for turn in repetition * TURNS..(repetition + 1) * TURNS {
            take_turns(&mut memories, &mut seconds_each, turn, spec.data_bytes);
            bar.inc(1);
        }
        large_page_bytes = memories.map(|arrays| arrays.large_page_bytes());
        allocated.extend([plain, large]);
        if repetition > 0 {
            allocated.drain(..2);
        }
    }
    figures(array_bytes, &seconds_each, large_page_bytes)
}

/// As fast as memory.
fn figures(array_bytes: u64, seconds_each: &[Vec<f64>; 3], large_page_bytes: [u64; 3]) -> Figures {
    let setting = |name: &str| {
        let text = std::fs::read_to_string(format!("/sys/kernel/mm/transparent_hugepage/{name}"));
        text.map_or_else(|_| "unknown".into(), |text| chosen(&text))
    };
    let rate = |each: &[f64]| (ARRAYS * array_bytes) as f64 / median(each);
    let segment = rate(&seconds_each[0]);
    let mut row = Row::default().keep("arrays", "in_pool").show("array_bytes", array_bytes);
    for ((name, each), large_page_bytes) in MEMORIES.iter().zip(seconds_each).zip(large_page_bytes) {
        row = row.keep(&format!("{name}_bytes_per_second"), rate(each)).keep(&format!("{name}_seconds_each"), each);
        row = row.keep(&format!("{name}_large_page_bytes"), large_page_bytes);
    }
    let baseline = |at: usize| {
        let row = Row::labelled(MEMORIES[at].replacen('_', ", ", 1).replace('_', " "));
        let row = row.show("segment_bytes_per_second", segment).show("bytes_per_second", rate(&seconds_each[at]));
        let row = row.ratio("segment_to", "segment_bytes_per_second", "bytes_per_second");
        row.show("large_page_bytes", large_page_bytes[at])
    };
    let [segment_best, malloc_best] = [0, 1].map(|at: usize| quantile(&seconds_each[at], 0.0));
    let row = row
        .keep("segment_to_malloc", segment / rate(&seconds_each[1]))
        .keep("segment_to_malloc_large_pages", segment / rate(&seconds_each[2]))
        .keep("segment_to_malloc_best", malloc_best / segment_best)
        .show("segment_large_pages", vgasnet_settings::format_size(large_page_bytes[0]))
        .show("large_pages_anonymous", setting("enabled"))
        .show("large_pages_shared", setting("shmem_enabled"))
        .rows("baselines", vec![baseline(1), baseline(2)]);
    let ratio = row.number("segment_to_malloc");
    Figures::of(row).target("in_pool_to_malloc", "triad in the pool to malloc", ratio, Bound::AtLeast, 0.98)
}

/// One measurement of each memory. Successive turns start with different memories.
fn take_turns(memories: &mut [&mut Arrays<'_>; 3], seconds_each: &mut [Vec<f64>; 3], turn: u32, data_bytes: u64) {
    let triads = MEASURED_BYTES_MIN.div_ceil(data_bytes) as u32;
    for place in 0..memories.len() {
        let which = (turn as usize + place) % memories.len();
        let start = Instant::now();
        (0..triads).for_each(|_| memories[which].triad(scalar(turn)));
        seconds_each[which].push(start.elapsed().as_secs_f64() / f64::from(triads));
        memories[which].check(scalar(turn)).unwrap_or_else(|line| fail(line));
    }
}

/// The bracketed word.
fn chosen(setting: &str) -> String {
    let chosen = setting.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(setting.trim(), |(chosen, _)| chosen).into()
}
