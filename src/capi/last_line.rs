//! The line of each thread's last refused call. Bindings for other languages make an exception of it.

use super::boundary::entry_points;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char};

thread_local! {
    /// The string that `vgasnet_ErrorLine` returns, or has returned.
    static LINE: RefCell<CString> = RefCell::default();
    static IS_NEW: Cell<bool> = const { Cell::new(false) };
}

/// Keeps a line for this thread, unless the thread is ending.
pub(super) fn keep(line: String) {
    // A path in a line may be any text without a zero byte.
    let line = CString::new(line).unwrap_or_default();
    if LINE.try_with(|kept| kept.replace(line)).is_ok() {
        IS_NEW.set(true);
    }
}

/// The line, unless it was taken already.
fn take() -> *const c_char {
    if !IS_NEW.replace(false) {
        return c"".as_ptr();
    }
    LINE.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

entry_points! {
    fn vgasnet_ErrorLine() -> *const c_char {
        Ok(take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn taken() -> String {
        // SAFETY: the string is a constant, or kept until this thread keeps another one.
        unsafe { CStr::from_ptr(vgasnet_ErrorLine()) }.to_str().expect("a text").to_owned()
    }

    #[test]
    fn a_line_is_given_once_and_to_its_thread() {
        assert_eq!(taken(), "");
        keep("rank 1: first".into());
        keep("rank 1: second".into());
        std::thread::spawn(|| assert_eq!(taken(), "")).join().expect("the thread has none");
        assert_eq!(taken(), "rank 1: second");
        assert_eq!(taken(), "");
        keep("with a zero\0".into());
        assert_eq!(taken(), "");
    }
}
