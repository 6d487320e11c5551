//! A policy's view of frames during the search for a victim, and the limits of the search.

use super::queues::{HELD, POLICY, Queues};
use super::{FrameState, FrameUse};
use crate::coherence::{FrameId, PageId};

/// Maximum number of recently used frames a search passes over, so that it ends even if all frames are in constant use.
const CHANCES: u32 = 16;

/// Maximum number of frames in use a search passes over.
const IN_USE_MAX: u32 = 32;

/// Maximum number of possibly only copies a search passes over, and the corresponding part of the pool.
const SPARED_MAX: u32 = 16;
const SPARED_PART: u32 = 2;

/// The state of a frame in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Unevictable, and removed from the policy's queues. It returns by [`Policy::put_back`](super::Policy::put_back).
    Held,
    /// In use now.
    InUse,
    /// Used since the last look.
    Used,
    /// Unused since the last look.
    Unused,
}

/// One search for a victim.
pub struct Search<'a> {
    frames: &'a mut dyn FrameUse,
    pages: &'a [PageId],
    /// The queues of the frames.
    pub(super) queues: &'a mut Queues,
    steps: &'a mut u64,
    takes_in_use: bool,
    chances: u32,
    in_use: u32,
    /// Number of pages that may still be spared.
    spares_left: u32,
}

impl<'a> Search<'a> {
    /// A search among these frames and pages, counting looks in `steps`. `takes_in_use` allows frames in use as a last
    /// resort.
    pub(super) fn new(
        frames: &'a mut dyn FrameUse,
        pages: &'a [PageId],
        queues: &'a mut Queues,
        steps: &'a mut u64,
        takes_in_use: bool,
    ) -> Search<'a> {
        let spares_left = SPARED_MAX.min(pages.len() as u32 / SPARED_PART);
        Search { frames, pages, queues, steps, takes_in_use, chances: CHANCES, in_use: 0, spares_left }
    }

    /// Examines a frame, which counts as unused from now on.
    pub fn look(&mut self, frame: FrameId) -> Look {
        debug_assert!(self.queues.list_of(frame) >= Some(POLICY), "a policy looks at frames of its own queues");
        *self.steps += 1;
        match self.frames.state(frame) {
            FrameState::Held => {
                self.queues.push_back(HELD, frame);
                Look::Held
            }
            FrameState::InUse if self.takes_in_use => Look::Unused,
            FrameState::InUse => {
                self.in_use += 1;
                Look::InUse
            }
            FrameState::Idle if self.frames.take_used(frame) => Look::Used,
            FrameState::Idle => Look::Unused,
        }
    }

    /// The page of a frame in a queue of the policy.
    pub fn page(&self, frame: FrameId) -> PageId {
        self.pages[frame.0 as usize]
    }

    /// Reports a page the next search will evict, unless it is used meanwhile.
    pub fn will_go(&mut self, frame: FrameId) {
        self.frames.will_go(frame);
    }

    /// Whether another used frame may be passed over.
    pub fn gives_chance(&mut self) -> bool {
        self.chances = self.chances.saturating_sub(1);
        self.chances > 0
    }

    /// Whether a victim is passed over because it may be the only copy.
    pub fn spares(&mut self, frame: FrameId) -> bool {
        let spares = self.spares_left > 0 && self.frames.is_only_copy(frame);
        self.spares_left -= u32::from(spares);
        spares
    }

    /// Number of pages that may still be spared, each costing one more look.
    pub fn spares_left(&self) -> u32 {
        self.spares_left
    }

    /// Whether the search gives up because too many frames were in use.
    pub fn is_over(&self) -> bool {
        self.in_use >= IN_USE_MAX
    }
}
