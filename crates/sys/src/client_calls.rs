//! Calls of the client's functions that no exception leaves.
//!
//! The calling frame tells the unwinder to go no further. If the client throws and does not catch, its language's
//! runtime finds no handler while the stack is still whole: C++ calls `std::terminate`, which reports the exception.
//!
//! Source: Itanium C++ ABI, Exception Handling, 1.6 (the personality routine).

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Reports an uncaught exception to the user.
static TELL: OnceLock<fn()> = OnceLock::new();

/// The unwinder searches for a handler.
const SEARCH_PHASE: c_int = 1;
/// A thread is cancelled, or ends itself: nothing is caught.
const FORCED: c_int = 8;

/// `_URC_FATAL_PHASE1_ERROR`
const STOP: c_int = 3;
/// `_URC_CONTINUE_UNWIND`
const GO_ON: c_int = 8;

/// Sets the function called for an uncaught exception of a client's function, before its language's runtime ends the
/// process.
pub fn tell_of_exceptions(tell: fn()) {
    _ = TELL.set(tell);
}

extern "C" fn personality(_version: c_int, phase: c_int, _class: u64, _thrown: *mut c_void, _at: *mut c_void) -> c_int {
    if phase & FORCED != 0 || phase & SEARCH_PHASE == 0 {
        return GO_ON;
    }
    if let Some(tell) = TELL.get() {
        tell();
    }
    STOP
}

// Calls its first argument with the second, in a frame of its own.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.vgasnet_call_client,\"ax\",@progbits",
    ".hidden vgasnet_call_client",
    ".globl vgasnet_call_client",
    ".type vgasnet_call_client,@function",
    "vgasnet_call_client:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, {personality}",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "pop rbp",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbp",
    "ret",
    ".cfi_endproc",
    ".size vgasnet_call_client, . - vgasnet_call_client",
    ".popsection",
    personality = sym personality,
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text.vgasnet_call_client,\"ax\",@progbits",
    ".balign 4",
    ".hidden vgasnet_call_client",
    ".globl vgasnet_call_client",
    ".type vgasnet_call_client,@function",
    "vgasnet_call_client:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, {personality}",
    "hint #34", // bti c
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset x29, -16",
    ".cfi_offset x30, -8",
    "mov x29, sp",
    "mov x16, x0",
    "mov x0, x1",
    "blr x16",
    "ldp x29, x30, [sp], #16",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "ret",
    ".cfi_endproc",
    ".size vgasnet_call_client, . - vgasnet_call_client",
    ".popsection",
    personality = sym personality,
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C-unwind" {
    fn vgasnet_call_client(function: unsafe extern "C-unwind" fn(*mut c_void), data: *mut c_void);
}

/// Elsewhere exceptions end the process without their own report.
///
/// # Safety
/// As for the function.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn vgasnet_call_client(function: unsafe extern "C-unwind" fn(*mut c_void), data: *mut c_void) {
    // SAFETY: `data` is an argument that the function takes.
    unsafe { function(data) };
}

/// Runs `call`, which calls a function of the client's.
pub fn call_client<F: FnOnce()>(call: F) {
    /// # Safety
    /// `data` is an `Option<F>` not used by anybody else.
    unsafe extern "C-unwind" fn run<F: FnOnce()>(data: *mut c_void) {
        // SAFETY: `data` is an `Option<F>` that nobody else uses.
        let call = unsafe { (*data.cast::<Option<F>>()).take() };
        call.expect("it is called once")();
    }
    let mut call = Some(call);
    // SAFETY: `call` is on this stack, and not used by anybody else until this returns.
    unsafe { vgasnet_call_client(run::<F>, (&raw mut call).cast()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_made_once_and_may_be_nested() {
        let mut order = Vec::new();
        call_client(|| {
            order.push(1);
            call_client(|| order.push(2));
            order.push(3);
        });
        assert_eq!(order, [1, 2, 3]);
    }
}
