//! The arguments of calls in progress.

use crate::handles::{Handle, HandleKind};
use crate::kind::{File, Flag, Kind, New, Offset, Request, RequestAt, Requests, Status, Text};
use crate::languages::{Language, RequestRoom};
use crate::passing::Serving;
use std::ffi::c_int;
use std::marker::PhantomData;

/// An argument of a call in progress, not read yet: `L` is the language of MPI's caller, `K` the kind of the parameter.
///
/// It carries the promise made to [`Argument::new`], so it may be read as its kind during the call.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Argument<'call, L, K> {
    word: usize,
    of: PhantomData<(&'call Serving, L, K)>,
}

impl<'call, L, K> Argument<'call, L, K> {
    /// The argument of a call being served.
    ///
    /// # Safety
    ///
    /// MPI's caller has passed the word, in the language `L`, to a function with a parameter of the kind `K` there.
    /// Until the function returns, an address has the memory that MPI's standard demands of the caller: a readable
    /// value of the kind, or room for the result.
    #[inline(always)]
    pub const unsafe fn new(_call: &'call Serving, word: usize) -> Argument<'call, L, K> {
        Argument { word, of: PhantomData }
    }
}

impl<L: Language, K: Kind> Argument<'_, L, K> {
    /// The value.
    #[inline(always)]
    pub fn read(self) -> K::Value {
        // SAFETY: MPI's caller has passed a word of this kind to a call in progress, by the promise to `new`.
        unsafe { K::read::<L>(self.word) }
    }
}

impl<L: Language, K: HandleKind> Argument<'_, L, New<K>> {
    /// The handle stored by MPI.
    ///
    /// # Safety
    ///
    /// MPI's function has returned success for this call, or a handle was stored by [`Argument::store`].
    #[inline]
    pub unsafe fn stored(self) -> Handle<K> {
        // SAFETY: MPI has stored a handle at the caller's address, as the caller of this function promises.
        unsafe { L::handle_at(self.word) }
    }
}

impl<L: Language> Argument<'_, L, New<File>> {
    /// Stores a file's handle for MPI's caller.
    pub fn store(self, file: Handle<File>) {
        // SAFETY: MPI's caller has room for a file's handle at the address, by the promise to `new`.
        unsafe { L::set_file(self.word, file) }
    }
}

impl<L: Language> Argument<'_, L, New<Request>> {
    /// Calls a function that stores a request in C's form, and stores the request for MPI's caller. If the function
    /// calls MPI instead, MPI stores it.
    #[inline]
    pub fn store_made(self, make: impl FnOnce(RequestRoom<'_>) -> c_int) -> c_int {
        // SAFETY: MPI's caller has room for a request at the address, by the promise to `new`.
        unsafe { L::set_request(self.word, make) }
    }
}

impl<L> Argument<'_, L, Flag> {
    /// Whether MPI has set it.
    ///
    /// # Safety
    ///
    /// MPI's function has returned success for this call.
    #[inline]
    pub unsafe fn is_set(self) -> bool {
        // SAFETY: MPI has stored an integer at the caller's address, as the caller of this function promises.
        unsafe { *(self.word as *const c_int) != 0 }
    }

    /// Stores it for MPI's caller.
    pub fn store(self, flag: c_int) {
        // SAFETY: MPI's caller has room for an integer at the address, by the promise to `new`.
        unsafe { *(self.word as *mut c_int) = flag };
    }
}

impl<L> Argument<'_, L, Offset> {
    /// Stores it for MPI's caller.
    pub fn store(self, offset: u64) {
        // SAFETY: MPI's caller has room for an offset of 8 bytes at the address, by the promise to `new`.
        unsafe { *(self.word as *mut u64) = offset };
    }
}

impl<L> Argument<'_, L, Status> {
    /// The address.
    #[inline]
    pub fn address(self) -> usize {
        self.word
    }
}

impl<'call, L: Language> Argument<'call, L, Text> {
    /// The text.
    ///
    /// # Safety
    ///
    /// `len` is the length passed for this text, if MPI's caller is written in Fortran.
    pub unsafe fn text(self, len: usize) -> &'call [u8] {
        // SAFETY: MPI's caller keeps the text during the call, by the promise to `new`. The caller of this function
        // promises the length.
        unsafe { L::text(self.word, len) }
    }
}

impl<'call, L: Language> Argument<'call, L, Requests> {
    /// The array.
    ///
    /// # Safety
    ///
    /// `count` is the number passed with the array: MPI's caller has as many requests there.
    #[inline]
    pub unsafe fn of(self, count: c_int) -> RequestArray<'call, L> {
        let count = usize::try_from(count).unwrap_or(0);
        RequestArray { first: self.word, count, of: PhantomData }
    }
}

impl<'call, L: Language> Argument<'call, L, RequestAt> {
    /// An array of this request.
    #[inline]
    pub fn alone(self) -> RequestArray<'call, L> {
        RequestArray { first: self.word, count: 1, of: PhantomData }
    }
}

/// The requests of a call in progress. Each is a handle before and after MPI's function.
#[derive(Clone, Copy, Debug)]
pub struct RequestArray<'call, L> {
    first: usize,
    count: usize,
    of: PhantomData<(&'call Serving, L)>,
}

impl<L: Language> RequestArray<'_, L> {
    /// Number of requests.
    #[inline]
    pub fn count(self) -> usize {
        self.count
    }

    /// The handle of a request, as it is now.
    #[inline]
    pub fn handle(self, index: usize) -> Handle<Request> {
        assert!(index < self.count, "a request of the array");
        // SAFETY: MPI's caller has `count` requests in the array until the call ends, by the promise to `of`, or to
        // `new` for a single one.
        unsafe { L::handle_at(self.first + index * L::REQUEST_BYTES) }
    }
}
