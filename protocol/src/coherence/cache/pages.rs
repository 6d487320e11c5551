//! The pages that a cache knows, with little memory for those at rest.
//!
//! Most pages are at rest: open in their frames, with nothing under way about them. Such a page is a version and a byte. Any other is
//! in motion, and has a [`CachedPage`]. An event takes the pages that it is about into motion one after the other, and each comes
//! to rest again, if it may, as soon as the next one is looked at, or with [`Pages::settle`]. So between two events all pages are
//! at rest that may be.

use super::super::{Access, CopyVersion, FrameId, PageId};
use super::Cache;
use super::page::{AccessState, CachedPage, Phase};
use crate::ordered::OrderedSet;
use crate::page_map::PageMap;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec;

/// Where a page is: in a frame, on its way to it, or nowhere yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place(u32);

impl Place {
    const NOWHERE: Place = Place(u32::MAX);

    fn frame(self) -> Option<FrameId> {
        Some(FrameId(self.0)).filter(|_| self != Place::NOWHERE)
    }
}

impl core::fmt::Debug for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.frame().fmt(f)
    }
}

/// What is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Content {
    Nothing,
    /// A page in motion.
    Moving,
    /// A page at rest to read, whose bytes the backing file has or another rank accounts for.
    Clean,
    /// A page at rest to read, whose bytes this rank accounts for.
    Dirty,
    /// A page at rest to read and write.
    Owned,
}

/// The pages that are in a frame, on their way to one, or wait for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pages {
    places: PageMap<Place>,
    contents: Box<[Content]>,
    /// By frame, the page of [`Pages::contents`]; where there is none, [`NO_PAGE`].
    pages: Box<[PageId]>,
    /// By frame, the copy of a page at rest, else 0.
    copies: Box<[CopyVersion]>,
    moving: PageMap<CachedPage>,
    /// Those pages of files in motion that are clean, and will be dirty.
    soiling: OrderedSet<PageId>,
    /// The page in motion that was looked at last and may come to rest; none between events.
    touched: Option<PageId>,
}

const NO_PAGE: PageId = PageId::of_segment(crate::Rank(0), 0);

impl Pages {
    /// No page in any of so many frames.
    pub fn new(frames: u32) -> Pages {
        let frames = frames as usize;
        Pages {
            places: PageMap::new(),
            contents: vec![Content::Nothing; frames].into(),
            pages: vec![NO_PAGE; frames].into(),
            copies: vec![CopyVersion(0); frames].into(),
            moving: PageMap::new(),
            soiling: OrderedSet::new(),
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

    /// The page that a frame holds, or that is on its way to the frame.
    pub fn page_in(&self, frame: FrameId) -> Option<PageId> {
        let at = frame.0 as usize;
        (self.contents[at] != Content::Nothing).then(|| self.pages[at])
    }

    /// What is known of [`Pages::page_in`].
    pub fn in_frame(&self, frame: FrameId) -> Option<Cow<'_, CachedPage>> {
        self.page_in(frame).map(|page| self.at(page, Place(frame.0)))
    }

    pub fn frame_of(&self, page: PageId) -> Option<FrameId> {
        self.places.get(page)?.frame()
    }

    /// Takes a page into motion.
    pub fn get_mut(&mut self, page: PageId) -> Option<&mut CachedPage> {
        if self.touched != Some(page) {
            self.settle();
        }
        if self.moving.get(page).is_none() {
            let frame = self.places.get(page)?.frame()?;
            let cached = self.at_rest(frame)?;
            self.moving.get_or_insert_with(page, || cached);
            self.note(frame, Content::Moving, CopyVersion(0));
        }
        self.touched = Some(page);
        self.moving.get_mut(page)
    }

    /// Takes a page into motion, which is new to this cache or not.
    pub fn get_or_default(&mut self, page: PageId) -> &mut CachedPage {
        if !self.contains(page) {
            self.insert(page, CachedPage::default());
        }
        self.get_mut(page).expect("it is known by now")
    }

    /// A page that was unknown waits for a frame.
    pub fn insert(&mut self, page: PageId, cached: CachedPage) {
        assert!(cached.frame.is_none() && !self.contains(page), "{page:?} is known, or has a frame");
        self.places.get_or_insert_with(page, || Place::NOWHERE);
        self.moving.get_or_insert_with(page, || cached);
    }

    /// Gives a frame with nothing in it to a page without one.
    pub fn place(&mut self, page: PageId, frame: FrameId) -> &mut CachedPage {
        *self.places.get_mut(page).expect("it waits for a frame") = Place(frame.0);
        self.pages[frame.0 as usize] = page;
        self.note(frame, Content::Moving, CopyVersion(0));
        self.get_mut(page).expect("a page without a frame is in motion")
    }

    /// Forgets a page; nothing is in its frame then.
    pub fn remove(&mut self, page: PageId) -> Option<CachedPage> {
        let place = self.places.remove(page)?;
        let cached = self.moving.remove(page);
        self.soiling.remove(&page);
        let Some(frame) = place.frame() else { return cached };
        let cached = cached.or_else(|| self.at_rest(frame));
        self.pages[frame.0 as usize] = NO_PAGE;
        self.note(frame, Content::Nothing, CopyVersion(0));
        cached
    }

    /// Lets the page that was touched last come to rest, if it may.
    pub fn settle(&mut self) {
        let Some(page) = self.touched.take() else { return };
        let Some(cached) = self.moving.get(page) else { return };
        if page.space.segment().is_none() {
            note_soiling(&mut self.soiling, page, cached);
        }
        let (Some(frame), copy) = (cached.frame, cached.copy) else { return };
        let content = match (cached.phase, cached.dirty) {
            (Phase::Shared, false) => Content::Clean,
            (Phase::Shared, true) => Content::Dirty,
            (Phase::Owned, true) => Content::Owned,
            _ => return,
        };
        if resting(frame, content, copy).as_ref() == Some(cached) {
            self.moving.remove(page);
            self.note(frame, content, copy);
        }
    }

    /// How many pages of files are clean here, and will be dirty. Of a page that was looked at in this event, what was so before.
    pub fn soiling(&self) -> usize {
        self.soiling.len()
    }

    /// All pages in order.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, Cow<'_, CachedPage>)> {
        self.places.iter().map(|(page, place)| (page, self.at(page, *place)))
    }

    /// The pages from this one on, in order.
    pub fn from(&self, page: PageId) -> impl Iterator<Item = (PageId, Cow<'_, CachedPage>)> {
        self.places.from(page).map(|(page, place)| (page, self.at(page, *place)))
    }

    /// The pages before this one, the last of them first, each with its frame.
    pub fn frames_before(&self, page: PageId) -> impl Iterator<Item = (PageId, Option<FrameId>)> {
        self.places.before(page).map(|(page, place)| (page, place.frame()))
    }

    /// The pages from this one on, in order, each with its frame.
    pub fn frames_from(&self, page: PageId) -> impl Iterator<Item = (PageId, Option<FrameId>)> {
        self.places.from(page).map(|(page, place)| (page, place.frame()))
    }

    /// The pages in motion, in order. Every page is among them that is not open, that waits for something, or that somebody waits for.
    pub fn moving(&self) -> impl Iterator<Item = (PageId, &CachedPage)> {
        self.moving.iter()
    }

    /// The copies of pages at rest, and what is known of the others.
    pub fn all_mut(
        &mut self,
    ) -> (impl Iterator<Item = (PageId, &mut CopyVersion)>, impl Iterator<Item = (PageId, &mut CachedPage)>) {
        let is_at_rest = |content: &Content| !matches!(content, Content::Nothing | Content::Moving);
        let copies = self.contents.iter().zip(&self.pages).zip(&mut self.copies);
        let at_rest =
            copies.filter(move |((content, _), _)| is_at_rest(content)).map(|((_, page), copy)| (*page, copy));
        (at_rest, self.moving.iter_mut())
    }

    /// What is known of a page that is at this place.
    fn at(&self, page: PageId, place: Place) -> Cow<'_, CachedPage> {
        let at_rest = place.frame().and_then(|frame| self.at_rest(frame)).map(Cow::Owned);
        at_rest.unwrap_or_else(|| Cow::Borrowed(self.moving.get(page).expect("it is not at rest")))
    }

    fn at_rest(&self, frame: FrameId) -> Option<CachedPage> {
        let at = frame.0 as usize;
        resting(frame, self.contents[at], self.copies[at])
    }

    fn note(&mut self, frame: FrameId, content: Content, copy: CopyVersion) {
        self.contents[frame.0 as usize] = content;
        self.copies[frame.0 as usize] = copy;
    }
}

impl Cache {
    /// An event is over: pages come to rest.
    pub(in super::super) fn settle(&mut self) {
        self.pages.settle();
    }
}

fn note_soiling(soiling: &mut OrderedSet<PageId>, page: PageId, cached: &CachedPage) {
    if !cached.dirty && cached.will_be_dirty() {
        soiling.insert(page);
    } else {
        soiling.remove(&page);
    }
}

/// A page at rest: it is open, nothing is under way, and nobody waits.
fn resting(frame: FrameId, content: Content, copy: CopyVersion) -> Option<CachedPage> {
    let (phase, access, dirty) = match content {
        Content::Nothing | Content::Moving => return None,
        Content::Clean => (Phase::Shared, Access::Read, false),
        Content::Dirty => (Phase::Shared, Access::Read, true),
        Content::Owned => (Phase::Owned, Access::Write, true),
    };
    let access_state = AccessState::Open(access);
    Some(CachedPage { frame: Some(frame), phase, access_state, copy, dirty, ..CachedPage::default() })
}
