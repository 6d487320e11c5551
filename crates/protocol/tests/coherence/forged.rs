//! Forged messages, from no conforming rank: ranks refuse them or go on, and never panic.
//!
//! Each forged message is tried on a copy of a rank in the middle of a job. Some accepted ones enter the job, which
//! continues until a rank refuses something. `vgasnet_fuzzing` tells how to run more of this.

use crate::simulation::step;
use crate::world::{Flight, Shape, World};
use vgasnet_fuzzing::{Rng, bytes, mutate, odd_number, run};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{
    Access, CoherenceBody, CoherenceMessage, CopyVersion, Event, Forward, FrameId, PageId, Priority, Share, ToCache,
    ToHome,
};

/// Steps of a job, before and after a forged message entered it.
const STEPS_MAX: usize = 200;

/// Forged messages tried between two steps.
const TRIES: u64 = 4;

fn shape(random: &mut Rng) -> Shape {
    Shape {
        ranks: random.u32(2..=4),
        pages: random.u32(1..=2),
        frames: random.u32(1..=3),
        page_bytes: 1,
        cooperative: random.u32(0..4) > 0,
    }
}

/// Mostly an existing number.
fn small(random: &mut Rng, end: u32) -> u32 {
    if random.u32(0..64) == 0 { odd_number(random) as u32 } else { random.u32(0..end) }
}

/// A message of any kind about something possibly in flight.
fn message(random: &mut Rng, shape: Shape) -> CoherenceMessage {
    let version = CopyVersion(random.u64(0..24));
    let copy = version;
    let frame = FrameId(small(random, shape.frames));
    let access = if random.bool() { Access::Read } else { Access::Write };
    let priority = [Priority::Now, Priority::Soon, Priority::Later][random.usize(0..3)];
    let forward = Forward { version, to: Rank(small(random, shape.ranks)), frame, access, grant: random.bool() };
    let body = match random.u32(0..21) {
        0 => CoherenceBody::Home(ToHome::Read { frame, priority }),
        1 => CoherenceBody::Home(ToHome::Write { frame, copy: random.bool().then_some(copy) }),
        2 => CoherenceBody::Home(ToHome::Done { version }),
        3 => CoherenceBody::Home(ToHome::Nack { version }),
        4 => CoherenceBody::Home(ToHome::Acknowledge { version, copies: random.u32(0..4) }),
        5 => CoherenceBody::Home(ToHome::Evict { frame, copy, keep: random.bool(), priority }),
        6 => CoherenceBody::Home(ToHome::Forget { copy }),
        7 | 8 => CoherenceBody::Cache(ToCache::Forward(forward)),
        9 => CoherenceBody::Cache(ToCache::Invalidate { version }),
        10 => CoherenceBody::Cache(ToCache::Grant { version }),
        11 => CoherenceBody::Cache(ToCache::Data { version, grant: random.bool(), zeros: random.bool() }),
        12 => CoherenceBody::Cache(ToCache::Evicted { copy }),
        13 => CoherenceBody::Cache(ToCache::Recall { copy }),
        14 => CoherenceBody::Home(ToHome::Hurry),
        15 => CoherenceBody::Home(ToHome::Overwrite { frame }),
        16 => CoherenceBody::Home(ToHome::Decline { version }),
        18 => CoherenceBody::Cache(ToCache::Acknowledge { version, copies: random.u32(0..4) }),
        19 => {
            let to = [0; 3].map(|_| Rank(small(random, shape.ranks)));
            CoherenceBody::Cache(ToCache::Relay { version, to: Share::new(&to[..random.usize(1..4)]) })
        }
        17 => CoherenceBody::Cache(ToCache::Fetch { version, priority }),
        _ => CoherenceBody::Cache(ToCache::Unread),
    };
    CoherenceMessage { body, page: PageId::of_segment(Rank(small(random, shape.ranks)), small(random, shape.pages)) }
}

/// The receiver, the sender and the bytes of a message: forged, a true one altered or at the wrong time, or random
/// bytes.
fn forge(random: &mut Rng, world: &World) -> (Rank, Rank, Vec<u8>) {
    let rank = |random: &mut Rng| Rank(random.u32(0..world.shape.ranks));
    let (from, to) = (rank(random), rank(random));
    let kind = random.u32(0..8);
    let in_flight = world.flights.iter().filter_map(|flight| match flight {
        Flight::Message { from, to, message } => Some((*from, *to, message)),
        _ => None,
    });
    let in_flight: Vec<_> = in_flight.collect();
    if kind < 3 && !in_flight.is_empty() {
        let (true_from, true_to, message) = in_flight[random.usize(0..in_flight.len())];
        let mut bytes = message.encode().to_vec();
        if kind == 0 {
            mutate(random, &mut bytes);
        }
        return match kind {
            1 => (from, to, bytes),
            _ => (true_from, true_to, bytes),
        };
    }
    if kind == 3 {
        return (from, to, bytes(random, 48));
    }
    let message = message(random, world.shape);
    // Most messages come from a home, or go to one.
    let home = message.page.space.segment().filter(|home| home.0 < world.shape.ranks && random.u32(0..16) > 0);
    let (from, to) = match message.body {
        CoherenceBody::Home(_) => (from, home.unwrap_or(to)),
        CoherenceBody::Cache(_) => (home.unwrap_or(from), to),
    };
    (from, to, message.encode().to_vec())
}

/// Tries some forged messages. An accepted one may enter the job.
fn attack(random: &mut Rng, world: &mut World) {
    for _ in 0..TRIES {
        let (from, to, bytes) = forge(random, world);
        let Ok(message) = CoherenceMessage::decode(&bytes) else { continue };
        let mut victim = world.nodes[to.index()].protocol.clone();
        let taken = victim.handle(Event::Message { from, message }, &mut Vec::new());
        if let Err(violation) = taken {
            assert!(violation.from.0 < world.shape.ranks && !violation.to_string().contains('\n'));
        } else if random.u32(0..8) == 0 {
            world.is_tainted = true;
            world.event(to, Event::Message { from, message });
        }
    }
}

/// Runs one job. Returns the number of messages tried.
fn attacked_job(random: &mut Rng) -> u64 {
    let mut world = World::new(shape(random));
    let (hot, ops_at_once) = (random.u32(1..=world.shape.ranks), random.usize(1..=4));
    let (mut ops_left, mut tried) = (usize::MAX, 0);
    for _ in 0..STEPS_MAX {
        step(&mut world, random, &mut ops_left, hot, ops_at_once);
        attack(random, &mut world);
        tried += TRIES;
        if world.refusal.is_some() {
            break;
        }
    }
    tried
}

#[test]
fn forged_messages_are_refused_or_harmless() {
    run("-p vgasnet-protocol --test coherence forged", 100_000, attacked_job);
}
