//! The identity of a transaction and of its copy.

use core::cmp::Ordering;
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Identifies a transaction about a page, and afterwards the resulting copy. The page's home issues versions from 1 on,
/// each once.
///
/// A message about a copy carries its version, so an overtaken message is never mistaken for one about a later copy.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct CopyVersion(pub u64);

impl CopyVersion {
    /// Marks a guest copy. No home issues this many versions.
    const GUEST: u64 = 1 << 63;

    /// The same version, marked as a guest copy.
    pub fn of_guest(self) -> CopyVersion {
        debug_assert!(!self.is_guest(), "{self:?} is marked once");
        CopyVersion(self.0 | CopyVersion::GUEST)
    }

    /// Whether the copy was created as a guest copy, kept for other ranks.
    pub fn is_guest(self) -> bool {
        self.0 & CopyVersion::GUEST != 0
    }

    /// Its number in the home's sequence, without the guest mark.
    pub fn number(self) -> u64 {
        self.0 & !CopyVersion::GUEST
    }
}

/// Ordered by issue at the home.
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
