//! Pages this rank's home has its cache fetch in order to serve other ranks.
//!
//! Such a page waits for a frame like any other while another rank, holding a frame of its own, waits for the page.
//! Homes waiting for each other in a circle would deadlock, so the wait is bounded by evictions: when no frame can be
//! freed, the cache declines.

use super::super::{Action, CopyVersion, PageId, Priority, ToHome, send_home};
use super::page::{CachedPage, Phase};
use super::{Cache, Refusable};
use alloc::vec::Vec;
use core::mem;

impl Cache {
    /// The home asks for a page of its own. A page already here or in flight needs no answer: the home asks only while
    /// it knows of no copy here, so the copy is leaving or its request is about to reach the home.
    pub(super) fn on_fetch(
        &mut self,
        page: PageId,
        version: CopyVersion,
        priority: Priority,
        actions: &mut Vec<Action>,
    ) -> Refusable {
        if self.spaces.home(page) != self.rank {
            return Err("an order to fetch a page of which this rank is not the home");
        }
        let ahead = Some(priority).filter(|priority| *priority != Priority::Now);
        match self.pages.get_mut(page) {
            None => {
                debug_assert!(!self.for_others.contains_key(&page), "{page:?} awaits a frame while it is ordered");
                self.note_order(page, version);
                self.pages.insert(page, CachedPage { ahead, ..CachedPage::default() });
                if ahead.is_some() {
                    self.awaiting_ahead.push_back(page);
                    self.hand_out_frames(actions);
                } else {
                    self.await_frame(page, actions);
                }
            }
            Some(cached) if cached.phase == Phase::AwaitingFrame => {
                let becomes_urgent = ahead.is_none() && cached.ahead.take().is_some();
                self.note_order(page, version);
                if becomes_urgent {
                    self.hurry_fetch(page, actions);
                }
            }
            Some(_) => actions.push(send_home(self.rank, page, ToHome::Decline { version })),
        }
        Ok(())
    }

    /// A later order supersedes an earlier one: the home waits for the answer to the last.
    fn note_order(&mut self, page: PageId, version: CopyVersion) {
        debug_assert!(self.frame_of(page).is_none(), "an order is noted while {page:?} awaits a frame");
        let last = self.for_others.entry(page).or_insert(version);
        *last = version.max(*last);
    }

    /// No frame can be freed: the home serves other ranks without this cache. Pages with waiting operations keep
    /// waiting.
    pub(in super::super) fn on_no_victim(&mut self, actions: &mut Vec<Action>) {
        for (page, version) in mem::take(&mut self.for_others) {
            actions.push(send_home(self.rank, page, ToHome::Decline { version }));
            let cached = self.cached(page);
            assert_eq!(cached.phase, Phase::AwaitingFrame, "{page:?} is wanted for others until it has a frame");
            if !cached.readers.is_empty() || !cached.writers.is_empty() || cached.overwriter.is_some() {
                continue;
            }
            if cached.ahead.is_some() {
                self.awaiting_ahead.remove(page);
            } else {
                self.awaiting_frame.retain(|waiting| *waiting != page);
            }
            // A read-ahead may have asked for it before the home needed it at once.
            actions.push(Action::GiveUp(page));
            self.pages.remove(page);
        }
    }
}
