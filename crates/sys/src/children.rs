//! Forked children. They share the rank's files and messages, so nothing of the rank may run in them: the rank's root
//! pointers are all zeros there.

use std::ops::Deref;
use std::sync::atomic::AtomicPtr;

/// Data for which all zeros is a valid value.
///
/// # Safety
/// All zeros is a valid value.
pub unsafe trait Zeros {}

// SAFETY: the null pointer.
unsafe impl<T> Zeros for AtomicPtr<T> {}

/// Data that is all zeros in a child, so users need not ask which process they are in. It fills pages of its own.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
pub struct WipedInChildren<T>(T);

impl<T: Zeros> WipedInChildren<T> {
    /// Data kept in children, until [`WipedInChildren::wipe`] is called.
    pub const fn new(data: T) -> WipedInChildren<T> {
        WipedInChildren(data)
    }

    /// From now on the kernel wipes it in children. If it cannot, `clear` does so, except in children created without
    /// the C library.
    pub fn wipe(&'static self, clear: extern "C" fn()) {
        let (start, len_bytes) = (std::ptr::from_ref(self).cast_mut(), size_of::<Self>());
        // SAFETY: the range is this static, which has pages of its own, and zeros are a value of it.
        let refused = unsafe { libc::madvise(start.cast(), len_bytes, libc::MADV_WIPEONFORK) } != 0;
        if refused {
            // SAFETY: the function has the expected type. Without memory for the entry, children do without.
            unsafe { libc::pthread_atfork(None, None, Some(clear)) };
        }
    }
}

impl<T> Deref for WipedInChildren<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    static MARK: WipedInChildren<AtomicPtr<u8>> = WipedInChildren::new(AtomicPtr::new(std::ptr::null_mut()));

    extern "C" fn clear() {
        MARK.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    #[test]
    fn children_find_nothing() {
        MARK.store(std::ptr::dangling_mut(), Ordering::Relaxed);
        MARK.wipe(clear);
        // SAFETY: the child does nothing but the following.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let found = !MARK.load(Ordering::Relaxed).is_null();
            // SAFETY: the call takes a number, and does not return.
            unsafe { libc::_exit(i32::from(found)) };
        }
        let mut status = -1;
        // SAFETY: the child is this thread's, and the status has room.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        assert!(!MARK.load(Ordering::Relaxed).is_null());
    }
}
