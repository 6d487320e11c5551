//! Positions of signal handlers on a thread's stacks, and whether the thread has left them for good.

use std::ffi::c_void;

/// Position of a handler of this thread.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    address: usize,
    /// The thread's alternate stack, or 0 bytes.
    alternate_start: usize,
    alternate_bytes: usize,
}

impl Frame {
    pub(super) const NONE: Frame = Frame { address: 0, alternate_start: 0, alternate_bytes: 0 };

    /// The frame of the calling function.
    ///
    /// # Safety
    /// `context` is the ucontext of the signal handler that this thread runs.
    #[inline(always)]
    pub(super) unsafe fn here(context: *mut c_void) -> Frame {
        // SAFETY: `context` is a ucontext. Its stack is the alternate one of this thread, if it has one.
        let stack = unsafe { (*context.cast::<libc::ucontext_t>()).uc_stack };
        Frame { address: stack_pointer(), alternate_start: stack.ss_sp.addr(), alternate_bytes: stack.ss_size }
    }

    pub(super) fn is(self, other: Frame) -> bool {
        self.address == other.address
    }

    fn has_alternate(self, address: usize) -> bool {
        address.wrapping_sub(self.alternate_start) < self.alternate_bytes
    }

    /// Whether the thread has left this frame for good, if its stack ends at `now`. Stacks grow downwards, and a thread
    /// on its own stack has left the alternate one.
    pub(super) fn is_left_at(self, now: usize) -> bool {
        let is_on_alternate = self.has_alternate(self.address);
        if is_on_alternate == self.has_alternate(now) { self.address <= now } else { is_on_alternate }
    }
}

/// End of the calling function's frame.
#[inline(always)]
pub(super) fn stack_pointer() -> usize {
    let address: usize;
    // SAFETY: a register is read.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    // SAFETY: a register is read.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mov {}, sp", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let here = 0_u8;
        address = std::ptr::from_ref(std::hint::black_box(&here)).addr();
    }
    address
}

/// End of the interrupted function's frame. The handler itself may run on another stack.
///
/// # Safety
/// `context` is the ucontext of a signal handler.
pub(super) unsafe fn interrupted_stack_pointer(context: *mut c_void) -> usize {
    // SAFETY: `context` is a ucontext.
    #[cfg(target_arch = "x86_64")]
    return unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RSP as usize] } as usize;
    // SAFETY: `context` is a ucontext.
    #[cfg(target_arch = "aarch64")]
    return unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.sp } as usize;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    context.addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_below_and_on_an_abandoned_stack_are_left() {
        let at = |address| Frame { address, alternate_start: 100, alternate_bytes: 50 };
        assert!(at(10).is_left_at(20) && at(10).is_left_at(10) && !at(20).is_left_at(10));
        assert!(at(110).is_left_at(120) && !at(120).is_left_at(110));
        assert!(at(120).is_left_at(10) && at(120).is_left_at(500));
        assert!(!at(10).is_left_at(120) && !at(500).is_left_at(120));
        let alone = Frame { address: 10, ..Frame::NONE };
        assert!(alone.is_left_at(10) && !alone.is_left_at(9));
    }

    #[test]
    fn frames_of_callers_are_above() {
        #[inline(never)]
        fn callee() -> usize {
            std::hint::black_box(stack_pointer())
        }
        assert!(std::hint::black_box(callee()) < stack_pointer());
    }
}
