//! Variables that the client and the library share, and the text by which a program tells what it was linked with.

use super::boundary::entry_points;
use crate::space::Segment;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// What is looked for in programs that are linked statically, around [`CONFIG`].
const MARK: &str = "$GASNetConfig: (libvgasnet) ";

/// `VGASNET_CONFIG_STRING`, with the mark before and after it.
static CONFIG: &CStr =
    c"$GASNetConfig: (libvgasnet) VGASNET=0.1.0,SPEC=1.8,THREADMODEL=PAR,SEGMENT=LARGE,ALIGNED_SEGMENTS=0,PTR=64bit $";

// `gasnet_max_segsize` is the client's to define. The weak reference is null if it does not; Rust has none of its own.
std::arch::global_asm!(
    ".weak gasnet_max_segsize",
    ".pushsection .data.rel.ro.vgasnet_client_limit, \"aw\"",
    ".balign 8",
    ".hidden vgasnet_client_limit_",
    ".globl vgasnet_client_limit_",
    "vgasnet_client_limit_:",
    ".quad gasnet_max_segsize",
    ".popsection",
);

unsafe extern "C" {
    static vgasnet_client_limit_: *const u64;
}

/// `vgasnet_client_attach_hook`: a function of the client, or null. A plain variable for C.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static vgasnet_client_attach_hook: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The largest segment that the client wants to be offered, in bytes, if it says so.
pub(super) fn segment_limit_bytes() -> Option<u64> {
    // SAFETY: the assembly above defines the pointer; it is null or the address of the client's variable.
    let limit_bytes = unsafe { vgasnet_client_limit_.as_ref().copied() };
    // Below the gasnet conduit, GASNet has a variable of that name, which is 0 unless the client sets it.
    limit_bytes.filter(|limit_bytes| *limit_bytes > 0)
}

/// Tells the client where its segment is, if it wants to know.
pub(super) fn call_attach_hook(segment: Segment) {
    let hook = vgasnet_client_attach_hook.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: the client sets the variable to a function of this type.
        let hook: unsafe extern "C" fn(*mut c_void, usize) = unsafe { std::mem::transmute(hook) };
        // SAFETY: the client's function takes what the header says.
        unsafe { hook(std::ptr::without_provenance_mut(segment.base), segment.size_bytes) };
    }
}

/// The configuration between its marks.
fn config() -> &'static [u8] {
    let text = CONFIG.to_bytes();
    &text[MARK.len()..text.len() - " $".len()]
}

entry_points! {
    fn vgasnet_config_string() -> *const c_char {
        static PLAIN: std::sync::OnceLock<std::ffi::CString> = std::sync::OnceLock::new();
        let plain = PLAIN.get_or_init(|| std::ffi::CString::new(config()).expect("a part of a C string"));
        Ok(plain.as_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_this_version() {
        let config = String::from_utf8(config().to_vec()).expect("text");
        assert!(config.starts_with(&format!("VGASNET={},", env!("CARGO_PKG_VERSION"))), "{config}");
    }

    #[test]
    fn a_client_that_says_nothing_has_no_limit() {
        assert_eq!(segment_limit_bytes(), None);
    }
}
