//! Which frames the window shows, in the order in which they were shown.
//!
//! Shown pages are used without a trace, so their order of use is unknown. Two bounds deal with that: no more pages are
//! shown than the system has mappings for, and when frames are needed, the pages that were shown first are hidden. A
//! hidden page stays in its frame; the next access shows it again and dates it.

use super::futex::Lock;
use super::window::Window;
use crate::coherence::{Access, FrameId};

const NONE: u32 = u32::MAX;

/// A frame's place in the order.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The page it is shown as, if it is.
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

/// The frames that a window shows.
pub struct Mapped {
    window: Box<dyn Window>,
    order: Lock<Order>,
    count_max: u32,
}

impl Mapped {
    /// A window that shows nothing yet and never more than `count_max` of `frames` frames, at least one.
    pub fn new(window: Box<dyn Window>, frames: u32, count_max: u32) -> Mapped {
        let hidden = Entry { page: NONE, access: Access::Read, older: NONE, newer: NONE };
        let by_frame = vec![hidden; frames as usize].into();
        let order = Lock::new(Order { by_frame, oldest: NONE, newest: NONE, count: 0 });
        Mapped { window, order, count_max: count_max.max(1) }
    }

    /// Shows a frame as page `index` with at least these rights. The caller has the page pinned, and with it the rights.
    /// Pages for which `may_hide` says so make room; returns whether they had to.
    ///
    /// # Errors
    /// The system has no room for a mapping, not even when all other pages are hidden: its error number.
    pub fn show(
        &self,
        index: u32,
        frame: FrameId,
        access: Access,
        may_hide: &dyn Fn(u32) -> bool,
    ) -> Result<bool, i32> {
        let mut order = self.order.lock();
        let entry = order.by_frame[frame.0 as usize];
        if entry.page != NONE {
            assert_eq!(entry.page, index, "{frame:?} is shown as another page");
            if entry.access >= access {
                return Ok(false);
            }
        }
        let instead = (entry.page != NONE).then_some(entry.access);
        let mut crowded = instead.is_none() && order.count >= self.count_max;
        if crowded {
            let below = self.count_max - 1;
            self.hide_oldest(&mut order, below, may_hide);
        }
        if self.window.show(index, frame, access, instead).is_err() {
            crowded = true;
            self.hide_oldest(&mut order, 0, may_hide);
            self.window.show(index, frame, access, instead)?;
        }
        if instead.is_none() {
            order.append(frame.0, index);
        }
        order.by_frame[frame.0 as usize].access = access;
        Ok(crowded)
    }

    /// Hides a frame, if it is shown. When this returns, nobody loads from it or stores to it.
    ///
    /// # Errors
    /// The system's error number.
    pub fn hide(&self, frame: FrameId) -> Result<(), i32> {
        let mut order = self.order.lock();
        if order.by_frame[frame.0 as usize].page == NONE { Ok(()) } else { self.hide_in(&mut order, frame.0) }
    }

    /// Hides the pages that were shown first and for which `may_hide` says so, until `count` are left.
    pub fn shrink(&self, count: u32, may_hide: &dyn Fn(u32) -> bool) {
        self.hide_oldest(&mut self.order.lock(), count, may_hide);
    }

    /// Whether some frame is shown as page `index`.
    pub fn is_shown(&self, index: u32) -> bool {
        self.order.lock().by_frame.iter().any(|entry| entry.page == index)
    }

    /// How many frames are shown.
    pub fn count(&self) -> u32 {
        self.order.lock().count
    }

    fn hide_oldest(&self, order: &mut Order, count: u32, may_hide: &dyn Fn(u32) -> bool) {
        let mut looked_at = order.count;
        while order.count > count && looked_at > 0 {
            looked_at -= 1;
            let frame = order.oldest;
            let page = order.by_frame[frame as usize].page;
            if !may_hide(page) || self.hide_in(order, frame).is_err() {
                order.remove(frame);
                order.append(frame, page);
            }
        }
    }

    fn hide_in(&self, order: &mut Order, frame: u32) -> Result<(), i32> {
        let Entry { page, access, .. } = order.by_frame[frame as usize];
        self.window.hide(page, FrameId(frame), access)?;
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

    /// Notes what is shown; refuses to show more than `room` pages.
    #[derive(Clone)]
    struct Noted {
        shown: Arc<Mutex<Vec<(u32, FrameId, Access)>>>,
        room: usize,
    }

    impl Window for Noted {
        fn show(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32> {
            let mut shown = self.shown.lock().expect("no panics");
            shown.retain(|(page, its, before)| {
                assert!(*page != index || (*its == frame && Some(*before) == instead), "{index} is shown already");
                *page != index
            });
            if shown.len() == self.room {
                return Err(libc::ENOMEM);
            }
            shown.push((index, frame, access));
            Ok(())
        }

        fn hide(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
            let mut shown = self.shown.lock().expect("no panics");
            let at = shown.iter().position(|one| *one == (index, frame, access)).expect("it is shown like this");
            shown.remove(at);
            Ok(())
        }
    }

    fn mapped(room: usize, count_max: u32) -> (Mapped, Noted) {
        let noted = Noted { shown: Arc::default(), room };
        (Mapped::new(Box::new(noted.clone()), 8, count_max), noted)
    }

    fn pages(noted: &Noted) -> Vec<u32> {
        noted.shown.lock().expect("no panics").iter().map(|one| one.0).collect()
    }

    #[test]
    fn the_page_that_was_shown_first_makes_room() {
        let (mapped, noted) = mapped(8, 3);
        for frame in 0..5 {
            mapped.show(10 + frame, FrameId(frame), Access::Read, &|page| page != 11).expect("room");
        }
        assert_eq!(pages(&noted), [11, 13, 14]);
        mapped.show(13, FrameId(3), Access::Write, &|_| true).expect("more rights");
        mapped.show(13, FrameId(3), Access::Read, &|_| true).expect("fewer rights than it has");
        assert_eq!(noted.shown.lock().expect("no panics").last(), Some(&(13, FrameId(3), Access::Write)));
        mapped.hide(FrameId(3)).expect("shown");
        mapped.hide(FrameId(3)).expect("hidden already");
        mapped.shrink(1, &|_| true);
        assert_eq!((pages(&noted), mapped.count()), (vec![14], 1));
    }

    #[test]
    fn what_the_system_refuses_is_tried_again_with_nothing_else_shown() {
        let (mapped, noted) = mapped(3, 8);
        for frame in 0..4 {
            mapped.show(frame, FrameId(frame), Access::Read, &|_| true).expect("room in the end");
        }
        assert_eq!(pages(&noted), [3]);
        let refused = (4..8).find_map(|frame| mapped.show(frame, FrameId(frame), Access::Read, &|_| false).err());
        assert_eq!(refused, Some(libc::ENOMEM));
        assert_eq!(mapped.count(), 3);
    }
}
