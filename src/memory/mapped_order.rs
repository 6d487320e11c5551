//! Which frames are mapped in the segment, in the order in which they were mapped.
//!
//! Mapped pages are used without a trace, so their order of use is unknown. Two bounds make up for that. No more pages
//! are mapped than the system has mappings for. When frames are needed, the pages that were mapped first are unmapped.
//! An unmapped page stays in its frame, and the next access maps it again, which dates it.

use super::page_mapper::PageMapper;
use crate::sys::futex::Lock;
use vgasnet_protocol::coherence::{Access, FrameId};

const NONE: u32 = u32::MAX;

/// A frame's place in the order.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The page as which it is mapped, or [`NONE`].
    page: u32,
    access: Access,
    older: u32,
    newer: u32,
}

#[derive(Debug)]
struct Order {
    by_frame: Box<[Entry]>,
    oldest: u32,
    newest: u32,
    count: u32,
}

/// The frames that are mapped in the segment.
pub(super) struct MappedOrder {
    mapper: Box<dyn PageMapper>,
    order: Lock<Order>,
    count_max: u32,
}

impl MappedOrder {
    /// A mapper that has mapped nothing yet, and never maps more than `count_max` of `frames` frames, at least one.
    pub(super) fn new(mapper: Box<dyn PageMapper>, frames: u32, count_max: u32) -> MappedOrder {
        let unmapped = Entry { page: NONE, access: Access::Read, older: NONE, newer: NONE };
        let by_frame = vec![unmapped; frames as usize].into();
        let order = Lock::new(Order { by_frame, oldest: NONE, newest: NONE, count: 0 });
        MappedOrder { mapper, order, count_max: count_max.max(1) }
    }

    /// Maps a frame as page `index` with at least these rights, for which the caller has the page pinned. Pages that
    /// `may_unmap` allows make room. Returns whether any had to.
    ///
    /// # Errors
    /// The system's error number, if it has no room for a mapping even when all other pages are unmapped.
    pub(super) fn map(
        &self,
        index: u32,
        frame: FrameId,
        access: Access,
        may_unmap: &dyn Fn(FrameId) -> bool,
    ) -> Result<bool, i32> {
        let mut order = self.order.lock();
        let entry = order.by_frame[frame.0 as usize];
        if entry.page != NONE {
            assert_eq!(entry.page, index, "{frame:?} is mapped as another page");
            if entry.access >= access {
                return Ok(false);
            }
        }
        let instead = (entry.page != NONE).then_some(entry.access);
        let mut crowded = instead.is_none() && order.count >= self.count_max;
        if crowded {
            let below = self.count_max - 1;
            self.unmap_oldest(&mut order, below, may_unmap);
        }
        if self.mapper.map(index, frame, access, instead).is_err() {
            crowded = true;
            self.unmap_oldest(&mut order, 0, may_unmap);
            self.mapper.map(index, frame, access, instead)?;
        }
        if instead.is_none() {
            order.append(frame.0, index);
        }
        order.by_frame[frame.0 as usize].access = access;
        Ok(crowded)
    }

    /// Unmaps a frame, if it is mapped. When this returns, nobody loads from it or stores to it.
    ///
    /// # Errors
    /// The system's error number.
    pub(super) fn unmap(&self, frame: FrameId) -> Result<(), i32> {
        let mut order = self.order.lock();
        if order.by_frame[frame.0 as usize].page == NONE { Ok(()) } else { self.unmap_in(&mut order, frame.0) }
    }

    /// Unmaps the pages that were mapped first and that `may_unmap` allows, until `count` are left.
    pub(super) fn shrink(&self, count: u32, may_unmap: &dyn Fn(FrameId) -> bool) {
        self.unmap_oldest(&mut self.order.lock(), count, may_unmap);
    }

    /// Whether some frame is mapped as page `index`.
    pub(super) fn is_mapped(&self, index: u32) -> bool {
        self.order.lock().by_frame.iter().any(|entry| entry.page == index)
    }

    /// How many frames are mapped.
    pub(super) fn count(&self) -> u32 {
        self.order.lock().count
    }

    fn unmap_oldest(&self, order: &mut Order, count: u32, may_unmap: &dyn Fn(FrameId) -> bool) {
        let mut looked_at = order.count;
        while order.count > count && looked_at > 0 {
            looked_at -= 1;
            let frame = order.oldest;
            let page = order.by_frame[frame as usize].page;
            if !may_unmap(FrameId(frame)) || self.unmap_in(order, frame).is_err() {
                order.remove(frame);
                order.append(frame, page);
            }
        }
    }

    fn unmap_in(&self, order: &mut Order, frame: u32) -> Result<(), i32> {
        let Entry { page, access, .. } = order.by_frame[frame as usize];
        self.mapper.unmap(page, FrameId(frame), access)?;
        order.remove(frame);
        Ok(())
    }
}

impl Order {
    fn append(&mut self, frame: u32, page: u32) {
        let older = self.newest;
        let entry = &mut self.by_frame[frame as usize];
        (entry.page, entry.older, entry.newer) = (page, older, NONE);
        match older {
            NONE => self.oldest = frame,
            older => self.by_frame[older as usize].newer = frame,
        }
        self.newest = frame;
        self.count += 1;
    }

    fn remove(&mut self, frame: u32) {
        let Entry { older, newer, .. } = self.by_frame[frame as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.by_frame[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.by_frame[newer as usize].older = older,
        }
        self.by_frame[frame as usize].page = NONE;
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A mapper that notes what is mapped, and refuses more than `room` pages.
    #[derive(Clone)]
    struct Noted {
        mapped: Arc<Mutex<Vec<(u32, FrameId, Access)>>>,
        room: usize,
    }

    impl PageMapper for Noted {
        fn map(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32> {
            let mut mapped = self.mapped.lock().expect("no panics");
            mapped.retain(|(page, its, before)| {
                assert!(*page != index || (*its == frame && Some(*before) == instead), "{index} is mapped already");
                *page != index
            });
            if mapped.len() == self.room {
                return Err(libc::ENOMEM);
            }
            mapped.push((index, frame, access));
            Ok(())
        }

        fn unmap(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
            let mut mapped = self.mapped.lock().expect("no panics");
            let at = mapped.iter().position(|one| *one == (index, frame, access)).expect("it is mapped like this");
            mapped.remove(at);
            Ok(())
        }
    }

    fn mapped(room: usize, count_max: u32) -> (MappedOrder, Noted) {
        let noted = Noted { mapped: Arc::default(), room };
        (MappedOrder::new(Box::new(noted.clone()), 8, count_max), noted)
    }

    fn pages(noted: &Noted) -> Vec<u32> {
        noted.mapped.lock().expect("no panics").iter().map(|one| one.0).collect()
    }

    #[test]
    fn the_page_that_was_mapped_first_makes_room() {
        let (mapped, noted) = mapped(8, 3);
        for frame in 0..5 {
            mapped.map(10 + frame, FrameId(frame), Access::Read, &|frame| frame != FrameId(1)).expect("room");
        }
        assert_eq!(pages(&noted), [11, 13, 14]);
        mapped.map(13, FrameId(3), Access::Write, &|_| true).expect("more rights");
        mapped.map(13, FrameId(3), Access::Read, &|_| true).expect("fewer rights than it has");
        assert_eq!(noted.mapped.lock().expect("no panics").last(), Some(&(13, FrameId(3), Access::Write)));
        mapped.unmap(FrameId(3)).expect("mapped");
        mapped.unmap(FrameId(3)).expect("unmapped already");
        mapped.shrink(1, &|_| true);
        assert_eq!((pages(&noted), mapped.count()), (vec![14], 1));
    }

    #[test]
    fn what_the_system_refuses_is_tried_again_with_nothing_else_mapped() {
        let (mapped, noted) = mapped(3, 8);
        for frame in 0..4 {
            mapped.map(frame, FrameId(frame), Access::Read, &|_| true).expect("room in the end");
        }
        assert_eq!(pages(&noted), [3]);
        let refused = (4..8).find_map(|frame| mapped.map(frame, FrameId(frame), Access::Read, &|_| false).err());
        assert_eq!(refused, Some(libc::ENOMEM));
        assert_eq!(mapped.count(), 3);
    }
}
