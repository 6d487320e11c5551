//! CLOCK: a page that was used since the hand came last gets another round.

use super::search::{Look, Search};
use super::{Lists, Policy};
use crate::coherence::{FrameId, PageId};

/// The frames in a ring, those next to the hand first.
#[derive(Debug)]
pub struct Clock {
    ring: Lists<1>,
}

impl Clock {
    /// A pool of `frames` frames, none of them filled.
    pub fn new(frames: u32) -> Clock {
        Clock { ring: Lists::new(frames) }
    }
}

impl Policy for Clock {
    fn on_filled(&mut self, frame: FrameId, _page: PageId) {
        self.ring.push_back(0, frame);
    }

    fn on_freed(&mut self, frame: FrameId) {
        self.ring.remove(frame);
    }

    fn put_back(&mut self, frame: FrameId) {
        self.ring.push_back(0, frame);
    }

    fn pick(&mut self, search: &mut Search<'_>) -> Option<FrameId> {
        for _ in 0..=2 * self.ring.len(0) {
            let frame = self.ring.front(0)?;
            match search.look(frame) {
                Look::Held => self.on_freed(frame),
                Look::InUse if search.is_over() => return None,
                Look::InUse => self.ring.push_back(0, frame),
                Look::Used if search.gives_chance() => self.ring.push_back(0, frame),
                Look::Used | Look::Unused => {
                    self.ring.remove(frame);
                    return Some(frame);
                }
            }
        }
        None
    }
}
