//! Messages as bytes.
//!
//! A message is its fields in order without gaps. A tag byte comes first if there are several kinds. `zerocopy` derives
//! the layouts of plain values; [`messages!`](crate::messages) combines them. All ranks of a job run the same build, so
//! numbers are in native byte order.

use zerocopy::{Immutable, IntoBytes, TryFromBytes};

/// The bytes are not a message: unknown tag, wrong length, or an invalid field value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A value in a message.
pub trait Layout: Sized {
    /// Maximum number of bytes of a value.
    const BYTES_MAX: usize;

    /// Appends the value: at most [`Layout::BYTES_MAX`] bytes.
    fn write(&self, to: &mut Encoded);

    /// Removes a value from the front; `None` if there is none, and `from` may have advanced.
    fn read(from: &mut &[u8]) -> Option<Self>;
}

/// Maximum number of bytes of an encoded message. [`encode`] does not compile for a longer layout.
pub const MESSAGE_BYTES_MAX: usize = 56;

/// A message as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; MESSAGE_BYTES_MAX],
    len_bytes: usize,
}

impl Encoded {
    /// Appends a value's memory representation. Its layout accounts for it, so there is room.
    pub fn push(&mut self, value: &(impl IntoBytes + Immutable)) {
        let bytes = value.as_bytes();
        debug_assert!(self.len_bytes + bytes.len() <= MESSAGE_BYTES_MAX, "a layout has room for its fields");
        self.bytes[self.len_bytes..][..bytes.len()].copy_from_slice(bytes);
        self.len_bytes += bytes.len();
    }
}

impl core::ops::Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len_bytes]
    }
}

/// Writes a whole message.
pub fn encode<T: Layout>(message: &T) -> Encoded {
    const { assert!(T::BYTES_MAX <= MESSAGE_BYTES_MAX, "MESSAGE_BYTES_MAX is too small for a message") }
    let mut encoded = Encoded { bytes: [0; MESSAGE_BYTES_MAX], len_bytes: 0 };
    message.write(&mut encoded);
    debug_assert!(encoded.len_bytes <= T::BYTES_MAX, "a layout has the bytes that it says");
    encoded
}

/// Reads a whole message.
///
/// # Errors
/// The bytes are not exactly one message of this type.
pub fn decode<T: Layout>(mut bytes: &[u8]) -> Result<T, Malformed> {
    T::read(&mut bytes).filter(|_| bytes.is_empty()).ok_or(Malformed)
}

/// Removes a value from the front of some bytes, in its memory representation; `None` if there is none.
pub fn take<T: TryFromBytes>(from: &mut &[u8]) -> Option<T> {
    let (value, tail) = T::try_read_from_prefix(from).ok()?;
    *from = tail;
    Some(value)
}

/// Gives types their memory layout. They must derive zerocopy's `TryFromBytes`, `IntoBytes` and `Immutable`.
#[macro_export]
macro_rules! layout_as_in_memory {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::wire::Layout for $type {
            const BYTES_MAX: usize = size_of::<$type>();

            fn write(&self, to: &mut $crate::wire::Encoded) {
                to.push(self);
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                $crate::wire::take(from)
            }
        }
    )*};
}

layout_as_in_memory!(bool, u8, u32, u64, u128, i32);

impl<T: Layout> Layout for Option<T> {
    const BYTES_MAX: usize = bool::BYTES_MAX + T::BYTES_MAX;

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

/// Declares a struct or an enum with a [`Layout`]. All of its fields must have one.
///
/// A struct is its fields in the order of declaration. An enum is the set of kinds of a message: each has a tag, and
/// named fields (`2 => Text { len: u32 }`), one field (`1 => Number(number: u64)`), or none (`0 => Nothing`).
#[macro_export]
macro_rules! messages {
    ($(#[$about:meta])* $visibility:vis struct $name:ident {$(
        $(#[$about_field:meta])*
        $field_visibility:vis $field:ident: $type:ty
    ),* $(,)?}) => {
        $(#[$about])*
        $visibility struct $name {$(
            $(#[$about_field])*
            $field_visibility $field: $type
        ),*}

        impl $crate::wire::Layout for $name {
            const BYTES_MAX: usize = 0 $(+ <$type as $crate::wire::Layout>::BYTES_MAX)*;

            fn write(&self, to: &mut $crate::wire::Encoded) {
                $($crate::wire::Layout::write(&self.$field, to);)*
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Some($name { $($field: $crate::wire::Layout::read(from)?),* })
            }
        }
    };
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
            const BYTES_MAX: usize = {
                let mut fields_bytes_max = 0;
                $({
                    let fields_bytes = 0 $($(+ <$type as $crate::wire::Layout>::BYTES_MAX)*)?
                        $(+ <$whole as $crate::wire::Layout>::BYTES_MAX)?;
                    if fields_bytes > fields_bytes_max {
                        fields_bytes_max = fields_bytes;
                    }
                })*
                size_of::<u8>() + fields_bytes_max
            };

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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    messages! {
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Point {
            x: i32,
            y: Option<i32>,
        }
    }

    messages! {
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Shape {
            3 => Nothing,
            4 => Circle { radius: u64, is_filled: bool },
            200 => Dot(point: Point),
        }
    }

    messages! {
        /// As long as a message may be.
        #[derive(Debug, PartialEq)]
        struct Longest {
            a: u64,
            b: u64,
            c: u64,
            d: u64,
            e: u64,
            f: u64,
            g: u64,
        }
    }

    const SHAPES: [Shape; 4] = [
        Shape::Nothing,
        Shape::Circle { radius: 1 << 40, is_filled: true },
        Shape::Dot(Point { x: -1, y: None }),
        Shape::Dot(Point { x: -1, y: Some(7) }),
    ];

    #[test]
    fn every_kind_survives_encoding_and_has_no_gaps() {
        assert_eq!(SHAPES.map(|shape| encode(&shape).len()), [1, 10, 6, 10]);
        assert_eq!(SHAPES.map(|shape| encode(&shape)[0]), [3, 4, 200, 200]);
        assert_eq!(SHAPES.map(|shape| decode(&encode(&shape))), SHAPES.map(Ok));
    }

    #[test]
    fn truncated_and_overlong_bytes_are_malformed() {
        for shape in SHAPES {
            let bytes = encode(&shape);
            assert!((0..bytes.len()).all(|end| decode::<Shape>(&bytes[..end]) == Err(Malformed)), "{shape:?}");
            let overlong: Vec<u8> = bytes.iter().copied().chain([0]).collect();
            assert_eq!(decode::<Shape>(&overlong), Err(Malformed), "{shape:?}");
        }
    }

    #[test]
    fn unknown_tags_and_values_are_malformed() {
        assert_eq!(decode::<Shape>(&[5]), Err(Malformed));
        let mut bytes = encode(&SHAPES[1]).to_vec();
        bytes[9] = 2;
        assert_eq!(decode::<Shape>(&bytes), Err(Malformed), "a bool is 0 or 1");
        let mut bytes = encode(&SHAPES[3]).to_vec();
        bytes[5] = 2;
        assert_eq!(decode::<Shape>(&bytes), Err(Malformed), "so is the mark of an option");
    }

    #[test]
    fn bounds_are_exact() {
        assert_eq!((Point::BYTES_MAX, Shape::BYTES_MAX, Longest::BYTES_MAX), (9, 10, MESSAGE_BYTES_MAX));
        let longest = Longest { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 };
        assert_eq!(decode(&encode(&longest)), Ok(longest));
    }
}
