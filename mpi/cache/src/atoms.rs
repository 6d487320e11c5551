//! The units of atomic gets.

/// Element size of the atomic operations by which an entry was read. Such entries are kept apart, since bytes read by
/// other gets may be torn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Atom(u32);

impl Atom {
    /// Not read by an atomic operation.
    pub const NONE: Atom = Atom(0);

    /// Atomic elements of this size.
    pub fn of_bytes(bytes: u32) -> Option<Atom> {
        matches!(bytes, 1 | 2 | 4 | 8).then(|| Atom(bytes.trailing_zeros() + 1))
    }

    pub fn bytes(self) -> Option<u32> {
        (self != Atom::NONE).then(|| 1 << (self.0 - 1))
    }

    /// Its number, from 0 to 4.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }
}
