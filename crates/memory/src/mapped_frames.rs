//! Frames mapped in the segment.
//!
//! Each frame is mapped and unmapped under a lock of its own, so that the system calls of several threads do not wait
//! for each other here. The order of the mapped frames has a lock, too, and nothing is called under it.
//!
//! A small page is mapped together with adjacent pages resident in adjacent frames: one mapping of the system covers
//! all of them and avoids their faults.

use super::mapped_order::{MappedOrder, MappedPages, MappedRun};
use super::page_mapper::PageMapper;
use super::unmapping::UNMAPPED_AT_ONCE;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_protocol::coherence::{Access, FrameId};
use vgasnet_sys::futex::{Guard, Lock};

/// Maximum number of pages mapped together.
pub(super) const WINDOW_MAX: usize = 16;

/// Their maximum bytes with room for all mappings: the kernel populates this many bytes of page table entries at a
/// time.
const WINDOW_BYTES: usize = 64 << 10;

/// Their maximum bytes without such room.
const CROWDED_WINDOW_BYTES: usize = 1 << 20;

/// With at least this many areas, the pages of an instruction are not evicted while it runs.
const CROWDED_AREAS: u32 = 4096;

/// The page and access of a mapped frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    page: u32,
    access: Access,
}

/// The pages next to one being mapped, which may be mapped with it.
pub(super) trait Adjacent {
    /// Whether a page is in this frame and may be mapped with exactly this access. This holds until it is given back.
    fn take(&self, index: u32, frame: FrameId, access: Access) -> bool;

    /// Undoes [`Adjacent::take`].
    fn give_back(&self, frame: FrameId);
}

/// No page is mapped together with another.
pub(super) struct Alone;

impl Adjacent for Alone {
    fn take(&self, _index: u32, _frame: FrameId, _access: Access) -> bool {
        false
    }

    fn give_back(&self, _frame: FrameId) {}
}

/// The frames mapped in the segment.
pub(super) struct MappedFrames {
    mapper: Box<dyn PageMapper>,
    /// By frame.
    mappings: Box<[Lock<Option<Mapping>>]>,
    /// Whether each frame is mapped. Changes under the lock of its mapping, after the system call.
    is_mapped: Box<[AtomicBool]>,
    pages: MappedPages,
    order: Lock<MappedOrder>,
    areas_max: u32,
    /// Some pages had to make room for others.
    is_crowded: AtomicBool,
    /// Maximum number of pages mapped together; the second value is for crowded mappings.
    window: [u32; 2],
}

/// Frames of a run locked by the caller.
type Held<'a> = [Option<Guard<'a, Option<Mapping>>>; WINDOW_MAX];

impl MappedFrames {
    /// Nothing mapped yet in a segment of `pages` pages of `page_bytes`. The `frames` frames never take more than
    /// `areas_max` mappings of the system, besides one, unless none of them may be unmapped.
    pub(super) fn new(
        mapper: Box<dyn PageMapper>,
        page_bytes: usize,
        pages: usize,
        frames: u32,
        areas_max: u32,
    ) -> MappedFrames {
        let window = |bytes: usize| (bytes / page_bytes).clamp(1, WINDOW_MAX) as u32;
        MappedFrames {
            mapper,
            mappings: (0..frames).map(|_| Lock::new(None)).collect(),
            is_mapped: (0..frames).map(|_| AtomicBool::new(false)).collect(),
            pages: MappedPages::new(pages),
            order: Lock::new(MappedOrder::new(frames)),
            areas_max,
            is_crowded: AtomicBool::new(false),
            window: [WINDOW_BYTES, CROWDED_WINDOW_BYTES].map(window),
        }
    }

    /// Maximum number of the system's mappings in use.
    pub(super) fn areas_max(&self) -> u32 {
        self.areas_max
    }

    /// Maps a frame as page `index` with at least this access, together with pages that `adjacent` offers. The caller
    /// has the page pinned. Pages that `may_unmap` allows make room. Returns whether any page did that the same
    /// instruction may need.
    ///
    /// # Errors
    /// The system's errno value, if it has no room for a mapping even with all other pages unmapped.
    pub(super) fn map(
        &self,
        index: u32,
        frame: FrameId,
        access: Access,
        adjacent: &dyn Adjacent,
        may_unmap: &dyn Fn(FrameId) -> bool,
    ) -> Result<bool, i32> {
        let mut mapping = self.mappings[frame.0 as usize].lock();
        match *mapping {
            Some(before) => {
                assert_eq!(before.page, index, "{frame:?} is mapped as another page");
                if before.access >= access {
                    return Ok(false);
                }
                self.change(&mut mapping, frame, access, may_unmap)
            }
            None => self.map_new(&mut mapping, (index, frame), access, adjacent, may_unmap),
        }
    }

    /// Maps a frame with more access than before.
    fn change(
        &self,
        mapping: &mut Option<Mapping>,
        frame: FrameId,
        access: Access,
        may_unmap: &dyn Fn(FrameId) -> bool,
    ) -> Result<bool, i32> {
        let before = mapping.expect("it is mapped");
        let map = || self.mapper.map(before.page, frame, access, Some(before.access));
        let mapped = map();
        let crowded = mapped.is_err();
        mapped.or_else(|_| {
            self.shrink(0, may_unmap);
            map()
        })?;
        *mapping = Some(Mapping { access, ..before });
        self.order.lock().allow_writes(frame, &self.pages);
        Ok(crowded)
    }

    /// Maps an unmapped frame, and its adjacent ones.
    fn map_new(
        &self,
        mapping: &mut Option<Mapping>,
        (index, frame): (u32, FrameId),
        access: Access,
        adjacent: &dyn Adjacent,
        may_unmap: &dyn Fn(FrameId) -> bool,
    ) -> Result<bool, i32> {
        let mut held: Held<'_> = [const { None }; WINDOW_MAX];
        let run = self.hold(&mut held, index, frame, access, adjacent);
        let first_index = index - (frame.0 - run.first.0);
        let with_pages = || run.frames().zip(first_index..);
        let too_many = {
            let mut order = self.order.lock();
            with_pages().for_each(|(frame, page)| order.append(frame, page, access, &self.pages));
            order.areas() > self.areas_max
        };
        if too_many {
            self.is_crowded.store(true, Ordering::Relaxed);
            self.shrink(self.areas_max, may_unmap);
        }
        let map = || self.mapper.map_run(first_index, run.first, run.count, access);
        let mapped = map();
        let is_refused = mapped.is_err();
        let mapped = mapped.or_else(|_| {
            self.shrink(0, may_unmap);
            map()
        });
        let mut guards = held.iter_mut();
        for (at, page) in with_pages() {
            let mine = if at == frame { None } else { guards.by_ref().find_map(Option::as_mut) };
            if mapped.is_ok() {
                let as_what = Some(Mapping { page, access });
                match mine {
                    Some(guard) => **guard = as_what,
                    None => *mapping = as_what,
                }
                self.is_mapped[at.0 as usize].store(true, Ordering::Release);
            } else {
                self.order.lock().remove(at, &self.pages);
            }
        }
        drop(held);
        run.frames().filter(|at| *at != frame).for_each(|at| adjacent.give_back(at));
        mapped.map(|()| is_refused || too_many && self.areas_max < CROWDED_AREAS)
    }

    /// Takes the locks of adjacent frames to be mapped together, in ascending order. Returns the whole run.
    fn hold<'a>(
        &'a self,
        held: &mut Held<'a>,
        index: u32,
        frame: FrameId,
        access: Access,
        adjacent: &dyn Adjacent,
    ) -> MappedRun {
        let window = self.window[usize::from(self.is_crowded.load(Ordering::Relaxed))];
        let place = index % window;
        let take = |page: u32, frame: u32| {
            let guard = self.mappings.get(frame as usize)?.try_lock()?;
            (guard.is_none() && adjacent.take(page, FrameId(frame), access)).then_some(guard)
        };
        let (mut before, mut behind) = (0, 0);
        while before < place.min(frame.0) {
            let Some(guard) = take(index - before - 1, frame.0 - before - 1) else { break };
            held[(place - before - 1) as usize] = Some(guard);
            before += 1;
        }
        while place + behind + 1 < window {
            let Some(guard) = take(index + behind + 1, frame.0 + behind + 1) else { break };
            held[(place + behind + 1) as usize] = Some(guard);
            behind += 1;
        }
        MappedRun { first: FrameId(frame.0 - before), count: before + 1 + behind }
    }

    /// Unmaps a frame, if it is mapped. On return no thread loads from it or stores to it any more.
    ///
    /// # Errors
    /// The system's errno value.
    pub(super) fn unmap(&self, frame: FrameId) -> Result<(), i32> {
        let mut mapping = self.mappings[frame.0 as usize].lock();
        mapping.map_or(Ok(()), |as_what| self.unmap_locked(frame, as_what, &mut mapping))
    }

    /// Unmaps frames, each if it is mapped as this page and `may_unmap` allows it. If the system refuses, the frame
    /// stays mapped.
    pub(super) fn unmap_unused(&self, frames: &[(u32, FrameId)], may_unmap: &dyn Fn(FrameId) -> bool) {
        for frames in frames.chunks(UNMAPPED_AT_ONCE) {
            let mut pages = [0; UNMAPPED_AT_ONCE];
            pages.iter_mut().zip(frames).for_each(|(page, (index, _))| *page = *index);
            self.mapper.prepare_unmapping(&pages[..frames.len()]);
            frames.iter().for_each(|(index, frame)| self.unmap_if(*frame, *index, may_unmap));
        }
    }

    fn unmap_if(&self, frame: FrameId, index: u32, may_unmap: &dyn Fn(FrameId) -> bool) {
        let mut mapping = self.mappings[frame.0 as usize].lock();
        if let Some(as_what) = mapping.filter(|as_what| as_what.page == index && may_unmap(frame)) {
            let _ = self.unmap_locked(frame, as_what, &mut mapping);
        }
    }

    /// Unmaps pages that `may_unmap` allows, in mapping order, until at most `areas` areas are left. Frames being
    /// mapped or unmapped by other threads are skipped.
    pub(super) fn shrink(&self, areas: u32, may_unmap: &dyn Fn(FrameId) -> bool) {
        let window = self.window[1];
        for whatever in [false, true] {
            for _ in 0..self.count() {
                let run = self.order.lock().first_above(areas, window, whatever, &self.pages);
                let Some(run) = run else { break };
                run.frames().for_each(|frame| self.make_room(frame, may_unmap));
            }
        }
    }

    /// Unmaps a frame if allowed; otherwise moves it to the end of the candidates.
    fn make_room(&self, frame: FrameId, may_unmap: &dyn Fn(FrameId) -> bool) {
        let mapping = self.mappings[frame.0 as usize].try_lock();
        let is_unmapped = mapping.is_some_and(|mut mapping| {
            mapping.is_some_and(|as_what| may_unmap(frame) && self.unmap_locked(frame, as_what, &mut mapping).is_ok())
        });
        let mut order = self.order.lock();
        if is_unmapped { order.note_room_made(frame) } else { order.settle(frame) }
    }

    /// Whether the frame is mapped. Lock-free.
    pub(super) fn is_mapped(&self, frame: FrameId) -> bool {
        self.is_mapped[frame.0 as usize].load(Ordering::Acquire)
    }

    /// Whether some frame is mapped as page `index`, or about to be. Lock-free.
    pub(super) fn is_page_mapped(&self, index: u32) -> bool {
        self.pages.has(index)
    }

    /// Number of frames mapped or about to be.
    pub(super) fn count(&self) -> u32 {
        self.order.lock().count()
    }

    fn unmap_locked(&self, frame: FrameId, mapped: Mapping, mapping: &mut Option<Mapping>) -> Result<(), i32> {
        self.mapper.unmap(mapped.page, frame, mapped.access)?;
        *mapping = None;
        self.is_mapped[frame.0 as usize].store(false, Ordering::Release);
        self.order.lock().remove(frame, &self.pages);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::sync::{Arc, Mutex};

    /// Mapped one by one.
    const LARGE_PAGE_BYTES: usize = 1 << 20;

    /// A mapper that records its mappings, and refuses more than `room` pages.
    #[derive(Clone)]
    struct Noted {
        mapped: Arc<Mutex<Vec<(u32, FrameId, Access)>>>,
        runs: Arc<Mutex<Vec<u32>>>,
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

        fn map_run(&self, index: u32, frame: FrameId, count: u32, access: Access) -> Result<(), i32> {
            if self.mapped.lock().expect("no panics").len() + count as usize > self.room {
                return Err(libc::ENOMEM);
            }
            self.runs.lock().expect("no panics").push(count);
            (0..count).try_for_each(|at| self.map(index + at, FrameId(frame.0 + at), access, None))
        }

        fn unmap(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
            let mut mapped = self.mapped.lock().expect("no panics");
            let at = mapped.iter().position(|one| *one == (index, frame, access)).expect("it is mapped like this");
            mapped.remove(at);
            Ok(())
        }
    }

    fn mapped(page_bytes: usize, room: usize, frames: u32, areas_max: u32) -> (MappedFrames, Noted) {
        let noted = Noted { mapped: Arc::default(), runs: Arc::default(), room };
        (MappedFrames::new(Box::new(noted.clone()), page_bytes, 200, frames, areas_max), noted)
    }

    fn pages(noted: &Noted) -> Vec<u32> {
        noted.mapped.lock().expect("no panics").iter().map(|one| one.0).collect()
    }

    fn map(mapped: &MappedFrames, page: u32, frame: u32, access: Access, may_unmap: &dyn Fn(FrameId) -> bool) {
        mapped.map(page, FrameId(frame), access, &Alone, may_unmap).expect("room");
    }

    #[test]
    fn the_page_that_was_mapped_first_makes_room() {
        let (mapped, noted) = mapped(LARGE_PAGE_BYTES, 8, 8, 6);
        for frame in 0..5 {
            map(&mapped, 10 + 2 * frame, frame, Access::Read, &|frame| frame != FrameId(1));
        }
        assert_eq!(pages(&noted), [12, 16, 18]);
        let known: Vec<u32> = (0..200).filter(|page| mapped.is_page_mapped(*page)).collect();
        assert_eq!(known, [12, 16, 18]);
        map(&mapped, 16, 3, Access::Write, &|_| true);
        map(&mapped, 16, 3, Access::Read, &|_| true);
        assert_eq!(noted.mapped.lock().expect("no panics").last(), Some(&(16, FrameId(3), Access::Write)));
        mapped.unmap(FrameId(3)).expect("mapped");
        mapped.unmap(FrameId(3)).expect("unmapped already");
        mapped.shrink(2, &|_| true);
        // The page that could not be unmapped counts as mapped last.
        assert_eq!((pages(&noted), mapped.count()), (vec![12], 1));
        mapped.unmap_if(FrameId(1), 12, &|_| false);
        mapped.unmap_if(FrameId(1), 14, &|_| true);
        mapped.unmap_if(FrameId(4), 18, &|_| true);
        assert_eq!((pages(&noted), mapped.count()), (vec![12], 1));
        mapped.unmap_if(FrameId(1), 12, &|_| true);
        assert_eq!(mapped.count(), 0);
    }

    #[test]
    fn adjacent_pages_need_no_room() {
        let (mapped, noted) = mapped(LARGE_PAGE_BYTES, 100, 100, 6);
        for frame in 0..60 {
            map(&mapped, 10 + frame, frame, Access::Read, &|_| true);
        }
        assert_eq!((mapped.count(), mapped.order.lock().areas()), (60, 2));
        map(&mapped, 100, 70, Access::Read, &|_| true);
        map(&mapped, 102, 72, Access::Read, &|_| true);
        map(&mapped, 104, 74, Access::Read, &|_| true);
        // These 60 came first, and without one of them there would be no fewer areas.
        assert_eq!((mapped.count(), mapped.is_page_mapped(100), mapped.is_page_mapped(104)), (62, false, true));
        mapped.shrink(0, &|_| true);
        assert_eq!((pages(&noted), mapped.count(), mapped.order.lock().areas()), (vec![], 0, 0));
    }

    /// Each page is in the frame of the same number, except one.
    struct Here(u32, RefCell<Vec<FrameId>>);

    impl Adjacent for Here {
        fn take(&self, index: u32, frame: FrameId, _access: Access) -> bool {
            let is_here = index == frame.0 && index != self.0;
            self.1.borrow_mut().extend(is_here.then_some(frame));
            is_here
        }

        fn give_back(&self, frame: FrameId) {
            let mut taken = self.1.borrow_mut();
            let at = taken.iter().position(|one| *one == frame).expect("it was taken");
            taken.remove(at);
        }
    }

    #[test]
    fn small_pages_are_mapped_with_adjacent_ones() {
        let (mapped, noted) = mapped(4096, 30, 64, 1000);
        let here = Here(20, RefCell::default());
        let map = |page| mapped.map(page, FrameId(page), Access::Read, &here, &|_| true);
        assert_eq!(map(25), Ok(false));
        assert_eq!(map(21), Ok(false), "it is mapped already");
        assert_eq!(map(20), Ok(false));
        assert_eq!(*noted.runs.lock().expect("no panics"), [11, 5], "those of a window of 16, without the 20th");
        assert_eq!((mapped.count(), mapped.order.lock().areas()), (16, 2));
        // There is no room for another run, then none for this one besides the others.
        assert_eq!(map(40), Ok(true));
        assert_eq!((pages(&noted).len(), mapped.count()), (16, 16));
        assert!(here.1.borrow().is_empty());
        let large = super::tests::mapped(64 << 10, 100, 64, 1000).0;
        large.map(25, FrameId(25), Access::Read, &here, &|_| true).expect("room");
        assert_eq!(large.count(), 1);
    }

    #[test]
    fn frames_that_other_threads_map_just_now_are_left_alone() {
        let (mapped, noted) = mapped(LARGE_PAGE_BYTES, 8, 8, 6);
        for frame in 0..3 {
            map(&mapped, frame, frame, Access::Read, &|_| true);
        }
        let mapping = mapped.mappings[0].lock();
        mapped.shrink(0, &|_| true);
        assert_eq!((pages(&noted), mapped.is_mapped(FrameId(0)), mapped.is_mapped(FrameId(1))), (vec![0], true, false));
        drop(mapping);
        mapped.shrink(0, &|_| true);
        assert_eq!((pages(&noted), mapped.count()), (vec![], 0));
    }

    #[test]
    fn threads_map_and_unmap_side_by_side() {
        const ROUNDS: u32 = 2_000;
        let (mapped, noted) = mapped(4096, 8, 8, 5);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let mapped = &mapped;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let frame = thread * 2 + round % 2;
                        map(mapped, 100 + 3 * frame, frame, Access::Read, &|_| true);
                        if round % 3 == 0 {
                            mapped.unmap(FrameId(frame)).expect("it is mapped, or was unmapped for another");
                            assert!(!mapped.is_mapped(FrameId(frame)));
                        }
                    }
                });
            }
        });
        mapped.shrink(5, &|_| true);
        assert_eq!(pages(&noted).len(), mapped.count() as usize);
        assert!(mapped.count() <= 2);
    }

    #[test]
    fn a_refused_mapping_is_retried_with_nothing_else_mapped() {
        let (mapped, noted) = mapped(LARGE_PAGE_BYTES, 3, 8, 800);
        for frame in 0..4 {
            map(&mapped, frame, frame, Access::Read, &|_| true);
        }
        assert_eq!(pages(&noted), [3]);
        let refused =
            (4..8).find_map(|frame| mapped.map(frame, FrameId(frame), Access::Read, &Alone, &|_| false).err());
        assert_eq!(refused, Some(libc::ENOMEM));
        assert_eq!(mapped.count(), 3);
    }
}
