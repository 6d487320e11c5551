//! The order in which frames were mapped in the segment.
//!
//! No more pages are mapped than the system has mappings for: those that were mapped first make room. An unmapped page
//! stays in its frame, and the next access maps it again.

use vgasnet_protocol::coherence::FrameId;

const NONE: u32 = u32::MAX;

/// A frame's place in the order.
#[derive(Clone, Copy, Debug)]
struct Entry {
    is_mapped: bool,
    older: u32,
    newer: u32,
}

/// The frames that are mapped, or about to be.
#[derive(Debug)]
pub(super) struct MappedOrder {
    by_frame: Box<[Entry]>,
    oldest: u32,
    newest: u32,
    count: u32,
}

impl MappedOrder {
    /// None of so many frames is mapped.
    pub(super) fn new(frames: u32) -> MappedOrder {
        let unmapped = Entry { is_mapped: false, older: NONE, newer: NONE };
        MappedOrder { by_frame: vec![unmapped; frames as usize].into(), oldest: NONE, newest: NONE, count: 0 }
    }

    /// How many frames there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The frame that was mapped first, if there are more than so many.
    pub(super) fn oldest_above(&self, count: u32) -> Option<FrameId> {
        (self.count > count).then_some(FrameId(self.oldest))
    }

    /// A frame is mapped that was not.
    pub(super) fn append(&mut self, FrameId(frame): FrameId) {
        let older = self.newest;
        let entry = &mut self.by_frame[frame as usize];
        assert!(!entry.is_mapped, "frame {frame} is mapped twice");
        *entry = Entry { is_mapped: true, older, newer: NONE };
        match older {
            NONE => self.oldest = frame,
            older => self.by_frame[older as usize].newer = frame,
        }
        self.newest = frame;
        self.count += 1;
    }

    /// A frame is mapped no longer.
    pub(super) fn remove(&mut self, FrameId(frame): FrameId) {
        let Entry { is_mapped, older, newer } = self.by_frame[frame as usize];
        assert!(is_mapped, "frame {frame} is unmapped twice");
        match older {
            NONE => self.oldest = newer,
            older => self.by_frame[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.by_frame[newer as usize].older = older,
        }
        self.by_frame[frame as usize].is_mapped = false;
        self.count -= 1;
    }

    /// A frame counts as mapped last, if it is still mapped.
    pub(super) fn renew(&mut self, frame: FrameId) {
        if self.by_frame[frame.0 as usize].is_mapped {
            self.remove(frame);
            self.append(frame);
        }
    }
}
