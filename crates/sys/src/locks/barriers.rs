//! Barriers in the segment.

use super::interposed;
use super::parking::{Limits, cancelled, wait, wake_all};
use crate::io::is_in_segment;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

type Handle = libc::pthread_barrier_t;

/// A barrier in the memory of a `pthread_barrier_t`.
#[repr(C)]
struct Barrier {
    /// How many times threads have arrived.
    arrivals: AtomicU64,
    /// The number of threads that it waits for in each round.
    threads: u32,
    /// Threads that use the barrier. Each leaves as its last access.
    inside: AtomicU32,
}

const _: () = assert!(size_of::<Barrier>() <= size_of::<Handle>() && align_of::<Barrier>() <= align_of::<Handle>());

interposed! {
    /// As POSIX `pthread_barrier_init`.
    fn pthread_barrier_init(barrier: *mut Handle, attributes: *const libc::pthread_barrierattr_t, threads: c_uint),
        if is_in_segment(barrier.addr()) => initialise(barrier, threads);

    /// As POSIX `pthread_barrier_destroy`.
    fn pthread_barrier_destroy(barrier: *mut Handle), if is_in_segment(barrier.addr()) => destroy(barrier);

    /// As POSIX `pthread_barrier_wait`.
    fn pthread_barrier_wait(barrier: *mut Handle), if is_in_segment(barrier.addr()) => arrive(barrier);
}

/// # Safety
/// `barrier` is valid for writes.
unsafe fn initialise(barrier: *mut Handle, threads: u32) -> c_int {
    if threads == 0 || i32::try_from(threads).is_err() {
        return libc::EINVAL;
    }
    let new = Barrier { arrivals: AtomicU64::new(0), threads, inside: AtomicU32::new(0) };
    // SAFETY: as this function requires.
    unsafe { barrier.cast::<Barrier>().write(new) };
    0
}

/// Waits for threads that still leave the last round.
///
/// # Safety
/// `barrier` has been initialised, and no thread will arrive.
unsafe fn destroy(barrier: *mut Handle) -> c_int {
    // SAFETY: as this function requires.
    let Barrier { inside, .. } = unsafe { &*barrier.cast::<Barrier>() };
    let is_left = || (inside.load(Ordering::Acquire) == 0).then_some(());
    while is_left().is_none() {
        wait(barrier.addr(), cancelled(), Limits::default(), is_left);
    }
    0
}

/// # Safety
/// `barrier` has been initialised.
unsafe fn arrive(barrier: *mut Handle) -> c_int {
    // SAFETY: as this function requires.
    let Barrier { arrivals, threads, inside } = unsafe { &*barrier.cast::<Barrier>() };
    inside.fetch_add(1, Ordering::Relaxed);
    let (threads, before) = (u64::from(*threads), arrivals.fetch_add(1, Ordering::AcqRel));
    let is_last = (before + 1) % threads == 0;
    if is_last {
        wake_all(barrier.addr());
    } else {
        let is_over = || (arrivals.load(Ordering::Acquire) / threads > before / threads).then_some(());
        while is_over().is_none() {
            wait(barrier.addr(), cancelled(), Limits::default(), is_over);
        }
    }
    if inside.fetch_sub(1, Ordering::Release) == 1 {
        wake_all(barrier.addr());
    }
    if is_last { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
}
