//! The cache side: the pages in a rank's frames, and the operations that wait for them.
//!
//! ```text
//!  Want                      frame              Data                Want to write            Grant
//!   ──▶ AwaitingFrame ──────────────▶ Fetching ────────▶ Shared ─────────────▶ Upgrading ──────────▶ Owned
//!                                  ▲    └─────── Data and Grant ───────────────────────────────▲ │
//!                                  └──────────── Invalidate or Take ─────────┘                 │ │ serves a read
//!                                                                                Shared ◀──────│─┘
//!   Shared, Owned ──Evict──▶ frame is free, or Evicting ──Evicted──▶ frame is free
//!   any with a copy ──Invalidate──▶ frame is free;  ──Take──▶ Leaving ──Transferred──▶ frame is free
//! ```
//!
//! A page with a copy is open (operations here use it), closing, or closed. What has to wait until it is closed is noted
//! as its deferred, and [`Cache::run_deferred`] does them in one place.

use super::{Access, Action, Body, CopyVersion, Forward, FrameId, Message, Outgoing, PageId, ToCache, ToHome, Waiter};
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

/// How many notices of clean evictions are put off at most.
const NOTICES_MAX: usize = 16;

/// The pages of one rank's pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cache {
    pages: BTreeMap<PageId, Cached>,
    /// The page in each frame.
    frames: Vec<Option<PageId>>,
    free: Vec<FrameId>,
    /// Pages that wait for a frame, first come first served.
    awaiting_frame: VecDeque<PageId>,
    /// Pages whose frame was asked back by [`Cache::on_evict`] and is not free yet.
    evictions: u32,
    /// Pages that are to be written back by [`Cache::on_flush`].
    flushes: u32,
    notices: Vec<(PageId, CopyVersion)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Cached {
    frame: Option<FrameId>,
    phase: Phase,
    access_state: AccessState,
    /// The copy, in the phases that have one.
    copy: CopyVersion,
    /// This rank accounts for bytes that the backing file lacks.
    dirty: bool,
    /// An Evict that keeps the copy is on its way.
    flushing: bool,
    /// Transfers to readers under way out of the frame.
    outgoing: u32,
    deferred: Deferred,
    readers: Vec<Waiter>,
    writers: Vec<Waiter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Phase {
    /// Waits for a frame.
    AwaitingFrame,
    /// Asked its home; no copy yet.
    Fetching { access: Access, data: bool, granted: bool },
    /// Has a copy to read.
    Shared,
    /// Has a copy to read, and asked its home to write.
    Upgrading,
    /// Has the only copy, to read and write.
    Owned,
    /// Has a copy that its home is writing back; the frame is free then.
    Evicting,
    /// Its copy is on the way to a writer. `upgrade`: this rank's own request to write is at the home.
    Leaving { upgrade: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum AccessState {
    Open(Access),
    Closing,
    Closed,
}

/// What is to be done once the page is closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Deferred {
    invalidate: Option<CopyVersion>,
    take: Option<Forward>,
    serve: Vec<Forward>,
    flush: bool,
    evict: bool,
}

impl Phase {
    fn has_copy(self) -> bool {
        matches!(self, Phase::Shared | Phase::Upgrading | Phase::Owned | Phase::Evicting)
    }
}

impl Cached {
    fn awaiting_frame() -> Cached {
        Cached {
            frame: None,
            phase: Phase::AwaitingFrame,
            access_state: AccessState::Closed,
            copy: CopyVersion(0),
            dirty: false,
            flushing: false,
            outgoing: 0,
            deferred: Deferred::default(),
            readers: Vec::new(),
            writers: Vec::new(),
        }
    }

    fn frame(&self) -> FrameId {
        self.frame.expect("every phase but AwaitingFrame has a frame")
    }

    /// The request that gets this page what its waiters need.
    fn fetch(&mut self) -> ToHome {
        let frame = self.frame();
        let access = if self.writers.is_empty() { Access::Read } else { Access::Write };
        self.phase = Phase::Fetching { access, data: false, granted: false };
        match access {
            Access::Read => ToHome::Read { frame },
            Access::Write => ToHome::Write { frame, copy: None },
        }
    }

    fn is_evictable(&self) -> bool {
        matches!(self.phase, Phase::Shared | Phase::Owned)
            && matches!(self.access_state, AccessState::Open(_))
            && self.outgoing == 0
            && !self.flushing
    }
}

impl Cache {
    /// A pool of `frames` free frames.
    pub fn new(frames: u32) -> Cache {
        assert!(frames > 0, "a pool has at least one frame");
        Cache {
            pages: BTreeMap::new(),
            frames: vec![None; frames as usize],
            free: (0..frames).rev().map(FrameId).collect(),
            awaiting_frame: VecDeque::new(),
            evictions: 0,
            flushes: 0,
            notices: Vec::new(),
        }
    }

    /// Whether the page is in a frame, or on its way to one.
    pub fn contains(&self, page: PageId) -> bool {
        self.pages.contains_key(&page)
    }

    /// How many frames the pool has.
    pub fn frames(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Whether some page waits for a frame that no eviction under way will give it.
    pub fn wants_frame(&self) -> bool {
        self.awaiting_frame.len() > self.evictions as usize
    }

    /// How many frames are free, or will be and no page waits for them.
    pub fn frames_coming_free(&self) -> u32 {
        (self.free.len() as u32 + self.evictions).saturating_sub(self.awaiting_frame.len() as u32)
    }

    /// Whether [`super::Event::Evict`] may name this frame.
    pub fn evictable(&self, frame: FrameId) -> bool {
        self.page_in(frame).is_some_and(|page| self.pages[&page].is_evictable())
    }

    /// The page that a frame holds or waits for.
    pub fn page_in(&self, frame: FrameId) -> Option<PageId> {
        self.frames[frame.0 as usize]
    }

    /// Whether everything that was dirty at the last [`super::Event::Flush`] is written back.
    pub fn flushed(&self) -> bool {
        self.flushes == 0
    }

    /// Pages that are still to be written back because of an [`super::Event::Flush`] or the like.
    pub fn unflushed(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pages.iter().filter(|(_, cached)| cached.deferred.flush).map(|(page, _)| *page)
    }

    /// Whether nothing is under way or waiting.
    pub fn is_quiet(&self) -> bool {
        self.awaiting_frame.is_empty()
            && self.pages.values().all(|cached| {
                matches!((cached.phase, cached.access_state), (Phase::Shared | Phase::Owned, AccessState::Open(_)))
                    && !cached.flushing
            })
    }

    /// The pages that operations here may use, now or after a duty is done, with their frame and what may be done.
    pub fn copies(&self) -> impl Iterator<Item = (PageId, FrameId, Access)> + '_ {
        let usable = |cached: &Cached| cached.phase.has_copy() && cached.phase != Phase::Evicting;
        self.pages.iter().filter(move |(_, cached)| usable(cached)).map(|(page, cached)| {
            let access = if cached.phase == Phase::Owned { Access::Write } else { Access::Read };
            (*page, cached.frame(), access)
        })
    }

    /// The frame whose bytes of `page` this rank accounts for.
    pub fn dirty_frame(&self, page: PageId) -> Option<FrameId> {
        self.pages.get(&page).filter(|cached| cached.dirty && cached.phase.has_copy()).and_then(|cached| cached.frame)
    }

    /// Every version this cache remembers, for renumbering in the exhaustive exploration.
    pub fn versions_mut(&mut self) -> Vec<(PageId, &mut CopyVersion)> {
        let mut versions: Vec<_> = self.notices.iter_mut().map(|(page, copy)| (*page, copy)).collect();
        for (page, cached) in &mut self.pages {
            let deferred = &mut cached.deferred;
            let forwards = deferred.take.iter_mut().chain(&mut deferred.serve).map(|forward| &mut forward.version);
            let all = forwards.chain(&mut deferred.invalidate).chain([&mut cached.copy]);
            versions.extend(all.map(|version| (*page, version)));
        }
        versions
    }

    pub(super) fn on_message(&mut self, page: PageId, body: ToCache, actions: &mut Vec<Action>) {
        match body {
            ToCache::Forward(forward) => self.on_forward(page, forward, actions),
            ToCache::Invalidate { version } => self.on_invalidate(page, version, actions),
            ToCache::Grant { version } => self.on_grant(page, version, actions),
            ToCache::Data { version, grant, zeros } => self.on_data(page, version, grant, zeros, actions),
            ToCache::Evicted { copy } => self.on_evicted(page, copy, actions),
            ToCache::Recall { copy } => self.on_recall(page, copy, actions),
        }
    }

    pub(super) fn on_want(&mut self, page: PageId, access: Access, waiter: Waiter, actions: &mut Vec<Action>) {
        let is_new = !self.pages.contains_key(&page);
        let cached = self.pages.entry(page).or_insert_with(Cached::awaiting_frame);
        match access {
            Access::Read => cached.readers.push(waiter),
            Access::Write => cached.writers.push(waiter),
        }
        if is_new {
            self.awaiting_frame.push_back(page);
            self.feed(actions);
        } else if matches!(cached.access_state, AccessState::Open(_)) {
            self.open(page, actions);
        }
    }

    pub(super) fn on_prefetch(&mut self, page: PageId, actions: &mut Vec<Action>) {
        if let Entry::Vacant(unknown) = self.pages.entry(page) {
            unknown.insert(Cached::awaiting_frame());
            self.awaiting_frame.push_back(page);
            self.feed(actions);
        }
    }

    pub(super) fn on_evict(&mut self, frame: FrameId, actions: &mut Vec<Action>) {
        assert!(self.evictable(frame), "{frame:?} cannot be evicted now");
        let page = self.page_in(frame).expect("an evictable frame has a page");
        self.evictions += 1;
        self.cached(page).deferred.evict = true;
        self.close(page, actions);
    }

    pub(super) fn on_flush(&mut self, actions: &mut Vec<Action>) {
        let dirty: Vec<PageId> = self.pages.iter().filter(|(_, cached)| cached.dirty).map(|(page, _)| *page).collect();
        for page in dirty {
            self.on_write_back(page, actions);
        }
    }

    pub(super) fn on_write_back(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let Some(cached) = self.pages.get_mut(&page).filter(|cached| cached.dirty) else { return };
        if !mem::replace(&mut cached.deferred.flush, true) {
            self.flushes += 1;
            self.write_back(page, actions);
        }
    }

    pub(super) fn on_idle(&mut self, actions: &mut Vec<Action>) {
        for (page, copy) in mem::take(&mut self.notices) {
            actions.push(send_home(page, ToHome::Forget { copy }));
        }
    }

    pub(super) fn on_closed(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        assert_eq!(cached.access_state, AccessState::Closing, "{page:?} was not closing");
        cached.access_state = AccessState::Closed;
        self.run_deferred(page, actions);
    }

    pub(super) fn on_transferred(&mut self, outgoing: Outgoing, actions: &mut Vec<Action>) {
        let Outgoing { page, forward, .. } = outgoing;
        let data = ToCache::Data { version: forward.version, grant: forward.grant, zeros: false };
        actions.push(Action::Send { to: forward.to, message: Message { page, body: Body::Cache(data) } });
        let cached = self.cached(page);
        match (forward.access, cached.phase) {
            (Access::Write, Phase::Leaving { upgrade: true }) => {
                cached.phase = Phase::Fetching { access: Access::Write, data: false, granted: false };
            }
            (Access::Write, Phase::Leaving { upgrade: false }) => self.release(page, actions),
            (Access::Read, _) => {
                cached.outgoing -= 1;
                if cached.outgoing == 0 && cached.access_state == AccessState::Closed && cached.deferred.evict {
                    self.run_deferred(page, actions);
                }
            }
            (Access::Write, phase) => panic!("{page:?} was taken in {phase:?}"),
        }
    }

    pub(super) fn on_cleared(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let Phase::Fetching { data, .. } = &mut self.cached(page).phase else {
            panic!("{page:?} was not being fetched")
        };
        *data = true;
        self.finish_fetch(page, actions);
    }

    /// A home asks this rank to serve a requester.
    fn on_forward(&mut self, page: PageId, forward: Forward, actions: &mut Vec<Action>) {
        let Some(cached) = self.pages.get_mut(&page).filter(|cached| cached.phase.has_copy()) else {
            actions.push(send_home(page, ToHome::Nack { version: forward.version }));
            return;
        };
        match forward.access {
            Access::Write => {
                cached.deferred.take = Some(forward);
                self.close(page, actions);
            }
            Access::Read if cached.phase == Phase::Owned => {
                cached.deferred.serve.push(forward);
                self.close(page, actions);
            }
            Access::Read => {
                cached.outgoing += 1;
                actions.push(Action::Transfer(Outgoing { page, from: cached.frame(), forward }));
            }
        }
    }

    fn on_invalidate(&mut self, page: PageId, version: CopyVersion, actions: &mut Vec<Action>) {
        match self.pages.get_mut(&page) {
            Some(cached) if cached.phase.has_copy() => {
                assert_ne!(cached.phase, Phase::Owned, "{page:?} is owned here and nobody else can have a copy");
                cached.deferred.invalidate = Some(version);
                self.close(page, actions);
            }
            _ => actions.push(send_home(page, ToHome::Acknowledge { version })),
        }
    }

    fn on_grant(&mut self, page: PageId, version: CopyVersion, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        match &mut cached.phase {
            Phase::Upgrading => {
                cached.copy = version;
                self.own(page, actions);
            }
            Phase::Fetching { granted, .. } => {
                cached.copy = version;
                *granted = true;
                self.finish_fetch(page, actions);
            }
            phase => panic!("{page:?} was granted in {phase:?}"),
        }
    }

    fn on_data(&mut self, page: PageId, version: CopyVersion, grant: bool, zeros: bool, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        let frame = cached.frame();
        let Phase::Fetching { data, granted, .. } = &mut cached.phase else { panic!("{page:?} was not asked for") };
        cached.copy = version;
        *granted |= grant;
        if zeros {
            actions.push(Action::Clear { page, frame });
        } else {
            *data = true;
            self.finish_fetch(page, actions);
        }
    }

    fn on_evicted(&mut self, page: PageId, copy: CopyVersion, actions: &mut Vec<Action>) {
        // A grant may have overtaken this; the copy it speaks of is history then.
        let Some(cached) = self.pages.get_mut(&page).filter(|cached| cached.copy == copy) else { return };
        if cached.phase == Phase::Evicting {
            self.release(page, actions);
        } else if cached.flushing {
            cached.flushing = false;
            cached.dirty = false;
            self.end_flush(page);
        }
    }

    fn on_recall(&mut self, page: PageId, copy: CopyVersion, actions: &mut Vec<Action>) {
        let current = |cached: &Cached| cached.phase.has_copy() && cached.copy == copy;
        if !self.pages.get(&page).is_some_and(current) {
            return;
        }
        self.on_write_back(page, actions);
    }

    /// Starts the flush that the page's deferred ask for, unless an eviction writes it back anyway.
    fn write_back(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        match cached.phase {
            Phase::Owned => self.close(page, actions),
            Phase::Shared | Phase::Upgrading if !cached.flushing && !cached.deferred.evict => {
                cached.flushing = true;
                let evict = ToHome::Evict { frame: cached.frame(), copy: cached.copy, keep: true };
                actions.push(send_home(page, evict));
            }
            _ => {}
        }
    }

    fn end_flush(&mut self, page: PageId) {
        let cached = self.cached(page);
        cached.flushing = false;
        if mem::take(&mut cached.deferred.flush) {
            self.flushes -= 1;
        }
    }

    /// Data, grant or both have come: opens the page once that is enough.
    fn finish_fetch(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        match cached.phase {
            Phase::Fetching { access: Access::Read, data: true, .. } => {
                cached.phase = Phase::Shared;
                actions.push(send_home(page, ToHome::Done { version: cached.copy }));
                self.open(page, actions);
            }
            Phase::Fetching { access: Access::Write, data: true, granted: true } => self.own(page, actions),
            _ => {}
        }
    }

    fn own(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        cached.phase = Phase::Owned;
        cached.dirty = true;
        // A flush that was under way is void: it named the copy from before the grant.
        cached.flushing = false;
        let flush = cached.deferred.flush;
        actions.push(send_home(page, ToHome::Done { version: cached.copy }));
        self.open(page, actions);
        if flush {
            self.write_back(page, actions);
        }
    }

    /// Lets operations at the page, and those waiters whose turn it is; asks for more where others wait.
    fn open(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        let access = if cached.phase == Phase::Owned { Access::Write } else { Access::Read };
        let mut waiters = mem::take(&mut cached.readers);
        if access == Access::Write {
            waiters.append(&mut cached.writers);
        }
        if cached.access_state != AccessState::Open(access) || !waiters.is_empty() {
            cached.access_state = AccessState::Open(access);
            actions.push(Action::Open { page, frame: cached.frame(), access, waiters });
        }
        if cached.phase == Phase::Shared && !cached.writers.is_empty() {
            cached.phase = Phase::Upgrading;
            let write = ToHome::Write { frame: cached.frame(), copy: Some(cached.copy) };
            actions.push(send_home(page, write));
        }
    }

    /// Does the page's deferred as soon as nobody here uses it.
    fn close(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        match cached.access_state {
            AccessState::Open(_) => {
                cached.access_state = AccessState::Closing;
                actions.push(Action::Close(page));
            }
            AccessState::Closing => {}
            AccessState::Closed => self.run_deferred(page, actions),
        }
    }

    /// Does the deferred of a closed page, then opens it again if its copy stays.
    fn run_deferred(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        let upgrade = cached.phase == Phase::Upgrading;
        if let Some(version) = cached.deferred.invalidate.take() {
            actions.push(send_home(page, ToHome::Acknowledge { version }));
            self.lose(page, upgrade, actions);
            return;
        }
        if let Some(forward) = cached.deferred.take.take() {
            let from = cached.frame();
            self.end_flush(page);
            let cached = self.cached(page);
            cached.phase = Phase::Leaving { upgrade };
            cached.dirty = false;
            actions.push(Action::Transfer(Outgoing { page, from, forward }));
            return;
        }
        if cached.phase == Phase::Owned {
            cached.phase = Phase::Shared;
        }
        for forward in mem::take(&mut cached.deferred.serve) {
            cached.outgoing += 1;
            actions.push(Action::Transfer(Outgoing { page, from: cached.frame(), forward }));
        }
        if cached.deferred.evict {
            self.leave(page, actions);
            return;
        }
        if cached.deferred.flush {
            self.write_back(page, actions);
        }
        self.open(page, actions);
    }

    /// Gives up the frame of a closed page: at once if it is clean, when the home has written it if it is dirty.
    fn leave(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        let copy = cached.copy;
        if cached.outgoing > 0 || cached.phase == Phase::Evicting {
            return;
        }
        if cached.dirty {
            cached.phase = Phase::Evicting;
            actions.push(send_home(page, ToHome::Evict { frame: cached.frame(), copy, keep: false }));
            return;
        }
        self.notices.push((page, copy));
        self.release(page, actions);
        if self.notices.len() >= NOTICES_MAX {
            self.on_idle(actions);
        }
    }

    /// The copy is invalid. The frame stays if this rank's own request to write is at the home.
    fn lose(&mut self, page: PageId, upgrade: bool, actions: &mut Vec<Action>) {
        self.end_flush(page);
        let cached = self.cached(page);
        cached.dirty = false;
        if upgrade {
            cached.phase = Phase::Fetching { access: Access::Write, data: false, granted: false };
        } else {
            self.release(page, actions);
        }
    }

    /// Frees the page's frame. Operations that wait for the page make it queue for a frame again.
    fn release(&mut self, page: PageId, actions: &mut Vec<Action>) {
        self.end_flush(page);
        let cached = self.pages.remove(&page).expect("a page with a frame is known");
        assert_eq!(cached.outgoing, 0, "{page:?} is still being read");
        let frame = cached.frame();
        self.frames[frame.0 as usize] = None;
        self.free.push(frame);
        if cached.deferred.evict {
            self.evictions -= 1;
        }
        if !cached.readers.is_empty() || !cached.writers.is_empty() {
            let again = Cached { readers: cached.readers, writers: cached.writers, ..Cached::awaiting_frame() };
            self.pages.insert(page, again);
            self.awaiting_frame.push_back(page);
        }
        self.feed(actions);
    }

    /// Gives free frames to the pages that wait for one.
    fn feed(&mut self, actions: &mut Vec<Action>) {
        while !self.free.is_empty() {
            let Some(page) = self.awaiting_frame.pop_front() else { break };
            let frame = self.free.pop().expect("it was just seen");
            self.frames[frame.0 as usize] = Some(page);
            let cached = self.cached(page);
            cached.frame = Some(frame);
            let request = cached.fetch();
            actions.push(send_home(page, request));
        }
    }

    fn cached(&mut self, page: PageId) -> &mut Cached {
        self.pages.get_mut(&page).expect("the page is known here")
    }
}

fn send_home(page: PageId, body: ToHome) -> Action {
    Action::Send { to: page.home, message: Message { page, body: Body::Home(body) } }
}
