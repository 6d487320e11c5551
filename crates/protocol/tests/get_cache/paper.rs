//! The paper's cache, as published: four hash functions, one victim a miss, the score of adjacent free bytes times the
//! last use over the gets so far, and a fixed size.

use crate::traces::Trace;
use fastrand::Rng;
use vgasnet_protocol::get_cache::{Arena, EntryId, RegionId, UNIT_BYTES, units_of};

const WAYS: u64 = 4;
const SAMPLE: usize = 16;
/// Maximum number of elements displaced by an insertion.
const DISPLACED_MAX: usize = 32;

#[derive(Clone, Copy)]
struct Kept {
    region: RegionId,
    last: u64,
    /// Its slot.
    at: usize,
}

/// A cache with the given index slots and bytes.
pub struct Paper<'a> {
    trace: &'a Trace,
    slots: Vec<Option<u32>>,
    /// By object.
    kept: Vec<Option<Kept>>,
    arena: Arena,
    random: Rng,
    gets: u64,
    bytes: u64,
}

impl<'a> Paper<'a> {
    pub fn new(trace: &'a Trace, slots: usize, bytes: u64) -> Paper<'a> {
        let mut arena = Arena::new((bytes / u64::from(UNIT_BYTES)) as u32);
        arena.add_chunk();
        let kept = vec![None; trace.sizes.len()];
        Paper { trace, slots: vec![None; slots], kept, arena, random: Rng::with_seed(7), gets: 0, bytes: 0 }
    }

    /// The number of hits.
    pub fn hits(mut self) -> u64 {
        self.trace.gets.iter().filter(|object| self.get(**object)).count() as u64
    }

    /// The part of the memory in use at the end.
    pub fn occupancy(mut self) -> f64 {
        self.trace.gets.iter().for_each(|object| _ = self.get(*object));
        1.0 - f64::from(self.arena.free_units()) / f64::from(self.arena.units())
    }

    fn get(&mut self, object: u32) -> bool {
        self.gets += 1;
        self.bytes += u64::from(self.trace.sizes[object as usize]);
        if let Some(kept) = &mut self.kept[object as usize] {
            kept.last = self.gets;
            return true;
        }
        let units = units_of(self.trace.sizes[object as usize]);
        let mut region = self.arena.allocate(units, EntryId(object));
        if region.is_none() {
            if let Some(victim) = self.victim() {
                self.evict(victim);
            }
            region = self.arena.allocate(units, EntryId(object));
        }
        if let Some(region) = region {
            self.kept[object as usize] = Some(Kept { region, last: self.gets, at: 0 });
            self.insert(object);
        }
        false
    }

    fn place(&self, object: u32, way: u64) -> usize {
        let mixed =
            (u64::from(object) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ way.wrapping_mul(0xD1B5_4A32_D192_ED03)) >> 20;
        (mixed % self.slots.len() as u64) as usize
    }

    fn insert(&mut self, object: u32) {
        let (mut moving, mut way) = (object, self.random.u64(0..WAYS));
        let mut path = Vec::new();
        for _ in 0..DISPLACED_MAX {
            let at = self.place(moving, way);
            path.push(moving);
            let displaced = self.slots[at].replace(moving);
            self.kept(moving).at = at;
            let Some(displaced) = displaced else { return };
            let others: Vec<u64> = (0..WAYS).filter(|other| self.place(displaced, *other) != at).collect();
            moving = displaced;
            way = others.get(self.random.usize(0..others.len().max(1))).copied().unwrap_or(0);
        }
        // The element left without a slot gets the slot of the least on the path.
        let others = path.into_iter().filter(|other| *other != moving);
        let victim = others.chain([moving]).min_by(|one, other| self.score(*one).total_cmp(&self.score(*other)));
        let victim = victim.expect("the path is not empty");
        if victim != moving {
            // It may stand in a slot it does not hash to: lookups are by object here.
            let at = self.kept(victim).at;
            self.slots[at] = Some(moving);
            self.kept(moving).at = at;
        }
        self.free(victim);
    }

    fn kept(&mut self, object: u32) -> &mut Kept {
        self.kept[object as usize].as_mut().expect("it is kept")
    }

    fn score(&self, object: u32) -> f64 {
        let kept = self.kept[object as usize].expect("it is kept");
        let mean = self.bytes as f64 / self.gets as f64;
        let adjacent = 64.0 * f64::from(self.arena.free_adjacent(kept.region));
        ((mean - adjacent).abs() / mean).min(1.0) * kept.last as f64 / self.gets as f64
    }

    /// The least of the sampled consecutive slots from a random one on, extended to the first occupied one.
    fn victim(&mut self) -> Option<u32> {
        let start = self.random.usize(0..self.slots.len());
        let mut least = None;
        for step in 0..self.slots.len() {
            if step >= SAMPLE && least.is_some() {
                break;
            }
            let Some(object) = self.slots[(start + step) % self.slots.len()] else { continue };
            let score = self.score(object);
            if least.is_none_or(|(lowest, _)| score < lowest) {
                least = Some((score, object));
            }
        }
        least.map(|(_, object)| object)
    }

    fn evict(&mut self, object: u32) {
        let at = self.kept(object).at;
        self.slots[at] = None;
        self.free(object);
    }

    fn free(&mut self, object: u32) {
        let kept = self.kept[object as usize].take().expect("it is kept");
        self.arena.release(kept.region);
    }
}
