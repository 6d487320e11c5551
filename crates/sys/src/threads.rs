//! The client's function to create threads, interposed before the C library's: each thread has an alternate stack
//! (`alternate_stack.rs`), and may have its own stack in the segment.
//!
//! The C library puts a thread's control block on its stack, and the kernel accesses it: the thread's number when it
//! ends, its list of robust mutexes, its place for restartable sequences. The kernel cannot wait for a page of the
//! segment. So a thread whose attributes name a stack in the segment gets one of the C library's, with the control
//! block, and calls the client's function on the stack in the segment.
//!
//! Source: pthread_create(3), pthread_attr_setstack(3), set_robust_list(2), rseq (linux/rseq.h).

use crate::alternate_stack::{self, Run, off_the_segment, run_on};
use crate::client_signals::use_alternate_stacks;
use crate::io::is_in_segment;
use crate::next_definition::next_definition;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of the C library's stack of a thread with another one in the segment. What the client has called at a thread's
/// end runs there. Only what is used takes memory.
const STACK_BYTES: usize = 1 << 20;

type Attributes = libc::pthread_attr_t;
type Create = unsafe extern "C-unwind" fn(*mut libc::pthread_t, *const Attributes, Run, *mut c_void) -> c_int;

// In a static program no function comes next, and the C library's has another name. It is in the program only if another
// function of the C library needs it. Rust has no weak references of its own.
std::arch::global_asm!(
    ".weak __pthread_create_2_1",
    ".pushsection .data.rel.ro.vgasnet_threads, \"aw\"",
    ".balign 8",
    ".hidden vgasnet_threads_",
    ".globl vgasnet_threads_",
    "vgasnet_threads_:",
    ".quad __pthread_create_2_1",
    ".quad timer_create",
    ".popsection",
);

unsafe extern "C" {
    static vgasnet_threads_: [*mut c_void; 2];
}

/// The C library's function, once it has been looked up.
static CREATE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

fn create() -> Create {
    let mut address = CREATE.load(Ordering::Relaxed);
    if address.is_null() {
        // SAFETY: the assembly above defines the pointers.
        let (next, [alone, _]) = (next_definition(c"pthread_create"), unsafe { vgasnet_threads_ });
        address = if next.is_null() { alone } else { next };
        CREATE.store(address, Ordering::Relaxed);
    }
    // SAFETY: it is the address of the C library's function, or of one before it by this name, and of this type.
    unsafe { std::mem::transmute::<*mut c_void, Create>(address) }
}

/// What a new thread does. It is the C library's memory: the library's heap is locked while the program forks, and
/// handlers of the program may create threads then.
#[derive(Clone, Copy)]
struct Start {
    run: Run,
    argument: *mut c_void,
    /// The function is C11's, whose answer is an `int`.
    is_of_c11: bool,
    /// The end of the thread's stack in the segment.
    top: Option<*mut c_void>,
}

/// As POSIX `pthread_create`. The stack that the attributes name may lie in the segment.
///
/// # Safety
/// `thread` is valid for writes. `attributes` is null, or points to initialised ones. `run` takes `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const Attributes,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the attributes are null or initialised.
    let top = unsafe { top_in_segment(attributes) };
    // SAFETY: as this function requires.
    unsafe { start_thread(thread, attributes, Start { run, argument, is_of_c11: false, top }) }
}

/// As C11 `thrd_create`.
///
/// # Safety
/// `thread` is valid for writes. `run` takes `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn thrd_create(
    thread: *mut libc::pthread_t,
    run: RunOfC11,
    argument: *mut c_void,
) -> c_int {
    /// Answers of C11's functions, of `threads.h` in the C library.
    const ERROR: c_int = 2;
    // SAFETY: functions have addresses of one kind. The flag tells which one it is.
    let run = unsafe { std::mem::transmute::<RunOfC11, Run>(run) };
    // SAFETY: as this function requires.
    let error = unsafe { start_thread(thread, null(), Start { run, argument, is_of_c11: true, top: None }) };
    if error == 0 { 0 } else { ERROR }
}

type RunOfC11 = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;

/// # Safety
/// `thread` is valid for writes. `attributes` is null, or points to initialised ones. The function takes its argument.
unsafe fn start_thread(thread: *mut libc::pthread_t, attributes: *const Attributes, start: Start) -> c_int {
    // The C library's heap has locks.
    off_the_segment(|| {
        // SAFETY: the call takes a number.
        let its = unsafe { libc::malloc(size_of::<Start>()) }.cast::<Start>();
        if its.is_null() {
            return libc::EAGAIN;
        }
        // SAFETY: it is memory for a start.
        unsafe { its.write(start) };
        let begun = |attributes: *const Attributes| {
            // SAFETY: `thread` and the attributes are as this function requires, and `begin` takes a start.
            unsafe { create()(thread, attributes, begin, its.cast()) }
        };
        let error = match start.top {
            None => begun(attributes),
            // SAFETY: there are initialised attributes: they name a stack.
            Some(_) => unsafe { without_stack(attributes, begun) },
        };
        if error != 0 {
            // SAFETY: no thread has begun.
            unsafe { libc::free(its.cast()) };
        }
        error
    })
}

/// The thread's first function. Nothing is dropped behind the client's function, which may end the thread.
///
/// # Safety
/// `start` is a [`Start`] of this thread's own, from the C library's heap.
unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: it was made for this thread.
    let Start { run, argument, is_of_c11, top } = unsafe { start.cast::<Start>().read() };
    // SAFETY: it is not used any more.
    unsafe { libc::free(start) };
    alternate_stack::prepare();
    if is_of_c11 {
        // SAFETY: the address was made of a function of this type.
        let run = unsafe { std::mem::transmute::<Run, RunOfC11>(run) };
        // SAFETY: the client's function takes its argument.
        return std::ptr::without_provenance_mut(unsafe { run(argument) } as usize);
    }
    match top {
        // SAFETY: the client's function takes its argument.
        None => unsafe { run(argument) },
        // SAFETY: the same, and the client has made the stack for this thread.
        Some(top) => unsafe { run_on(run, argument, top) },
    }
}

/// The end of the stack that the attributes name, if it lies in the segment.
///
/// # Safety
/// The attributes are null or initialised.
unsafe fn top_in_segment(attributes: *const Attributes) -> Option<*mut c_void> {
    if attributes.is_null() {
        return None;
    }
    let (mut start, mut bytes) = (null_mut(), 0);
    // SAFETY: the attributes are initialised, and there is room for both answers.
    let error = unsafe { libc::pthread_attr_getstack(attributes, &raw mut start, &raw mut bytes) };
    // Without a stack the start is below 0 by its length.
    let last = start.addr().wrapping_add(bytes).wrapping_sub(1);
    (error == 0 && is_in_segment(last)).then(|| start.wrapping_byte_add(bytes))
}

/// Calls `begun` with the same attributes, but for the stack. Returns its answer, or the error number.
///
/// # Safety
/// The attributes are initialised.
unsafe fn without_stack(attributes: *const Attributes, begun: impl FnOnce(*const Attributes) -> c_int) -> c_int {
    use_alternate_stacks();
    let mut own = MaybeUninit::<Attributes>::uninit();
    // SAFETY: there is room for the attributes, which the call initialises.
    let error = unsafe { libc::pthread_attr_init(own.as_mut_ptr()) };
    if error != 0 {
        return error;
    }
    let own = own.as_mut_ptr();
    // SAFETY: both are initialised, and `own` is destroyed once.
    unsafe {
        copy_attributes(attributes, own);
        let error = match libc::pthread_attr_setstacksize(own, STACK_BYTES) {
            0 => begun(own),
            error => error,
        };
        libc::pthread_attr_destroy(own);
        error
    }
}

/// Copies all but the stack and its guard.
///
/// # Safety
/// Both are initialised.
unsafe fn copy_attributes(from: *const Attributes, to: *mut Attributes) {
    type Get = unsafe extern "C" fn(*const Attributes, *mut c_int) -> c_int;
    type Set = unsafe extern "C" fn(*mut Attributes, c_int) -> c_int;
    unsafe extern "C" {
        fn pthread_attr_getdetachstate(attributes: *const Attributes, state: *mut c_int) -> c_int;
        fn pthread_attr_getscope(attributes: *const Attributes, scope: *mut c_int) -> c_int;
        fn pthread_attr_setscope(attributes: *mut Attributes, scope: c_int) -> c_int;
        fn pthread_attr_getaffinity_np(of: *const Attributes, bytes: usize, processors: *mut libc::cpu_set_t) -> c_int;
    }
    const NUMBERS: [(Get, Set); 4] = [
        (pthread_attr_getdetachstate, libc::pthread_attr_setdetachstate),
        (libc::pthread_attr_getinheritsched, libc::pthread_attr_setinheritsched),
        (libc::pthread_attr_getschedpolicy, libc::pthread_attr_setschedpolicy),
        (pthread_attr_getscope, pthread_attr_setscope),
    ];
    // SAFETY: both are initialised, and there is room for each answer. A value that one has the other takes.
    unsafe {
        for (get, set) in NUMBERS {
            let mut number = 0;
            if get(from, &raw mut number) == 0 {
                set(to, number);
            }
        }
        let mut scheduling = MaybeUninit::uninit();
        if libc::pthread_attr_getschedparam(from, scheduling.as_mut_ptr()) == 0 {
            libc::pthread_attr_setschedparam(to, scheduling.as_ptr());
        }
        let mut processors = MaybeUninit::<libc::cpu_set_t>::zeroed();
        let bytes = size_of::<libc::cpu_set_t>();
        if pthread_attr_getaffinity_np(from, bytes, processors.as_mut_ptr()) == 0 {
            libc::pthread_attr_setaffinity_np(to, bytes, processors.as_ptr());
        }
        copy_blocked_signals(from, to);
    }
}

/// Copies the signals that the thread begins with blocked, if the attributes name them. The C library has the functions
/// since 2.32.
///
/// # Safety
/// Both are initialised.
unsafe fn copy_blocked_signals(from: *const Attributes, to: *mut Attributes) {
    type Get = unsafe extern "C" fn(*const Attributes, *mut libc::sigset_t) -> c_int;
    type Set = unsafe extern "C" fn(*mut Attributes, *const libc::sigset_t) -> c_int;
    // SAFETY: the name is a terminated string.
    let find = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let (get, set) = (find(c"pthread_attr_getsigmask_np"), find(c"pthread_attr_setsigmask_np"));
    if get.is_null() || set.is_null() {
        return;
    }
    let mut blocked = MaybeUninit::uninit();
    // SAFETY: the functions have these types. Both attributes are initialised, and there is room for the answer. 0 is the
    // answer if there is one.
    unsafe {
        let get = std::mem::transmute::<*mut c_void, Get>(get);
        let set = std::mem::transmute::<*mut c_void, Set>(set);
        if get(from, blocked.as_mut_ptr()) == 0 {
            set(to, blocked.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_copied_without_their_stack() {
        let mut memory = vec![0_u8; 2 * STACK_BYTES];
        let memory = memory.as_mut_ptr().cast::<c_void>();
        let (mut from, mut state) = (MaybeUninit::<Attributes>::uninit(), -1);
        let answer = |attributes: *const Attributes| {
            unsafe extern "C" {
                fn pthread_attr_getdetachstate(attributes: *const Attributes, state: *mut c_int) -> c_int;
            }
            let (mut start, mut bytes) = (null_mut(), 0);
            // SAFETY: the attributes are initialised, and there is room for each answer.
            unsafe {
                assert_eq!(pthread_attr_getdetachstate(attributes, &raw mut state), 0);
                assert_eq!(libc::pthread_attr_getstack(attributes, &raw mut start, &raw mut bytes), 0);
            }
            assert!(start != memory && bytes == STACK_BYTES);
            7
        };
        // SAFETY: the attributes are initialised before they are used, and destroyed once. No thread gets the memory.
        unsafe {
            assert_eq!(libc::pthread_attr_init(from.as_mut_ptr()), 0);
            let from = from.as_mut_ptr();
            assert_eq!(libc::pthread_attr_setdetachstate(from, libc::PTHREAD_CREATE_DETACHED), 0);
            assert_eq!(libc::pthread_attr_setstack(from, memory, 2 * STACK_BYTES), 0);
            assert_eq!(top_in_segment(from), None);
            assert_eq!(without_stack(from, answer), 7);
            libc::pthread_attr_destroy(from);
        }
        assert_eq!(state, libc::PTHREAD_CREATE_DETACHED);
    }
}
