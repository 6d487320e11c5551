//! The atomics that a model checker can take over, and slices of them.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p vgasnet-getcache --lib --release model` runs those tests.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What may be all zeros.
///
/// # Safety
///
/// A value all of whose bytes are zero is valid, and is the default.
pub(crate) unsafe trait Zeroed: Default {}

// SAFETY: atomic integers are as the integers are.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for AtomicU64 {}
// SAFETY: as above.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for AtomicU32 {}

/// So many zeros, which take memory as they are used.
#[cfg(not(all(loom, test)))]
pub(crate) fn zeroed<T: Zeroed>(count: usize) -> Box<[T]> {
    if count == 0 || std::mem::size_of::<T>() == 0 {
        return Box::default();
    }
    let layout = std::alloc::Layout::array::<T>(count).expect("tables are smaller than memory");
    // SAFETY: the layout has bytes.
    let zeros = unsafe { std::alloc::alloc_zeroed(layout) };
    if zeros.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    // SAFETY: the memory is as that of a box of so many, and `Zeroed` says that zeros are valid.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(zeros.cast(), count)) }
}

/// So many zeros.
#[cfg(all(loom, test))]
pub(crate) fn zeroed<T: Default>(count: usize) -> Box<[T]> {
    (0..count).map(|_| T::default()).collect()
}
