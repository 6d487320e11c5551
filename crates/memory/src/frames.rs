//! State of the own pool's frames, except the page in each, which the protocol knows.

use super::unmapping::UNMAPPED_AT_ONCE;
use super::{AddressSpace, LargePages, RankMemory};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use vgasnet_protocol::coherence::{Cache, FrameId, PageId};
use vgasnet_protocol::replacement::{FillKind, FrameState, FrameUse, Need, PolicyKind, Replacement};

/// Once one frame in this many holds a second copy, sole copies are spared: pages have enough room to come and go.
const SECOND_COPIES_PART: u32 = 16;

/// At most one frame in this many waits to be unmapped with others.
const PASSED_PART: usize = 16;

/// The frames of a rank's pool, for its engine.
#[derive(Debug)]
pub struct Frames {
    space: Arc<AddressSpace>,
    replacement: Replacement,
    /// Frames that have held a page or were about to. The memory of the others is zeros.
    filled: Box<[bool]>,
    passed_mapped: Vec<(u32, FrameId)>,
    /// Mapped frames queued for unmapping, so that none is queued twice.
    is_passed: Box<[bool]>,
    asked_back: Vec<PageId>,
    will_go: Vec<FrameId>,
    /// Whether the page in a frame came from another rank's pool for reading: the other rank usually has a copy, too.
    is_second_copy: Box<[bool]>,
    second_copies: u32,
    /// A search has found lent frames. The notice of their return does not name them.
    has_lent: Cell<bool>,
    /// Count of unpin notices at the last check.
    notices: u32,
    large_pages: Arc<LargePages>,
}

impl Frames {
    /// `frames` unused frames, with victims chosen by `policy`.
    pub fn new(space: Arc<AddressSpace>, frames: u32, policy: PolicyKind) -> Frames {
        let large_pages = Arc::new(LargePages::new(space.own.pool, frames));
        let replacement = Replacement::new(policy.make(frames), frames);
        Frames {
            replacement,
            filled: vec![false; frames as usize].into(),
            passed_mapped: Vec::new(),
            is_passed: vec![false; frames as usize].into(),
            asked_back: Vec::new(),
            will_go: Vec::new(),
            is_second_copy: vec![false; frames as usize].into(),
            second_copies: 0,
            has_lent: Cell::new(false),
            notices: 0,
            large_pages,
            space,
        }
    }

    /// The state of preparing the pool's memory.
    pub fn large_pages(&self) -> &Arc<LargePages> {
        &self.large_pages
    }

    /// Prepares the frame for a page to come. Its previous page is gone.
    pub fn prepare(&mut self, frame: FrameId) {
        self.replacement.on_freed(frame);
        self.set_second_copy(frame, false);
        self.large_pages.on_use(frame);
        // Until the source of the page is known.
        self.space.own.blocks.mark_all(frame);
    }

    /// Notes whether another rank has a copy of the page in the frame.
    pub fn set_second_copy(&mut self, frame: FrameId, is_second: bool) {
        let was_second = std::mem::replace(&mut self.is_second_copy[frame.0 as usize], is_second);
        self.second_copies = self.second_copies + u32::from(is_second) - u32::from(was_second);
    }

    /// Takes the frame, whose page is gone, for uses other than pages.
    pub fn use_otherwise(&mut self, frame: FrameId) {
        self.prepare(frame);
        self.mark_filled(frame);
    }

    /// Notes that the frame may contain arbitrary bytes, as after a failed read.
    pub fn mark_filled(&mut self, frame: FrameId) {
        self.filled[frame.0 as usize] = true;
    }

    /// Whether the frame's memory is still zeros because it has never held a page.
    pub fn is_zeros(&self, frame: FrameId) -> bool {
        !self.filled[frame.0 as usize]
    }

    /// Notes that the frame's page has arrived or is open again. It may be used now.
    pub fn fill(&mut self, frame: FrameId, page: PageId, is_used: bool, kind: FillKind) {
        if is_used {
            self.space.own.pool.touch(frame);
        }
        self.filled[frame.0 as usize] = true;
        self.replacement.on_filled(frame, page, kind);
    }

    /// Whether no other rank has a copy of the page in this frame, as far as is known.
    pub fn is_only_copy(&self, frame: FrameId) -> bool {
        !self.is_second_copy[frame.0 as usize]
    }

    /// Number of frames with pages kept for other ranks.
    pub fn guests(&self) -> u32 {
        self.replacement.guests()
    }

    /// The frame to evict among those that `cache` allows. Pages for which `is_pinned` holds stay.
    pub fn victim(&mut self, need: Need, cache: &Cache, is_pinned: &dyn Fn(PageId) -> bool) -> Option<FrameId> {
        self.search(cache, is_pinned, |replacement, uses| replacement.victim(uses, need))
    }

    /// The guest's frame to evict so that another guest can come. The same pages stay.
    pub fn first_guest(&mut self, cache: &Cache, is_pinned: &dyn Fn(PageId) -> bool) -> Option<FrameId> {
        self.search(cache, is_pinned, |replacement, uses| replacement.first_guest(uses))
    }

    fn search(
        &mut self,
        cache: &Cache,
        is_pinned: &dyn Fn(PageId) -> bool,
        find: impl FnOnce(&mut Replacement, &mut Uses<'_>) -> Option<FrameId>,
    ) -> Option<FrameId> {
        let (passed_mapped, is_passed) = (&mut self.passed_mapped, &mut self.is_passed);
        let asked_back = RefCell::new(&mut self.asked_back);
        let (space, has_lent) = (&self.space, &self.has_lent);
        let will_go = &mut self.will_go;
        let has_many = self.second_copies >= (self.is_second_copy.len() as u32).div_ceil(SECOND_COPIES_PART);
        let is_second_copy = has_many.then_some(&*self.is_second_copy);
        let mut uses =
            Uses { space, cache, is_pinned, passed_mapped, is_passed, asked_back, has_lent, will_go, is_second_copy };
        find(&mut self.replacement, &mut uses)
    }

    /// Pages in lent frames that the last search wants back. Each is named once until its frame has returned.
    pub fn asked_back(&mut self) -> impl Iterator<Item = PageId> + '_ {
        self.asked_back.drain(..)
    }

    /// Frames with pages that the policy will evict soon, unless they are used meanwhile. Each is named once.
    pub fn will_go(&mut self) -> impl Iterator<Item = FrameId> + '_ {
        self.will_go.drain(..)
    }

    /// Mapped frames skipped by searches, with their pages of the own segment. They have to be unmapped, without the
    /// engine's lock, since uses of mapped pages leave no trace. `None` while they are few, unless `are_urgent`: many at
    /// once cost less.
    pub fn passed_mapped(&mut self, are_urgent: bool) -> Option<Box<[(u32, FrameId)]>> {
        let many = (self.filled.len() / PASSED_PART).clamp(1, UNMAPPED_AT_ONCE);
        let are_due = self.passed_mapped.len() >= many || are_urgent && !self.passed_mapped.is_empty();
        are_due.then(|| self.passed_mapped.drain(..).collect())
    }

    /// Called before frames named by [`Frames::passed_mapped`] are unmapped.
    pub fn on_unmapping(&mut self, pages: &[(u32, FrameId)]) {
        pages.iter().for_each(|(_, frame)| self.is_passed[frame.0 as usize] = false);
    }

    /// Notes that the frame may be evictable again: its page was pinned by the client, or in flight.
    pub fn release(&mut self, frame: FrameId) {
        self.replacement.on_released(frame);
    }

    /// Reconsiders frames that were not evictable, since they may have returned or be out of use. Returns whether pages
    /// were unpinned since the last call.
    pub fn retry_victims(&mut self) -> bool {
        let notices = self.space.own.table.unpin_notices();
        let is_new = std::mem::replace(&mut self.notices, notices) != notices;
        if is_new && self.has_lent.take() {
            self.replacement.retry_all();
        } else {
            self.replacement.retry();
        }
        is_new
    }

    /// Whether a closed page may still be mapped in the segment.
    pub fn is_mapped(&self, page: PageId, frame: FrameId) -> bool {
        is_mapped(&self.space, page, frame)
    }
}

/// The uses of frames, for one search.
struct Uses<'a> {
    space: &'a AddressSpace,
    cache: &'a Cache,
    is_pinned: &'a dyn Fn(PageId) -> bool,
    passed_mapped: &'a mut Vec<(u32, FrameId)>,
    is_passed: &'a mut [bool],
    asked_back: RefCell<&'a mut Vec<PageId>>,
    will_go: &'a mut Vec<FrameId>,
    has_lent: &'a Cell<bool>,
    /// Set if there are enough second copies to spare others.
    is_second_copy: Option<&'a [bool]>,
}

impl Uses<'_> {
    /// Skips lent frames while there are others. They are asked back, so that their next use is noticed.
    fn is_lent(&self, page: PageId, frame: FrameId) -> bool {
        let table = &self.space.own.table;
        if !table.is_lent(frame) {
            table.allow_loans(frame);
            return false;
        }
        self.has_lent.set(true);
        if table.ask_back(frame) {
            self.asked_back.borrow_mut().push(page);
        }
        true
    }
}

impl FrameUse for Uses<'_> {
    fn state(&self, frame: FrameId) -> FrameState {
        let page = self.cache.page_in(frame).filter(|page| self.cache.evictable(frame) && !(self.is_pinned)(*page));
        match page {
            None => FrameState::Held,
            Some(page) if self.is_lent(page, frame) => FrameState::Held,
            Some(_) if self.space.own.table.is_pinned(frame) => FrameState::InUse,
            Some(_) => FrameState::Idle,
        }
    }

    fn is_ahead(&self, frame: FrameId) -> bool {
        self.space.own.table.is_ahead(frame)
    }

    /// A mapped page counts as used. It is unmapped soon, so that its next use is noticed.
    fn take_used(&mut self, frame: FrameId) -> bool {
        let RankMemory { table, pool, .. } = &self.space.own;
        // Uses with a pin mark the frame, and reads without one its entry.
        let was_used = pool.take_used(frame) | table.take_quick(frame);
        let mapped = self.cache.page_in(frame).filter(|page| is_mapped(self.space, *page, frame));
        if let Some(page) = mapped.filter(|_| !std::mem::replace(&mut self.is_passed[frame.0 as usize], true)) {
            self.passed_mapped.push((page.index, frame));
        }
        was_used || mapped.is_some()
    }

    fn is_only_copy(&self, frame: FrameId) -> bool {
        self.is_second_copy.is_some_and(|is_second| !is_second[frame.0 as usize])
    }

    fn will_go(&mut self, frame: FrameId) {
        self.will_go.push(frame);
    }
}

fn is_mapped(space: &AddressSpace, page: PageId, frame: FrameId) -> bool {
    space.view.as_ref().is_some_and(|view| view.is_mapped(page, frame))
}
