//! Pages that this rank's home has its cache fetch, to serve other ranks with them.
//!
//! Such a page waits for a frame like any other, and another rank waits for the page meanwhile, with a frame of its own.
//! Homes that wait so for each other would wait for ever, so nobody waits longer than for evictions: where no frame can be
//! freed the cache declines.

use super::super::{Action, CopyVersion, PageId, Priority, ToHome, send_home};
use super::page::{CachedPage, Phase};
use super::{Cache, Refusable};
use alloc::vec::Vec;
use core::mem;

impl Cache {
    /// The home asks for a page of its own. One that is here or on its way is none that the home has to wait for: it asks
    /// while it knows of no copy here, so the copy is leaving, or the request for it is about to reach the home.
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

    /// An order that was overtaken by a later one is over: the home waits for the answer to the last.
    fn note_order(&mut self, page: PageId, version: CopyVersion) {
        let last = self.for_others.entry(page).or_insert(version);
        *last = version.max(*last);
    }

    /// No frame can be freed: other ranks are served without this cache. Pages that operations here wait for go on waiting.
    pub(in super::super) fn on_no_victim(&mut self, actions: &mut Vec<Action>) {
        for (page, version) in mem::take(&mut self.for_others) {
            actions.push(send_home(self.rank, page, ToHome::Decline { version }));
            let cached = self.cached(page);
            if !cached.readers.is_empty() || !cached.writers.is_empty() || cached.overwriter.is_some() {
                continue;
            }
            if cached.ahead.is_some() {
                self.awaiting_ahead.remove(page);
            } else {
                self.awaiting_frame.retain(|waiting| *waiting != page);
            }
            // It may have been asked for ahead before the home asked for it at once.
            actions.push(Action::GiveUp(page));
            self.pages.remove(page);
        }
    }
}
