//! Alternate stacks of threads, for signal handlers and for the library.
//!
//! The kernel delivers no signal onto a stack whose page is not mapped. A client may have stacks in its segment: of
//! threads (`threads.rs`), or of contexts that it switches by itself. So each thread has an alternate stack, and SIGSEGV
//! is handled there. A call of the library from a stack in the segment moves there as well, since a fault under a lock of
//! the library would need the lock.

use crate::client_signals::use_alternate_stacks;
use crate::deferred_signals::SignalGuard;
use crate::errno::last_errno;
use crate::frames::{interrupted_stack_pointer, stack_pointer};
use crate::io::is_in_segment;
use crate::thread_end::at_thread_end;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Bytes of a stack, without the page before it, which nobody may access. Only what is used takes memory.
pub const STACK_BYTES: usize = 256 << 10;

thread_local! {
    /// This thread's stack, if it has one.
    static OWN: Cell<Option<Stack>> = const { Cell::new(None) };
    /// Whether the library runs on it, other than in a signal handler.
    static IS_TAKEN: Cell<bool> = const { Cell::new(false) };
}

/// A mapping of a page that nobody may access, and a stack behind it.
#[derive(Clone, Copy)]
struct Stack {
    mapping: *mut c_void,
    guard_bytes: usize,
}

impl Stack {
    fn map() -> Option<Stack> {
        // SAFETY: the call has no conditions.
        let guard_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: the mapping is new, and nobody else's.
        unsafe {
            let (bytes, access) = (guard_bytes + STACK_BYTES, libc::PROT_READ | libc::PROT_WRITE);
            let mapping = libc::mmap(null_mut(), bytes, access, flags, -1, 0);
            if mapping == libc::MAP_FAILED {
                return None;
            }
            libc::mprotect(mapping, guard_bytes, libc::PROT_NONE);
            Some(Stack { mapping, guard_bytes })
        }
    }

    fn start(self) -> *mut c_void {
        self.mapping.wrapping_byte_add(self.guard_bytes)
    }

    fn described(self) -> libc::stack_t {
        libc::stack_t { ss_sp: self.start(), ss_flags: 0, ss_size: STACK_BYTES }
    }

    fn top(self) -> *mut c_void {
        self.start().wrapping_byte_add(STACK_BYTES)
    }

    /// # Safety
    /// Nobody uses the stack any more.
    unsafe fn unmap(self) {
        // SAFETY: the mapping is this stack's, and nobody uses it.
        unsafe { libc::munmap(self.mapping, self.guard_bytes + STACK_BYTES) };
    }
}

thread_local! {
    /// What the kernel reads and writes: this stack may lie in the segment.
    static FOR_KERNEL: [Cell<libc::stack_t>; 2] = const { [const { Cell::new(no_stack()) }; 2] };
}

/// The system call `sigaltstack`: the function is the client's (`client_stacks.rs`). Returns the stack before.
///
/// # Errors
/// The system's errno value.
pub(super) fn kernel_stack(new: Option<libc::stack_t>) -> Result<libc::stack_t, c_int> {
    // A handler might change the cells.
    let _signals = SignalGuard::new();
    FOR_KERNEL.with(|[given, old]| {
        let given = new.map_or(null_mut(), |new| {
            given.set(new);
            given.as_ptr()
        });
        // SAFETY: both cells are valid. The kernel checks the new stack, which stays until another one is set.
        let error = unsafe { libc::syscall(libc::SYS_sigaltstack, given, old.as_ptr()) };
        if error == 0 { Ok(old.get()) } else { Err(last_errno()) }
    })
}

/// What stands for no alternate stack.
pub(super) const fn no_stack() -> libc::stack_t {
    libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 }
}

/// The thread's alternate stack, as the kernel knows it.
fn registered() -> libc::stack_t {
    kernel_stack(None).unwrap_or(no_stack())
}

/// This thread's stack of the library, for the kernel, if it has one.
#[cfg(not(asan))]
pub(super) fn own_if_any() -> Option<libc::stack_t> {
    OWN.get().map(Stack::described)
}

/// Gives this thread an alternate stack for its signal handlers, unless it has one. At its end the thread loses it. A
/// thread without memory for one has none.
pub fn prepare() {
    own();
}

fn own() -> Option<Stack> {
    OWN.get().or_else(make)
}

#[cold]
fn make() -> Option<Stack> {
    let own = Stack::map()?;
    OWN.set(Some(own));
    at_thread_end(give_up);
    if registered().ss_flags & libc::SS_DISABLE != 0 {
        let _refused = kernel_stack(Some(own.described()));
    }
    Some(own)
}

fn give_up() {
    let Some(own) = OWN.take() else { return };
    // The client may have registered a stack of its own meanwhile.
    let is_registered = registered().ss_sp == own.start();
    // SAFETY: the thread ends, so nobody uses its stack. If it does so in a handler there, the kernel refuses to take the
    // stack away, and it stays mapped.
    unsafe {
        if !is_registered || kernel_stack(Some(no_stack())).is_ok() {
            own.unmap();
        }
    }
}

/// Whether this thread's stack lies in the segment.
#[inline(always)]
pub fn is_on_segment() -> bool {
    is_in_segment(stack_pointer())
}

/// Whether the interrupted code runs on a stack in the segment.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
pub unsafe fn was_on_segment(context: *mut c_void) -> bool {
    // SAFETY: `context` is as this function requires.
    is_in_segment(unsafe { interrupted_stack_pointer(context) })
}

/// Notes that the client has stacks in its segment, if the interrupted code runs on one.
///
/// # Safety
/// As for [`was_on_segment`].
pub unsafe fn note_stack(context: *mut c_void) {
    // SAFETY: `context` is as this function requires.
    if unsafe { was_on_segment(context) } {
        use_alternate_stacks();
    }
}

/// Runs `body` on a stack outside of the segment, of [`STACK_BYTES`]. Variables that it borrows stay where they are.
pub fn off_the_segment<T>(body: impl FnOnce() -> T) -> T {
    if !is_on_segment() {
        return body();
    }
    call_elsewhere(body)
}

fn call_elsewhere<T>(body: impl FnOnce() -> T) -> T {
    unsafe extern "C-unwind" fn run<F: FnMut()>(call: *mut c_void) -> *mut c_void {
        // SAFETY: it is the call below, which waits.
        unsafe { (*call.cast::<F>())() };
        null_mut()
    }
    fn function<F: FnMut()>(_: &F) -> Run {
        run::<F>
    }
    let (mut body, mut answer) = (Some(body), None);
    let mut call = || answer = body.take().map(|body| body());
    let run = function(&call);
    // SAFETY: the function takes this call.
    unsafe { elsewhere(run, (&raw mut call).cast()) };
    answer.expect("it was called")
}

/// The stack of one call: a second one, if the client has switched to another context within the call.
struct Borrowed {
    stack: Option<Stack>,
    is_own: bool,
}

impl Borrowed {
    fn new() -> Borrowed {
        let is_own = !IS_TAKEN.replace(true);
        Borrowed { stack: if is_own { own() } else { Stack::map() }, is_own }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if self.is_own {
            IS_TAKEN.set(false);
        } else if let Some(stack) = self.stack {
            // SAFETY: the call is over.
            unsafe { stack.unmap() };
        }
    }
}

/// # Safety
/// `run` takes the argument.
#[cold]
#[inline(never)]
unsafe fn elsewhere(run: Run, argument: *mut c_void) {
    let borrowed = Borrowed::new();
    let Some(stack) = borrowed.stack else {
        // Here a fault of the library could wait for itself.
        eprintln!("vgasnet: no memory for a stack of {STACK_BYTES} bytes outside of the segment; raise ulimit -v");
        std::process::abort();
    };
    use_alternate_stacks();
    // SAFETY: `run` takes the argument, and nobody else uses the stack during the call.
    unsafe { run_on(run, argument, stack.top()) };
}

/// A function with one argument.
pub(super) type Run = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

// Calls its first argument with the second, on the stack that ends at the third. An exception that leaves the function
// goes on in the caller's frame.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.vgasnet_run_on,\"ax\",@progbits",
    ".hidden vgasnet_run_on",
    ".globl vgasnet_run_on",
    ".type vgasnet_run_on,@function",
    "vgasnet_run_on:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rdx",
    "and rsp, -16",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size vgasnet_run_on, . - vgasnet_run_on",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text.vgasnet_run_on,\"ax\",@progbits",
    ".balign 4",
    ".hidden vgasnet_run_on",
    ".globl vgasnet_run_on",
    ".type vgasnet_run_on,@function",
    "vgasnet_run_on:",
    ".cfi_startproc",
    "hint #34", // bti c
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset x29, -16",
    ".cfi_offset x30, -8",
    "mov x29, sp",
    ".cfi_def_cfa_register x29",
    "and x2, x2, #-16",
    "mov sp, x2",
    "mov x16, x0",
    "mov x0, x1",
    "blr x16",
    "mov sp, x29",
    "ldp x29, x30, [sp], #16",
    ".cfi_def_cfa sp, 0",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "ret",
    ".cfi_endproc",
    ".size vgasnet_run_on, . - vgasnet_run_on",
    ".popsection",
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C-unwind" {
    fn vgasnet_run_on(run: Run, argument: *mut c_void, top: *mut c_void) -> *mut c_void;
}

/// Calls a function on the stack that ends at `top`. On processors other than x86-64 and AArch64 it stays on this one.
///
/// # Safety
/// `argument` is one that `run` takes. The stack is large enough, and used by nobody else.
pub(super) unsafe fn run_on(run: Run, argument: *mut c_void, top: *mut c_void) -> *mut c_void {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: as this function requires.
    unsafe {
        vgasnet_run_on(run, argument, top)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: as this function requires.
    unsafe {
        _ = top;
        run(argument)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_on_own(address: usize) -> bool {
        let own = own().expect("a stack").start().addr();
        address.wrapping_sub(own) < STACK_BYTES
    }

    #[test]
    fn calls_move_to_the_stack_of_their_thread_and_nested_ones_to_another() {
        let (mut outer, mut inner, mut next) = (0, 0, 0);
        call_elsewhere(|| {
            call_elsewhere(|| inner = stack_pointer());
            outer = stack_pointer();
        });
        assert!(is_on_own(outer) && !is_on_own(inner) && !is_on_own(stack_pointer()));
        call_elsewhere(|| next = stack_pointer());
        assert!(is_on_own(next), "the stack is given back");
    }

    #[test]
    fn panics_leave_the_stack() {
        let caught = std::panic::catch_unwind(|| call_elsewhere(|| panic!("as expected")));
        assert!(caught.is_err() && !IS_TAKEN.get());
    }

    #[cfg(not(asan))]
    #[test]
    fn threads_have_a_stack_until_they_end_or_one_of_the_programs() {
        let of_thread = std::thread::spawn(|| (registered().ss_size, registered().ss_flags)).join().expect("it ends");
        assert_eq!(of_thread, (STACK_BYTES, 0));
        std::thread::spawn(|| {
            let mut memory = vec![0_u8; 64 << 10];
            let own = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
            assert!(kernel_stack(Some(own)).is_ok());
            prepare();
            assert_eq!(registered().ss_sp, own.ss_sp);
            give_up();
            assert_eq!(registered().ss_sp, own.ss_sp);
            assert!(kernel_stack(Some(no_stack())).is_ok());
        })
        .join()
        .expect("it ends");
    }
}
