//! Copies that ranks keep for others, and giving them up where the home can do with the file: a few bytes are written there.

use super::super::{Action, CopyVersion, PageId, Priority};
use super::Home;
use super::entry::{RequestKind, Transaction};
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
        self.ask_itself(page, RequestKind::Dismiss, Priority::Now, actions)
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

    /// No guest has the page any more, or none was to leave.
    pub(super) fn end_dismissal(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let entry = self.entry_mut(page);
        if matches!(entry.transaction, Transaction::Dismissal { .. }) {
            (entry.transaction, entry.holders) = (Transaction::Idle, Holders::Nobody);
        }
        actions.push(Action::Dismissed(page));
    }
}
