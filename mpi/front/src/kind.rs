//! The kinds of MPI's parameters. `calls!` declares the kind of each argument a body reads; other arguments are words.
//!
//! | kinds | in C | in Fortran |
//! | --- | --- | --- |
//! | [`Int`], [`Long`], [`Count`] | the value | the address of the value |
//! | [`Win`], [`Comm`] and other handles | the handle | the address of its integer |
//! | [`WinAt`], [`RequestAt`] and others with `At` | the address of a handle | the address of its integer |
//! | [`NewWin`], [`NewRequest`] and others with `New` | the address to which MPI stores a handle | the same for its integer |
//! | [`Flag`], [`Offset`] | the address to which MPI stores a number | the same |
//! | [`Status`] | the address to which MPI stores a status, or a constant for none | the same |
//! | [`Requests`] | the address of the first handle | the address of the first integer |
//! | [`Text`] | the address of a text that ends with a zero | the address of a text with blanks at its end |

use crate::handles::{Handle, HandleKind};
use crate::languages::Language;
use std::ffi::c_int;
use std::marker::PhantomData;

pub use crate::handles::{Comm, Datatype, File, Group, Info, Op, Request, Win};

/// A kind with a value that may be read during the whole call.
pub trait Kind {
    /// The value.
    type Value;

    /// Reads the argument.
    ///
    /// # Safety
    ///
    /// MPI's caller has passed the word for a parameter of this kind, and MPI's function has not returned to it.
    unsafe fn read<L: Language>(word: usize) -> Self::Value;
}

/// Declares kinds of numbers.
macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident $value:ty = $read:ident;)+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Kind for $name {
            type Value = $value;

            #[inline(always)]
            unsafe fn read<L: Language>(word: usize) -> $value {
                // SAFETY: MPI's caller has passed the word for such a number, as the caller of this function promises.
                unsafe { L::$read(word) }
            }
        }
    )+};
}

numbers! {
    /// An `int`.
    Int c_int = int;
    /// A displacement, an offset or a size of a file.
    Long i64 = long;
    /// A number of elements, or a window's displacement unit.
    Count i64 = count;
}

impl<K: HandleKind> Kind for K {
    type Value = Handle<K>;

    #[inline(always)]
    unsafe fn read<L: Language>(word: usize) -> Handle<K> {
        // SAFETY: MPI's caller has passed the word for such a handle, as the caller of this function promises.
        unsafe { L::handle(word) }
    }
}

/// The address of a handle the caller has stored before. MPI may replace it.
#[derive(Clone, Copy, Debug)]
pub struct At<K>(PhantomData<K>);

impl<K: HandleKind> Kind for At<K> {
    type Value = Handle<K>;

    #[inline(always)]
    unsafe fn read<L: Language>(word: usize) -> Handle<K> {
        // SAFETY: MPI's caller has stored such a handle at the address, as the caller of this function promises.
        unsafe { L::handle_at(word) }
    }
}

/// The address to which MPI stores a handle.
#[derive(Clone, Copy, Debug)]
pub struct New<K>(PhantomData<K>);

/// See [`At`].
pub type WinAt = At<Win>;
/// See [`At`].
pub type FileAt = At<File>;
/// See [`At`].
pub type RequestAt = At<Request>;
/// See [`New`].
pub type NewWin = New<Win>;
/// See [`New`].
pub type NewFile = New<File>;
/// See [`New`].
pub type NewInfo = New<Info>;
/// See [`New`].
pub type NewRequest = New<Request>;

/// Declares kinds without a value before MPI's call.
macro_rules! places {
    ($($(#[$about:meta])* $name:ident;)+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
    )+};
}

places! {
    /// The address of an `int`, or of Fortran's logical, to which MPI stores a truth value.
    Flag;
    /// The address to which MPI stores an offset or a size of a file.
    Offset;
    /// The address to which MPI stores a status, or MPI's constant for none.
    Status;
    /// The address of an array of requests. Another argument is their number.
    Requests;
    /// A text. Fortran passes its length in another argument.
    Text;
}
