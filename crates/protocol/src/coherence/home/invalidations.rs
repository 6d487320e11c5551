//! Invalidation of the holders before a rank may write.

use super::super::{Action, CopyVersion, PageId, ToCache, relay, send_cache};
use super::Home;
use super::entry::{Refusable, Transaction, WriteData};
use crate::Rank;
use alloc::vec::Vec;

impl Home {
    /// Sets the maximum number of holders this home invalidates by its own messages; more relay to each other.
    pub(in super::super) fn telling_itself(self, told_itself_max: usize) -> Home {
        Home { told_itself_max, ..self }
    }

    /// Invalidates the holders of a page. Returns the number of copies the transaction waits for.
    pub(super) fn invalidate(
        &self,
        page: PageId,
        holders: &[Rank],
        version: CopyVersion,
        actions: &mut Vec<Action>,
    ) -> u32 {
        debug_assert!(holders.len() <= self.entry(page).holders.len(), "only holders of {page:?} are told");
        let invalidate = |rank: &Rank| send_cache(*rank, page, ToCache::Invalidate { version });
        if !self.awaits_invalidations() || holders.len() <= self.told_itself_max {
            actions.extend(holders.iter().map(invalidate));
        } else {
            // An answer to the home's own rank would go to its directory, so its cache relays to nobody.
            let (own, others): (Vec<Rank>, Vec<Rank>) = holders.iter().partition(|rank| **rank == self.rank);
            actions.extend(own.iter().map(invalidate));
            relay::tell_all(&others, page, version, actions);
        }
        if self.awaits_invalidations() { holders.len() as u32 } else { 0 }
    }

    /// `copies` copies are gone: the sender's, and those of ranks it relayed to.
    pub(super) fn on_acknowledge(
        &mut self,
        from: Rank,
        page: PageId,
        (version, copies): (CopyVersion, u32),
        actions: &mut Vec<Action>,
    ) -> Refusable {
        const UNASKED: Refusable = Err("word that its copy is gone, and nobody waits for that");
        if !self.awaits_invalidations() {
            return Ok(());
        }
        let write = match &mut self.entry_mut(page).transaction {
            Transaction::Write(write) => write,
            Transaction::Dismissal { version: asked, acknowledgements }
                if *asked == version && (1..=*acknowledgements).contains(&copies) =>
            {
                *acknowledgements -= copies;
                if *acknowledgements == 0 {
                    self.end_dismissal(page, actions);
                }
                return Ok(());
            }
            _ => return UNASKED,
        };
        let is_source = matches!(write.data, WriteData::Forwarded { source, .. } if source.rank == from);
        let is_awaited = (1..=write.acknowledgements).contains(&copies);
        if write.version != version || !is_awaited || write.requester == from || is_source {
            return UNASKED;
        }
        write.acknowledgements -= copies;
        debug_assert!(!write.granted, "{page:?} was not granted while copies were left");
        if write.acknowledgements == 0 && !write.granted && write.has_data() {
            write.granted = true;
            actions.push(send_cache(write.requester, page, ToCache::Grant { version }));
        }
        self.end_failed_write(page, actions);
        Ok(())
    }

    pub(super) fn awaits_invalidations(&self) -> bool {
        !self.as_in_paper.invalidations_unawaited
    }
}
