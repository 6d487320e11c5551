//! Messages as bytes.
//!
//! A message is a tag byte and its fields, one behind the other without gaps. The layouts of the fields are derived by
//! `zerocopy`; [`messages!`](crate::messages) adds the tags. Numbers are in the byte order of the machine: all ranks of a job
//! run the same build.

use zerocopy::{Immutable, IntoBytes, TryFromBytes};

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A value with a layout of its own.
pub trait Layout: Sized {
    /// Appends the value.
    fn write(&self, to: &mut Encoded);

    /// Takes the value off the front; `None` if the bytes there are no such value.
    fn read(from: &mut &[u8]) -> Option<Self>;
}

/// Bytes of the longest message.
pub const MESSAGE_BYTES_MAX: usize = 48;

/// A message as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; MESSAGE_BYTES_MAX],
    len_bytes: usize,
}

impl Encoded {
    /// No bytes yet.
    pub fn new() -> Encoded {
        Encoded { bytes: [0; MESSAGE_BYTES_MAX], len_bytes: 0 }
    }

    /// Appends a value as it lies in memory.
    pub fn push(&mut self, value: &(impl IntoBytes + Immutable)) {
        let bytes = value.as_bytes();
        self.bytes[self.len_bytes..][..bytes.len()].copy_from_slice(bytes);
        self.len_bytes += bytes.len();
    }
}

impl Default for Encoded {
    fn default() -> Encoded {
        Encoded::new()
    }
}

impl core::ops::Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len_bytes]
    }
}

/// Takes a value off the front of some bytes, as it lies in memory.
pub fn take<T: TryFromBytes>(from: &mut &[u8]) -> Option<T> {
    let (value, rest) = T::try_read_from_prefix(from).ok()?;
    *from = rest;
    Some(value)
}

/// Reads a whole message; what is left over makes it malformed.
pub fn decode<T: Layout>(mut bytes: &[u8]) -> Result<T, Malformed> {
    let message = T::read(&mut bytes).ok_or(Malformed)?;
    if bytes.is_empty() { Ok(message) } else { Err(Malformed) }
}

/// Writes a whole message.
pub fn encode(message: &impl Layout) -> Encoded {
    let mut bytes = Encoded::new();
    message.write(&mut bytes);
    bytes
}

impl<T: Layout> Layout for Option<T> {
    fn write(&self, to: &mut Encoded) {
        to.push(&self.is_some());
        if let Some(value) = self {
            value.write(to);
        }
    }

    fn read(from: &mut &[u8]) -> Option<Option<T>> {
        if take::<bool>(from)? { T::read(from).map(Some) } else { Some(None) }
    }
}

/// Gives types the layout that they have in memory, which `zerocopy` has derived.
#[macro_export]
macro_rules! layout_as_in_memory {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::wire::Layout for $type {
            fn write(&self, to: &mut $crate::wire::Encoded) {
                to.push(self);
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                $crate::wire::take(from)
            }
        }
    )*};
}

layout_as_in_memory!(bool, u8, u32, u64, i32);

/// Gives a struct the layouts of its fields, one behind the other.
#[macro_export]
macro_rules! layout_of_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Layout for $type {
            fn write(&self, to: &mut $crate::wire::Encoded) {
                $($crate::wire::Layout::write(&self.$field, to);)*
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                $(let $field = $crate::wire::Layout::read(from)?;)*
                Some($type { $($field),* })
            }
        }
    };
}

/// Declares the messages of a set: an enum whose variants have a tag and named fields, each of which has a
/// [`Layout`](crate::wire::Layout).
#[macro_export]
macro_rules! messages {
    ($(#[$about:meta])* $visibility:vis enum $set:ident {$(
        $(#[$about_kind:meta])*
        $tag:literal => $kind:ident $({$(
            $(#[$about_field:meta])*
            $field:ident: $type:ty
        ),* $(,)?})? $(($inner:ident: $whole:ty))?
    ),* $(,)?}) => {
        $(#[$about])*
        $visibility enum $set {$(
            $(#[$about_kind])*
            $kind $({$(
                $(#[$about_field])*
                $field: $type
            ),*})? $(($whole))?
        ),*}

        impl $crate::wire::Layout for $set {
            fn write(&self, to: &mut $crate::wire::Encoded) {
                match self {$(
                    $set::$kind $({ $($field),* })? $(($inner))? => {
                        to.push(&($tag as u8));
                        $($($crate::wire::Layout::write($field, to);)*)?
                        $($crate::wire::Layout::write($inner, to);)?
                    }
                )*}
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Some(match $crate::wire::take::<u8>(from)? {
                    $($tag => $set::$kind $({ $($field: $crate::wire::Layout::read(from)?),* })?
                        $((<$whole as $crate::wire::Layout>::read(from)?))?,)*
                    _ => return None,
                })
            }
        }
    };
}
