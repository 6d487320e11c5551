//! Leak checkers of the client's build. They do not scan the library's heap, so memory of the C library reachable only
//! from there, such as a thread's start, would be reported as lost.

use std::ffi::c_void;

// Functions of LeakSanitizer. A weak reference is null in programs built without it. Rust has no weak references of its
// own.
std::arch::global_asm!(
    ".weak __lsan_disable",
    ".weak __lsan_enable",
    ".pushsection .data.rel.ro.vgasnet_leak_check, \"aw\"",
    ".balign 8",
    ".hidden vgasnet_leak_check_",
    ".globl vgasnet_leak_check_",
    "vgasnet_leak_check_:",
    ".quad __lsan_disable",
    ".quad __lsan_enable",
    ".popsection",
);

unsafe extern "C" {
    static vgasnet_leak_check_: [*const c_void; 2];
}

/// Runs `body`. Its allocations in this thread are not reported as lost.
pub fn uncounted<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the assembly above defines the pointers.
    let [disable, enable] = unsafe { vgasnet_leak_check_ };
    call(disable);
    let answer = body();
    call(enable);
    answer
}

fn call(function: *const c_void) {
    if !function.is_null() {
        // SAFETY: it is one of LeakSanitizer's two functions, which have this type and no conditions.
        unsafe { std::mem::transmute::<*const c_void, extern "C" fn()>(function)() };
    }
}
