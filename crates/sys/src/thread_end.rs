//! State that a thread has until its very end. Rust drops a thread's locals before destructors of the program's keys
//! run (`pthread_key_create`), and the first thread's before functions of `atexit`; all of these may call the library.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

/// Number of rounds of key destructors at the end of a thread, while some set their keys again (POSIX,
/// `PTHREAD_DESTRUCTOR_ITERATIONS`).
const ROUNDS: usize = 4;

/// Maximum functions of a thread.
const FUNCTIONS_MAX: usize = 4;

/// A place for a function.
type Slot = Cell<Option<fn()>>;

thread_local! {
    static FUNCTIONS: [Slot; FUNCTIONS_MAX] = const { [const { Cell::new(None) }; FUNCTIONS_MAX] };
}

/// Has a function called when this thread ends, in the last of the rounds. When the process exits it is not called for
/// the exiting thread. If the process has no key left it never is.
///
/// # Panics
/// If the thread has too many of them.
pub fn at_thread_end(function: fn()) {
    let Some(key) = key() else { return };
    let has_place = FUNCTIONS.with(|functions| {
        let free = functions.iter().find(|place| place.get().is_none());
        free.map(|place| place.set(Some(function))).is_some()
    });
    assert!(has_place, "a thread has at most {FUNCTIONS_MAX} functions for its end");
    set(key, 1);
}

fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: there is room for the key. The function stays loaded as long as the process lives (build.rs).
        (unsafe { libc::pthread_key_create(&mut key, Some(on_end)) } == 0).then_some(key)
    })
}

fn set(key: libc::pthread_key_t, round: usize) {
    // SAFETY: the key exists until the process ends. Nobody takes the value for an address.
    let _no_memory = unsafe { libc::pthread_setspecific(key, ptr::without_provenance(round)) };
}

/// The destructor of the key: `round` is its value.
extern "C" fn on_end(round: *mut c_void) {
    match key() {
        Some(key) if round.addr() < ROUNDS => set(key, round.addr() + 1),
        _ => FUNCTIONS.with(|functions| functions.iter().filter_map(Cell::take).for_each(|function| function())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static CALLED: AtomicUsize = AtomicUsize::new(0);
    static CALLED_BEFORE_KEYS: AtomicUsize = AtomicUsize::new(usize::MAX);

    fn count() {
        CALLED.fetch_add(1, Ordering::Relaxed);
    }

    extern "C" fn of_program(_: *mut c_void) {
        CALLED_BEFORE_KEYS.store(CALLED.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    #[test]
    fn functions_are_called_after_the_programs_destructors() {
        let thread = std::thread::spawn(|| {
            at_thread_end(count);
            at_thread_end(count);
            let mut key = 0;
            // SAFETY: there is room for the key, and the function takes any value.
            let is_set = unsafe {
                libc::pthread_key_create(&mut key, Some(of_program)) == 0
                    && libc::pthread_setspecific(key, ptr::without_provenance(7)) == 0
            };
            assert!(is_set && CALLED.load(Ordering::Relaxed) == 0);
        });
        thread.join().expect("the thread ends");
        assert_eq!((CALLED_BEFORE_KEYS.load(Ordering::Relaxed), CALLED.load(Ordering::Relaxed)), (0, 2));
    }
}
