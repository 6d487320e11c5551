//! Detects debuggers and checkers under which the library changes its behaviour.

use std::sync::atomic::{AtomicU64, Ordering};

/// The last answer of [`is_traced`]: the time in seconds and ticks of a coarse clock, and the answer in the lowest bit.
static LAST_LOOK: AtomicU64 = AtomicU64::new(u64::MAX);

/// Whether a debugger traces this process, as far as its first thread shows. The answer is at most a tick of the
/// kernel's coarse clock old, too short for a debugger to attach. Runs in signal handlers.
pub fn is_traced() -> bool {
    let now = coarse_now();
    let last = LAST_LOOK.load(Ordering::Relaxed);
    if last >> 1 == now {
        return last & 1 != 0;
    }
    let is_traced = look();
    LAST_LOOK.store(now << 1 | u64::from(is_traced), Ordering::Relaxed);
    is_traced
}

fn coarse_now() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the time. The clock is read without a system call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    ((now.tv_sec as u64) << 20 | (now.tv_nsec as u64) >> 10) & (u64::MAX >> 1)
}

/// Asks the kernel. The system calls are made directly: a client or a checker may interpose the C library's.
fn look() -> bool {
    const PATH: &std::ffi::CStr = c"/proc/self/status";
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let mut text = [0_u8; 512];
    // SAFETY: the path is a string, and the buffer has as many bytes as requested. The descriptor is this function's.
    let len_bytes = unsafe {
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, PATH.as_ptr(), flags);
        if file < 0 {
            return false;
        }
        let len_bytes = libc::syscall(libc::SYS_read, file, text.as_mut_ptr(), text.len());
        libc::syscall(libc::SYS_close, file);
        len_bytes
    };
    has_tracer(&text[..usize::try_from(len_bytes).unwrap_or(0)])
}

/// Whether the beginning of `/proc/PID/status` names a tracer.
fn has_tracer(status: &[u8]) -> bool {
    const KEY: &[u8] = b"\nTracerPid:\t";
    let at = status.windows(KEY.len()).position(|window| window == KEY);
    at.and_then(|at| status.get(at + KEY.len())).is_some_and(|digit| *digit != b'0')
}

/// Does nothing: a debugger stops here before a load or store that is not the library's ends the process. See
/// `include/vgasnet/debug.h`.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn vgasnet_debug_stop(signal: libc::c_int) {
    std::hint::black_box(signal);
}

/// Whether valgrind runs this process: it preloads libraries of its own.
pub fn is_under_valgrind() -> bool {
    std::env::var_os("LD_PRELOAD").is_some_and(|list| list.to_string_lossy().contains("/vgpreload_"))
}

// Functions of ThreadSanitizer and AddressSanitizer. A weak reference is null in programs built without them. Rust has
// no weak references of its own.
std::arch::global_asm!(
    ".weak __tsan_init",
    ".weak __asan_init",
    ".pushsection .data.rel.ro.vgasnet_sanitizers, \"aw\"",
    ".balign 8",
    ".hidden vgasnet_sanitizers_",
    ".globl vgasnet_sanitizers_",
    "vgasnet_sanitizers_:",
    ".quad __tsan_init, __asan_init",
    ".popsection",
);

unsafe extern "C" {
    static vgasnet_sanitizers_: [usize; 2];
}

/// Whether the program is built with ThreadSanitizer, which supports shadow memory for a small part of the address
/// space.
pub fn has_thread_sanitizer() -> bool {
    // SAFETY: the assembly above defines it.
    unsafe { vgasnet_sanitizers_[0] != 0 }
}

/// Whether the program is built with a sanitizer that checks the arguments of the C library's functions.
pub fn has_sanitizer() -> bool {
    // SAFETY: the assembly above defines it.
    unsafe { vgasnet_sanitizers_ != [0, 0] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracer_is_found_in_the_kernels_status() {
        let status = |tracer: &str| format!("Name:\trank\nPid:\t7\nPPid:\t1\nTracerPid:\t{tracer}\nUid:\t0\n");
        assert!(!has_tracer(status("0").as_bytes()) && has_tracer(status("4711").as_bytes()));
        assert!(!has_tracer(b"") && !has_tracer(b"Name:\trank\nTracerPid:\t"));
    }
}
