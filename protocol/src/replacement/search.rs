//! What a policy learns of a frame while it looks for a victim, and how long it may look.

use super::queues::{HELD, Queues};
use super::{FrameUse, Standing};
use crate::coherence::{FrameId, PageId};

/// Frames used since the hand came last that one search passes over. So a search ends soon even if all are used all the
/// time.
const CHANCES: u32 = 16;

/// Frames in use that one search passes over.
const IN_USE_MAX: u32 = 32;

/// Pages that may be in no other pool, which one search passes over, and the part of the pool that they are at most.
const SPARED_MAX: u32 = 16;
const SPARED_PART: u32 = 2;

/// What a policy finds at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It cannot be evicted, and is in no queue of the policy any more. It comes back by
    /// [`Policy::put_back`](super::Policy::put_back).
    Held,
    /// Somebody uses it at this moment.
    InUse,
    /// It was used since the last look.
    Used,
    /// It was not.
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
    /// Pages that may still be spared.
    spares_left: u32,
}

impl<'a> Search<'a> {
    /// A search among these frames with these pages, which adds its looks to `steps`. If nothing else is left, `takes_in_use` allows frames
    /// in use.
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

    /// Looks at a frame, which counts as unused from now on.
    pub fn look(&mut self, frame: FrameId) -> Look {
        *self.steps += 1;
        match self.frames.standing(frame) {
            Standing::Held => {
                self.queues.push_back(HELD, frame);
                Look::Held
            }
            Standing::InUse if self.takes_in_use => Look::Unused,
            Standing::InUse => {
                self.in_use += 1;
                Look::InUse
            }
            Standing::Idle if self.frames.take_used(frame) => Look::Used,
            Standing::Idle => Look::Unused,
        }
    }

    /// The page in a frame that is in a queue of the policy.
    pub fn page(&self, frame: FrameId) -> PageId {
        self.pages[frame.0 as usize]
    }

    /// Tells the driver of a page that the next search goes for, unless it is used meanwhile.
    pub fn will_go(&mut self, frame: FrameId) {
        self.frames.will_go(frame);
    }

    /// Whether another frame that was used may be passed over.
    pub fn gives_chance(&mut self) -> bool {
        self.chances = self.chances.saturating_sub(1);
        self.chances > 0
    }

    /// Whether a page that would go is passed over, since it may be in no other pool.
    pub fn spares(&mut self, frame: FrameId) -> bool {
        let spares = self.spares_left > 0 && self.frames.is_only_copy(frame);
        self.spares_left -= u32::from(spares);
        spares
    }

    /// How many pages may still be passed over so: as many looks more are needed until one goes.
    pub fn spares_left(&self) -> u32 {
        self.spares_left
    }

    /// Whether so many frames were in use that the search gives up.
    pub fn is_over(&self) -> bool {
        self.in_use >= IN_USE_MAX
    }
}
