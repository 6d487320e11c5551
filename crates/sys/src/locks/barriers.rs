//! Barriers in the segment.

use super::interposed;
use super::parking::{Limits, cancelled, wait, wake_all};
use crate::io::is_in_segment;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU32, Ordering};

type Handle = libc::pthread_barrier_t;

/// A barrier in the memory of a `pthread_barrier_t`.
#[repr(C)]
struct Barrier {
    /// The number of threads that it waits for.
    threads: u32,
    arrived: AtomicU32,
    /// How many times all have arrived, modulo 2^32.
    round: AtomicU32,
}

const _: () = assert!(size_of::<Barrier>() <= size_of::<Handle>() && align_of::<Barrier>() <= align_of::<Handle>());

interposed! {
    /// As POSIX `pthread_barrier_init`.
    fn pthread_barrier_init(barrier: *mut Handle, attributes: *const libc::pthread_barrierattr_t, threads: c_uint),
        if is_in_segment(barrier.addr()) => initialise(barrier, threads);

    /// As POSIX `pthread_barrier_destroy`.
    fn pthread_barrier_destroy(barrier: *mut Handle), if is_in_segment(barrier.addr()) => 0;

    /// As POSIX `pthread_barrier_wait`.
    fn pthread_barrier_wait(barrier: *mut Handle), if is_in_segment(barrier.addr()) => arrive(barrier);
}

/// # Safety
/// `barrier` is valid for writes.
unsafe fn initialise(barrier: *mut Handle, threads: u32) -> c_int {
    if threads == 0 || i32::try_from(threads).is_err() {
        return libc::EINVAL;
    }
    let new = Barrier { threads, arrived: AtomicU32::new(0), round: AtomicU32::new(0) };
    // SAFETY: as this function requires.
    unsafe { barrier.cast::<Barrier>().write(new) };
    0
}

/// # Safety
/// `barrier` has been initialised.
unsafe fn arrive(barrier: *mut Handle) -> c_int {
    // SAFETY: as this function requires.
    let Barrier { threads, arrived, round } = unsafe { &*barrier.cast::<Barrier>() };
    // The round cannot end before this thread has arrived.
    let mine = round.load(Ordering::Relaxed);
    if arrived.fetch_add(1, Ordering::AcqRel) + 1 == *threads {
        arrived.store(0, Ordering::Relaxed);
        round.fetch_add(1, Ordering::Release);
        wake_all(barrier.addr());
        return libc::PTHREAD_BARRIER_SERIAL_THREAD;
    }
    let is_over = || (round.load(Ordering::Acquire) != mine).then_some(());
    while is_over().is_none() {
        wait(barrier.addr(), cancelled(), Limits::default(), is_over);
    }
    0
}
