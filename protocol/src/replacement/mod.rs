//! The frame to give up, and the time to do so.
//!
//! [`Replacement`] chooses victims for a driver. The driver says which page a frame has got, and answers three questions
//! about a frame ([`FrameUse`]): whether it can be evicted now, whether it was used since that was asked last, and whether
//! its page was fetched ahead and waits for its first use. A [`Policy`] orders the frames that were used. Frames that
//! cannot be evicted, and pages that wait for their first use, are in queues of their own, so no search passes over them
//! again and again: of each queue a search looks at two of them only. The driver says when a frame is held no longer
//! ([`Replacement::on_released`]). Pages that are kept for another rank go before all others, but for those that were used.

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
use queues::{AHEAD, GUESTS, HELD};

/// Whether a frame can be evicted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It can, and nobody uses it.
    Idle,
    /// It can as soon as an access under way has ended.
    InUse,
    /// It cannot, and may not for long: the client has pinned it, or its page is on its way.
    Held,
}

/// What a driver knows of the frames of its pool.
pub trait FrameUse {
    /// Whether a frame can be evicted.
    fn standing(&self, frame: FrameId) -> Standing;

    /// Whether the page was fetched ahead and nobody has used it yet.
    fn is_ahead(&self, frame: FrameId) -> bool;

    /// Whether the frame was used since this was asked last. A page that is used without a trace counts as used, and its
    /// next use leaves one.
    fn take_used(&mut self, frame: FrameId) -> bool;

    /// Whether the page may be in no other pool, while enough frames of this one have pages that are in others, too. Such a page goes
    /// after those: who wants it again would read it from a disk.
    fn is_only_copy(&self, _frame: FrameId) -> bool {
        false
    }

    /// A search leaves the page of this frame where it is, and takes it when it comes there again, unless the page is used
    /// meanwhile: time to write it back. A page is told of once while it is cold.
    fn will_go(&mut self, _frame: FrameId) {}
}

/// An order of the frames whose pages were used.
pub trait Policy: Debug + Send {
    /// A page has come to a frame that is in none of the policy's queues, and is used for the first time.
    fn on_filled(&mut self, frame: FrameId, page: PageId, queues: &mut Queues);

    /// A frame comes back that was [`Look::Held`], with the same page.
    fn put_back(&mut self, frame: FrameId, queues: &mut Queues);

    /// Takes the frame to evict out of the policy's queues; `None` if no frame suits.
    fn pick(&mut self, search: &mut Search<'_>) -> Option<FrameId>;
}

/// How long ago it was that the clock's lower half was `at`, to which it has not come again since.
fn age(now: u64, at: u32) -> u64 {
    u64::from((now as u32).wrapping_sub(at))
}

/// The policies to choose from.
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

/// What a page comes to a frame for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coming {
    /// To be used at once.
    ForUse,
    /// Ahead of its first use.
    Ahead,
    /// To be kept for another rank.
    AsGuest,
}

/// For whom a frame is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nobody yet: the reserve. Pages in use, and pages that wait for their first use, stay.
    Later,
    /// A page awaits it. Where there is nothing else, any page gives way that the client has not pinned.
    Now,
}

/// A page that nobody uses while pages come to one of so many frames counts as used: it was fetched in vain.
const AHEAD_PART: u32 = 2;

/// Frames of each queue that a search looks at.
const LOOKS_ASIDE: u32 = 2;

/// No page: no space has so many.
const NO_PAGE: PageId = PageId { space: Space::of_file(0), index: u32::MAX };

/// The frames of a pool, and the next one to give up.
#[derive(Debug)]
pub struct Replacement {
    policy: Box<dyn Policy>,
    queues: Queues,
    /// By frame, its page or [`NO_PAGE`].
    pages: Box<[PageId]>,
    /// Pages that have come so far, and that had when the page of each frame came; both wrap.
    fills: u32,
    filled_at: Box<[u32]>,
    /// The last search for this need has found nothing, and nothing has changed since.
    fruitless: Option<Need>,
    /// Any frame may have changed since all that are held were looked at.
    may_be_free: bool,
    steps: u64,
}

impl Replacement {
    /// A pool of `frames` frames without pages.
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

    /// A page is in a frame. Again for the same page, it may be that the frame is not held any more.
    pub fn on_filled(&mut self, frame: FrameId, page: PageId, coming: Coming) {
        if self.pages[frame.0 as usize] == page {
            return self.on_released(frame);
        }
        self.on_freed(frame);
        self.pages[frame.0 as usize] = page;
        self.fills = self.fills.wrapping_add(1);
        self.filled_at[frame.0 as usize] = self.fills;
        match coming {
            Coming::ForUse => self.policy.on_filled(frame, page, &mut self.queues),
            Coming::Ahead => self.queues.push_back(AHEAD, frame),
            Coming::AsGuest => self.queues.push_back(GUESTS, frame),
        }
    }

    /// Frames with pages that are kept for other ranks. Some of these pages may have been used here.
    pub fn guests(&self) -> u32 {
        self.queues.len(GUESTS)
    }

    /// The frame of a guest that is to leave for another, if one of the first can. It is not named again before another page has come
    /// to it.
    pub fn first_guest(&mut self, frames: &mut dyn FrameUse) -> Option<FrameId> {
        let found = self.find_guest(frames, LOOKS_ASIDE, false);
        found.into_iter().for_each(|frame| self.pages[frame.0 as usize] = NO_PAGE);
        found
    }

    /// A frame has lost its page, if it had one.
    pub fn on_freed(&mut self, frame: FrameId) {
        self.fruitless = None;
        if mem::replace(&mut self.pages[frame.0 as usize], NO_PAGE) != NO_PAGE {
            self.queues.remove(frame);
        }
    }

    /// A frame may be [`Standing::Held`] no longer.
    pub fn on_released(&mut self, frame: FrameId) {
        if self.queues.list_of(frame) == Some(HELD) {
            self.fruitless = None;
            self.policy.put_back(frame, &mut self.queues);
        }
    }

    /// Frames may suit that were in use at the last search.
    pub fn retry(&mut self) {
        self.fruitless = None;
    }

    /// Any frames may suit. A search that finds nothing else looks at all that are held: this is for changes of which it is
    /// not known which frame they are about.
    pub fn retry_all(&mut self) {
        (self.fruitless, self.may_be_free) = (None, true);
    }

    /// The frame to evict now. It is not named again before another page has come to it.
    pub fn victim(&mut self, frames: &mut dyn FrameUse, need: Need) -> Option<FrameId> {
        if self.fruitless >= Some(need) {
            return None;
        }
        self.release_held(frames, LOOKS_ASIDE);
        self.admit_used(frames);
        let mut found = self.find_guest(frames, LOOKS_ASIDE, true).or_else(|| self.find(frames, need));
        if found.is_none() && need == Need::Now && self.guests() > 0 {
            // Some may suit that a policy would take.
            while let Some(guest) = self.queues.front(GUESTS) {
                self.admit(guest);
            }
            found = self.find(frames, need);
        }
        if found.is_none() && mem::take(&mut self.may_be_free) && self.release_held(frames, u32::MAX) {
            found = self.find(frames, need);
        }
        match found {
            Some(frame) => self.pages[frame.0 as usize] = NO_PAGE,
            None => self.fruitless = Some(need),
        }
        found
    }

    /// Frames that searches have looked at so far: what victims cost.
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

    /// Hands pages that were fetched ahead to the policy, until two are found that still wait for their first use.
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

    /// Hands a page that was fetched ahead, or that was a guest, to the policy.
    fn admit(&mut self, frame: FrameId) {
        self.queues.remove(frame);
        let page = self.pages[frame.0 as usize];
        if page != NO_PAGE {
            self.policy.on_filled(frame, page, &mut self.queues);
        }
    }

    /// The first guest that can leave, among the first `looks`. One that was used since it was looked at stays, as a page like any
    /// other if it `is_admitted`.
    fn find_guest(&mut self, frames: &mut dyn FrameUse, looks: u32, is_admitted: bool) -> Option<FrameId> {
        for _ in 0..looks.min(self.queues.len(GUESTS)) {
            let frame = self.queues.front(GUESTS)?;
            self.steps += 1;
            let is_idle = frames.standing(frame) == Standing::Idle;
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

    /// The page that waits for its first use the longest.
    fn first_ahead(&mut self, frames: &dyn FrameUse) -> Option<FrameId> {
        for _ in 0..self.queues.len(AHEAD) {
            let frame = self.queues.front(AHEAD)?;
            self.steps += 1;
            if frames.standing(frame) == Standing::Idle && frames.is_ahead(frame) {
                self.queues.remove(frame);
                return Some(frame);
            }
            self.admit(frame);
        }
        None
    }

    /// Gives frames that can be evicted again back to the policy, after `looks` looks at most. Returns whether there were
    /// any.
    fn release_held(&mut self, frames: &dyn FrameUse, looks: u32) -> bool {
        let mut any = false;
        for _ in 0..looks.min(self.queues.len(HELD)) {
            let Some(frame) = self.queues.front(HELD) else { break };
            self.steps += 1;
            if frames.standing(frame) == Standing::Held {
                self.queues.push_back(HELD, frame);
            } else {
                self.policy.put_back(frame, &mut self.queues);
                any = true;
            }
        }
        any
    }
}
