//! Whether a thread faults for the same access again, on x86-64.
//!
//! A page that was fetched is let go before the instruction that needs it, since holding it until after costs a single step.
//! When the page is lost in between, the instruction faults again at the same address: that is what is remembered here.

use crate::sys as thread;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that are remembered. Accesses of more count as repeated.
const THREADS: usize = thread::PLACES;

/// Pages that one instruction needs, which are fetched in turn: two operands, each across a border.
const ADDRESSES: usize = 4;

/// What a thread faulted for last.
#[repr(align(64))]
struct Last {
    /// The thread's name, or 0 if the entry is free. A thread that has ended leaves its entry to the next one of its name.
    thread: AtomicUsize,
    instruction: Cell<usize>,
    addresses: Cell<[usize; ADDRESSES]>,
    next: Cell<usize>,
}

struct Table([Last; THREADS]);

// SAFETY: an entry belongs to the thread whose name it has, and is touched in that thread's handler of SIGSEGV alone, which
// does not interrupt itself.
unsafe impl Sync for Table {}

static TABLE: Table = Table(
    [const {
        Last {
            thread: AtomicUsize::new(0),
            instruction: Cell::new(0),
            addresses: Cell::new([0; ADDRESSES]),
            next: Cell::new(0),
        }
    }; THREADS],
);

/// Notes what the interrupted thread faults for. Returns whether it did for the same just before, as far as is known.
///
/// # Safety
/// `context` is the ucontext of the signal handler that calls this.
pub unsafe fn is_repeated(context: *mut c_void, address: usize) -> bool {
    // SAFETY: the caller's promise.
    let instruction =
        unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] } as usize;
    entry(thread::name()).is_none_or(|last| last.note(instruction, address))
}

fn entry(name: usize) -> Option<&'static Last> {
    // Entries are never given back, so the first free one ends the search.
    thread::places(name).map(|place| &TABLE.0[place]).find(|last| {
        let owner = last.thread.load(Ordering::Relaxed);
        let is_free = owner == 0;
        owner == name || is_free && last.thread.compare_exchange(0, name, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    })
}

impl Last {
    fn note(&self, instruction: usize, address: usize) -> bool {
        if self.instruction.replace(instruction) != instruction {
            self.addresses.set([0; ADDRESSES]);
        }
        let mut addresses = self.addresses.get();
        if addresses.contains(&address) {
            return true;
        }
        let next = self.next.get();
        addresses[next] = address;
        self.addresses.set(addresses);
        self.next.set((next + 1) % ADDRESSES);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_repeated_among_those_of_its_instruction() {
        let last = entry(0x7000).expect("there is room");
        assert!(!last.note(1, 100) && last.note(1, 100));
        assert!(!last.note(1, 200) && !last.note(1, 300) && !last.note(1, 400), "one instruction may need four");
        assert!(last.note(1, 100) && last.note(1, 400));
        assert!(!last.note(1, 500) && !last.note(1, 100), "more are of a loop, and the oldest is forgotten");
        assert!(!last.note(2, 500), "another instruction");
        assert!(std::ptr::eq(last, entry(0x7000).expect("it has one")));
    }
}
