//! Keys of maps as numbers.

use super::OrderedKey;
use crate::coherence::{CopyVersion, Holder, PageId};
use crate::collectives::CollectiveKey;
use crate::file_locks::LockPurpose;
use crate::{Rank, Space};

/// Integers are their own codes.
macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl OrderedKey for $integer {
            const BITS: u32 = <$integer>::BITS;

            #[inline]
            fn code(self) -> u128 {
                self as u128
            }
        })*
    };
}

integers!(u8, u32, u64, usize);

impl<A: OrderedKey, B: OrderedKey> OrderedKey for (A, B) {
    const BITS: u32 = {
        assert!(A::BITS + B::BITS <= u128::BITS, "the code has no room");
        A::BITS + B::BITS
    };

    #[inline]
    fn code(self) -> u128 {
        self.0.code() << (Self::BITS - A::BITS) | self.1.code()
    }
}

impl<A: OrderedKey, B: OrderedKey, C: OrderedKey> OrderedKey for (A, B, C) {
    const BITS: u32 = <(A, (B, C))>::BITS;

    #[inline]
    fn code(self) -> u128 {
        (self.0, (self.1, self.2)).code()
    }
}

/// Implements [`OrderedKey`] for types ordered like another key with the same information.
#[macro_export]
macro_rules! ordered_like {
    ($($key:ty: $other:ty = $as_other:expr;)*) => {
        $(impl $crate::ordered::OrderedKey for $key {
            const BITS: u32 = <$other as $crate::ordered::OrderedKey>::BITS;

            #[inline]
            fn code(self) -> u128 {
                let as_other: fn($key) -> $other = $as_other;
                $crate::ordered::OrderedKey::code(as_other(self))
            }
        })*
    };
}

ordered_like! {
    Rank: u32 = |rank| rank.0;
    Space: u32 = |space| space.number();
    CopyVersion: u64 = |version| version.number() << 1 | u64::from(version.is_guest());
    PageId: (Space, u32) = |page| (page.space, page.index);
    Holder: (Rank, CopyVersion) = |holder| (holder.rank, holder.copy);
    CollectiveKey: (u64, u32) = |key| (key.team, key.number);
    LockPurpose: u8 = |purpose| purpose as u8;
}
