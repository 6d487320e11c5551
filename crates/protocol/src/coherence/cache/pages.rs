//! The pages known to a cache, compact while stable.
//!
//! Most pages are stable: open in their frames with nothing in flight. A stable page costs a version and a byte. A
//! transient page has a full [`CachedPage`]. An event makes each page it accesses transient; the page becomes stable
//! again, if possible, at the next access to another page or in [`Pages::settle`]. Between two events every page that
//! can be stable is.

use super::super::{Access, CopyVersion, FrameId, PageId};
use super::Cache;
use super::page::{AccessState, CachedPage, Phase};
use crate::page_map::PageMap;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;

/// Location of a page: its frame, resident or being fetched, or nowhere yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PageFrame(u32);

impl PageFrame {
    const NOWHERE: PageFrame = PageFrame(u32::MAX);

    fn frame(self) -> Option<FrameId> {
        Some(FrameId(self.0)).filter(|_| self != PageFrame::NOWHERE)
    }
}

impl core::fmt::Debug for PageFrame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.frame().fmt(f)
    }
}

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Content {
    Nothing,
    /// A transient page.
    Transient,
    /// A stable readable page. The backing file has its bytes, or another rank accounts for them.
    Clean,
    /// A stable readable page. This rank accounts for its bytes.
    Dirty,
    /// A stable page, readable and writable.
    Owned,
}

/// The pages with a frame, being fetched, or awaiting a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pages {
    places: PageMap<PageFrame>,
    contents: Box<[Content]>,
    /// By frame, the page of [`Pages::contents`]; [`NO_PAGE`] if empty.
    pages: Box<[PageId]>,
    /// By frame, the version of a stable page's copy, else 0.
    copies: Box<[CopyVersion]>,
    transient: PageMap<CachedPage>,
    /// Transient file pages, clean now and about to be dirty.
    pending_dirty: BTreeSet<PageId>,
    /// The transient page accessed last that may become stable; none between events.
    touched: Option<PageId>,
}

const NO_PAGE: PageId = PageId::of_segment(crate::Rank(0), 0);

impl Pages {
    /// `frames` empty frames.
    pub fn new(frames: u32) -> Pages {
        let frames = frames as usize;
        Pages {
            places: PageMap::new(),
            contents: vec![Content::Nothing; frames].into(),
            pages: vec![NO_PAGE; frames].into(),
            copies: vec![CopyVersion(0); frames].into(),
            transient: PageMap::new(),
            pending_dirty: BTreeSet::new(),
            touched: None,
        }
    }

    pub fn frames(&self) -> u32 {
        self.contents.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.places.len() == 0
    }

    pub fn contains(&self, page: PageId) -> bool {
        self.places.get(page).is_some()
    }

    pub fn get(&self, page: PageId) -> Option<Cow<'_, CachedPage>> {
        self.places.get(page).map(|place| self.at(page, *place))
    }

    /// The page in a frame, or being fetched into it.
    pub fn page_in(&self, frame: FrameId) -> Option<PageId> {
        let at = frame.0 as usize;
        let is_empty = self.contents[at] == Content::Nothing;
        debug_assert!(!is_empty || self.pages[at] == NO_PAGE, "{frame:?} is empty, and has no page");
        (!is_empty).then(|| self.pages[at])
    }

    /// State of the page in a frame.
    pub fn in_frame(&self, frame: FrameId) -> Option<Cow<'_, CachedPage>> {
        self.page_in(frame).map(|page| self.at(page, PageFrame(frame.0)))
    }

    pub fn frame_of(&self, page: PageId) -> Option<FrameId> {
        self.places.get(page)?.frame()
    }

    /// Makes a known page transient.
    pub fn get_mut(&mut self, page: PageId) -> Option<&mut CachedPage> {
        if self.touched != Some(page) {
            self.settle();
        }
        if self.transient.get(page).is_none() {
            let frame = self.places.get(page)?.frame()?;
            debug_assert_eq!(self.page_in(frame), Some(page), "a page and its frame lead to each other");
            let cached = self.stable(frame)?;
            self.transient.get_or_insert_with(page, || cached);
            self.note(frame, Content::Transient, CopyVersion(0));
        }
        self.touched = Some(page);
        self.transient.get_mut(page)
    }

    /// Makes a page transient, adding it if new.
    pub fn get_or_default(&mut self, page: PageId) -> &mut CachedPage {
        if !self.contains(page) {
            self.insert(page, CachedPage::default());
        }
        self.get_mut(page).expect("it is known by now")
    }

    /// Adds an unknown page, which awaits a frame.
    pub fn insert(&mut self, page: PageId, cached: CachedPage) {
        assert!(cached.frame.is_none() && !self.contains(page), "{page:?} is known, or has a frame");
        self.places.get_or_insert_with(page, || PageFrame::NOWHERE);
        self.transient.get_or_insert_with(page, || cached);
    }

    /// Assigns an empty frame to a page without one.
    pub fn place(&mut self, page: PageId, frame: FrameId) -> &mut CachedPage {
        assert!(self.page_in(frame).is_none(), "{frame:?} is empty before {page:?} gets it");
        debug_assert!(self.frame_of(page).is_none(), "{page:?} has one frame");
        *self.places.get_mut(page).expect("it waits for a frame") = PageFrame(frame.0);
        self.pages[frame.0 as usize] = page;
        self.note(frame, Content::Transient, CopyVersion(0));
        self.get_mut(page).expect("a page without a frame is in motion")
    }

    /// Forgets a page; its frame becomes empty.
    pub fn remove(&mut self, page: PageId) -> Option<CachedPage> {
        let place = self.places.remove(page)?;
        let cached = self.transient.remove(page);
        self.pending_dirty.remove(&page);
        let Some(frame) = place.frame() else { return cached };
        assert_eq!(self.page_in(frame), Some(page), "a page and its frame lead to each other");
        let cached = cached.or_else(|| self.stable(frame));
        self.pages[frame.0 as usize] = NO_PAGE;
        self.note(frame, Content::Nothing, CopyVersion(0));
        cached
    }

    /// The transient page accessed last.
    pub fn touched(&self) -> Option<(PageId, &CachedPage)> {
        self.touched.and_then(|page| Some((page, self.transient.get(page)?)))
    }

    /// Makes the last accessed page stable, if possible.
    pub fn settle(&mut self) {
        let Some(page) = self.touched.take() else { return };
        let Some(cached) = self.transient.get(page) else { return };
        if page.space.segment().is_none() {
            note_pending_dirty(&mut self.pending_dirty, page, cached);
        }
        let (Some(frame), copy) = (cached.frame, cached.copy) else { return };
        let content = match (cached.phase, cached.dirty) {
            (Phase::Shared, false) => Content::Clean,
            (Phase::Shared, true) => Content::Dirty,
            (Phase::Owned, true) => Content::Owned,
            _ => return,
        };
        if stable(frame, content, copy).as_ref() == Some(cached) {
            debug_assert_eq!(self.contents[frame.0 as usize], Content::Transient, "{frame:?} is not stable yet");
            self.transient.remove(page);
            self.note(frame, content, copy);
        }
    }

    /// Number of file pages, clean here and about to be dirty. A page accessed in the current event counts by its state
    /// before the event.
    pub fn pending_dirty(&self) -> usize {
        self.pending_dirty.len()
    }

    /// All pages in order.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, Cow<'_, CachedPage>)> {
        self.places.iter().map(|(page, place)| (page, self.at(page, *place)))
    }

    /// The pages from `page` on, in order.
    pub fn from(&self, page: PageId) -> impl Iterator<Item = (PageId, Cow<'_, CachedPage>)> {
        self.places.from(page).map(|(page, place)| (page, self.at(page, *place)))
    }

    /// The pages before `page` in descending order, with their frames.
    pub fn frames_before(&self, page: PageId) -> impl Iterator<Item = (PageId, Option<FrameId>)> {
        self.places.before(page).map(|(page, place)| (page, place.frame()))
    }

    /// The pages from `page` on, in order, with their frames.
    pub fn frames_from(&self, page: PageId) -> impl Iterator<Item = (PageId, Option<FrameId>)> {
        self.places.from(page).map(|(page, place)| (page, place.frame()))
    }

    /// The transient pages, in order: every page not open, waiting for something, or awaited by an operation.
    pub fn transient(&self) -> impl Iterator<Item = (PageId, &CachedPage)> {
        self.transient.iter()
    }

    /// The versions of stable pages, and the state of transient ones.
    pub fn all_mut(
        &mut self,
    ) -> (impl Iterator<Item = (PageId, &mut CopyVersion)>, impl Iterator<Item = (PageId, &mut CachedPage)>) {
        let is_stable = |content: &Content| !matches!(content, Content::Nothing | Content::Transient);
        let copies = self.contents.iter().zip(&self.pages).zip(&mut self.copies);
        let stable = copies.filter(move |((content, _), _)| is_stable(content)).map(|((_, page), copy)| (*page, copy));
        (stable, self.transient.iter_mut())
    }

    /// State of a page located at `place`.
    fn at(&self, page: PageId, place: PageFrame) -> Cow<'_, CachedPage> {
        let stable = place.frame().and_then(|frame| self.stable(frame)).map(Cow::Owned);
        stable.unwrap_or_else(|| Cow::Borrowed(self.transient.get(page).expect("it is not stable")))
    }

    fn stable(&self, frame: FrameId) -> Option<CachedPage> {
        let at = frame.0 as usize;
        stable(frame, self.contents[at], self.copies[at])
    }

    fn note(&mut self, frame: FrameId, content: Content, copy: CopyVersion) {
        let is_stable = !matches!(content, Content::Nothing | Content::Transient);
        debug_assert!(is_stable || copy == CopyVersion(0), "only the copies of stable pages are noted here");
        self.contents[frame.0 as usize] = content;
        self.copies[frame.0 as usize] = copy;
    }
}

impl Cache {
    /// Ends an event: pages become stable.
    pub(in super::super) fn settle(&mut self) {
        self.pages.settle();
    }
}

fn note_pending_dirty(pending_dirty: &mut BTreeSet<PageId>, page: PageId, cached: &CachedPage) {
    debug_assert!(page.space.segment().is_none(), "only pages of files are counted");
    if !cached.dirty && cached.will_be_dirty() {
        pending_dirty.insert(page);
    } else {
        pending_dirty.remove(&page);
    }
}

/// A stable page: open, with nothing in flight and no waiters.
fn stable(frame: FrameId, content: Content, copy: CopyVersion) -> Option<CachedPage> {
    let (phase, access, dirty) = match content {
        Content::Nothing | Content::Transient => return None,
        Content::Clean => (Phase::Shared, Access::Read, false),
        Content::Dirty => (Phase::Shared, Access::Read, true),
        Content::Owned => (Phase::Owned, Access::Write, true),
    };
    let access_state = AccessState::Open(access);
    Some(CachedPage { frame: Some(frame), phase, access_state, copy, dirty, ..CachedPage::default() })
}
