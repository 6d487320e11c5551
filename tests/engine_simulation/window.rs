//! A rank's own segment as memory: a window that notes which frame it shows where, instead of mapping it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use vgasnet::coherence::{Access, FrameId, PageId};
use vgasnet::page_table::Slots;
use vgasnet::space::RankMemory;
use vgasnet_conduit::Rank;

/// What a job's windows are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Pages that are shown at a time.
    pub shown_max: u32,
    /// Mappings that the system has left over; it finds room for another one where some page was hidden just before.
    pub room: usize,
    /// Processors run single instructions: a visit ends when its instruction is through.
    pub steps: bool,
}

impl Settings {
    /// Windows that show every frame of any pool.
    pub const WIDE: Settings = Settings { shown_max: u32::MAX, room: usize::MAX, steps: true };
}

/// What a page of the segment shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub frame: FrameId,
    pub access: Access,
}

/// Both the engine's window and the test's view through it.
#[derive(Clone)]
pub struct Window(Arc<Inner>);

struct Inner {
    rank: Rank,
    memory: RankMemory,
    slots: Slots,
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pages: BTreeMap<u32, Shown>,
    has_refused: bool,
    refusals: u64,
    hidden: u64,
}

impl Window {
    pub fn new(rank: Rank, memory: RankMemory, slots: Slots, settings: Settings) -> Window {
        Window(Arc::new(Inner { rank, memory, slots, settings, state: Mutex::default() }))
    }

    /// What a load or store at page `index` finds.
    pub fn at(&self, index: u32) -> Option<Shown> {
        self.state().pages.get(&index).copied()
    }

    /// Whether a load or store goes through.
    pub fn allows(&self, index: u32, access: Access) -> bool {
        self.at(index).is_some_and(|shown| shown.access >= access)
    }

    /// All that is shown.
    pub fn pages(&self) -> Vec<(u32, Shown)> {
        self.state().pages.iter().map(|(index, shown)| (*index, *shown)).collect()
    }

    /// How often the system had no room for a mapping.
    pub fn refusals(&self) -> u64 {
        self.state().refusals
    }

    /// How often a page was hidden.
    pub fn hidden(&self) -> u64 {
        self.state().hidden
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("nobody panics with the window locked, but to fail the test")
    }

    fn is_pinned(&self, index: u32) -> bool {
        self.0.memory.table.is_pinned(self.0.slots.of(PageId { home: self.0.rank, index }))
    }
}

impl vgasnet::local::Window for Window {
    fn show(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32> {
        let Settings { shown_max, room, .. } = self.0.settings;
        let mut state = self.state();
        let before = instead.map(|access| Shown { frame, access });
        assert_eq!(state.pages.get(&index).copied(), before, "page {index} is not shown as it was believed to be");
        assert!(self.is_pinned(index), "page {index} is shown and may be closed at any moment");
        if before.is_none() {
            let twice = state.pages.iter().find(|(_, shown)| shown.frame == frame);
            assert!(twice.is_none(), "{frame:?} is shown as page {index} and as {twice:?}");
            let is_full = state.pages.len() >= shown_max.max(1) as usize;
            assert!(!is_full || state.pages.keys().all(|other| self.is_pinned(*other)), "more pages than {shown_max}");
        }
        // Pages that are in use cannot be hidden, so the second attempt succeeds however many they are.
        state.has_refused = state.pages.len() >= room && !state.has_refused;
        if state.has_refused {
            state.refusals += 1;
            return Err(libc::ENOMEM);
        }
        state.pages.insert(index, Shown { frame, access });
        Ok(())
    }

    fn hide(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
        let mut state = self.state();
        assert_eq!(state.pages.remove(&index), Some(Shown { frame, access }), "page {index} is hidden as another");
        assert!(!self.is_pinned(index), "page {index} is hidden from somebody who keeps it");
        state.hidden += 1;
        Ok(())
    }
}
