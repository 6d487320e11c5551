//! Forged collective messages: ranks refuse them or go on, and never panic.

use super::action::ANNOUNCED_BYTES_MIN;
use super::message::{CollectiveBody, CollectiveKey, CollectiveMessage, Source};
use super::plan::{CollectiveKind, Plan, Shape};
use super::tests::{TEAM, World, memory};
use crate::Rank;
use crate::active_message::Args;
use crate::barrier::{Barrier, BarrierMessage, Name};
use fastrand::Rng;
use std::vec;
use std::vec::Vec;
use vgasnet_fuzzing::{bytes, mutate, odd_number, run};

const KINDS: [CollectiveKind; 7] = [
    CollectiveKind::Broadcast,
    CollectiveKind::Scatter,
    CollectiveKind::Gather,
    CollectiveKind::GatherAll,
    CollectiveKind::Exchange,
    CollectiveKind::Reduce,
    CollectiveKind::ReduceToAll,
];

fn name(random: &mut Rng) -> Name {
    [Name::Anonymous, Name::Id(5), Name::Mismatch][random.usize(0..3)]
}

fn barrier_message(random: &mut Rng) -> BarrierMessage {
    let name = name(random);
    if random.bool() { BarrierMessage::Arrived(name) } else { BarrierMessage::Released(name) }
}

fn small(random: &mut Rng, end: u32) -> u32 {
    if random.u32(0..32) == 0 { odd_number(random) as u32 } else { random.u32(0..end) }
}

fn source(random: &mut Rng, address: u64) -> Source {
    match random.u32(0..3) {
        0 => Source::Unreadable,
        1 => Source::Segment { address },
        _ => Source::Process { address, process: 1, proof_address: 2, proof: 3 },
    }
}

/// A message, possibly forged, with its payload.
fn forge(random: &mut Rng, world: &World) -> Option<(CollectiveMessage, Vec<u8>)> {
    let ranks = world.ranks.len() as u32;
    if !world.mail.is_empty() && random.bool() {
        let (_, _, message, payload) = &world.mail[random.usize(0..world.mail.len())];
        let mut changed = message.encode().as_bytes().to_vec();
        if random.bool() {
            mutate(random, &mut changed);
        }
        let payload = if random.bool() { payload.clone() } else { bytes(random, 100) };
        return Some((CollectiveMessage::decode(&Args::from_bytes(&changed)?)?, payload));
    }
    let tag = if random.bool() { random.u32(0..4) } else { random.u32(0..4) << 30 | random.u32(0..4) };
    let address = u64::from(small(random, 3)) << 30 | u64::from(odd_number(random) as u32);
    let body = match random.u32(0..7) {
        0 => CollectiveBody::Ready { tag },
        4 => CollectiveBody::Taken { tag },
        5 => CollectiveBody::Announce { tag, source: source(random, address) },
        1 => CollectiveBody::Barrier(barrier_message(random)),
        _ => CollectiveBody::Bytes { tag, offset_bytes: u64::from(small(random, 64)) },
    };
    let key = CollectiveKey { team: if random.u32(0..16) == 0 { 8 } else { TEAM }, number: small(random, 4) };
    let payload = vec![7; if random.bool() { 0 } else { random.usize(0..80) }];
    Some((CollectiveMessage { key, from: small(random, ranks), body }, payload))
}

fn attacked_team(random: &mut Rng) -> u64 {
    let ranks = random.u32(2..6);
    let mut world = World::new(ranks, random.u64(..));
    for number in 0..random.usize(1..4) {
        let (kind, root) = (KINDS[random.usize(0..KINDS.len())], random.u32(0..ranks));
        let large_bytes = if ranks <= 3 && random.u32(0..32) == 0 { ANNOUNCED_BYTES_MIN } else { 0 };
        let (all_in, all_out, block_bytes) = (random.bool(), random.bool(), large_bytes + 16 * random.usize(0..5));
        for me in 0..ranks {
            let shape = Shape { kind, me, ranks, root, block_bytes, element_bytes: 16 };
            let memory = memory(&shape, number).0.into();
            world.ranks[me as usize].start(TEAM, Plan { shape, all_in, all_out, for_images: false }, memory);
        }
    }
    let mut tried = 0;
    for _ in 0..100 {
        world.step();
        tried += 1;
        let Some((message, payload)) = forge(random, &world) else { continue };
        let from = if random.u32(0..4) > 0 { Rank(message.from % ranks) } else { Rank(random.u32(0..ranks)) };
        world.is_tainted = true;
        if world.deliver(from, random.u32(0..ranks), &message, &payload).is_err() && random.bool() {
            break;
        }
    }
    tried
}

#[test]
fn forged_messages_of_collectives_are_refused_or_harmless() {
    run("-p vgasnet-protocol --lib forged_messages_of_collectives", 50_000, attacked_team);
}

#[test]
fn forged_messages_of_barriers_are_refused_or_harmless() {
    run("-p vgasnet-protocol --lib forged_messages_of_barriers", 200_000, |random| {
        let ranks = random.u32(1..12);
        let mut barrier = Barrier::new(Rank(random.u32(0..ranks)), ranks);
        const TRIES: u64 = 20;
        for _ in 0..TRIES {
            let mut send = |to: Rank, _| assert!(to.0 < ranks);
            match random.u32(0..4) {
                0 => _ = barrier.notify(name(random), &mut send),
                1 => _ = barrier.finish(name(random)),
                _ => {
                    let mut bytes = barrier_message(random).encode(32).to_vec();
                    if random.u32(0..4) == 0 {
                        mutate(random, &mut bytes);
                    }
                    let Ok(message) = BarrierMessage::decode(&bytes) else { continue };
                    _ = barrier.on_message(Rank(small(random, ranks)), message, &mut send);
                }
            }
        }
        TRIES
    });
}

#[test]
fn bytes_of_any_kind_are_decoded_or_refused() {
    run("-p vgasnet-protocol --lib bytes_of_any_kind", 500_000, |random| {
        let bytes = bytes(random, 80);
        _ = crate::active_message::decode(&bytes);
        _ = crate::coherence::CoherenceMessage::decode(&bytes).map(|message| {
            assert_eq!(&message.encode()[..], &bytes[..]);
        });
        _ = BarrierMessage::decode(&bytes);
        _ = Args::from_bytes(&bytes).map(|args| CollectiveMessage::decode(&args));
        1
    });
}
