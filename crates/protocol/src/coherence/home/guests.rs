//! Guest copies, kept by ranks for others, and their dismissal when the home can use the file directly: for a small
//! write.

use super::super::{Action, CopyVersion, PageId, Priority};
use super::Home;
use super::entry::Transaction;
use super::holders::Holders;
use super::request::RequestKind;
use crate::{Rank, Violation};
use alloc::vec::Vec;

impl Home {
    /// Whether the page is stable and every holder keeps it for others: the file has its bytes, and no rank uses it.
    pub fn has_only_guests(&self, page: PageId) -> bool {
        let is_stable = self.entries.transient(page).is_none_or(|entry| entry.is_quiet());
        is_stable && self.are_all_guests(page)
    }

    fn are_all_guests(&self, page: PageId) -> bool {
        self.dirty_owner(page).is_none() && self.holders(page).all(|holder| holder.copy.is_guest())
    }

    /// The version of a read, marked as a guest's if no operation waits for it.
    pub(super) fn version_of_read(&mut self, priority: Priority) -> CopyVersion {
        let version = self.next_version();
        let version = if priority == Priority::Later { version.of_guest() } else { version };
        debug_assert_eq!(version.number(), self.last_version.number(), "the mark of guests leaves the number alone");
        version
    }

    /// Dismisses guests, after earlier requests about the page.
    pub(in super::super) fn on_dismiss(&mut self, page: PageId, actions: &mut Vec<Action>) -> Result<(), Violation> {
        self.ask_itself(page, RequestKind::Dismiss, Priority::Now, actions)
    }

    /// Starts a dismissal at its turn. It ends at once if the page has other holders by now, or none.
    pub(super) fn start_dismissal(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let mut acknowledgements = 0;
        let version = self.next_version();
        debug_assert_eq!(self.entry(page).transaction, Transaction::Idle, "a dismissal has {page:?} to itself");
        if self.are_all_guests(page) {
            let holders: Vec<Rank> = self.entry(page).holders.iter().map(|holder| holder.rank).collect();
            acknowledgements = self.invalidate(page, &holders, version, actions);
            self.entry_mut(page).transaction = Transaction::Dismissal { version, acknowledgements };
        }
        if acknowledgements == 0 {
            self.end_dismissal(page, actions);
        }
    }

    /// No guest has the page any more, or none had to leave.
    pub(super) fn end_dismissal(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let entry = self.entry_mut(page);
        if matches!(entry.transaction, Transaction::Dismissal { .. }) {
            debug_assert!(entry.dirty_owner.is_none(), "guests account for no bytes of {page:?}");
            (entry.transaction, entry.holders) = (Transaction::Idle, Holders::Nobody);
        }
        actions.push(Action::Dismissed(page));
    }
}
