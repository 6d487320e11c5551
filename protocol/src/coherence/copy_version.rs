//! What names a transaction and a copy.

use core::cmp::Ordering;
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Names a transaction about a page, and afterwards the copy that came of it. The page's home gives versions out, from
/// 1 on, and none of them twice.
///
/// A message about a copy carries its version, so a message that was overtaken is never mistaken for one about a later
/// copy.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct CopyVersion(pub u64);

impl CopyVersion {
    /// What marks a copy that its rank keeps for others. No home gives so many versions out.
    const GUEST: u64 = 1 << 63;

    /// The same version, of a copy that its rank keeps for others.
    pub fn of_guest(self) -> CopyVersion {
        CopyVersion(self.0 | CopyVersion::GUEST)
    }

    /// Whether the rank came to keep the copy for others.
    pub fn is_guest(self) -> bool {
        self.0 & CopyVersion::GUEST != 0
    }

    /// Its number among those of the page's home.
    pub fn number(self) -> u64 {
        self.0 & !CopyVersion::GUEST
    }
}

/// In the order in which the home has given them out.
impl Ord for CopyVersion {
    fn cmp(&self, other: &CopyVersion) -> Ordering {
        (self.number(), self.is_guest()).cmp(&(other.number(), other.is_guest()))
    }
}

impl PartialOrd for CopyVersion {
    fn partial_cmp(&self, other: &CopyVersion) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for CopyVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_guest() { "g" } else { "v" }, self.number())
    }
}
