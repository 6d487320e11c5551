//! Copies that ranks keep for others, and giving them up where the home can do with the file: a few bytes are written there.

use super::super::{Action, CopyVersion, FrameId, PageId, Priority};
use super::Home;
use super::entry::{Refusable, Request, RequestKind, Transaction};
use super::holders::Holders;
use crate::{Nonsense, Rank};
use alloc::vec::Vec;

impl Home {
    /// Whether nothing is under way about the page, and all who have it keep it for others: the file has its bytes, and nobody uses it.
    pub fn has_only_guests(&self, page: PageId) -> bool {
        let is_at_rest = self.entries.moving(page).is_none_or(|entry| entry.is_quiet());
        is_at_rest && self.are_all_guests(page)
    }

    fn are_all_guests(&self, page: PageId) -> bool {
        self.dirty_owner(page).is_none() && self.holders(page).all(|holder| holder.copy.is_guest())
    }

    /// The version of a read, which names a guest if nobody waits for that.
    pub(super) fn version_of_read(&mut self, priority: Priority) -> CopyVersion {
        let version = self.next_version();
        if priority == Priority::Later { version.of_guest() } else { version }
    }

    /// Guests are to leave, after the requests about the page that have come before.
    pub(in super::super) fn on_dismiss(&mut self, page: PageId, actions: &mut Vec<Action>) -> Result<(), Nonsense> {
        let own = self.rank;
        let request = Request { from: own, frame: FrameId(0), kind: RequestKind::Dismiss, priority: Priority::Now };
        let taken = self.entries.open(page).ask(page, request, actions);
        taken.map_err(|what| Nonsense::about(page, own, what))?;
        self.start_waiting(page, actions)
    }

    /// Its turn has come. Done if others have the page by now, or nobody.
    pub(super) fn start_dismissal(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let mut acknowledgements = 0;
        let version = self.next_version();
        if self.are_all_guests(page) {
            let holders: Vec<Rank> = self.entry(page).holders.iter().map(|holder| holder.rank).collect();
            acknowledgements = self.invalidate(page, &holders, version, actions);
            self.entry_mut(page).transaction = Transaction::Dismissal { version, acknowledgements };
        }
        if acknowledgements == 0 {
            self.end_dismissal(page, actions);
        }
    }

    fn end_dismissal(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let entry = self.entry_mut(page);
        if matches!(entry.transaction, Transaction::Dismissal { .. }) {
            (entry.transaction, entry.holders) = (Transaction::Idle, Holders::Nobody);
        }
        actions.push(Action::Dismissed(page));
    }

    /// So many guests have left.
    pub(super) fn on_guests_gone(
        &mut self,
        page: PageId,
        (version, copies): (CopyVersion, u32),
        actions: &mut Vec<Action>,
    ) -> Refusable {
        const UNASKED: Refusable = Err("word that its copy is gone, and nobody waits for that");
        let Transaction::Dismissal { version: asked, acknowledgements } = &mut self.entry_mut(page).transaction else {
            return UNASKED;
        };
        if *asked != version || !(1..=*acknowledgements).contains(&copies) {
            return UNASKED;
        }
        *acknowledgements -= copies;
        if *acknowledgements == 0 {
            self.end_dismissal(page, actions);
        }
        Ok(())
    }
}
