//! New entries of unproven value: a small part of the memory, evicting the oldest. Quickly repeated gets hit, and
//! others displace nothing more valuable (Einziger, Friedman and Manes, "TinyLFU", 2017).

use super::entries::Entries;
use super::heat::Heat;
use super::key::EntryId;
use alloc::collections::VecDeque;

/// The window has one part in this many of the memory.
const PART: u32 = 16;

/// A window pays if this many of 256 entries are hit. Otherwise one entry in `PROBES_PART` is admitted.
const PAYS: u32 = 64;
pub(super) const PROBES_PART: usize = 32;

/// The probed entry is this many before the last.
const RECENT: usize = 8;

/// The entries of the window.
#[derive(Debug)]
pub struct Window {
    /// From the oldest, with the heat at admission; may include entries since removed.
    order: VecDeque<(EntryId, Heat)>,
    units: u32,
    /// Recently hit entries of 256, times 16.
    hit_share: u32,
}

impl Default for Window {
    /// Empty, and assumed to pay until shown otherwise.
    fn default() -> Window {
        Window { order: VecDeque::new(), units: 0, hit_share: 2 * PAYS * 16 }
    }
}

impl Window {
    /// Total units of its entries.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Whether one more entry is admitted: any while the window pays, otherwise one in `PROBES_PART`, drawn at
    /// random.
    pub fn admits(&self, is_drawn: bool) -> bool {
        is_drawn || self.hit_share >= PAYS * 16
    }

    /// The entry `RECENT` before the last, with its heat at admission.
    pub fn recent<W>(&self, entries: &Entries<W>) -> Option<(EntryId, Heat)> {
        let at = self.order.len().checked_sub(RECENT)?;
        self.order.get(at).copied().filter(|(entry, _)| entries.is_new(*entry))
    }

    /// Records whether a recent entry was hit since its admission.
    pub fn on_recent(&mut self, was_hit: bool) {
        self.hit_share -= self.hit_share / 16;
        self.hit_share += if was_hit { 256 } else { 0 };
        debug_assert!(self.hit_share <= 256 * 16, "no more entries are hit than there are");
    }

    /// Whether `units` more fit into the window of a memory of `all` units.
    pub fn has_room(&self, units: u32, all: u32) -> bool {
        self.units + units <= (all / PART).max(1)
    }

    /// Adds an entry of `units` units.
    pub fn push<W>(&mut self, entries: &mut Entries<W>, entry: EntryId, heat: Heat, units: u32) {
        if self.order.len() > 2 * entries.listed().len() + 16 {
            self.order.retain(|(known, _)| entries.is_new(*known));
        }
        debug_assert!(!entries.is_new(entry), "{entry:?} enters the window once");
        entries.get_mut(entry).is_new = true;
        self.order.push_back((entry, heat));
        self.units += units;
    }

    /// Removes an entry, if present.
    pub fn remove<W>(&mut self, entries: &mut Entries<W>, entry: EntryId, units: u32) {
        if core::mem::take(&mut entries.get_mut(entry).is_new) {
            debug_assert!(self.units >= units, "the units of the window are counted");
            self.units -= units;
        }
    }

    /// Takes the oldest entry.
    pub fn pop<W>(&mut self, entries: &Entries<W>) -> Option<(EntryId, Heat)> {
        while let Some((entry, heat)) = self.order.pop_front() {
            if entries.is_new(entry) {
                return Some((entry, heat));
            }
        }
        None
    }

    /// Puts an entry back as the youngest.
    pub fn put_back(&mut self, entry: EntryId, heat: Heat) {
        debug_assert!(self.units > 0, "{entry:?} is in the window still, with its units");
        self.order.push_back((entry, heat));
    }
}
