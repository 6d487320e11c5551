//! Defers signals while a thread copies from or to a pinned page: a handler that stored to the page, while a neighbour
//! wants it, would wait for the pin, and the pin for the handler.
//!
//! [`super::SignalGuard`] takes an atomic operation, this one two stores, since it is on the hit path. Each thread has
//! a mark, in the part of thread-local storage allocated with the thread, so that a signal handler may access it.

use super::signal_mask::{ASYNCHRONOUS, Mask, change_mask, mask_in};
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, compiler_fence};

/// State shared by a thread and its own signal handlers. All zeros: no copy.
#[repr(C)]
pub(super) struct Mark {
    is_copying: Cell<u32>,
    /// A signal waits for the end of the copy.
    is_deferred: Cell<u32>,
    /// The thread's mask before a signal was deferred.
    before: Cell<Mask>,
    /// A handler of the client runs that an instruction of the copy has raised, or has left the copy by siglongjmp.
    is_raised: Cell<u32>,
}

std::arch::global_asm!(
    ".pushsection .tbss,\"awT\",%nobits",
    ".balign 8",
    ".hidden vgasnet_copy_mark",
    ".globl vgasnet_copy_mark",
    ".type vgasnet_copy_mark,%object",
    ".size vgasnet_copy_mark, {bytes}",
    "vgasnet_copy_mark:",
    ".zero {bytes}",
    ".popsection",
    bytes = const size_of::<Mark>(),
);

/// The mark of this thread.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn mark() -> &'static Mark {
    let address: *const Mark;
    // SAFETY: the word at fs:0 is the address of the thread's control block, and the loader has written the mark's
    // offset from it. The mark is all zeros at first, and only its thread uses the reference.
    unsafe {
        std::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + vgasnet_copy_mark@GOTTPOFF]",
            out(reg) address,
            options(pure, nomem, nostack),
        );
        &*address
    }
}

/// The mark of this thread.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn mark() -> &'static Mark {
    let address: *const Mark;
    // SAFETY: the register has the address of the thread's control block, and the loader has written the mark's offset
    // from it. The mark is all zeros at first, and only its thread uses the reference.
    unsafe {
        std::arch::asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:vgasnet_copy_mark",
            "ldr {1}, [{1}, #:gottprel_lo12:vgasnet_copy_mark]",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(pure, nomem, nostack),
        );
        &*address
    }
}

/// Defers the client's signals while it exists, except signals raised by an instruction: the copy's own may be about
/// the client's memory. No thread has two.
pub struct CopyGuard(PhantomData<*mut ()>);

impl CopyGuard {
    /// Defers signals from now on. The page is pinned after this.
    #[inline(always)]
    pub fn begin() -> CopyGuard {
        mark().begin();
        CopyGuard(PhantomData)
    }

    /// Admits waiting signals, between two copies. No page is pinned meanwhile.
    #[inline(always)]
    pub fn let_in(&self) {
        mark().end();
        mark().begin();
    }
}

impl Drop for CopyGuard {
    #[inline(always)]
    fn drop(&mut self) {
        mark().end();
    }
}

impl Mark {
    #[inline(always)]
    fn begin(&self) {
        debug_assert!(self.is_copying.get() == 0, "a copy has one guard");
        self.is_copying.set(1);
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn end(&self) {
        compiler_fence(Ordering::SeqCst);
        self.is_copying.set(0);
        // A signal is not deferred from here on.
        compiler_fence(Ordering::SeqCst);
        if self.is_deferred.get() != 0 {
            self.let_in();
        }
    }

    #[cold]
    #[inline(never)]
    fn let_in(&self) {
        self.is_deferred.set(0);
        change_mask(libc::SIG_SETMASK, Some(self.before.get()));
    }
}

/// Whether the interrupted thread is in the middle of a copy.
pub(super) fn is_copying() -> bool {
    mark().is_copying.get() != 0
}

/// Makes signals of the interrupted thread wait for the end of its copy. They are blocked already.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler, and [`is_copying`].
pub(super) unsafe fn defer_until_copied(context: *mut c_void) {
    let mark = mark();
    // SAFETY: `context` is the ucontext of this handler, and nobody else touches it while the handler runs.
    unsafe {
        let mask = mask_in(context);
        // Of several nested signals the last to be deferred has interrupted the thread itself.
        mark.before.set(mask.read());
        mask.write(mask.read() | ASYNCHRONOUS);
    }
    mark.is_deferred.set(1);
}

/// Runs a handler of the client raised by an instruction of the copy, if any: it may leave the copy for good.
pub(super) fn outside_of_copies(body: impl FnOnce()) {
    let mark = mark();
    let is_copying = mark.is_copying.replace(0);
    let was_raised = mark.is_raised.replace(mark.is_raised.get() | is_copying);
    compiler_fence(Ordering::SeqCst);
    body();
    compiler_fence(Ordering::SeqCst);
    mark.is_raised.set(was_raised);
    mark.is_copying.set(is_copying);
}

/// Whether this thread has a copy that cannot go on: it is in a handler of the client that the copy has raised, or was. Its page stays
/// pinned, so the thread must not wait for other ranks, which may wait for the page.
pub fn has_raised_copy() -> bool {
    mark().is_raised.get() != 0
}
