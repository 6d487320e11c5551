//! Small thread numbers, reused after a thread ends.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// Maximum number of concurrent threads with a number. Others go without.
pub(crate) const THREADS: u32 = 256;

/// The number of threads without one.
pub(crate) const NONE: u32 = u32::MAX;

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(NONE) };
    static RETURN: Return = const { Return };
}

struct Free {
    numbers: Vec<u32>,
    next: u32,
}

static FREE: Mutex<Free> = Mutex::new(Free { numbers: Vec::new(), next: 0 });

/// Returns the number when the thread ends.
struct Return;

impl Drop for Return {
    fn drop(&mut self) {
        let number = NUMBER.replace(NONE);
        // None may have been left for this thread.
        if number == NONE {
            return;
        }
        FREE.lock().unwrap_or_else(PoisonError::into_inner).numbers.push(number);
    }
}

/// The number of this thread, if already assigned.
#[inline]
pub(crate) fn known() -> u32 {
    NUMBER.get()
}

/// The number of this thread.
#[inline]
pub(crate) fn own() -> u32 {
    let number = known();
    if number == NONE { new_number() } else { number }
}

#[cold]
fn new_number() -> u32 {
    // A thread about to end has returned its number and gets no other, because nothing would return it.
    if RETURN.try_with(|_| ()).is_err() {
        return NONE;
    }
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let next = free.next;
    let Some(number) = free.numbers.pop().or((next < THREADS).then_some(next)) else { return NONE };
    free.next = next.max(number + 1);
    NUMBER.set(number);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_that_ended_are_given_anew() {
        let mine = own();
        let numbers: Vec<u32> = (0..1000).map(|_| std::thread::spawn(own).join().unwrap()).collect();
        assert!(numbers.iter().all(|number| *number != mine && *number < THREADS), "{numbers:?}");
    }

    /// Requests a number after its thread has returned one.
    struct Late;

    impl Drop for Late {
        fn drop(&mut self) {
            assert_eq!(own(), NONE);
        }
    }

    thread_local! {
        static LATE: Late = const { Late };
    }

    #[test]
    fn threads_that_are_about_to_end_take_no_number_with_them() {
        for _ in 0..2 * THREADS {
            // Thread-locals are dropped in reverse order of first use.
            let number = std::thread::spawn(|| {
                LATE.with(|_| ());
                own()
            });
            assert_ne!(number.join().unwrap(), NONE);
        }
    }
}
