//! Clean evictions not yet reported to the homes.
//!
//! A home with stale knowledge forwards requests to a rank without a copy, at the cost of a Nack. Notices therefore
//! wait for the next message to their home, and go alone only when too many are pending.

use super::super::{Action, AsInPaper, CopyVersion, PageId, ToHome, send_home};
use super::Cache;
use crate::{Rank, Space};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

/// Frames in the pool per pending notice: more notices would cause Nacks too often.
const FRAMES_A_NOTICE: u32 = 8;

/// Pending notices per home of the job: with this many, a notice hardly ever goes alone.
const A_HOME_MAX: u32 = 2;

/// Minimum number of pending notices allowed, however small the pool.
const WAITING_MIN: u32 = 2;

/// Maximum number of notices piggybacked on a message: as many as fit next to it.
const ALONG_MAX: usize = 8;

/// The page before all others.
const FIRST_PAGE: PageId = PageId::of_segment(Rank(0), 0);

/// The pending notices, at most one a page: a later one concerns a copy given out after the home forgot the earlier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Notices {
    by_home: BTreeMap<(Rank, PageId), CopyVersion>,
    /// Maximum number of pending notices.
    max: u32,
    /// On overflow, the first home from this one on with notices is told.
    next_home: Rank,
}

impl Notices {
    /// No notices, for a pool of `frames` in a job of `ranks`.
    pub fn new(frames: u32, ranks: u32) -> Notices {
        let max = (frames / FRAMES_A_NOTICE).min(ranks.saturating_mul(A_HOME_MAX)).max(WAITING_MIN);
        Notices { by_home: BTreeMap::new(), max, next_home: Rank(0) }
    }

    /// Maximum number of pending notices between two events.
    pub fn waiting_max(&self) -> u32 {
        self.max
    }

    pub fn add(&mut self, home: Rank, page: PageId, copy: CopyVersion) {
        let before = self.by_home.insert((home, page), copy);
        assert!(before.is_none(), "{page:?} came back only after its home had been told that it was gone");
    }

    pub fn is_empty(&self) -> bool {
        self.by_home.is_empty()
    }

    pub fn len(&self) -> usize {
        self.by_home.len()
    }

    pub fn has(&self, home: Rank, page: PageId) -> bool {
        self.by_home.contains_key(&(home, page))
    }

    pub fn take(&mut self, home: Rank, page: PageId) -> Option<CopyVersion> {
        self.by_home.remove(&(home, page))
    }

    /// Takes the notices to piggyback on a message to `home` about `page`, that page's first.
    pub fn take_along(&mut self, home: Rank, page: PageId) -> Vec<(PageId, CopyVersion)> {
        let its = self.take(home, page).map(|copy| (page, copy));
        let others = ALONG_MAX - usize::from(its.is_some());
        let along: Vec<_> = its.into_iter().chain(self.take_of(home, others)).collect();
        debug_assert!(along.len() <= ALONG_MAX, "what goes along fits beside the message");
        along
    }

    /// On overflow, takes all notices of one home.
    pub fn take_surplus(&mut self) -> Vec<(PageId, CopyVersion)> {
        if self.by_home.len() <= self.max as usize {
            return Vec::new();
        }
        let behind = self.by_home.range((self.next_home, FIRST_PAGE)..).next();
        let (home, _) = *behind.or_else(|| self.by_home.first_key_value()).expect("there are too many").0;
        self.next_home = Rank(home.0 + 1);
        let surplus = self.take_of(home, usize::MAX);
        debug_assert!(!surplus.is_empty(), "{home:?} had notices");
        surplus
    }

    pub fn take_all(&mut self) -> Vec<(PageId, CopyVersion)> {
        mem::take(&mut self.by_home).into_iter().map(|((_, page), copy)| (page, copy)).collect()
    }

    fn take_of(&mut self, home: Rank, most: usize) -> Vec<(PageId, CopyVersion)> {
        let all = self.by_home.range((home, FIRST_PAGE)..).take_while(|((its, _), _)| *its == home);
        let taken: Vec<(PageId, CopyVersion)> = all.take(most).map(|((_, page), copy)| (*page, *copy)).collect();
        for (page, _) in &taken {
            self.by_home.remove(&(home, *page));
        }
        taken
    }

    pub fn forget_space(&mut self, space: Space) {
        self.by_home.retain(|(_, page), _| page.space != space);
    }

    /// The copies, for renumbering.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PageId, &mut CopyVersion)> {
        self.by_home.iter_mut().map(|((_, page), copy)| (*page, copy))
    }
}

impl Cache {
    /// Selects the paper's behaviour.
    pub(in super::super) fn following_paper(mut self, what: AsInPaper) -> Cache {
        if what.notices_at_once {
            self.notices.max = 0;
        }
        self
    }

    /// The clean copy of a page is gone. This rank's own home learns of it at once.
    pub(super) fn note_eviction(&mut self, page: PageId, copy: CopyVersion, actions: &mut Vec<Action>) {
        let home = self.spaces.home(page);
        if home == self.rank {
            actions.push(send_home(home, page, ToHome::Forget { copy }));
        } else {
            self.notices.add(home, page, copy);
        }
    }

    pub(in super::super) fn on_tell(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let home = self.spaces.home(page);
        let kept = self.notices.take(home, page).map(|copy| (page, copy));
        self.tell_of(kept, actions);
    }

    pub(in super::super) fn on_tell_all(&mut self, actions: &mut Vec<Action>) {
        let all = self.notices.take_all();
        self.tell_of(all, actions);
    }

    fn tell_of(&self, notices: impl IntoIterator<Item = (PageId, CopyVersion)>, actions: &mut Vec<Action>) {
        let send = |(page, copy)| send_home(self.spaces.home(page), page, ToHome::Forget { copy });
        actions.extend(notices.into_iter().map(send));
    }

    /// Piggybacks pending notices on the messages of an event, the actions from `from` on. The driver may send them
    /// together.
    pub(in super::super) fn tell_along(&mut self, from: usize, actions: &mut Vec<Action>) {
        let mut at = from;
        while !self.notices.is_empty() && at < actions.len() {
            if let Action::Send { to, message } = actions[at] {
                let along = self.notices.take_along(to, message.page);
                let sent = along.len();
                let told = along.into_iter().map(|(page, copy)| send_home(to, page, ToHome::Forget { copy }));
                actions.splice(at..at, told);
                at += sent;
            }
            at += 1;
        }
        let surplus = self.notices.take_surplus();
        self.tell_of(surplus, actions);
        assert!(self.notices.len() <= self.notices_max(), "at most so many homes have yet to be told");
    }
}
