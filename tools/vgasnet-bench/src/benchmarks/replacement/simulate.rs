//! Hits of policies on traces.

use std::collections::HashMap;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{FrameId, PageId};
use vgasnet_protocol::replacement::{FillKind, FrameState, FrameUse, Need, PolicyKind, Replacement};

/// A cache of pages.
pub trait Cache {
    /// Uses a page. Returns whether it was resident.
    fn access(&mut self, page: u32) -> bool;
}

/// Hits of a cache on a trace, counted from the access `first`.
pub fn hits(cache: &mut dyn Cache, trace: &[u32], first: usize) -> usize {
    trace.iter().enumerate().filter(|(at, page)| cache.access(**page) && *at >= first).count()
}

/// A pool as in the engine: one mark per frame, and the library's own search for victims.
pub struct Pool {
    replacement: Replacement,
    frame_of: HashMap<u32, FrameId>,
    page_in: Vec<u32>,
    marks: Marks,
}

/// The used frames.
struct Marks(Vec<bool>);

impl FrameUse for Marks {
    fn state(&self, _frame: FrameId) -> FrameState {
        FrameState::Idle
    }

    fn is_ahead(&self, _frame: FrameId) -> bool {
        false
    }

    fn take_used(&mut self, frame: FrameId) -> bool {
        std::mem::take(&mut self.0[frame.0 as usize])
    }
}

impl Pool {
    pub fn new(kind: PolicyKind, frames: usize) -> Pool {
        let replacement = Replacement::new(kind.make(frames as u32), frames as u32);
        let marks = Marks(vec![false; frames]);
        Pool { replacement, frame_of: HashMap::new(), page_in: Vec::with_capacity(frames), marks }
    }

    /// A frame for a page: an unused one, else the victim's.
    fn make_room(&mut self) -> FrameId {
        if self.page_in.len() < self.marks.0.len() {
            self.page_in.push(0);
            return FrameId(self.page_in.len() as u32 - 1);
        }
        let victim = self.replacement.victim(&mut self.marks, Need::Now).expect("no frame is pinned");
        self.frame_of.remove(&self.page_in[victim.0 as usize]);
        victim
    }
}

impl Cache for Pool {
    fn access(&mut self, page: u32) -> bool {
        let known = self.frame_of.get(&page).copied();
        let frame = known.unwrap_or_else(|| self.make_room());
        if known.is_none() {
            self.frame_of.insert(page, frame);
            self.page_in[frame.0 as usize] = page;
            self.replacement.on_filled(frame, PageId::of_segment(Rank(0), page), FillKind::ForUse);
        }
        self.marks.0[frame.0 as usize] = true;
        known.is_some()
    }
}
