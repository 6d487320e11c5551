//! Copies given up for a writer: this rank's own, and the copies of ranks it relays to.

use super::super::relay;
use super::super::{Action, CopyVersion, PageId, Share, ToCache, ToHome, send_cache, send_home};
use super::{Cache, Refusable};
use crate::Rank;
use alloc::vec::Vec;

/// An order to give up this rank's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Invalidation {
    /// The transaction behind the order.
    pub version: CopyVersion,
    /// The sender of the order, waiting for the answer: the home or a relaying rank.
    pub by: Rank,
}

/// Ranks this one has relayed an invalidation to, until all have answered. This rank need not have, or have had, a copy
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Relay {
    pub page: PageId,
    pub version: CopyVersion,
    /// The rank waiting for the answer.
    by: Rank,
    /// Copies of others not yet acknowledged.
    awaited: u32,
    /// Copies gone, including this rank's own.
    gone: u32,
}

impl Cache {
    /// The home, or a relaying rank, asks for this rank's copy.
    pub(super) fn on_invalidate(
        &mut self,
        by: Rank,
        page: PageId,
        version: CopyVersion,
        actions: &mut Vec<Action>,
    ) -> Refusable {
        match self.pages.get_mut(page) {
            Some(cached) if cached.phase.has_copy() && cached.copy < version => {
                // A writer starts after all readers are served, and only one at a time.
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

    /// Relays an invalidation to others. One transaction may send several such messages, before and after the order to
    /// give up this rank's own copy.
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
        debug_assert!(self.relay_of(page, version).is_some(), "the answers about {page:?} are awaited");
        relay::tell_halves(share, page, version, actions);
        Ok(())
    }

    /// Copies of ranks relayed to are gone.
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
        debug_assert!(relay.gone > 0, "what is answered for is gone");
        if relay.awaited == 0 {
            let Relay { by, gone, .. } = self.relays.swap_remove(at);
            actions.push(self.acknowledgement(page, Invalidation { version, by }, gone));
        }
        Ok(())
    }

    /// This rank's copy is gone: acknowledges it, alone or together with the ranks relayed to.
    pub(super) fn acknowledge(&mut self, page: PageId, asked: Invalidation, actions: &mut Vec<Action>) {
        match self.relay_of(page, asked.version) {
            Some(at) => self.relays[at].gone += 1,
            None => actions.push(self.acknowledgement(page, asked, 1)),
        }
    }

    fn acknowledgement(&self, page: PageId, asked: Invalidation, copies: u32) -> Action {
        debug_assert!(copies > 0, "a rank answers for some copy");
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
