//! Tables of atomics: initially zeros, resident as they are used, in huge pages if large.

#[cfg(not(all(loom, test)))]
pub(crate) use real::{Table, Zeroed};

#[cfg(not(all(loom, test)))]
mod real {
    use crate::memory::Pages;
    use std::fmt;
    use std::marker::PhantomData;
    use std::ops::Deref;

    /// A type valid as all zeros.
    ///
    /// # Safety
    ///
    /// An all-zero value is valid, has nothing to drop, and needs no alignment beyond a cache line's.
    pub(crate) unsafe trait Zeroed {}

    // SAFETY: atomic integers have the representation of integers.
    unsafe impl Zeroed for std::sync::atomic::AtomicU64 {}
    // SAFETY: atomic integers have the representation of integers.
    unsafe impl Zeroed for std::sync::atomic::AtomicU32 {}

    /// A fixed number of values.
    pub(crate) struct Table<T> {
        pages: Pages,
        count: usize,
        values: PhantomData<T>,
    }

    // SAFETY: it owns its values, as a box does.
    unsafe impl<T: Send> Send for Table<T> {}
    // SAFETY: it lends its values as a box does.
    unsafe impl<T: Sync> Sync for Table<T> {}

    impl<T: Zeroed> Table<T> {
        /// `count` zeros, if there is memory for them.
        pub fn new(count: usize) -> Option<Table<T>> {
            let bytes = count.checked_mul(size_of::<T>())?;
            Some(Table { pages: Pages::new(bytes.max(1))?, count, values: PhantomData })
        }
    }

    impl<T: Zeroed> Deref for Table<T> {
        type Target = [T];

        #[inline]
        fn deref(&self) -> &[T] {
            // SAFETY: the pages have room for `count` values, initially zeros, and are aligned to cache lines.
            unsafe { std::slice::from_raw_parts(self.pages.start().as_ptr().cast(), self.count) }
        }
    }

    impl<T> fmt::Debug for Table<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "Table of {}", self.count)
        }
    }
}

/// A fixed number of values.
#[cfg(all(loom, test))]
#[derive(Debug)]
pub(crate) struct Table<T>(Box<[T]>);

#[cfg(all(loom, test))]
impl<T: Default> Table<T> {
    /// `count` zeros.
    pub fn new(count: usize) -> Option<Table<T>> {
        Some(Table((0..count).map(|_| T::default()).collect()))
    }
}

#[cfg(all(loom, test))]
impl<T> std::ops::Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
