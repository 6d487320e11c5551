//! Threads by name, for tables that signal handlers use: thread-local storage may allocate when a thread first uses it.

/// The length of such a table: a power of two.
pub const PLACES: usize = 256;

/// The calling thread's name among the threads that live: not 0, and a multiple of 4.
pub fn name() -> usize {
    // SAFETY: the call has no conditions.
    unsafe { libc::pthread_self() as usize }
}

/// The places of a table in the order in which a thread looks for its own.
pub fn places(name: usize) -> impl Iterator<Item = usize> {
    // Fibonacci hashing: names differ in their middle bits.
    let first = ((name as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES.trailing_zeros())) as usize;
    (0..PLACES).map(move |step| (first + step) % PLACES)
}
