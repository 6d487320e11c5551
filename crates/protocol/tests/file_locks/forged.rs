//! Forged lock messages: ranks refuse them or go on, and never panic.
//!
//! Each forged message is tried on a copy of a rank in the middle of a job. Some accepted ones enter the job.
//! `vgasnet_fuzzing` tells how to run more of this.

use crate::simulation::{lock, step, world};
use crate::world::{PAGE_BYTES, World};
use vgasnet_fuzzing::{Rng, bytes, mutate, odd_number, run};
use vgasnet_protocol::file_locks::{AskName, AskPart, LockMessage, LockMode, LockPurpose, LockRange, TAG_FILE_LOCKS};
use vgasnet_protocol::{Rank, Space};

/// Steps of a job.
const STEPS_MAX: usize = 200;

/// Forged messages tried between two steps.
const TRIES: u64 = 4;

const PAGES: u64 = 4;

/// Mostly an existing number.
fn small(random: &mut Rng, end: u64) -> u64 {
    if random.u32(0..32) == 0 { odd_number(random) } else { random.u64(0..end) }
}

/// A message of any kind about something possibly in flight.
fn message(random: &mut Rng) -> Vec<u8> {
    let name = AskName { number: small(random, 20), waits: random.bool() };
    let mut ranges = Vec::new();
    let message = match random.u32(0..5) {
        0 => LockMessage::Granted(name),
        1 => LockMessage::Refused(name),
        2 => LockMessage::Unlock(name),
        _ => {
            for _ in 0..random.u32(0..4) {
                let start = small(random, PAGES * PAGE_BYTES);
                let mode = if random.bool() { LockMode::Shared } else { LockMode::Exclusive };
                ranges.push(LockRange { start, end: start.wrapping_add(small(random, PAGE_BYTES)), mode });
            }
            if random.bool() {
                ranges.sort_unstable();
            }
            let purpose = if random.bool() { LockPurpose::Program } else { LockPurpose::Atomicity };
            let all = if random.bool() { ranges.len() as u32 } else { small(random, 5) as u32 };
            let first = if random.bool() { 0 } else { small(random, 4) as u32 };
            LockMessage::Ask(AskPart { name, file: Space::of_file(random.u32(0..2)), purpose, ranges: all, first })
        }
    };
    message.encode(&ranges)
}

/// The sender, the receiver and the bytes of a message.
fn forge(random: &mut Rng, world: &World) -> (Rank, Rank, Vec<u8>) {
    let ranks = world.nodes.len() as u64;
    let (from, to) = (Rank(small(random, ranks) as u32), Rank(random.u32(0..ranks as u32)));
    match random.u32(0..8) {
        kind @ 0..4 if !world.flights.is_empty() => {
            let flight = &world.flights[random.usize(0..world.flights.len())];
            let mut bytes = flight.bytes.to_vec();
            if kind < 2 {
                mutate(random, &mut bytes);
            }
            if kind == 2 { (from, to, bytes) } else { (flight.from, flight.to, bytes) }
        }
        4 => (from, to, bytes(random, 64)),
        5 => (from, to, [&[TAG_FILE_LOCKS][..], &bytes(random, 64)].concat()),
        _ => (from, to, message(random)),
    }
}

fn attacked_job(random: &mut Rng) -> u64 {
    let mut world = world(random);
    world.model = None;
    let mut tried = 0;
    for _ in 0..STEPS_MAX {
        if world.requests.len() < 6 && random.u32(0..4) == 0 {
            lock(&mut world, random, PAGES);
        }
        step(&mut world, random);
        for _ in 0..TRIES {
            let (from, to, bytes) = forge(random, &world);
            tried += 1;
            let mut victim = world.nodes[to.index()].clone();
            let taken = std::sync::Arc::make_mut(&mut victim).on_message(from, &bytes, &mut Vec::new());
            if let Err(violation) = taken {
                assert!(violation.from == from && !violation.to_string().contains('\n'));
            } else if random.u32(0..8) == 0 {
                world.is_tainted = true;
                world.deliver(from, to, &bytes);
            }
        }
        if world.refusal.is_some() {
            break;
        }
    }
    tried
}

#[test]
fn forged_messages_are_refused_or_harmless() {
    run("-p vgasnet-protocol --test file_locks forged", 200_000, attacked_job);
}
