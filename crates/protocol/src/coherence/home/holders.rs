//! The holders of a page. Most pages have one.

use super::super::CopyVersion;
use crate::Rank;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque, btree_map};
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::ops::Range;
use core::{iter, slice};

/// Maximum number of holders searched linearly. More are indexed by rank and place.
const LIST_MAX: usize = 64;

/// A rank with a valid copy of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The rank.
    pub rank: Rank,
    /// Its copy.
    pub copy: CopyVersion,
}

/// A stack of holders, one a rank. A single holder needs no heap memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Holders {
    #[default]
    Nobody,
    One(Holder),
    /// Two to [`LIST_MAX`]. The back is the top.
    List(VecDeque<Holder>),
    /// More than [`LIST_MAX`].
    Many(Box<Many>),
}

/// Holders ordered by place; the greatest place is the top.
#[derive(Clone, Debug, Default)]
pub(super) struct Many {
    order: BTreeMap<i64, Holder>,
    places: BTreeMap<Rank, i64>,
}

/// Holders from the bottom of the stack to its top.
pub(super) enum Iter<'a> {
    List(iter::Chain<slice::Iter<'a, Holder>, slice::Iter<'a, Holder>>),
    Many(btree_map::Values<'a, i64, Holder>),
}

impl Holders {
    /// From the bottom of the stack to its top.
    pub fn iter(&self) -> Iter<'_> {
        let (lower, upper) = match self {
            Holders::Nobody => (&[][..], &[][..]),
            Holders::One(one) => (slice::from_ref(one), &[][..]),
            Holders::List(all) => all.as_slices(),
            Holders::Many(many) => return Iter::Many(many.order.values()),
        };
        Iter::List(lower.iter().chain(upper))
    }

    /// All copies, for renumbering.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Holder> {
        let (list, many) = match self {
            Holders::Nobody => ((&mut [][..], &mut [][..]), None),
            Holders::One(one) => ((slice::from_mut(one), &mut [][..]), None),
            Holders::List(all) => (all.as_mut_slices(), None),
            Holders::Many(many) => ((&mut [][..], &mut [][..]), Some(many.order.values_mut())),
        };
        list.0.iter_mut().chain(list.1).chain(many.into_iter().flatten())
    }

    pub fn len(&self) -> usize {
        match self {
            Holders::Nobody => 0,
            Holders::One(_) => 1,
            Holders::List(all) => all.len(),
            Holders::Many(many) => many.order.len(),
        }
    }

    /// The holder of this rank.
    pub fn of(&self, rank: Rank) -> Option<Holder> {
        match self {
            Holders::Many(many) => many.places.get(&rank).map(|place| many.order[place]),
            _ => self.iter().copied().find(|holder| holder.rank == rank),
        }
    }

    /// The holders among `ranks`.
    pub fn among(&self, ranks: &Range<Rank>) -> impl Iterator<Item = Holder> + '_ {
        let within = ranks.clone();
        let (list, many) = match self {
            Holders::Many(many) => (None, Some(many.places.range(within).map(|(_, place)| many.order[place]))),
            _ => (Some(self.iter().copied().filter(move |holder| within.contains(&holder.rank))), None),
        };
        list.into_iter().flatten().chain(many.into_iter().flatten())
    }

    pub fn contains(&self, holder: &Holder) -> bool {
        self.of(holder.rank) == Some(*holder)
    }

    /// Pushes a holder on top.
    pub fn push_top(&mut self, holder: Holder) {
        debug_assert!(self.of(holder.rank).is_none(), "{:?} holds the page once", holder.rank);
        match self {
            Holders::Nobody => *self = Holders::One(holder),
            Holders::One(one) => *self = Holders::List(VecDeque::from([*one, holder])),
            Holders::List(all) if all.len() == LIST_MAX => {
                let mut many = Many::default();
                all.iter().for_each(|known| many.push_top(*known));
                many.push_top(holder);
                *self = Holders::Many(Box::new(many));
            }
            Holders::List(all) => all.push_back(holder),
            Holders::Many(many) => many.push_top(holder),
        }
        debug_assert_eq!(self.len() > LIST_MAX, matches!(self, Holders::Many(_)), "many holders are indexed");
    }

    /// Moves a holder to the bottom.
    pub fn sink(&mut self, holder: Holder) {
        debug_assert!(self.contains(&holder), "{holder:?} is moved, not added");
        match self {
            Holders::Nobody | Holders::One(_) => {}
            Holders::List(all) => {
                all.retain(|known| *known != holder);
                all.push_front(holder);
            }
            Holders::Many(many) => many.sink(holder),
        }
        debug_assert_eq!(self.iter().next(), Some(&holder), "{holder:?} is at the bottom");
    }

    pub fn remove(&mut self, holder: Holder) {
        match self {
            Holders::One(one) if *one == holder => *self = Holders::Nobody,
            Holders::Nobody | Holders::One(_) => {}
            Holders::List(all) => {
                all.retain(|known| *known != holder);
                if let ([one], []) | ([], [one]) = all.as_slices() {
                    *self = Holders::One(*one);
                }
            }
            Holders::Many(many) => {
                if many.places.get(&holder.rank).is_some_and(|place| many.order[place] == holder) {
                    many.remove(holder.rank);
                }
                if many.order.len() <= LIST_MAX {
                    *self = Holders::List(many.order.values().copied().collect());
                }
            }
        }
        debug_assert_eq!(self.len() > LIST_MAX, matches!(self, Holders::Many(_)), "many holders are indexed");
        debug_assert!(!self.contains(&holder), "{holder:?} is gone");
    }
}

impl Many {
    fn push_top(&mut self, holder: Holder) {
        let place = self.order.last_key_value().map_or(0, |(top, _)| top + 1);
        self.place(place, holder);
    }

    fn sink(&mut self, holder: Holder) {
        self.remove(holder.rank);
        let place = self.order.first_key_value().map_or(0, |(bottom, _)| bottom - 1);
        self.place(place, holder);
    }

    fn place(&mut self, place: i64, holder: Holder) {
        let before = self.order.insert(place, holder);
        debug_assert!(before.is_none(), "each holder has its own place");
        self.places.insert(holder.rank, place);
        debug_assert_eq!(self.order.len(), self.places.len(), "each holder has one place");
    }

    fn remove(&mut self, rank: Rank) {
        if let Some(place) = self.places.remove(&rank) {
            let gone = self.order.remove(&place);
            debug_assert!(gone.is_some_and(|holder| holder.rank == rank), "{rank:?} is at its place");
        }
    }
}

// Places depend on history; equality must not.
impl PartialEq for Many {
    fn eq(&self, other: &Many) -> bool {
        self.order.values().eq(other.order.values())
    }
}

impl Eq for Many {}

impl PartialOrd for Many {
    fn partial_cmp(&self, other: &Many) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Many {
    fn cmp(&self, other: &Many) -> Ordering {
        self.order.values().cmp(other.order.values())
    }
}

impl Hash for Many {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.order.values().for_each(|holder| holder.hash(state));
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Holder;

    fn next(&mut self) -> Option<&'a Holder> {
        match self {
            Iter::List(list) => list.next(),
            Iter::Many(many) => many.next(),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Iter::List(list) => list.next_back(),
            Iter::Many(many) => many.next_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::CopyVersion;
    use super::*;
    use std::vec::Vec;

    fn holder(rank: u32) -> Holder {
        Holder { rank: Rank(rank), copy: CopyVersion(u64::from(rank) + 1) }
    }

    /// Holders of `ranks` ranks come and go; insertions outnumber removals while `grows`.
    fn come_and_go(ranks: u32, grows: impl Fn(u32) -> bool) {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut holders, mut model) = (Holders::default(), Vec::new());
        for step in 0..4000 {
            let one = holder(random.u32(0..ranks));
            let at = model.iter().position(|known| *known == one);
            match (at, grows(step) || random.bool()) {
                (None, true) => {
                    holders.push_top(one);
                    model.push(one);
                }
                (Some(at), true) => {
                    holders.sink(one);
                    model.remove(at);
                    model.insert(0, one);
                }
                (at, false) => {
                    holders.remove(one);
                    at.map(|at| model.remove(at));
                }
            }
            assert!(holders.iter().eq(&model) && holders.iter().rev().eq(model.iter().rev()), "step {step}");
            assert!(holders.iter_mut().map(|one| *one).eq(model.iter().copied()), "step {step}");
            let some = Rank(ranks / 3)..Rank(ranks / 2);
            let mut among: Vec<Holder> = holders.among(&some).collect();
            among.sort_unstable();
            let mut expected: Vec<Holder> = model.iter().copied().filter(|one| some.contains(&one.rank)).collect();
            expected.sort_unstable();
            assert_eq!(among, expected, "step {step}");
            let mut same = Holders::default();
            model.iter().for_each(|one| same.push_top(*one));
            let other = Holder { copy: CopyVersion(0), ..one };
            assert_eq!(
                (&holders, holders.len(), holders.contains(&one), holders.contains(&other)),
                (&same, model.len(), model.contains(&one), false)
            );
        }
    }

    #[test]
    fn holders_come_and_go_at_both_ends_and_the_past_does_not_show() {
        come_and_go(4, |_| false);
        come_and_go(3 * LIST_MAX as u32, |step| step / 500 % 2 == 0);
    }

    #[test]
    fn a_copy_that_is_no_more_is_not_removed() {
        let mut holders = Holders::default();
        (0..2 * LIST_MAX as u32).for_each(|rank| holders.push_top(holder(rank)));
        holders.remove(Holder { copy: CopyVersion(0), ..holder(3) });
        holders.remove(holder(1000));
        assert!(
            holders.len() == 2 * LIST_MAX && holders.of(Rank(3)) == Some(holder(3)) && holders.of(Rank(1000)).is_none()
        );
    }
}
