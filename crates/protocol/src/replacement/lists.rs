//! Queues of frames. A frame is in at most one, and moves between them in constant time.

use crate::coherence::FrameId;
use alloc::boxed::Box;
use alloc::vec;

const NONE: u32 = u32::MAX;

/// The list number of frames in no queue.
const NO_LIST: u8 = u8::MAX;

/// The neighbours of a frame in its queue.
#[derive(Clone, Copy, Debug)]
struct Node {
    before: u32,
    after: u32,
}

/// One queue.
#[derive(Clone, Copy, Debug)]
struct Ends {
    front: u32,
    back: u32,
    len: u32,
}

/// `N` queues of the frames of a pool.
#[derive(Debug)]
pub struct Lists<const N: usize> {
    nodes: Box<[Node]>,
    /// By frame, its queue; separate from the nodes to avoid padding.
    lists: Box<[u8]>,
    ends: [Ends; N],
}

impl<const N: usize> Lists<N> {
    /// Empty queues for `frames` frames.
    pub fn new(frames: u32) -> Lists<N> {
        const { assert!(N < NO_LIST as usize, "a queue's number is a byte") };
        let nodes = vec![Node { before: NONE, after: NONE }; frames as usize].into();
        let lists = vec![NO_LIST; frames as usize].into();
        Lists { nodes, lists, ends: [Ends { front: NONE, back: NONE, len: 0 }; N] }
    }

    /// Number of frames in a queue.
    pub fn len(&self, list: usize) -> u32 {
        self.ends[list].len
    }

    /// The first frame of a queue.
    pub fn front(&self, list: usize) -> Option<FrameId> {
        Some(self.ends[list].front).filter(|front| *front != NONE).map(FrameId)
    }

    /// The queue of a frame.
    pub fn list_of(&self, frame: FrameId) -> Option<usize> {
        Some(self.lists[frame.0 as usize]).filter(|list| *list != NO_LIST).map(usize::from)
    }

    /// Moves a frame to the back of a queue.
    pub fn push_back(&mut self, list: usize, frame: FrameId) {
        self.remove(frame);
        let before = self.ends[list].back;
        self.lists[frame.0 as usize] = list as u8;
        self.nodes[frame.0 as usize] = Node { before, after: NONE };
        match before {
            NONE => self.ends[list].front = frame.0,
            before => self.nodes[before as usize].after = frame.0,
        }
        self.ends[list].back = frame.0;
        self.ends[list].len += 1;
        debug_assert_eq!(self.front(list).is_some(), self.len(list) > 0, "a queue with frames has a first one");
    }

    /// Removes a frame from its queue. Returns whether it was in one.
    pub fn remove(&mut self, frame: FrameId) -> bool {
        let Some(list) = self.list_of(frame) else { return false };
        let Node { before, after } = self.nodes[frame.0 as usize];
        match before {
            NONE => self.ends[list].front = after,
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => self.ends[list].back = before,
            after => self.nodes[after as usize].before = before,
        }
        debug_assert!(self.ends[list].len > 0, "{frame:?} was counted in its queue");
        self.ends[list].len -= 1;
        self.lists[frame.0 as usize] = NO_LIST;
        debug_assert_eq!(self.front(list).is_some(), self.len(list) > 0, "a queue with frames has a first one");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn all<const N: usize>(lists: &mut Lists<N>, list: usize) -> Vec<u32> {
        core::iter::from_fn(|| lists.front(list).inspect(|frame| assert!(lists.remove(*frame))).map(|frame| frame.0))
            .collect()
    }

    #[test]
    fn frames_queue_up_and_leave_from_anywhere() {
        let mut lists = Lists::<2>::new(6);
        (0..6).for_each(|frame| lists.push_back((frame % 2) as usize, FrameId(frame)));
        lists.push_back(0, FrameId(1));
        lists.push_back(0, FrameId(0));
        assert!(lists.remove(FrameId(4)) && !lists.remove(FrameId(4)));
        assert_eq!((lists.len(0), lists.len(1)), (3, 2));
        assert_eq!((lists.list_of(FrameId(1)), lists.list_of(FrameId(4))), (Some(0), None));
        assert_eq!((all(&mut lists, 0), all(&mut lists, 1)), (std::vec![2, 1, 0], std::vec![3, 5]));
    }
}
