//! A memory barrier in all threads of the process, so that readers need none of their own.

use std::sync::OnceLock;

/// Commands of `membarrier`, from `linux/membarrier.h`.
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Whether [`everywhere`] is supported.
pub(crate) fn is_there() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| cfg!(not(miri)) && call(REGISTER_PRIVATE_EXPEDITED))
}

/// Executes a full barrier in every other thread of the process before it returns.
pub(crate) fn everywhere() {
    // A forked process may have to register anew.
    let is_done = call(PRIVATE_EXPEDITED) || (call(REGISTER_PRIVATE_EXPEDITED) && call(PRIVATE_EXPEDITED));
    assert!(is_done, "the kernel has had this call before");
}

#[cfg(not(target_os = "linux"))]
fn call(_command: libc::c_int) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn call(command: libc::c_int) -> bool {
    // SAFETY: the call accesses no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
