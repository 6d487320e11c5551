//! Names of the standard library's maps for the engine.

pub use alloc::collections::{BTreeMap as OrderedMap, BTreeSet as OrderedSet};

/// Nothing: keys need [`Ord`] only.
#[macro_export]
macro_rules! ordered_like {
    ($($t:tt)*) => {};
}
