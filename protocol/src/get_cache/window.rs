//! Entries that came though they are not known to be worth more than others: a small part of the memory, in which the oldest goes. So what
//! is asked for again soon hits, and what is not displaces nothing that is worth more (Einziger, Friedman and Manes, "TinyLFU", 2017).

use super::entries::Entries;
use super::heat::Heat;
use super::key::EntryId;
use alloc::collections::VecDeque;

/// The window has one part in so many of the memory.
const PART: u32 = 16;

/// A window of which so many of 256 entries are hit pays. While it does not, one entry in so many comes to it.
const PAYS: u32 = 64;
pub(super) const PROBES_PART: usize = 32;

/// Whether it pays is seen at the entry that came so many before the last.
const RECENT: usize = 8;

/// The entries of the window.
#[derive(Debug)]
pub struct Window {
    /// From the oldest on, with their heat when they came; some may be gone, or have left the window.
    order: VecDeque<(EntryId, Heat)>,
    units: u32,
    /// How many of 256 were hit lately, times 16.
    hit_share: u32,
}

impl Default for Window {
    /// Empty, and it pays until it is known that it does not.
    fn default() -> Window {
        Window { order: VecDeque::new(), units: 0, hit_share: 2 * PAYS * 16 }
    }
}

impl Window {
    /// How many units its entries have.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Whether one more entry may come: all while that pays, else those that are drawn, one in [`PROBES_PART`].
    pub fn admits(&self, is_drawn: bool) -> bool {
        is_drawn || self.hit_share >= PAYS * 16
    }

    /// The entry that came a few before the last one, with its heat then.
    pub fn recent<W>(&self, entries: &Entries<W>) -> Option<(EntryId, Heat)> {
        let at = self.order.len().checked_sub(RECENT)?;
        self.order.get(at).copied().filter(|(entry, _)| entries.is_new(*entry))
    }

    /// A recent entry was hit since it came, or not.
    pub fn on_recent(&mut self, was_hit: bool) {
        self.hit_share -= self.hit_share / 16;
        self.hit_share += if was_hit { 256 } else { 0 };
    }

    /// Whether so many units more are in bounds, in a memory of so many.
    pub fn has_room(&self, units: u32, all: u32) -> bool {
        self.units + units <= (all / PART).max(1)
    }

    /// An entry comes, with so many units.
    pub fn push<W>(&mut self, entries: &mut Entries<W>, entry: EntryId, heat: Heat, units: u32) {
        if self.order.len() > 2 * entries.listed().len() + 16 {
            self.order.retain(|(known, _)| entries.is_new(*known));
        }
        entries.get_mut(entry).is_new = true;
        self.order.push_back((entry, heat));
        self.units += units;
    }

    /// An entry leaves the window, if it was there.
    pub fn remove<W>(&mut self, entries: &mut Entries<W>, entry: EntryId, units: u32) {
        if core::mem::take(&mut entries.get_mut(entry).is_new) {
            self.units -= units;
        }
    }

    /// Takes the oldest entry out of the order.
    pub fn pop<W>(&mut self, entries: &Entries<W>) -> Option<(EntryId, Heat)> {
        while let Some((entry, heat)) = self.order.pop_front() {
            if entries.is_new(entry) {
                return Some((entry, heat));
            }
        }
        None
    }

    /// Puts an entry back, as the youngest.
    pub fn put_back(&mut self, entry: EntryId, heat: Heat) {
        self.order.push_back((entry, heat));
    }
}
