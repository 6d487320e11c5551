//! The home side: locks of bytes whose stripes are here, and who waits for them.
//!
//! ```text
//!                    nothing that conflicts came before
//!   Ask ───────────────────────────────────────────────────▶ Granted ── Unlock ──▶
//!    │  something did                                           ▲
//!    ├──────────────── it waits ───────────▶ Waiting ───────────┘
//!    └──────────────── a try ──▶ (Refused)       all of that has gone
//! ```
//!
//! An ask conflicts with what waits as well as with what is granted, so nobody overtakes who waits: the ones that conflict are
//! granted in the order in which they came. A waiting ask counts the pairs of a range of its own and a conflicting one that
//! came before. Who unlocks finds those who wait for it by the same search and counts them down. So memory is O(locks granted
//! and waited for), and an order of asks is kept nowhere.

use super::index::Index;
use super::message::{AskName, AskPart, LockMessage, LockPurpose};
use super::range::are_in_order;
use super::{Action, LockRange};
use crate::ordered::{OrderedMap, OrderedSet};
use crate::{Nonsense, Rank, Space};
use alloc::vec::Vec;

/// Who locks ranges, or waits: an ask of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The rank.
    pub rank: Rank,
    /// The ask, as the rank names it.
    pub name: AskName,
}

impl Owner {
    /// None is less.
    pub const FIRST: Owner = Owner { rank: Rank(0), name: AskName { number: 0, waits: false } };
}

crate::ordered_like! {
    Owner: (Rank, (u64, u8)) = |owner| (owner.rank, (owner.name.number, u8::from(owner.name.waits)));
}

/// A file's locks for one purpose: these do not conflict with others.
type TableKey = (Space, LockPurpose);

/// An ask that is granted or waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Ask {
    table: TableKey,
    ranges: Vec<LockRange>,
    /// Pairs of a range of this ask and a range before it that conflict; 0: it is granted.
    blockers: u64,
}

/// An ask of which parts have come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Incomplete {
    table: TableKey,
    ranges: u32,
    ranges_here: u32,
    /// By how many ranges come before.
    parts: OrderedMap<u32, Vec<LockRange>>,
}

/// What a home knows of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskAtHome<'a> {
    /// Who asks.
    pub rank: Rank,
    /// The ask.
    pub name: AskName,
    /// The file.
    pub file: Space,
    /// What the lock is for.
    pub purpose: LockPurpose,
    /// The ranges, in order.
    pub ranges: &'a [LockRange],
    /// Whether it is granted. Otherwise it waits.
    pub is_granted: bool,
}

/// The locks at one home.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockHome {
    asks: OrderedMap<Owner, Ask>,
    incomplete: OrderedMap<Owner, Incomplete>,
    tables: OrderedMap<TableKey, Index>,
    /// Granted in files that were forgotten. Their unlocks have yet to come.
    forgotten: OrderedSet<Owner>,
}

impl LockHome {
    /// A part of an ask has come.
    pub fn on_ask(
        &mut self,
        from: Rank,
        part: AskPart,
        ranges: Vec<LockRange>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Nonsense> {
        let owner = Owner { rank: from, name: part.name };
        if self.asks.contains_key(&owner) || self.forgotten.contains(&owner) {
            return Err(Nonsense::new(from, "a request for a lock twice"));
        }
        let Some(ranges) = self.collect(owner, part, ranges)? else { return Ok(()) };
        if !are_in_order(&ranges) {
            return Err(Nonsense::new(from, "ranges to be locked that are out of order"));
        }
        self.decide(owner, (part.file, part.purpose), ranges, actions);
        Ok(())
    }

    /// All ranges of an ask, if this part is the last one to come.
    fn collect(
        &mut self,
        owner: Owner,
        part: AskPart,
        ranges: Vec<LockRange>,
    ) -> Result<Option<Vec<LockRange>>, Nonsense> {
        let table = (part.file, part.purpose);
        let none = || Incomplete { table, ranges: part.ranges, ranges_here: 0, parts: OrderedMap::new() };
        let ask = self.incomplete.entry(owner).or_insert_with(none);
        // A part that comes twice has too many ranges, or leaves others no room.
        let room = ask.ranges.saturating_sub(ask.ranges_here);
        let fits = u32::try_from(ranges.len()).is_ok_and(|here| here <= room);
        if !fits || ask.table != table || ask.ranges != part.ranges || ask.parts.contains_key(&part.first) {
            return Err(Nonsense::new(owner.rank, "a part of a request for a lock that does not fit the others"));
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
                return Err(Nonsense::new(owner.rank, "a request for a lock with parts that overlap"));
            }
            all.extend(ranges);
        }
        Ok(Some(all))
    }

    fn decide(&mut self, owner: Owner, table: TableKey, ranges: Vec<LockRange>, actions: &mut Vec<Action>) {
        let index = self.tables.entry(table).or_default();
        let conflicts = ranges.iter().flat_map(|range| index.conflicts(range));
        // A try need not know how many there are.
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

    /// A rank unlocks what it was granted.
    pub fn on_unlock(&mut self, from: Rank, name: AskName, actions: &mut Vec<Action>) -> Result<(), Nonsense> {
        let owner = Owner { rank: from, name };
        if self.forgotten.remove(&owner) {
            return Ok(());
        }
        if self.asks.get(&owner).is_none_or(|ask| ask.blockers > 0) {
            return Err(Nonsense::new(from, "the end of a lock that it does not have"));
        }
        let Ask { table, ranges, .. } = self.asks.remove(&owner).expect("it was just there");
        let index = self.tables.get_mut(&table).expect("an ask has a table");
        ranges.iter().for_each(|range| index.remove(owner, range));
        // What was granted has no conflict with what came before, so all that conflicts waits for it.
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

    /// Drops the locks of a file that all ranks have closed.
    pub fn forget_file(&mut self, file: Space) -> Result<(), Nonsense> {
        let incomplete = self.incomplete.iter().filter(|(_, ask)| ask.table.0 == file).map(|(owner, _)| *owner);
        let of_file = |ask: &Ask| ask.table.0 == file;
        let waiting = self.asks.iter().filter(|(_, ask)| of_file(ask) && ask.blockers > 0).map(|(owner, _)| *owner);
        if let Some(owner) = incomplete.chain(waiting).next() {
            return Err(Nonsense::new(owner.rank, "a request for a lock of a file that it has closed"));
        }
        self.forgotten.extend(self.asks.iter().filter(|(_, ask)| of_file(ask)).map(|(owner, _)| *owner));
        self.asks.retain(|_, ask| !of_file(ask));
        self.tables.retain(|(space, _), _| *space != file);
        Ok(())
    }

    /// What is granted and what waits here.
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

    /// Whether nothing is locked or asked for, and no unlock has yet to come.
    pub fn is_quiet(&self) -> bool {
        let is_quiet = self.asks.is_empty() && self.incomplete.is_empty() && self.forgotten.is_empty();
        assert!(!is_quiet || self.tables.is_empty(), "a range belongs to an ask");
        is_quiet
    }
}
