//! Queries of drivers and tests to a home.

use super::super::{Access, CopyVersion, PageId};
use super::Home;
use super::entry::{Entry, Transaction, WriteData};
use super::holders::Holder;
use super::request::RequestKind;
use crate::Rank;
use alloc::vec;
use alloc::vec::Vec;

impl Home {
    /// Number of pages in the segment.
    pub fn pages(&self) -> u32 {
        self.written.segment_pages()
    }

    /// The holders of a page, from the bottom of the stack to its top.
    pub fn holders(&self, page: PageId) -> impl DoubleEndedIterator<Item = Holder> + '_ {
        self.entries.holders(page)
    }

    /// The holder accounting for bytes missing from the backing file.
    pub fn dirty_owner(&self, page: PageId) -> Option<Rank> {
        self.entries.dirty_owner(page)
    }

    /// Whether the page was ever written to the backing file; otherwise it reads as zeros.
    pub fn is_written(&self, page: PageId) -> bool {
        self.written.get(page)
    }

    /// Whether the page is held or requested.
    pub fn has_entry(&self, page: PageId) -> bool {
        self.entries.has(page)
    }

    /// The rank with the given access to a stable page: the top holder, or for [`Access::Write`] the owner. It may have
    /// given up its copy, or write access, without this home knowing.
    pub fn stable_user(&self, page: PageId, access: Access) -> Option<Rank> {
        if self.entries.transient(page).is_some_and(|entry| !entry.is_quiet()) {
            return None;
        }
        let user = match access {
            Access::Read => self.holders(page).next_back().map(|holder| holder.rank),
            Access::Write => self.dirty_owner(page).filter(|_| self.has_one_holder(page)),
        };
        let holds = |rank| self.holders(page).any(|holder| holder.rank == rank);
        debug_assert!(user.is_none_or(holds), "{user:?} uses {page:?}, and holds it");
        user
    }

    /// Whether nothing is in flight or pending.
    pub fn is_quiet(&self) -> bool {
        self.entries.all_transient().all(Entry::is_quiet)
    }

    /// Whether a rank is being made the owner of the page.
    pub fn is_writing(&self, page: PageId) -> bool {
        self.entries.transient(page).is_some_and(Entry::is_writing)
    }

    /// The rank with write access to the page, now or shortly, that need not ask before each write.
    pub fn writer(&self, page: PageId) -> Option<Rank> {
        if let Some(Transaction::Write(write)) = self.entries.transient(page).map(|entry| &entry.transaction) {
            return Some(write.requester);
        }
        let owner = self.dirty_owner(page).filter(|_| self.has_one_holder(page));
        let is_only = |rank| self.holders(page).all(|holder| holder.rank == rank);
        debug_assert!(owner.is_none_or(is_only), "no rank but {owner:?} holds {page:?}");
        owner
    }

    fn has_one_holder(&self, page: PageId) -> bool {
        self.holders(page).take(2).count() == 1
    }

    /// The pages with an entry, unordered.
    pub fn known_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.entries.pages()
    }

    /// Number of pages with an entry, held or requested.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Every version stored in this home; the exploration renumbers them.
    pub fn versions_mut(&mut self) -> Vec<&mut CopyVersion> {
        let (copies, transient) = self.entries.all_mut();
        let mut versions = vec![&mut self.last_version];
        versions.extend(copies);
        versions.extend(transient.flat_map(Entry::versions_mut));
        versions
    }
}

impl Entry {
    fn versions_mut(&mut self) -> Vec<&mut CopyVersion> {
        let mut versions: Vec<_> = self.holders.iter_mut().map(|holder| &mut holder.copy).collect();
        versions.extend(self.waiting.iter_mut().filter_map(|request| match &mut request.kind {
            RequestKind::Read { .. } | RequestKind::Overwrite | RequestKind::Recall | RequestKind::Dismiss => None,
            RequestKind::Write { copy } => copy.as_mut(),
            RequestKind::Evict { copy, .. } => Some(copy),
        }));
        match &mut self.transaction {
            Transaction::Idle | Transaction::Recall => {}
            Transaction::Reads(readers) => {
                versions.extend(readers.iter_mut().flat_map(|r| [&mut r.version, &mut r.source.copy]));
            }
            Transaction::First { version, .. }
            | Transaction::Dismissal { version, .. }
            | Transaction::AtHome { version }
            | Transaction::WriteBack { copy: version, .. } => versions.push(version),
            Transaction::Write(write) => {
                versions.push(&mut write.version);
                if let WriteData::Forwarded { source, .. } = &mut write.data {
                    versions.push(&mut source.copy);
                }
            }
        }
        versions
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{FrameId, Priority, ToHome};
    use super::*;
    use crate::coherence::PageId;

    #[test]
    fn pages_of_two_spaces_with_the_same_index_are_two() {
        let mut home = Home::new(Rank(0), 8, true);
        // Any other space will do: neither page has been written.
        let pages = [Rank(0), Rank(1)].map(|rank| PageId::of_segment(rank, 3));
        let mut actions = Vec::new();
        for page in pages {
            let read = ToHome::Read { frame: FrameId(0), priority: Priority::Now };
            home.on_message(Rank(1), page, read, &mut actions).expect("it makes sense");
        }
        assert!(
            home.entries() == 2 && pages.iter().all(|page| actions.iter().any(|action| action_is_for(action, *page)))
        );
    }

    fn action_is_for(action: &crate::coherence::Action, page: PageId) -> bool {
        use crate::coherence::Action::{Clear, Load, Send};
        match action {
            Send { message, .. } => message.page == page,
            Load { page: its, .. } | Clear { page: its, .. } => *its == page,
            _ => false,
        }
    }
}
