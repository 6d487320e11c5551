//! Variables shared by client and library, and the configuration text of the library linked to a program.

use super::boundary::entry_points;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use vgasnet_memory::Segment;

/// Surrounds [`CONFIG`], so that tools find it in statically linked programs.
const MARK: &str = "$GASNetConfig: (libvgasnet) ";

/// `VGASNET_CONFIG_STRING`, with the mark before and after it.
static CONFIG: &CStr =
    c"$GASNetConfig: (libvgasnet) VGASNET=0.1.0,SPEC=1.8,SEGMENT=LARGE,ALIGNED_SEGMENTS=0,PTR=64bit $";

// The client may define `vgasnet_max_segsize` or, if it does not include `gasnet.h`, `gasnet_max_segsize`. A weak
// reference to a variable it does not define is null. Rust has no weak references of its own.
std::arch::global_asm!(
    ".weak vgasnet_max_segsize",
    ".weak gasnet_max_segsize",
    ".pushsection .data.rel.ro.vgasnet_client_limit, \"aw\"",
    ".balign 8",
    ".hidden vgasnet_client_limits_",
    ".globl vgasnet_client_limits_",
    "vgasnet_client_limits_:",
    ".quad vgasnet_max_segsize",
    ".quad gasnet_max_segsize",
    ".popsection",
);

unsafe extern "C" {
    static vgasnet_client_limits_: [*const u64; 2];
}

/// `vgasnet_client_attach_hook`: the client's function, or null. For C it is a plain variable.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static vgasnet_client_attach_hook: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The client's limit on segments in bytes, if it defines one.
pub(super) fn segment_limit_bytes() -> Option<u64> {
    // SAFETY: the assembly above defines the pointers; each is null, or the address of a variable of this type.
    let mut limits =
        unsafe { vgasnet_client_limits_ }.into_iter().filter_map(|limit| unsafe { limit.as_ref().copied() });
    // Over the gasnet conduit, GASNet itself defines the second variable as 0.
    limits.find(|limit_bytes| *limit_bytes > 0)
}

/// Tells the client the place of its segment, if it has set the hook.
pub(super) fn call_attach_hook(segment: Segment) {
    let hook = vgasnet_client_attach_hook.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: the client sets the variable to a function of this type, says the header.
        let hook: unsafe extern "C" fn(*mut c_void, usize) = unsafe { std::mem::transmute(hook) };
        // SAFETY: the function takes the segment's address and size, as the header documents.
        unsafe { hook(std::ptr::without_provenance_mut(segment.base), segment.size_bytes) };
    }
}

/// The configuration without its marks.
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
