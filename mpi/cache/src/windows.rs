//! The windows of the process, found by their handles without a lock.

use crate::locking::lock;
use crate::settings::Mode;
use crate::store::WINDOWS_MAX;
use crate::window::Window;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::Win;

const SLOTS_LOG2: u32 = 12;
const SLOTS: usize = 1 << SLOTS_LOG2;

/// No window's handle. MPI's null handles differ from it.
const NONE: u64 = 0;

static HANDLES: [AtomicU64; SLOTS] = [const { AtomicU64::new(NONE) }; SLOTS];
static WINDOWS: [AtomicPtr<Window>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

/// Maximum distance of a window from the first slot for its handle. Each window takes the first free slot, so this
/// stays small although windows come and go.
static REACH: AtomicUsize = AtomicUsize::new(0);

/// The same windows by their numbers.
static BY_NUMBER: [AtomicPtr<Window>; WINDOWS_MAX] = [const { AtomicPtr::new(std::ptr::null_mut()) }; WINDOWS_MAX];

/// The window numbers in use. The holder of the lock may change the tables.
static NUMBERS: Mutex<[bool; WINDOWS_MAX]> = Mutex::new([false; WINDOWS_MAX]);

/// Whether a window was ever cached. If not, calls are passed on unchanged.
static IS_ANY_CACHED: AtomicBool = AtomicBool::new(false);

/// A bit for each mode of any window so far.
static MODES: AtomicU8 = AtomicU8::new(0);

#[inline]
fn first_slot(handle: Handle<Win>) -> usize {
    (handle.bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS_LOG2)) as usize
}

/// The slots in which a handle may be, likeliest first.
fn slots(handle: Handle<Win>) -> impl Iterator<Item = usize> {
    let start = first_slot(handle);
    (0..SLOTS).map(move |step| (start + step) % SLOTS)
}

#[inline]
fn has(slot: usize, handle: Handle<Win>) -> bool {
    HANDLES[slot].load(Ordering::Acquire) == handle.bits()
}

#[inline]
fn slot_of(handle: Handle<Win>) -> Option<usize> {
    let first = first_slot(handle);
    if has(first, handle) { Some(first) } else { later_slot_of(handle) }
}

/// Most windows are in the first slot for their handle.
#[cold]
fn later_slot_of(handle: Handle<Win>) -> Option<usize> {
    let reach = REACH.load(Ordering::Relaxed);
    slots(handle).take(reach + 1).find(|slot| has(*slot, handle))
}

/// As [`find`], but it may miss a window.
#[inline(always)]
pub fn find_at_once(handle: Handle<Win>) -> Option<&'static Window> {
    let first = first_slot(handle);
    if !has(first, handle) {
        return None;
    }
    // SAFETY: MPI's caller uses the handle, so no thread frees the window meanwhile. Windows are removed only then.
    unsafe { WINDOWS[first].load(Ordering::Acquire).as_ref() }
}

/// The window of a handle, if it may be cached. It exists until the program frees it.
#[inline]
pub fn find(handle: Handle<Win>) -> Option<&'static Window> {
    let slot = slot_of(handle)?;
    // SAFETY: MPI's caller uses the handle, so no thread frees the window meanwhile. Windows are removed only then.
    unsafe { WINDOWS[slot].load(Ordering::Acquire).as_ref() }
}

/// The window of a handle, if it is or was cached.
#[inline]
pub fn find_cached(handle: Handle<Win>) -> Option<&'static Window> {
    if is_any_cached() { find(handle).filter(|window| !window.is_plain()) } else { None }
}

/// Takes a free number for a window.
pub fn take_number() -> Option<u32> {
    let mut numbers = lock(&NUMBERS);
    let free = numbers.iter().position(|is_taken| !is_taken)?;
    numbers[free] = true;
    Some(free as u32)
}

/// Frees the number of a window.
pub fn return_number(number: u32) {
    lock(&NUMBERS)[number as usize] = false;
}

/// Adds a window to the tables.
pub fn insert(window: Box<Window>) {
    let _numbers = lock(&NUMBERS);
    let is_free = |(_, slot): &(usize, usize)| HANDLES[*slot].load(Ordering::Relaxed) == NONE;
    let (step, slot) = slots(window.handle).enumerate().find(is_free).expect("there are more slots than numbers");
    // A thread looking for a window knows its handle, and so sees this as well.
    REACH.fetch_max(step, Ordering::Relaxed);
    let (handle, number, window) = (window.handle, window.space as usize, Box::into_raw(window));
    BY_NUMBER[number].store(window, Ordering::Release);
    WINDOWS[slot].store(window, Ordering::Release);
    HANDLES[slot].store(handle.bits(), Ordering::Release);
}

/// Removes a window that the program frees.
pub fn remove(handle: Handle<Win>) -> Option<Box<Window>> {
    let _numbers = lock(&NUMBERS);
    let slot = slot_of(handle)?;
    HANDLES[slot].store(NONE, Ordering::Release);
    let window = WINDOWS[slot].swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: `insert` took it from a box, and it is no longer in the slot. MPI's caller frees the window, and by MPI's
    // rules nobody uses it meanwhile.
    let window = (!window.is_null()).then(|| unsafe { Box::from_raw(window) })?;
    BY_NUMBER[window.space as usize].store(std::ptr::null_mut(), Ordering::Release);
    Some(window)
}

/// Whether any window is or was cached.
#[inline]
pub fn is_any_cached() -> bool {
    IS_ANY_CACHED.load(Ordering::Relaxed)
}

/// Records the mode of a window.
pub fn note_mode(mode: Mode) {
    if mode != Mode::Off {
        IS_ANY_CACHED.store(true, Ordering::Relaxed);
    }
    MODES.fetch_or(1 << mode as u8, Ordering::Relaxed);
}

/// All recorded modes.
pub fn modes_seen() -> Vec<String> {
    let seen = MODES.load(Ordering::Relaxed);
    (0..8).filter(|number| seen & 1 << number != 0).map(|number| Mode::from_number(number).to_string()).collect()
}

/// The window of a number, for an incomplete operation of the window.
pub fn of_space(space: u32) -> Option<&'static Window> {
    // SAFETY: an operation of the window is incomplete, so by MPI's rules no thread frees the window meanwhile. Windows
    // are removed only then.
    unsafe { BY_NUMBER[space as usize].load(Ordering::Acquire).as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn window(handle: Handle<Win>) -> Box<Window> {
        let number = take_number().expect("there are few");
        Box::new(Window::new(handle, number, 0, &[8], Mode::Off, None))
    }

    #[test]
    fn windows_that_come_and_go_leave_nothing_to_look_at() {
        // The maximum number of windows, some of them long-lived.
        // SAFETY: MPI is not called.
        let handle = |at: u64| unsafe { Handle::new(at.wrapping_mul(0xD129_0DDB_53C4_3E49) | 1) };
        let handles = |count: u64| (1..=count).map(handle);
        let mut open: VecDeque<Handle<Win>> = VecDeque::new();
        for handle in handles(50_000) {
            insert(window(handle));
            open.push_back(handle);
            if open.len() == WINDOWS_MAX {
                let gone = open.remove(WINDOWS_MAX / 2).expect("it is there");
                let window = remove(gone).expect("it was known");
                return_number(window.space);
                assert!(find(gone).is_none() && remove(gone).is_none());
            }
        }
        assert!(open.iter().all(|handle| find(*handle).is_some_and(|window| window.handle == *handle)));
        assert!(handles(50_000).filter(|handle| find(*handle).is_some()).count() == open.len());
        let reach = REACH.load(Ordering::Relaxed);
        assert!(reach < 100, "a search looks at {reach} slots");
        open.into_iter().filter_map(remove).for_each(|window| return_number(window.space));
    }
}
