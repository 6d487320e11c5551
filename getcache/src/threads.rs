//! Numbers of threads, low ones: those of threads that ended are given anew.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// Threads at one time that have a number. Others go without.
pub(crate) const THREADS: u32 = 256;

/// The number of those that have none.
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

/// Gives the number back when the thread ends.
struct Return;

impl Drop for Return {
    fn drop(&mut self) {
        let number = NUMBER.replace(NONE);
        // There may have been none left for this thread.
        if number == NONE {
            return;
        }
        FREE.lock().unwrap_or_else(PoisonError::into_inner).numbers.push(number);
    }
}

/// The number of this thread, if it has one already.
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
    // A thread that has given one back, since it is about to end, gets no other: nobody would give that back.
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

    /// Asks for a number when its thread has given one back.
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
            // What is used first is dropped last.
            let number = std::thread::spawn(|| {
                LATE.with(|_| ());
                own()
            });
            assert_ne!(number.join().unwrap(), NONE);
        }
    }
}
