//! The holders of a page, of which most pages have one.

use super::entry::Holder;
use alloc::collections::VecDeque;
use core::{iter, slice};

/// A stack of holders. One alone needs no memory elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Holders {
    #[default]
    Nobody,
    One(Holder),
    /// Two at least. The back is the top.
    Several(VecDeque<Holder>),
}

impl Holders {
    /// From the bottom of the stack to its top.
    pub fn iter(&self) -> iter::Chain<slice::Iter<'_, Holder>, slice::Iter<'_, Holder>> {
        let (lower, upper) = match self {
            Holders::Nobody => (&[][..], &[][..]),
            Holders::One(one) => (slice::from_ref(one), &[][..]),
            Holders::Several(all) => all.as_slices(),
        };
        lower.iter().chain(upper)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Holder> {
        let (lower, upper) = match self {
            Holders::Nobody => (&mut [][..], &mut [][..]),
            Holders::One(one) => (slice::from_mut(one), &mut [][..]),
            Holders::Several(all) => all.as_mut_slices(),
        };
        lower.iter_mut().chain(upper)
    }

    pub fn contains(&self, holder: &Holder) -> bool {
        self.iter().any(|known| known == holder)
    }

    /// A holder comes to the top.
    pub fn push_top(&mut self, holder: Holder) {
        match self {
            Holders::Nobody => *self = Holders::One(holder),
            Holders::One(one) => *self = Holders::Several(VecDeque::from([*one, holder])),
            Holders::Several(all) => all.push_back(holder),
        }
    }

    /// A holder goes to the bottom.
    pub fn sink(&mut self, holder: Holder) {
        if let Holders::Several(all) = self {
            all.retain(|known| *known != holder);
            all.push_front(holder);
        }
    }

    pub fn remove(&mut self, holder: Holder) {
        match self {
            Holders::One(one) if *one == holder => *self = Holders::Nobody,
            Holders::Nobody | Holders::One(_) => {}
            Holders::Several(all) => {
                all.retain(|known| *known != holder);
                if let ([one], []) | ([], [one]) = all.as_slices() {
                    *self = Holders::One(*one);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::CopyVersion;
    use super::*;
    use crate::Rank;
    use std::vec::Vec;

    #[test]
    fn holders_come_and_go_at_both_ends_and_the_past_does_not_show() {
        let holder = |rank| Holder { rank: Rank(rank), copy: CopyVersion(u64::from(rank) + 1) };
        let mut random = fastrand::Rng::with_seed(1);
        let (mut holders, mut model) = (Holders::default(), Vec::new());
        for _ in 0..2000 {
            let one = holder(random.u32(0..4));
            let at = model.iter().position(|known| *known == one);
            match (at, random.bool()) {
                (None, _) => {
                    holders.push_top(one);
                    model.push(one);
                }
                (Some(at), true) => {
                    holders.sink(one);
                    model.remove(at);
                    model.insert(0, one);
                }
                (Some(at), false) => {
                    holders.remove(one);
                    model.remove(at);
                }
            }
            assert!(holders.iter().eq(&model) && holders.iter_mut().map(|one| *one).eq(model.iter().copied()));
            let mut same = Holders::default();
            model.iter().for_each(|one| same.push_top(*one));
            assert_eq!(
                (&holders, holders.iter().count(), holders.contains(&one)),
                (&same, model.len(), model.contains(&one))
            );
        }
    }
}
