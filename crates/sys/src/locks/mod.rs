//! The client's locks in the segment: functions of POSIX threads, semaphores and C11, interposed before the C library's.
//!
//! The C library's functions wait in the kernel at the lock's address, and end the process if the page is not mapped. So
//! threads that wait for a lock in the segment park elsewhere (`parking.rs`), and whoever releases it wakes them. Mutexes,
//! read-write locks and semaphores keep the C library's layout and meaning, by its functions that do not wait. Condition
//! variables, barriers and once-flags have the library's own. Locks in other memory are left to the C library.
//!
//! A cancelled thread leaves its wait and then cancels itself: with its mutex locked, as POSIX has it.
//!
//! Source: POSIX.1-2017, System Interfaces; C11, 7.26.

mod barriers;
mod c11;
mod conditions;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod futexes;
mod mutexes;
mod once;
mod parking;
mod rwlocks;
mod semaphores;

use crate::futex::Deadline;
use crate::next_definition::next_definition;
use parking::Limits;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Defines interposed functions, and with `next` in front of it, a function's next definition: the C library's. Each
/// names the case in which the library does the work, and the work; otherwise the next definition does it.
macro_rules! interposed {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),*), if $case:expr => $work:expr;)*) => {
        pub(super) mod next {
            #[allow(unused_imports, clippy::wildcard_imports, reason = "the types of the functions")]
            use super::*;

            $(
                /// # Safety
                /// As the C library's function of this name.
                #[inline(always)]
                pub(in crate::locks) unsafe fn $name($($argument: $type),*) -> std::ffi::c_int {
                    type Function = unsafe extern "C-unwind" fn($($type),*) -> std::ffi::c_int;
                    let address = $name::NEXT.address();
                    // SAFETY: it is the address of a function of this name, and so of this type.
                    let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address) };
                    // SAFETY: as this function requires.
                    unsafe { function($($argument),*) }
                }

                mod $name {
                    pub static NEXT: crate::locks::Next = crate::locks::Next::new(
                        match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                            Ok(name) => name,
                            Err(_) => panic!("a name has no zero byte"),
                        },
                    );
                }
            )*

            /// Looks all of them up at the start of the program: later the caller may be a signal handler, or the
            /// linker's lock taken.
            extern "C" fn look_all_up() {
                $($name::NEXT.find();)*
            }

            #[used]
            #[unsafe(link_section = ".init_array")]
            static AT_START: extern "C" fn() = look_all_up;
        }

        $(
            $(#[$attribute])*
            ///
            /// # Safety
            /// The arguments are what the C library's function of this name requires.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> std::ffi::c_int {
                if $case {
                    // SAFETY: as this function requires.
                    #[allow(unused_unsafe, reason = "some functions do all of it safely")]
                    return unsafe { $work };
                }
                // SAFETY: the same.
                unsafe { next::$name($($argument),*) }
            }
        )*
    };
}
use interposed;

/// The next definition of a function behind the library's, once it has been looked up.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicPtr::new(null_mut()) }
    }

    #[inline(always)]
    fn address(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if address.is_null() { self.must_find() } else { address }
    }

    fn find(&self) -> *mut c_void {
        let found = next_definition(self.name);
        self.address.store(found, Ordering::Relaxed);
        found
    }

    #[cold]
    fn must_find(&self) -> *mut c_void {
        let found = self.find();
        if found.is_null() {
            eprintln!("vgasnet: no {:?} in the C library; link the program with an installed vgasnet", self.name);
            std::process::abort();
        }
        found
    }
}

/// A time that has passed: functions with a time limit return at once, and without waiting in the kernel.
static PAST: libc::timespec = libc::timespec { tv_sec: -1, tv_nsec: 0 };

/// The limits of a wait until this time.
///
/// # Errors
/// `EINVAL` if there is no such time or clock.
///
/// # Safety
/// `time` is valid for reads.
unsafe fn until(clock: libc::clockid_t, time: *const libc::timespec) -> Result<Limits, c_int> {
    // SAFETY: as this function requires.
    let time = unsafe { time.read() };
    let is_known = [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].contains(&clock);
    if !is_known || !(0..1_000_000_000).contains(&time.tv_nsec) {
        return Err(libc::EINVAL);
    }
    Ok(Limits { deadline: Some(Deadline { clock, time }), is_interruptible: false })
}

/// Called in a forked child.
pub(super) fn in_child() {
    parking::in_child();
}

interposed! {
    /// As POSIX `pthread_cancel`. Waits of the library are cancellation points.
    fn pthread_cancel(thread: libc::pthread_t), if true => cancel(thread);
}

/// # Safety
/// As POSIX `pthread_cancel`.
unsafe fn cancel(thread: libc::pthread_t) -> c_int {
    // SAFETY: as this function requires.
    let error = unsafe { next::pthread_cancel(thread) };
    parking::disturb();
    error
}
