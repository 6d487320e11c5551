//! The cache against a plain map, with invariants checked after every step.

use crate::twin::Twin;
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use vgasnet_protocol::get_cache::{
    Answer, EntryId, Filled, Key, Limits, Machine, Opened, Part, SLOTS, Stats, UNIT_BYTES, Want, generation_place,
    target_place,
};

/// Two of them share a generation.
const SPACES: [u32; 3] = [0, 7, 1024];
const UNIT: usize = UNIT_BYTES as usize;
const TARGETS: u32 = 2;
const SPACE_BYTES: u64 = 6 << 10;
const LEN_MAX: u32 = 600;

/// An entry with bytes in flight, and all its eventual bytes.
struct Pending {
    part: Part,
    /// Number of bytes present.
    from: u32,
    bytes: Vec<u8>,
}

/// A joined get, with its expected bytes.
struct Waiting {
    skip: u32,
    bytes: Vec<u8>,
}

/// Bytes being copied.
struct Pinned {
    part: Part,
    bytes: Vec<u8>,
}

struct World {
    run: String,
    random: Rng,
    machine: Machine<Twin, u64>,
    limits: Limits,
    /// The ranks' memory.
    memory: BTreeMap<(u32, u32), Vec<u8>>,
    arena: Vec<u8>,
    pending: Vec<Pending>,
    pinned: Vec<Pinned>,
    /// By number.
    waiting: BTreeMap<u64, Waiting>,
    expected: Stats,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Rng::with_seed(seed);
        let limits = Limits {
            chunk_bytes: 64 * random.u32(10..40),
            chunks_max: random.u32(1..8),
            chunks_start: 1,
            entries_max: random.u32(4..120),
            entries_start: 2,
            len_max: LEN_MAX,
            seed,
        };
        let mut twin = Twin::new(&limits);
        twin.chunks_max = random.u32(0..16);
        let owners = SPACES.iter().flat_map(|space| (0..TARGETS).map(|target| (*space, target)));
        let memory = owners.map(|owner| (owner, (0..SPACE_BYTES + 1000).map(|_| random.u8(..)).collect())).collect();
        World {
            run: format!("GET_CACHE_SEED={seed} cargo test -p vgasnet-protocol --test get_cache model"),
            machine: Machine::new(twin, limits),
            arena: vec![0; (limits.chunk_bytes * limits.chunks_max) as usize],
            random,
            limits,
            memory,
            pending: Vec::new(),
            pinned: Vec::new(),
            waiting: BTreeMap::new(),
            expected: Stats::default(),
        }
    }

    fn step(&mut self) {
        match self.random.u32(0..100) {
            0..60 => self.get(),
            60..80 => self.end_one(),
            80..90 => self.unpin_one(),
            90..97 => self.write(),
            97 => {
                let (space, target) = (self.random.choice(SPACES).expect("some"), self.random.u32(0..TARGETS));
                self.change(space, target, 0, SPACE_BYTES);
                self.machine.invalidate_target(space, target);
            }
            98 => {
                let space = self.random.choice(SPACES).expect("some");
                self.change(space, 0, 0, SPACE_BYTES);
                self.change(space, 1, 0, SPACE_BYTES);
                if self.random.bool() { self.machine.invalidate(space) } else { self.machine.forget(space) }
            }
            _ => {
                // Gets handled without the machine advance its windows.
                let gets = self.random.u64(0..600);
                self.machine.mirror.seen.hits += gets;
                self.expected.hits += gets;
            }
        }
        self.check();
    }

    fn draw_key(&mut self) -> (Key, u32) {
        let address = if self.random.bool() { self.random.u64(0..30) * 128 } else { self.random.u64(0..SPACE_BYTES) };
        let key =
            Key { space: self.random.choice(SPACES).expect("some"), target: self.random.u32(0..TARGETS), address };
        let len =
            if self.random.u32(0..20) == 0 { self.random.u32(1..=LEN_MAX + 50) } else { self.random.u32(1..=130) };
        (key, len)
    }

    fn bytes_of(&self, key: &Key, len: u32) -> Vec<u8> {
        self.memory[&(key.space, key.target)][key.address as usize..][..len as usize].to_vec()
    }

    /// A part of an object, or all of it.
    fn draw_want(&mut self) -> (Key, Want) {
        let (key, fetch) = self.draw_key();
        let weight = self.random.f32() * 3.0;
        if self.random.bool() {
            return (key, Want::all(fetch, weight));
        }
        let skip = self.random.u32(0..fetch);
        (key, Want { skip, len: self.random.u32(1..=fetch - skip), fetch, weight })
    }

    fn get(&mut self) {
        let (key, want) = self.draw_want();
        let expected = self.bytes_of(&key, want.fetch);
        if self.random.bool() {
            if let Some(opened) = self.look_up(&key).filter(|opened| opened.len >= want.end()) {
                assert!(expected.starts_with(&self.cached(opened.place, want.end())), "{}: a hit", self.run);
                self.machine.mirror.seen.hits += 1;
                self.expected.hits += 1;
                return;
            }
        }
        let number = self.expected.gets;
        self.expected.gets += 1;
        self.machine.mirror.slot_looks.set(0);
        self.machine.mirror.heat_looks.set(0);
        let evicted = self.machine.stats().evicted;
        let answer = self.machine.get(&key, &want, number);
        self.check_costs(evicted);
        match answer {
            Answer::Hit(part) => {
                self.expected.hits += 1;
                assert!(part.len >= want.end(), "{}", self.run);
                self.pin(part, &expected);
            }
            Answer::Joined => {
                self.expected.joined += 1;
                let bytes = expected[want.skip as usize..want.end() as usize].to_vec();
                self.waiting.insert(number, Waiting { skip: want.skip, bytes });
            }
            Answer::Miss { head, fill } => {
                let from = head.map_or(0, |head| head.len);
                assert!(from < want.end(), "{}", self.run);
                if let Some(part) = fill {
                    assert_eq!(part.len, want.fetch, "{}", self.run);
                    let head = self.cached(head.map_or(0, |head| head.place), from);
                    self.arena[UNIT * part.place as usize..][..head.len()].copy_from_slice(&head);
                    self.pending.push(Pending { part, from, bytes: expected.clone() });
                }
                if let Some(head) = head {
                    self.expected.partial += 1;
                    self.pin(head, &expected);
                }
            }
        }
    }

    /// The result of a lookup without the machine.
    fn look_up(&self, key: &Key) -> Option<Opened> {
        let twin = &self.machine.mirror;
        let hash = self.machine.hasher().hash(key);
        let slots = hash.homes(twin.buckets).into_iter().flat_map(|home| home * SLOTS..(home + 1) * SLOTS);
        let mut entries = slots.filter_map(|at| hash.entry_in(twin.slots[at as usize]));
        let is_of = |entry: EntryId| {
            let known = &twin.entries[entry.index()];
            let opened = known.opened.filter(|opened| known.is_open && opened.key == *key)?;
            let of_target = twin.generations[target_place(key.space, key.target)];
            let generation = twin.generations[generation_place(key.space)].wrapping_add(of_target);
            (opened.generation == generation).then_some(opened)
        };
        entries.find_map(is_of)
    }

    fn cached(&self, place: u32, len: u32) -> Vec<u8> {
        self.arena[UNIT * place as usize..][..len as usize].to_vec()
    }

    /// The machine has pinned bytes. Copies them now, or later.
    fn pin(&mut self, part: Part, expected: &[u8]) {
        assert!(expected.starts_with(&self.cached(part.place, part.len)), "{}: a hit", self.run);
        if self.random.u32(0..4) == 0 {
            self.pinned.push(Pinned { part, bytes: self.cached(part.place, part.len) });
        } else {
            self.machine.mirror.unpin(part.entry);
        }
    }

    /// A fetch of bytes completes or fails.
    fn end_one(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let Pending { part, from, bytes } = self.pending.swap_remove(self.random.usize(0..self.pending.len()));
        let is_failed = self.random.u32(0..8) == 0;
        let at = UNIT * part.place as usize;
        self.arena[at + from as usize..at + bytes.len()].copy_from_slice(&bytes[from as usize..]);
        let filled = match self.random.bool() {
            _ if is_failed => {
                let waiters = self.machine.abandon(part.entry);
                Filled { is_kept: false, is_pinned: false, waiters }
            }
            true => self.machine.fill(part.entry),
            false => self.machine.fill_pinned(part.entry),
        };
        assert!(!filled.is_pinned || !filled.waiters.is_empty(), "{}", self.run);
        for waiter in filled.waiters {
            let Waiting { skip, bytes: expected } = self.waiting.remove(&waiter).expect("it joined");
            assert!(bytes[skip as usize..].starts_with(&expected), "{}: bytes of a get that joined", self.run);
        }
        if filled.is_pinned {
            self.pin(part, &bytes);
        }
    }

    fn unpin_one(&mut self) {
        if !self.pinned.is_empty() {
            let pinned = self.pinned.swap_remove(self.random.usize(0..self.pinned.len()));
            self.machine.mirror.unpin(pinned.part.entry);
        }
    }

    fn write(&mut self) {
        let (key, len) = self.draw_key();
        self.change(key.space, key.target, key.address, u64::from(len));
        self.machine.drop_range(key.space, key.target, key.address, u64::from(len));
    }

    fn change(&mut self, space: u32, target: u32, start: u64, len: u64) {
        let bytes = self.memory.get_mut(&(space, target)).expect("a rank's");
        bytes[start as usize..][..len as usize].iter_mut().for_each(|byte| *byte = self.random.u8(..));
    }

    /// Checks the cost bound of every get.
    fn check_costs(&self, evicted: u64) {
        let twin = &self.machine.mirror;
        let (slots, heats) = (twin.slot_looks.get(), twin.heat_looks.get());
        // Up to five changes of the index: a search each, and some buckets split or merged.
        assert!(slots <= 8 * (2 * 32 + 4 * 8 + 16) * SLOTS, "{}: {slots} slots", self.run);
        assert!(heats <= 16 * 6 + 3 * 8 + 16, "{}: {heats} entries", self.run);
        // Three for room, and three to drain a chunk.
        assert!(self.machine.stats().evicted - evicted <= 6, "{}", self.run);
    }

    fn check(&self) {
        self.check_arena();
        self.check_index();
        for pinned in &self.pinned {
            let len = pinned.bytes.len() as u32;
            assert_eq!(self.cached(pinned.part.place, len), pinned.bytes, "{}: it is pinned", self.run);
        }
        let stats = self.machine.stats();
        let asked = self.expected.gets + self.machine.mirror.seen.hits;
        assert_eq!(stats.gets, asked, "{}: each get counts once", self.run);
        let own = (self.expected.hits, self.expected.joined, self.expected.partial);
        assert_eq!((stats.hits, stats.joined, stats.partial), own, "{}", self.run);
        let (units, of_entries) = self.machine.window_units();
        assert_eq!(units, of_entries, "{}: of recent entries", self.run);
        assert!(stats.bytes_held <= stats.bytes_max || self.machine.mirror.refusals > 0, "{}", self.run);
    }

    /// Regions tile the arena, and each entry has one of its own.
    fn check_arena(&self) {
        let (mut end, mut free, mut was_free) = (0, 0, false);
        let mut owners = BTreeMap::new();
        let regions: Vec<_> = self.machine.arena().all().collect();
        for (at, (place, units, entry)) in regions.iter().enumerate() {
            let begins_chunk = place % (self.limits.chunk_bytes / UNIT_BYTES) == 0;
            assert!(*place == end && (!was_free || entry.is_some() || begins_chunk), "{}", self.run);
            (end, was_free) = (place + units, entry.is_none());
            free += if was_free { *units } else { 0 };
            if let Some(entry) = entry {
                assert!(owners.insert(*entry, (*place, *units)).is_none(), "{}: one region each", self.run);
                self.check_beside(&regions, at, *entry);
            }
        }
        assert_eq!((end, free), (self.machine.arena().units(), self.machine.arena().free_units()), "{}", self.run);
        for (id, entry) in self.machine.entries().all() {
            let (place, units) = owners[&id];
            assert!(
                place == self.machine.arena().place(entry.region) && units * UNIT_BYTES >= entry.claimed,
                "{}",
                self.run
            );
        }
        for Pending { part, .. } in &self.pending {
            assert_eq!(owners[&part.entry].0, part.place, "{}: it is being filled", self.run);
        }
    }

    fn check_beside(&self, regions: &[(u32, u32, Option<EntryId>)], at: usize, entry: EntryId) {
        let chunk = |place: u32| place / (self.limits.chunk_bytes / UNIT_BYTES);
        let adjacent = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| regions.get(at));
        let own = regions[at].0;
        let free = adjacent.filter(|(place, _, entry)| entry.is_none() && chunk(*place) == chunk(own));
        let free: u32 = free.map(|(_, units, _)| units).sum();
        let region = self.machine.entries().get(entry).region;
        assert_eq!(self.machine.arena().free_adjacent(region), free, "{}", self.run);
    }

    /// Each entry is in one of its two buckets, once, and all other slots are empty.
    fn check_index(&self) {
        let (twin, machine) = (&self.machine.mirror, &self.machine);
        let mut found = BTreeSet::new();
        for id in machine.entries().listed() {
            let hash = machine.hasher().hash(&machine.entries().get(*id).key);
            let homes: BTreeSet<u32> = hash.homes(twin.buckets).into_iter().collect();
            let slots = homes.into_iter().flat_map(|home| home * SLOTS..(home + 1) * SLOTS);
            let place = machine.arena().place(machine.entries().get(*id).region);
            let own = slots.filter(|at| twin.slots[*at as usize] == hash.slot(*id, place)).count();
            assert!(own == 1 && found.insert(machine.entries().get(*id).key), "{}: {id:?}", self.run);
        }
        let used = twin.slots.iter().filter(|slot| **slot != 0).count();
        assert_eq!((used, twin.buckets), (found.len(), machine.index().buckets()), "{}", self.run);
    }

    /// Completes everything; nothing may be left.
    fn finish(mut self) -> Stats {
        while !self.pending.is_empty() {
            self.end_one();
        }
        while !self.pinned.is_empty() {
            self.unpin_one();
        }
        assert!(self.waiting.is_empty(), "{}: gets wait for nobody", self.run);
        SPACES.into_iter().for_each(|space| self.machine.forget(space));
        let key = |address: u64| Key { space: 3, target: 0, address };
        (0..200).for_each(|at| _ = self.machine.get(&key(at), &Want::all(LEN_MAX + 1, 1.0), 0));
        assert_eq!(self.machine.entries().all().count(), 0, "{}", self.run);
        assert_eq!(self.machine.arena().free_units(), self.machine.arena().units(), "{}", self.run);
        self.machine.stats()
    }
}

#[test]
fn model() {
    let seeds = std::env::var("GET_CACHE_SEED").map(|seed| seed.parse().expect("a number"));
    let seeds = seeds.map_or(0..if cfg!(miri) { 1 } else { 40 }, |seed: u64| seed..seed + 1);
    let mut sum = Stats::default();
    for seed in seeds.clone() {
        let mut world = World::new(seed);
        for _ in 0..if cfg!(miri) { 200 } else { 4000 } {
            world.step();
        }
        let stats = world.finish();
        sum.partial += stats.partial;
        sum.joined += stats.joined;
        sum.capacity += stats.capacity;
        sum.conflicting += stats.conflicting;
        sum.direct += stats.direct;
        sum.failing += stats.failing;
    }
    let all = [sum.partial, sum.joined, sum.capacity, sum.conflicting, sum.direct, sum.failing];
    assert!(seeds.end - seeds.start < 10 || all.iter().all(|count| *count > 100), "{sum:?}");
}
