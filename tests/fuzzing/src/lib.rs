//! Inputs drawn from a seed, for tests of parsers of foreign bytes. No input may cause a panic.
//!
//! A failure prints the command that replays it. `FUZZ_INPUTS` sets how many inputs a test tries, `FUZZ_FIRST` the
//! first seed, and `FUZZ_SEED` runs one seed.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

pub use fastrand::Rng;

/// Inputs for a test under Miri, which is slow.
const INPUTS_INTERPRETED: u64 = 50;

/// Runs `one` with one seed after the other, until it has tried `FUZZ_INPUTS` inputs, or `inputs_default`. `one`
/// returns how many it has tried. `test` selects the test for cargo: `-p PACKAGE --test NAME FILTER`.
pub fn run(test: &str, inputs_default: u64, mut one: impl FnMut(&mut Rng) -> u64) {
    let mut run_seed = |seed| match catch_unwind(AssertUnwindSafe(|| one(&mut Rng::with_seed(seed)))) {
        Ok(inputs) => inputs,
        Err(cause) => {
            eprintln!("replay: FUZZ_SEED={seed} cargo test --profile quick {test} -- --nocapture");
            resume_unwind(cause)
        }
    };
    if let Some(seed) = number("FUZZ_SEED") {
        run_seed(seed);
        return;
    }
    let first = number("FUZZ_FIRST").unwrap_or(0);
    let inputs_default = if cfg!(miri) { INPUTS_INTERPRETED } else { inputs_default };
    let (wanted, began) = (number("FUZZ_INPUTS").unwrap_or(inputs_default), Instant::now());
    let (mut seed, mut inputs) = (first, 0);
    while inputs < wanted {
        inputs += run_seed(seed);
        seed += 1;
    }
    println!("{test}: {inputs} inputs, seeds {first} to {}, {:.1} s", seed - 1, began.elapsed().as_secs_f64());
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// Up to `most` bytes of any values.
pub fn bytes(random: &mut Rng, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.usize(0..=most)];
    random.fill(&mut bytes);
    bytes
}

/// Any number, often one at the limit of an integer type.
pub fn odd_number(random: &mut Rng) -> u64 {
    let near = [0, 1, 1 << 7, 1 << 8, 1 << 15, 1 << 16, 1 << 31, 1 << 32, 1 << 63, u64::MAX][random.usize(0..10)];
    match random.u32(0..4) {
        0 => random.u64(..),
        1 => random.u64(0..64),
        2 => near.wrapping_sub(1),
        _ => near,
    }
}

/// Changes a few bytes: their values, their number, or their places.
pub fn mutate(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.u32(1..4) {
        let at = random.usize(0..=bytes.len());
        match random.u32(0..8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.u8(..)),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                let again = bytes[at..].to_vec();
                bytes.extend(again);
            }
            4 => {
                let number = odd_number(random).to_le_bytes();
                let len = [1, 2, 4, 8][random.usize(0..4)];
                bytes.iter_mut().skip(at).zip(&number[..len]).for_each(|(byte, new)| *byte = *new);
            }
            5 if at < bytes.len() => bytes[at] = random.u8(..),
            _ if at < bytes.len() => bytes[at] ^= 1 << random.u32(0..8),
            _ => {}
        }
    }
}

/// A text of these words, mixed with random letters and separators.
pub fn text(random: &mut Rng, words: &[&str]) -> String {
    const OTHERS: [&str; 16] = [
        "",
        " ",
        "0",
        "9",
        "-1",
        "18446744073709551615",
        "4294967296",
        "=",
        ",",
        ":",
        "@",
        "é",
        "\u{212a}",
        "\n",
        "\0",
        "x",
    ];
    (0..random.usize(0..6))
        .map(|_| {
            let from = if random.bool() && !words.is_empty() { words } else { &OTHERS };
            from[random.usize(0..from.len())]
        })
        .collect()
}
