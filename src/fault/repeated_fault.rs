//! Detects a thread's repeated fault for the same access.
//!
//! A fetched page is unpinned before its instruction runs again, because a single step costs a second signal. The page
//! may be lost in between, and the instruction faults again. So the last addresses are remembered, and the second time
//! the page stays pinned.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use vgasnet_sys::{THREAD_TABLE_LEN, places_of_thread, thread_key};

/// Number of remembered threads.
const THREADS: usize = THREAD_TABLE_LEN;

/// Pages needed by one instruction and fetched in turn: two operands, each across a border.
const ADDRESSES: usize = 4;

/// The last faults of a thread.
#[repr(align(64))]
struct Last {
    /// The thread's key, or 0 if the entry is free. The entry of an ended thread passes to the next one with its key.
    thread: AtomicUsize,
    instruction: Cell<usize>,
    addresses: Cell<[usize; ADDRESSES]>,
    next: Cell<usize>,
}

struct Table([Last; THREADS]);

// SAFETY: an entry belongs to the thread with its key. Only this thread's SIGSEGV handler accesses it, and does not
// interrupt itself.
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

/// Notes the access of the interrupted thread's fault. Returns whether the thread faulted for the same just before, if
/// known.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
pub(super) unsafe fn is_repeated(context: *mut c_void, address: usize) -> Option<bool> {
    // SAFETY: `context` is the ucontext of the calling handler.
    let instruction = unsafe { instruction_of(context) }?;
    entry(thread_key()).map(|last| last.note(instruction, address))
}

/// The address of the interrupted instruction.
///
/// # Safety
/// `context` is the ucontext of a signal handler.
#[cfg(target_arch = "x86_64")]
unsafe fn instruction_of(context: *mut c_void) -> Option<usize> {
    // SAFETY: `context` is a ucontext, which has the registers of the interrupted thread.
    Some(unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] } as usize)
}

/// The address of the interrupted instruction.
///
/// # Safety
/// `context` is the ucontext of a signal handler.
#[cfg(target_arch = "aarch64")]
unsafe fn instruction_of(context: *mut c_void) -> Option<usize> {
    // SAFETY: `context` is a ucontext, which has the registers of the interrupted thread.
    Some(unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.pc } as usize)
}

/// Unknown on other processors.
///
/// # Safety
/// None: nothing is read.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn instruction_of(_context: *mut c_void) -> Option<usize> {
    None
}

fn entry(key: usize) -> Option<&'static Last> {
    // Entries are never given back, so the first free one ends the search.
    places_of_thread(key).map(|place| &TABLE.0[place]).find(|last| {
        let owner = last.thread.load(Ordering::Relaxed);
        let is_free = owner == 0;
        owner == key || is_free && last.thread.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    })
}

impl Last {
    /// Returns whether the address was among this instruction's last ones.
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
    fn faults_repeat_within_one_instruction_only() {
        let last = entry(0x7000).expect("there is room");
        assert!(!last.note(1, 100) && last.note(1, 100));
        assert!(!last.note(1, 200) && !last.note(1, 300) && !last.note(1, 400), "one instruction may need four");
        assert!(last.note(1, 100) && last.note(1, 400));
        assert!(!last.note(1, 500) && !last.note(1, 100), "more are of a loop, and the oldest is forgotten");
        assert!(!last.note(2, 500), "another instruction");
        assert!(std::ptr::eq(last, entry(0x7000).expect("it has one")));
    }
}
