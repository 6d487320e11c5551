//! The home side: locks of the bytes whose stripes are here, and the asks waiting for them.
//!
//! ```text
//!                    nothing that conflicts came before
//!   Ask ───────────────────────────────────────────────────▶ Granted ── Unlock ──▶
//!    │  something did                                           ▲
//!    ├──────────────── it waits ───────────▶ Waiting ───────────┘
//!    └──────────────── a try ──▶ (Refused)       all of that has gone
//! ```
//!
//! An ask conflicts with waiting asks as well as granted ones, so conflicting asks are granted in the order of arrival.
//! A waiting ask counts its blockers: pairs of one of its ranges and an earlier conflicting range. An unlock finds the
//! waiting asks by the same search and decrements their counts. Memory is O(locks granted and waiting), and no order of
//! asks is stored.

use super::index::{Index, Owner};
use super::message::{AskName, AskPart, LockMessage, LockPurpose};
use super::range::are_in_order;
use super::{Action, LockRange};
use crate::{Rank, Space, Violation};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// A file's locks for one purpose. Locks of different keys never conflict.
type TableKey = (Space, LockPurpose);

/// An ask, granted or waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Ask {
    table: TableKey,
    ranges: Vec<LockRange>,
    /// Pairs of a range of this ask and an earlier conflicting range; 0: granted.
    blockers: u64,
}

/// An ask with parts still missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Incomplete {
    table: TableKey,
    ranges: u32,
    ranges_here: u32,
    /// By the number of ranges before the part.
    parts: BTreeMap<u32, Vec<LockRange>>,
}

/// An ask at its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskAtHome<'a> {
    /// The asking rank.
    pub rank: Rank,
    /// The ask.
    pub name: AskName,
    /// The file.
    pub file: Space,
    /// The lock's purpose.
    pub purpose: LockPurpose,
    /// The ranges, in order.
    pub ranges: &'a [LockRange],
    /// Whether it is granted rather than waiting.
    pub is_granted: bool,
}

/// The locks at one home.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockHome {
    asks: BTreeMap<Owner, Ask>,
    incomplete: BTreeMap<Owner, Incomplete>,
    tables: BTreeMap<TableKey, Index>,
    /// Grants in forgotten files; their unlocks are still to arrive.
    forgotten: BTreeSet<Owner>,
}

impl LockHome {
    /// A part of an ask has arrived.
    pub fn on_ask(
        &mut self,
        from: Rank,
        part: AskPart,
        ranges: Vec<LockRange>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let owner = Owner { rank: from, name: part.name };
        if self.asks.contains_key(&owner) || self.forgotten.contains(&owner) {
            return Err(Violation::new(from, "a request for a lock twice"));
        }
        let Some(ranges) = self.collect(owner, part, ranges)? else { return Ok(()) };
        if !are_in_order(&ranges) {
            return Err(Violation::new(from, "ranges to be locked that are out of order"));
        }
        debug_assert!(!self.incomplete.contains_key(&owner), "all parts of {owner:?} have arrived");
        self.decide(owner, (part.file, part.purpose), ranges, actions);
        Ok(())
    }

    /// All ranges of an ask, if this part is the last to arrive.
    fn collect(
        &mut self,
        owner: Owner,
        part: AskPart,
        ranges: Vec<LockRange>,
    ) -> Result<Option<Vec<LockRange>>, Violation> {
        let table = (part.file, part.purpose);
        let none = || Incomplete { table, ranges: part.ranges, ranges_here: 0, parts: BTreeMap::new() };
        let ask = self.incomplete.entry(owner).or_insert_with(none);
        // A duplicate part has too many ranges, or leaves no room for others.
        let room = ask.ranges.saturating_sub(ask.ranges_here);
        let fits = u32::try_from(ranges.len()).is_ok_and(|here| here <= room);
        if !fits || ask.table != table || ask.ranges != part.ranges || ask.parts.contains_key(&part.first) {
            return Err(Violation::new(owner.rank, "a part of a request for a lock that does not fit the others"));
        }
        ask.ranges_here += ranges.len() as u32;
        ask.parts.insert(part.first, ranges);
        if ask.ranges_here < ask.ranges {
            return Ok(None);
        }
        let ask = self.incomplete.remove(&owner).expect("it was just there");
        let mut all = Vec::with_capacity(ask.ranges as usize);
        for (first, ranges) in ask.parts {
            if first as usize != all.len() {
                return Err(Violation::new(owner.rank, "a request for a lock with parts that overlap"));
            }
            all.extend(ranges);
        }
        Ok(Some(all))
    }

    fn decide(&mut self, owner: Owner, table: TableKey, ranges: Vec<LockRange>, actions: &mut Vec<Action>) {
        let index = self.tables.entry(table).or_default();
        debug_assert!(!ranges.is_empty(), "{owner:?} asks for some range");
        let conflicts = ranges.iter().flat_map(|range| index.conflicts(range));
        // A try needs to know only whether there is any.
        let blockers = conflicts.take(if owner.name.waits { usize::MAX } else { 1 }).count();
        if blockers > 0 && !owner.name.waits {
            actions.push(Action::send(owner.rank, LockMessage::Refused(owner.name)));
            return;
        }
        ranges.iter().for_each(|range| index.insert(owner, range));
        self.asks.insert(owner, Ask { table, ranges, blockers: blockers as u64 });
        if blockers == 0 {
            actions.push(Action::send(owner.rank, LockMessage::Granted(owner.name)));
        }
    }

    /// A rank unlocks its grant.
    pub fn on_unlock(&mut self, from: Rank, name: AskName, actions: &mut Vec<Action>) -> Result<(), Violation> {
        let owner = Owner { rank: from, name };
        if self.forgotten.remove(&owner) {
            return Ok(());
        }
        if self.asks.get(&owner).is_none_or(|ask| ask.blockers > 0) {
            return Err(Violation::new(from, "the end of a lock that it does not have"));
        }
        let Ask { table, ranges, .. } = self.asks.remove(&owner).expect("it was just there");
        let index = self.tables.get_mut(&table).expect("an ask has a table");
        ranges.iter().for_each(|range| index.remove(owner, range));
        // A granted range conflicts with nothing earlier, so every conflicting range waits for it.
        for waiting in ranges.iter().flat_map(|range| index.conflicts(range)) {
            let ask = self.asks.get_mut(&waiting).expect("a range belongs to an ask");
            ask.blockers = ask.blockers.checked_sub(1).expect("who waits has counted each conflict");
            if ask.blockers == 0 {
                actions.push(Action::send(waiting.rank, LockMessage::Granted(waiting.name)));
            }
        }
        if index.is_empty() {
            self.tables.remove(&table);
        }
        Ok(())
    }

    /// Drops the locks of a file closed by all ranks.
    pub fn forget_file(&mut self, file: Space) -> Result<(), Violation> {
        let incomplete = self.incomplete.iter().filter(|(_, ask)| ask.table.0 == file).map(|(owner, _)| *owner);
        let of_file = |ask: &Ask| ask.table.0 == file;
        let waiting = self.asks.iter().filter(|(_, ask)| of_file(ask) && ask.blockers > 0).map(|(owner, _)| *owner);
        if let Some(owner) = incomplete.chain(waiting).next() {
            return Err(Violation::new(owner.rank, "a request for a lock of a file that it has closed"));
        }
        self.forgotten.extend(self.asks.iter().filter(|(_, ask)| of_file(ask)).map(|(owner, _)| *owner));
        self.asks.retain(|_, ask| !of_file(ask));
        self.tables.retain(|(space, _), _| *space != file);
        debug_assert!(
            self.forgotten.iter().all(|owner| !self.asks.contains_key(owner)),
            "forgotten grants are no asks"
        );
        Ok(())
    }

    /// All asks here, granted and waiting.
    pub fn asks(&self) -> impl Iterator<Item = AskAtHome<'_>> {
        self.asks.iter().map(|(owner, ask)| AskAtHome {
            rank: owner.rank,
            name: owner.name,
            file: ask.table.0,
            purpose: ask.table.1,
            ranges: &ask.ranges,
            is_granted: ask.blockers == 0,
        })
    }

    /// Whether there is no lock, no ask, and no unlock still to arrive.
    pub fn is_quiet(&self) -> bool {
        let is_quiet = self.asks.is_empty() && self.incomplete.is_empty() && self.forgotten.is_empty();
        assert!(!is_quiet || self.tables.is_empty(), "a range belongs to an ask");
        is_quiet
    }
}
