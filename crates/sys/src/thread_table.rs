//! Keys of threads, and hash tables by key for signal handlers: thread-local storage may allocate on first use in a
//! thread.

/// The length of such a table: a power of two.
pub const THREAD_TABLE_LEN: usize = 256;

/// The calling thread's key, unique among living threads: not 0, and a multiple of 4.
pub fn thread_key() -> usize {
    // SAFETY: the call has no conditions.
    unsafe { libc::pthread_self() as usize }
}

/// The places of a table that may contain the entry of a thread, in search order.
pub fn places_of_thread(key: usize) -> impl Iterator<Item = usize> {
    // Fibonacci hashing: keys differ in their middle bits.
    let shift = 64 - THREAD_TABLE_LEN.trailing_zeros();
    let first = ((key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize;
    (0..THREAD_TABLE_LEN).map(move |step| (first + step) % THREAD_TABLE_LEN)
}
