//! Selection of the frame to evict, and of the time.
//!
//! [`Replacement`] chooses victims for a driver. The driver reports the page of each filled frame, and answers queries
//! about a frame ([`FrameUse`]): whether it is evictable, whether it was used since the last query, and whether its
//! page was read ahead and is still unused. A [`Policy`] orders the used frames.
//!
//! Unevictable frames and unused read-ahead pages have queues of their own, so searches do not pass over them
//! repeatedly: a search examines only two of each. The driver reports when a frame is no longer held
//! ([`Replacement::on_released`]). Guests kept for another rank are evicted before all other pages, except used ones.

mod block_frames;
mod clock;
mod clock_pro;
mod history;
mod lists;
mod queues;
mod reserve;
mod search;

pub use block_frames::BlockFrames;
pub use clock::Clock;
pub use clock_pro::ClockPro;
pub use history::History;
pub use lists::Lists;
pub use queues::Queues;
pub use reserve::Reserve;
pub use search::{Look, Search};

use crate::Space;
use crate::coherence::{FrameId, PageId};
use alloc::boxed::Box;
use alloc::vec;
use core::fmt::Debug;
use core::mem;
use queues::{AHEAD, GUESTS, HELD, POLICY};

/// Whether a frame can be evicted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameState {
    /// It can, and is not in use.
    Idle,
    /// It can once the current access ends.
    InUse,
    /// It cannot, possibly for long: the client has pinned it, or its page is in flight.
    Held,
}

/// The driver's state of the frames of its pool.
pub trait FrameUse {
    /// Whether a frame can be evicted.
    fn state(&self, frame: FrameId) -> FrameState;

    /// Whether the page was read ahead and is still unused.
    fn is_ahead(&self, frame: FrameId) -> bool;

    /// Whether the frame was used since the last query. A page used without a trace counts as used, and its next use
    /// leaves one.
    fn take_used(&mut self, frame: FrameId) -> bool;

    /// Whether the page may be in no other pool, while enough frames of this pool hold pages with other copies. Such a
    /// page is evicted after those: its next use would read a disk.
    fn is_only_copy(&self, _frame: FrameId) -> bool {
        false
    }

    /// The search leaves this frame's page and takes it on the next visit, unless it is used meanwhile: time for its
    /// write-back. A page is reported once while cold.
    fn will_go(&mut self, _frame: FrameId) {}
}

/// An order of the used frames.
pub trait Policy: Debug + Send {
    /// A page arrived in a frame outside the policy's queues, and is used for the first time.
    fn on_filled(&mut self, frame: FrameId, page: PageId, queues: &mut Queues);

    /// A frame that was [`Look::Held`] returns with the same page.
    fn put_back(&mut self, frame: FrameId, queues: &mut Queues);

    /// Takes the frame to evict out of the policy's queues; `None` if no frame suits.
    fn pick(&mut self, search: &mut Search<'_>) -> Option<FrameId>;
}

/// Time since `at`, the lower half of a time less than one wrap ago.
fn age(now: u64, at: u32) -> u64 {
    u64::from((now as u32).wrapping_sub(at))
}

/// The available policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// [`ClockPro`].
    #[default]
    ClockPro,
    /// [`Clock`].
    Clock,
}

impl PolicyKind {
    /// The policy for a pool of `frames` frames.
    pub fn make(self, frames: u32) -> Box<dyn Policy> {
        match self {
            PolicyKind::ClockPro => Box::new(ClockPro::new(frames)),
            PolicyKind::Clock => Box::new(Clock),
        }
    }
}

/// The purpose of a page's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillKind {
    /// To be used at once.
    ForUse,
    /// Read ahead of its first use.
    Ahead,
    /// To be kept for another rank.
    AsGuest,
}

/// The need for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Not yet needed: the reserve. Pages in use and unused read-ahead pages stay.
    Later,
    /// A page awaits it. As a last resort, any page not pinned by the client is evicted.
    Now,
}

/// A read-ahead page unused while pages arrive in one in this many frames counts as used: it was fetched in vain.
const AHEAD_PART: u32 = 2;

/// Frames of each queue a search examines.
const LOOKS_ASIDE: u32 = 2;

/// No page: no space reaches this index.
const NO_PAGE: PageId = PageId { space: Space::of_file(0), index: u32::MAX };

/// The frames of a pool, and the next victim.
#[derive(Debug)]
pub struct Replacement {
    policy: Box<dyn Policy>,
    queues: Queues,
    /// By frame, its page or [`NO_PAGE`].
    pages: Box<[PageId]>,
    /// Pages arrived so far, and the count at each frame's arrival; both wrap.
    fills: u32,
    filled_at: Box<[u32]>,
    /// The last search for this need failed, and nothing has changed since.
    fruitless: Option<Need>,
    /// Any frame may have changed since the last scan of the held ones.
    may_be_free: bool,
    steps: u64,
}

impl Replacement {
    /// A pool of `frames` empty frames.
    pub fn new(policy: Box<dyn Policy>, frames: u32) -> Replacement {
        Replacement {
            policy,
            queues: Queues::new(frames),
            pages: vec![NO_PAGE; frames as usize].into(),
            fills: 0,
            filled_at: vec![0; frames as usize].into(),
            fruitless: None,
            may_be_free: false,
            steps: 0,
        }
    }

    /// A page is in a frame. Repeated for the same page, the frame may no longer be held.
    pub fn on_filled(&mut self, frame: FrameId, page: PageId, kind: FillKind) {
        debug_assert_ne!(page, NO_PAGE, "{frame:?} is filled with a page");
        if self.pages[frame.0 as usize] == page {
            return self.on_released(frame);
        }
        self.on_freed(frame);
        self.pages[frame.0 as usize] = page;
        self.fills = self.fills.wrapping_add(1);
        self.filled_at[frame.0 as usize] = self.fills;
        match kind {
            FillKind::ForUse => self.policy.on_filled(frame, page, &mut self.queues),
            FillKind::Ahead => self.queues.push_back(AHEAD, frame),
            FillKind::AsGuest => self.queues.push_back(GUESTS, frame),
        }
        debug_assert!(self.queues.list_of(frame).is_some(), "{frame:?} has a page, and is in a queue");
    }

    /// Number of frames in the guest queue. Some of the guests may have been used here.
    pub fn guests(&self) -> u32 {
        self.queues.len(GUESTS)
    }

    /// The frame of a guest to replace with another guest, if one of the first is evictable. It is not returned again
    /// before its next page.
    pub fn first_guest(&mut self, frames: &mut dyn FrameUse) -> Option<FrameId> {
        let found = self.find_guest(frames, LOOKS_ASIDE, false);
        debug_assert!(
            found.is_none_or(|frame| self.queues.list_of(frame).is_none()),
            "a guest that leaves is in no queue"
        );
        found.into_iter().for_each(|frame| self.pages[frame.0 as usize] = NO_PAGE);
        found
    }

    /// A frame lost its page, if it had one.
    pub fn on_freed(&mut self, frame: FrameId) {
        self.fruitless = None;
        if mem::replace(&mut self.pages[frame.0 as usize], NO_PAGE) != NO_PAGE {
            self.queues.remove(frame);
        }
        debug_assert!(self.queues.list_of(frame).is_none(), "{frame:?} has no page, and is in no queue");
    }

    /// A frame may no longer be [`FrameState::Held`].
    pub fn on_released(&mut self, frame: FrameId) {
        if self.queues.list_of(frame) == Some(HELD) {
            self.fruitless = None;
            self.policy.put_back(frame, &mut self.queues);
            debug_assert!(self.queues.list_of(frame) >= Some(POLICY), "the policy has {frame:?} again");
        }
    }

    /// Frames in use at the last search may suit now.
    pub fn retry(&mut self) {
        self.fruitless = None;
    }

    /// Any frame may suit. A search without other results examines all held frames: for changes whose frame is unknown.
    pub fn retry_all(&mut self) {
        (self.fruitless, self.may_be_free) = (None, true);
    }

    /// The frame to evict now. It is not returned again before its next page.
    pub fn victim(&mut self, frames: &mut dyn FrameUse, need: Need) -> Option<FrameId> {
        if self.fruitless >= Some(need) {
            return None;
        }
        self.release_held(frames, LOOKS_ASIDE);
        self.admit_used(frames);
        let mut found = self.find_guest(frames, LOOKS_ASIDE, true).or_else(|| self.find(frames, need));
        if found.is_none() && need == Need::Now && self.guests() > 0 {
            // Some may suit the policy.
            while let Some(guest) = self.queues.front(GUESTS) {
                self.admit(guest);
            }
            found = self.find(frames, need);
        }
        if found.is_none() && mem::take(&mut self.may_be_free) && self.release_held(frames, u32::MAX) {
            found = self.find(frames, need);
        }
        debug_assert!(found.is_none_or(|frame| self.queues.list_of(frame).is_none()), "a victim is in no queue");
        debug_assert!(found.is_none_or(|frame| self.pages[frame.0 as usize] != NO_PAGE), "a victim has a page");
        match found {
            Some(frame) => self.pages[frame.0 as usize] = NO_PAGE,
            None => self.fruitless = Some(need),
        }
        found
    }

    /// Frames examined by searches so far: the cost of victims.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn find(&mut self, frames: &mut dyn FrameUse, need: Need) -> Option<FrameId> {
        let found = self.pick(frames, false);
        if found.is_some() || need == Need::Later {
            return found;
        }
        self.first_ahead(frames).or_else(|| self.pick(frames, true))
    }

    fn pick(&mut self, frames: &mut dyn FrameUse, takes_in_use: bool) -> Option<FrameId> {
        self.policy.pick(&mut Search::new(frames, &self.pages, &mut self.queues, &mut self.steps, takes_in_use))
    }

    /// Passes used read-ahead pages to the policy, until two unused ones are found.
    fn admit_used(&mut self, frames: &dyn FrameUse) {
        let mut waiting = 0;
        let patience = (self.pages.len() as u32).div_ceil(AHEAD_PART);
        while let Some(frame) = self.queues.front(AHEAD).filter(|_| waiting < LOOKS_ASIDE) {
            self.steps += 1;
            let is_new = self.fills.wrapping_sub(self.filled_at[frame.0 as usize]) < patience;
            if is_new && frames.is_ahead(frame) {
                waiting += 1;
                self.queues.push_back(AHEAD, frame);
            } else {
                self.admit(frame);
            }
        }
    }

    /// Passes a read-ahead page or guest to the policy.
    fn admit(&mut self, frame: FrameId) {
        self.queues.remove(frame);
        let page = self.pages[frame.0 as usize];
        debug_assert_ne!(page, NO_PAGE, "{frame:?} was in a queue, so it has a page");
        if page != NO_PAGE {
            self.policy.on_filled(frame, page, &mut self.queues);
        }
    }

    /// The first evictable guest among the first `looks`. A used guest stays, as a regular page if `is_admitted`.
    fn find_guest(&mut self, frames: &mut dyn FrameUse, looks: u32, is_admitted: bool) -> Option<FrameId> {
        for _ in 0..looks.min(self.queues.len(GUESTS)) {
            let frame = self.queues.front(GUESTS)?;
            debug_assert_ne!(self.pages[frame.0 as usize], NO_PAGE, "{frame:?} has a guest");
            self.steps += 1;
            let is_idle = frames.state(frame) == FrameState::Idle;
            let is_used = is_idle && frames.take_used(frame);
            if is_used && is_admitted {
                self.admit(frame);
            } else if is_idle && !is_used {
                self.queues.remove(frame);
                return Some(frame);
            } else {
                self.queues.push_back(GUESTS, frame);
            }
        }
        None
    }

    /// The longest unused read-ahead page.
    fn first_ahead(&mut self, frames: &dyn FrameUse) -> Option<FrameId> {
        for _ in 0..self.queues.len(AHEAD) {
            let frame = self.queues.front(AHEAD)?;
            debug_assert_ne!(self.pages[frame.0 as usize], NO_PAGE, "{frame:?} has a page that was read ahead");
            self.steps += 1;
            if frames.state(frame) == FrameState::Idle && frames.is_ahead(frame) {
                self.queues.remove(frame);
                return Some(frame);
            }
            self.admit(frame);
        }
        None
    }

    /// Returns evictable frames to the policy, after at most `looks` looks. Returns whether there were any.
    fn release_held(&mut self, frames: &dyn FrameUse, looks: u32) -> bool {
        let mut any = false;
        for _ in 0..looks.min(self.queues.len(HELD)) {
            let Some(frame) = self.queues.front(HELD) else { break };
            debug_assert_ne!(self.pages[frame.0 as usize], NO_PAGE, "{frame:?} has a page");
            self.steps += 1;
            if frames.state(frame) == FrameState::Held {
                self.queues.push_back(HELD, frame);
            } else {
                self.policy.put_back(frame, &mut self.queues);
                debug_assert!(self.queues.list_of(frame) >= Some(POLICY), "the policy has {frame:?} again");
                any = true;
            }
        }
        any
    }
}
