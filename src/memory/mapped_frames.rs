//! Frames mapped in the segment.
//!
//! Each frame has a lock of its own, under which it is mapped and unmapped: the system calls of several threads do not wait for
//! each other here. The order of the mapped frames has a lock too, under which nothing is called.

use super::mapped_order::MappedOrder;
use super::page_mapper::PageMapper;
use crate::sys::futex::Lock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vgasnet_protocol::coherence::{Access, FrameId};

/// As what a frame is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    page: u32,
    access: Access,
}

/// A frame of the pool.
#[derive(Debug)]
struct Frame {
    mapping: Lock<Option<Mapping>>,
    /// Whether it is mapped. Changes under the lock, after the system call.
    is_mapped: AtomicBool,
}

/// The frames that are mapped in the segment.
pub(super) struct MappedFrames {
    mapper: Box<dyn PageMapper>,
    frames: Box<[Frame]>,
    /// A bit for each page that is mapped, or about to be.
    pages: Box<[AtomicU64]>,
    order: Lock<MappedOrder>,
    count_max: u32,
}

impl MappedFrames {
    /// A mapper that has mapped nothing yet of a segment of `pages` pages, and never maps more than `count_max` of `frames`
    /// frames, at least one, unless none of them may be unmapped.
    pub(super) fn new(mapper: Box<dyn PageMapper>, pages: usize, frames: u32, count_max: u32) -> MappedFrames {
        let unmapped = |_| Frame { mapping: Lock::new(None), is_mapped: AtomicBool::new(false) };
        let order = Lock::new(MappedOrder::new(frames));
        let pages = (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let frames = (0..frames).map(unmapped).collect();
        MappedFrames { mapper, frames, pages, order, count_max: count_max.max(1) }
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
        let state = &self.frames[frame.0 as usize];
        let mut mapping = state.mapping.lock();
        if let Some(before) = *mapping {
            assert_eq!(before.page, index, "{frame:?} is mapped as another page");
            if before.access >= access {
                return Ok(false);
            }
        }
        let instead = mapping.map(|before| before.access);
        let mut crowded = instead.is_none() && self.append(frame);
        if crowded {
            self.shrink(self.count_max, may_unmap);
        }
        self.note_page(index, true);
        let mut mapped = self.mapper.map(index, frame, access, instead);
        if mapped.is_err() {
            crowded = true;
            self.shrink(0, may_unmap);
            mapped = self.mapper.map(index, frame, access, instead);
        }
        match mapped {
            Ok(()) => {
                *mapping = Some(Mapping { page: index, access });
                state.is_mapped.store(true, Ordering::Release);
            }
            Err(_) if instead.is_none() => {
                self.note_page(index, false);
                self.order.lock().remove(frame);
            }
            Err(_) => {}
        }
        mapped.map(|()| crowded)
    }

    /// Unmaps a frame, if it is mapped. When this returns, nobody loads from it or stores to it.
    ///
    /// # Errors
    /// The system's error number.
    pub(super) fn unmap(&self, frame: FrameId) -> Result<(), i32> {
        let mut mapping = self.frames[frame.0 as usize].mapping.lock();
        mapping.map_or(Ok(()), |as_what| self.unmap_locked(frame, as_what, &mut mapping))
    }

    /// Unmaps a frame, if it is mapped as page `index` and `may_unmap` allows it. A frame that the system cannot unmap stays
    /// mapped.
    pub(super) fn unmap_if(&self, frame: FrameId, index: u32, may_unmap: &dyn Fn(FrameId) -> bool) {
        let mut mapping = self.frames[frame.0 as usize].mapping.lock();
        if let Some(as_what) = mapping.filter(|as_what| as_what.page == index && may_unmap(frame)) {
            let _ = self.unmap_locked(frame, as_what, &mut mapping);
        }
    }

    /// Unmaps the pages that were mapped first and that `may_unmap` allows, until `count` are left. Frames that other threads
    /// map or unmap just now are left as they are.
    pub(super) fn shrink(&self, count: u32, may_unmap: &dyn Fn(FrameId) -> bool) {
        let looks = self.count();
        for _ in 0..looks {
            let Some(frame) = self.order.lock().oldest_above(count) else { return };
            let mapping = self.frames[frame.0 as usize].mapping.try_lock();
            let is_unmapped = mapping.is_some_and(|mut mapping| {
                mapping
                    .is_some_and(|as_what| may_unmap(frame) && self.unmap_locked(frame, as_what, &mut mapping).is_ok())
            });
            if !is_unmapped {
                self.order.lock().renew(frame);
            }
        }
    }

    /// Whether the frame is mapped. Waits for nobody.
    pub(super) fn is_mapped(&self, frame: FrameId) -> bool {
        self.frames[frame.0 as usize].is_mapped.load(Ordering::Acquire)
    }

    /// Whether some frame is mapped as page `index`, or about to be. Waits for nobody.
    pub(super) fn is_page_mapped(&self, index: u32) -> bool {
        self.pages[index as usize / 64].load(Ordering::Acquire) & (1 << (index % 64)) != 0
    }

    fn note_page(&self, index: u32, is_mapped: bool) {
        let (word, bit) = (&self.pages[index as usize / 64], 1 << (index % 64));
        if is_mapped {
            word.fetch_or(bit, Ordering::AcqRel);
        } else {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// How many frames are mapped, or about to be.
    pub(super) fn count(&self) -> u32 {
        self.order.lock().count()
    }

    /// Puts a frame in the order. Returns whether there are too many now.
    fn append(&self, frame: FrameId) -> bool {
        let mut order = self.order.lock();
        order.append(frame);
        order.count() > self.count_max
    }

    fn unmap_locked(&self, frame: FrameId, mapped: Mapping, mapping: &mut Option<Mapping>) -> Result<(), i32> {
        self.mapper.unmap(mapped.page, frame, mapped.access)?;
        *mapping = None;
        self.note_page(mapped.page, false);
        self.frames[frame.0 as usize].is_mapped.store(false, Ordering::Release);
        self.order.lock().remove(frame);
        Ok(())
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

    fn mapped(room: usize, count_max: u32) -> (MappedFrames, Noted) {
        let noted = Noted { mapped: Arc::default(), room };
        (MappedFrames::new(Box::new(noted.clone()), 200, 8, count_max), noted)
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
        let known: Vec<u32> = (0..200).filter(|page| mapped.is_page_mapped(*page)).collect();
        assert_eq!(known, [11, 13, 14]);
        mapped.map(13, FrameId(3), Access::Write, &|_| true).expect("more rights");
        mapped.map(13, FrameId(3), Access::Read, &|_| true).expect("fewer rights than it has");
        assert_eq!(noted.mapped.lock().expect("no panics").last(), Some(&(13, FrameId(3), Access::Write)));
        mapped.unmap(FrameId(3)).expect("mapped");
        mapped.unmap(FrameId(3)).expect("unmapped already");
        mapped.shrink(1, &|_| true);
        // The one that could not be unmapped counts as mapped last.
        assert_eq!((pages(&noted), mapped.count()), (vec![11], 1));
        mapped.unmap_if(FrameId(1), 11, &|_| false);
        mapped.unmap_if(FrameId(1), 12, &|_| true);
        mapped.unmap_if(FrameId(4), 14, &|_| true);
        assert_eq!((pages(&noted), mapped.count()), (vec![11], 1));
        mapped.unmap_if(FrameId(1), 11, &|_| true);
        assert_eq!(mapped.count(), 0);
    }

    #[test]
    fn frames_that_other_threads_map_just_now_are_left_alone() {
        let (mapped, noted) = mapped(8, 3);
        for frame in 0..3 {
            mapped.map(frame, FrameId(frame), Access::Read, &|_| true).expect("room");
        }
        let mapping = mapped.frames[0].mapping.lock();
        mapped.shrink(0, &|_| true);
        assert_eq!((pages(&noted), mapped.is_mapped(FrameId(0)), mapped.is_mapped(FrameId(1))), (vec![0], true, false));
        drop(mapping);
        mapped.shrink(0, &|_| true);
        assert_eq!((pages(&noted), mapped.count()), (vec![], 0));
    }

    #[test]
    fn threads_map_and_unmap_side_by_side() {
        const ROUNDS: u32 = 2_000;
        let (mapped, noted) = mapped(8, 5);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let mapped = &mapped;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let frame = FrameId(thread * 2 + round % 2);
                        mapped.map(100 + frame.0, frame, Access::Read, &|_| true).expect("room");
                        if round % 3 == 0 {
                            mapped.unmap(frame).expect("it is mapped, or was unmapped for another");
                            assert!(!mapped.is_mapped(frame));
                        }
                    }
                });
            }
        });
        mapped.shrink(5, &|_| true);
        assert_eq!(pages(&noted).len(), mapped.count() as usize);
        assert!(mapped.count() <= 5);
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
