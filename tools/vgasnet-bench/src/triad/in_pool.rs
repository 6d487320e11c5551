//! Arrays that fit the pool, compared with the allocator's memory.

use super::scalar;
use crate::arrays::Arrays;
use crate::plan::Spec;
use crate::rank::fail;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Instant;
use vgasnet_measuring::memory::Memory;
use vgasnet_measuring::progress;

/// Turns of each memory in one repetition.
const TURNS: u32 = 16;

/// Minimum bytes in one measurement: a triad of microseconds would measure the clock.
const MEASURED_BYTES_MIN: u64 = 128 << 20;

/// Seconds of one triad, with alternating memories.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct InPool {
    pub segment_seconds_each: Vec<f64>,
    pub malloc_seconds_each: Vec<f64>,
    pub malloc_large_pages_seconds_each: Vec<f64>,
    /// Bytes of each memory's arrays in large pages.
    pub segment_large_page_bytes: u64,
    pub malloc_large_page_bytes: u64,
    pub malloc_large_pages_large_page_bytes: u64,
    /// The kernel's settings for the allocator's memory, and for shared memory such as the pool.
    pub large_pages_anonymous: String,
    pub large_pages_shared: String,
}

pub fn run(segment: &mut Arrays<'_>, array_bytes: u64, spec: &Spec) -> InPool {
    let setting = |name: &str| {
        let text = std::fs::read_to_string(format!("/sys/kernel/mm/transparent_hugepage/{name}"));
        text.map_or_else(|_| "unknown".into(), |text| chosen(&text))
    };
    let mut found = InPool {
        large_pages_anonymous: setting("enabled"),
        large_pages_shared: setting("shmem_enabled"),
        ..InPool::default()
    };
    segment.initialise();
    let mut allocated = VecDeque::new();
    let bar = progress::bar(true, "triads in memory", u64::from(spec.repeat * TURNS));
    for repetition in 0..spec.repeat {
        // The place of memory matters. Each repetition has different memory, because the previous one is not free yet.
        let plain = Memory::allocated(spec.data_bytes as usize, false);
        let large = Memory::allocated(spec.data_bytes as usize, true);
        // SAFETY: the memory is sufficiently aligned, as long as the arrays and zeroed. It outlives the arrays.
        let arrays = |memory: &Memory| unsafe { Arrays::new(memory.start(), array_bytes, spec.seed) };
        let (mut plain_arrays, mut large_arrays) = (arrays(&plain), arrays(&large));
        plain_arrays.initialise();
        large_arrays.initialise();
        for turn in repetition * TURNS..(repetition + 1) * TURNS {
            found.take_turns([&mut *segment, &mut plain_arrays, &mut large_arrays], turn, spec.data_bytes);
            bar.inc(1);
        }
        found.segment_large_page_bytes = segment.large_page_bytes();
        found.malloc_large_page_bytes = plain_arrays.large_page_bytes();
        found.malloc_large_pages_large_page_bytes = large_arrays.large_page_bytes();
        allocated.extend([plain, large]);
        if repetition > 0 {
            allocated.drain(..2);
        }
    }
    found
}

impl InPool {
    /// One measurement of each memory. Successive turns start with different memories.
    fn take_turns(&mut self, memories: [&mut Arrays<'_>; 3], turn: u32, data_bytes: u64) {
        let triads = MEASURED_BYTES_MIN.div_ceil(data_bytes) as u32;
        let seconds_each =
            [&mut self.segment_seconds_each, &mut self.malloc_seconds_each, &mut self.malloc_large_pages_seconds_each];
        for place in 0..memories.len() {
            let which = (turn as usize + place) % memories.len();
            let start = Instant::now();
            (0..triads).for_each(|_| memories[which].triad(scalar(turn)));
            seconds_each[which].push(start.elapsed().as_secs_f64() / f64::from(triads));
            memories[which].check(scalar(turn)).unwrap_or_else(|line| fail(line));
        }
    }
}

/// The bracketed word.
fn chosen(setting: &str) -> String {
    let chosen = setting.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(setting.trim(), |(chosen, _)| chosen).into()
}
