//! The driver's side of the cache, in the test's memory.

use std::cell::Cell;
use vgasnet_protocol::get_cache::{
    Clock, EntryId, GENERATION_PLACES, Heat, Limits, Mirror, Opened, SLOTS, Seen, TARGET_PLACES,
};

/// State of one entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub opened: Option<Opened>,
    pub is_open: bool,
    pub pins: u32,
    pub heat: Heat,
}

/// The driver's state, counting the machine's accesses.
#[derive(Debug)]
pub struct Twin {
    pub slots: Vec<u64>,
    pub buckets: u32,
    pub entries: Vec<Known>,
    pub generations: Vec<u32>,
    pub clock: Clock,
    pub seen: Seen,
    pub is_dormant: bool,
    pub chunks: u32,
    /// Maximum number of chunks with memory.
    pub chunks_max: u32,
    pub refusals: u32,
    pub slot_looks: Cell<u32>,
    pub heat_looks: Cell<u32>,
}

impl Twin {
    pub fn new(limits: &Limits) -> Twin {
        Twin {
            slots: vec![0; (limits.buckets_max() * SLOTS) as usize],
            buckets: 0,
            entries: vec![Known::default(); limits.entries_max as usize],
            generations: vec![0; (GENERATION_PLACES + TARGET_PLACES) as usize],
            clock: Clock::default(),
            seen: Seen::default(),
            is_dormant: false,
            chunks: 0,
            chunks_max: u32::MAX,
            refusals: 0,
            slot_looks: Cell::new(0),
            heat_looks: Cell::new(0),
        }
    }

    pub fn unpin(&mut self, entry: EntryId) {
        let pins = &mut self.entries[entry.index()].pins;
        *pins = pins.checked_sub(1).expect("it was pinned");
    }
}

impl Mirror for Twin {
    fn slot(&self, at: u32) -> u64 {
        self.slot_looks.set(self.slot_looks.get() + 1);
        self.slots[at as usize]
    }

    fn set_slot(&mut self, at: u32, slot: u64) {
        self.slots[at as usize] = slot;
    }

    fn set_buckets(&mut self, buckets: u32) {
        self.buckets = buckets;
    }

    fn set_generation(&mut self, place: usize, generation: u32) {
        self.generations[place] = generation;
    }

    fn open(&mut self, entry: EntryId, opened: &Opened) {
        let known = &mut self.entries[entry.index()];
        assert!(!known.is_open && known.pins == 0, "{entry:?} is in use");
        (known.opened, known.is_open) = (Some(*opened), true);
    }

    fn lengthen(&mut self, entry: EntryId, len: u32) {
        let known = &mut self.entries[entry.index()];
        assert!(known.is_open);
        known.opened.as_mut().expect("it is open").len = len;
    }

    fn pin(&mut self, entry: EntryId) {
        self.entries[entry.index()].pins += 1;
    }

    fn try_close(&mut self, entry: EntryId) -> bool {
        let known = &mut self.entries[entry.index()];
        assert!(known.is_open);
        known.is_open = known.pins > 0;
        !known.is_open
    }

    fn close(&mut self, entry: EntryId) {
        self.entries[entry.index()].is_open = false;
    }

    fn is_pinned(&self, entry: EntryId) -> bool {
        self.entries[entry.index()].pins > 0
    }

    fn heat(&self, entry: EntryId) -> Heat {
        self.heat_looks.set(self.heat_looks.get() + 1);
        self.entries[entry.index()].heat
    }

    fn set_heat(&mut self, entry: EntryId, heat: Heat) {
        self.entries[entry.index()].heat = heat;
    }

    fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    fn seen(&self) -> Seen {
        self.seen
    }

    fn set_dormant(&mut self, is_dormant: bool) {
        self.is_dormant = is_dormant;
    }

    fn add_chunk(&mut self) -> bool {
        let can = self.chunks < self.chunks_max;
        self.refusals += u32::from(!can);
        self.chunks += u32::from(can);
        can
    }

    fn remove_chunk(&mut self) {
        self.chunks -= 1;
    }
}
