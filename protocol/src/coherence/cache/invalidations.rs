//! Copies that are given up because another rank is to write: the own one, and those of ranks that this one is to tell.

use super::super::relay::{self, Share};
use super::super::{Action, CopyVersion, PageId, ToCache, ToHome, send_cache, send_home};
use super::{Cache, Refusable};
use crate::Rank;
use alloc::vec::Vec;

/// An order to give up the own copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Invalidation {
    /// The transaction that needs it.
    pub version: CopyVersion,
    /// The home, or the rank that was to tell this one. It waits for the answer.
    pub by: Rank,
}

/// Ranks that this one has told of a transaction, until all have answered. It does not matter whether this one has, or ever had,
/// a copy itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Relay {
    pub page: PageId,
    pub version: CopyVersion,
    /// Waits for the answer.
    by: Rank,
    /// Copies of others that are not known to be gone.
    awaited: u32,
    /// Copies that are gone, the own one too.
    gone: u32,
}

impl Cache {
    /// The home, or a rank that it has told to, asks for the copy here to be given up.
    pub(super) fn on_invalidate(
        &mut self,
        by: Rank,
        page: PageId,
        version: CopyVersion,
        actions: &mut Vec<Action>,
    ) -> Refusable {
        match self.pages.get_mut(page) {
            Some(cached) if cached.phase.has_copy() && cached.copy < version => {
                // A writer comes after all readers are served, one at a time.
                if cached.is_leaving() || cached.is_serving_readers() {
                    return Err("an order to give up a copy that no other rank can need gone");
                }
                cached.deferred.invalidate = Some(Invalidation { version, by });
                self.close(page, actions);
            }
            _ => self.acknowledge(page, Invalidation { version, by }, actions),
        }
        Ok(())
    }

    /// This rank is to tell others. Several such messages may come of one transaction, before and after the order to give up the
    /// own copy.
    pub(super) fn on_relay(
        &mut self,
        by: Rank,
        page: PageId,
        version: CopyVersion,
        share: Share,
        actions: &mut Vec<Action>,
    ) -> Refusable {
        if share.ranks().contains(&self.rank) {
            return Err("an order to tell itself to give up a copy");
        }
        let told = share.ranks().len() as u32;
        match self.relay_of(page, version) {
            Some(at) if self.relays[at].by != by => {
                return Err("an order to tell ranks that another rank has given, too");
            }
            Some(at) => self.relays[at].awaited += told,
            None => self.relays.push(Relay { page, version, by, awaited: told, gone: 0 }),
        }
        relay::tell_halves(share, page, version, actions);
        Ok(())
    }

    /// Copies that this rank has asked others for are gone.
    pub(super) fn on_acknowledge(
        &mut self,
        page: PageId,
        version: CopyVersion,
        copies: u32,
        actions: &mut Vec<Action>,
    ) -> Refusable {
        const UNASKED: Refusable = Err("word that copies are gone, and nobody waits for that");
        let Some(at) = self.relay_of(page, version) else { return UNASKED };
        let relay = &mut self.relays[at];
        if copies == 0 || copies > relay.awaited {
            return UNASKED;
        }
        relay.awaited -= copies;
        relay.gone += copies;
        if relay.awaited == 0 {
            let Relay { by, gone, .. } = self.relays.swap_remove(at);
            actions.push(self.acknowledgement(page, Invalidation { version, by }, gone));
        }
        Ok(())
    }

    /// The own copy is gone: says so, or will together with the ranks that this one has told.
    pub(super) fn acknowledge(&mut self, page: PageId, asked: Invalidation, actions: &mut Vec<Action>) {
        match self.relay_of(page, asked.version) {
            Some(at) => self.relays[at].gone += 1,
            None => actions.push(self.acknowledgement(page, asked, 1)),
        }
    }

    fn acknowledgement(&self, page: PageId, asked: Invalidation, copies: u32) -> Action {
        let Invalidation { version, by } = asked;
        if by == self.spaces.home(page) {
            send_home(by, page, ToHome::Acknowledge { version, copies })
        } else {
            send_cache(by, page, ToCache::Acknowledge { version, copies })
        }
    }

    fn relay_of(&self, page: PageId, version: CopyVersion) -> Option<usize> {
        self.relays.iter().position(|relay| relay.page == page && relay.version == version)
    }
}
