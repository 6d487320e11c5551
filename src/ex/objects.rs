//! The common part of the client's objects: a mark identifying the kind of a handle's object, and the client's data.
//!
//! A handle is the address of its object. Reading the mark is safe at the address of any object, existing or destroyed.
//! With checks on, the addresses of all objects are known, and other addresses are refused without a read.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use vgasnet_settings::UserError;
use vgasnet_sys::Signalproof;

/// Whether [`find`] looks handles up in [`KNOWN`].
static ARE_CHECKED: AtomicBool = AtomicBool::new(false);

/// The addresses of all objects given out since [`check_handles`].
static KNOWN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// The beginning of every object.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// The object's kind while it exists, then 0.
    mark: AtomicU64,
    /// The client's data, null at first.
    cdata: AtomicPtr<c_void>,
}

/// A kind of object. Its memory is never freed, so that handles of destroyed objects are recognised.
///
/// # Safety
/// The object begins with its header.
pub unsafe trait Object: Sized {
    /// Identifies the kind.
    const MARK: u64;
    /// The client's name for it, such as "team".
    const WHAT: &'static str;

    /// The object's header.
    fn header(&self) -> &Header;

    /// The client's data.
    fn cdata(&self) -> *mut c_void {
        self.header().cdata.load(Ordering::Acquire)
    }

    /// Sets the client's data.
    fn set_cdata(&self, cdata: *mut c_void) {
        self.header().cdata.store(cdata, Ordering::Release);
    }

    /// Marks the object as destroyed: [`find`] refuses its handle from now on.
    fn retire(&self) {
        self.header().mark.store(0, Ordering::Release);
    }
}

impl Header {
    /// The header of a new object of a kind.
    pub fn of<T: Object>() -> Header {
        Header { mark: AtomicU64::new(T::MARK), cdata: AtomicPtr::new(std::ptr::null_mut()) }
    }
}

/// Checks all handles from now on. No object was given out before.
pub(super) fn check_handles() {
    ARE_CHECKED.store(true, Ordering::Release);
}

/// Registers an object for the client to get its handle.
pub fn give_out<T: Object>(object: &'static T) -> &'static T {
    if ARE_CHECKED.load(Ordering::Acquire) {
        Signalproof::lock(&KNOWN).insert((&raw const *object).addr());
    }
    object
}

/// Whether an object may be, or may have been, at an address.
#[inline(always)]
fn is_known(address: usize) -> bool {
    !ARE_CHECKED.load(Ordering::Relaxed) || is_given_out(address)
}

#[cold]
fn is_given_out(address: usize) -> bool {
    Signalproof::lock(&KNOWN).contains(&address)
}

/// The object named by a handle.
///
/// # Errors
/// The handle is null, or its object is of another kind or destroyed.
///
/// # Safety
/// The handle is null, or has been an object's, or handles are checked.
#[inline]
pub unsafe fn find<'a, T: Object>(handle: *const T) -> Result<&'a T, UserError> {
    // SAFETY: the handle is null, or has been an object's, or handles are checked.
    unsafe { find_if_any(handle) }.ok_or_else(|| none(handle))
}

/// Like [`find`], with `None` for a refusal.
///
/// # Safety
/// As for [`find`].
#[inline(always)]
pub(super) unsafe fn find_if_any<'a, T: Object>(handle: *const T) -> Option<&'a T> {
    if !is_possible(handle) || !is_known(handle.addr()) {
        return None;
    }
    // SAFETY: the handle is, or was, an object's: the caller says so, or `is_known` has found it.
    unsafe { marked(handle) }
}

/// Whether a handle may be an object's by its value.
#[inline(always)]
fn is_possible<T>(handle: *const T) -> bool {
    !handle.is_null() && handle.addr() % align_of::<Header>() == 0
}

/// The object of a handle, if it is of this kind.
///
/// # Safety
/// The handle is, or was, an object's.
#[inline(always)]
unsafe fn marked<'a, T: Object>(handle: *const T) -> Option<&'a T> {
    // SAFETY: the object's memory is never freed and begins with a header, whatever its kind. The mark tells whether it
    // is of this kind.
    unsafe { ((*handle.cast::<Header>()).mark.load(Ordering::Acquire) == T::MARK).then(|| &*handle) }
}

/// Like [`find_if_any`], with `None` also if handles are checked: that takes a call, and so registers.
///
/// # Safety
/// As for [`find`].
#[inline(always)]
pub(super) unsafe fn find_quickly<'a, T: Object>(handle: *const T) -> Option<&'a T> {
    if !is_possible(handle) || ARE_CHECKED.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: handles are not checked, so the caller says that it is, or was, an object's.
    unsafe { marked(handle) }
}

#[cold]
fn none<T>(handle: *const T) -> UserError
where
    T: Object,
{
    let what = T::WHAT;
    UserError::new(if handle.is_null() {
        format!("the {what} is the invalid handle; give one that the library has returned")
    } else {
        format!(
            "{handle:?} is no {what}: it was destroyed, or is something else; give one that the library has returned"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Debug)]
    struct One(Header);
    #[repr(C)]
    #[derive(Debug)]
    struct Other(Header);

    // SAFETY: it is only its header.
    unsafe impl Object for One {
        const MARK: u64 = 1;
        const WHAT: &'static str = "one";
        fn header(&self) -> &Header {
            &self.0
        }
    }
    // SAFETY: it begins with its header.
    unsafe impl Object for Other {
        const MARK: u64 = 2;
        const WHAT: &'static str = "other";
        fn header(&self) -> &Header {
            &self.0
        }
    }

    #[test]
    fn a_handle_names_an_object_of_its_kind_while_that_exists() {
        let one = One(Header::of::<One>());
        let handle = &raw const one;
        // SAFETY: each handle is null or an object's.
        unsafe {
            assert!(find(handle).is_ok_and(|found| std::ptr::eq(found, handle)));
            assert!(find(handle.cast::<Other>()).is_err() && find::<One>(std::ptr::null()).is_err());
            assert!(find(handle.wrapping_byte_add(1)).is_err());
            one.retire();
            assert!(find(handle).expect_err("it is gone").to_string().contains("is no one"));
        }
    }

    #[test]
    fn cdata_is_null_at_first() {
        let one = One(Header::of::<One>());
        assert!(one.cdata().is_null());
        let data = std::ptr::without_provenance_mut(7);
        one.set_cdata(data);
        assert_eq!(one.cdata(), data);
    }
}
