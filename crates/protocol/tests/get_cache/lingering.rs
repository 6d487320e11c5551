//! Dropped entries that threads still copy while the memory shrinks.

use crate::twin::Twin;
use vgasnet_protocol::get_cache::{Answer, Key, Limits, Machine, Part, Want};

/// Bytes of each entry.
const LEN: u32 = 64;

/// Entries in a chunk.
const EACH: u32 = 16;

fn key(space: u32, at: u32) -> Key {
    Key { space, target: 0, address: u64::from(at * LEN) }
}

/// A get that misses, and its bytes.
fn add(machine: &mut Machine<Twin, ()>, key: &Key) {
    let answer = machine.get(key, &Want::all(LEN, 1.0), ());
    let Answer::Miss { fill: Some(part), .. } = answer else { panic!("{answer:?}") };
    assert!(machine.fill(part.entry).is_kept);
}

/// A get that hits. Its entry is pinned.
fn hit(machine: &mut Machine<Twin, ()>, key: &Key) -> Part {
    let answer = machine.get(key, &Want::all(LEN, 1.0), ());
    let Answer::Hit(part) = answer else { panic!("{answer:?}") };
    part
}

#[test]
fn an_entry_that_was_dropped_is_not_evicted_with_its_chunk() {
    let limits = Limits {
        chunk_bytes: EACH * LEN,
        chunks_max: 2,
        chunks_start: 2,
        entries_max: 64,
        entries_start: 64,
        len_max: LEN,
        seed: 1,
    };
    let mut machine: Machine<Twin, ()> = Machine::new(Twin::new(&limits), limits);
    let [stays, goes, lingers] = [1, 2, 3];
    add(&mut machine, &key(stays, 0));
    (1..EACH).for_each(|at| add(&mut machine, &key(goes, at)));
    (0..4).for_each(|at| add(&mut machine, &key(lingers, at)));
    assert_eq!(machine.arena().chunks(), 2);
    let pinned: Vec<Part> = (0..4).map(|at| hit(&mut machine, &key(lingers, at))).collect();
    machine.forget(goes);
    // Most of the memory is free for long, so that the last chunk is to go.
    for _ in 0..4 {
        machine.mirror.seen.hits += 5000;
        for _ in 0..16 {
            let part = hit(&mut machine, &key(stays, 0));
            machine.mirror.unpin(part.entry);
        }
    }
    machine.forget(lingers);
    pinned.into_iter().for_each(|part| machine.mirror.unpin(part.entry));
    for _ in 0..4 {
        let part = hit(&mut machine, &key(stays, 0));
        machine.mirror.unpin(part.entry);
    }
    assert_eq!((machine.arena().chunks(), machine.mirror.chunks), (1, 1));
}
