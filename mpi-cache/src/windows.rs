//! The windows of the process, found by their handles without a lock.

use crate::settings::Mode;
use crate::store::GENERATION_PLACES;
use crate::window::{Window, lock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

/// Windows that may be known at a time: each has a generation of the cache for itself.
pub const WINDOWS_MAX: usize = GENERATION_PLACES as usize;

const SLOTS_LOG2: u32 = 12;
const SLOTS: usize = 1 << SLOTS_LOG2;

/// Handles that no window has: MPI's null handles are others.
const EMPTY: u64 = 0;
const DELETED: u64 = u64::MAX;

static HANDLES: [AtomicU64; SLOTS] = [const { AtomicU64::new(EMPTY) }; SLOTS];
static WINDOWS: [AtomicPtr<Window>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

/// The same windows by their numbers.
static BY_NUMBER: [AtomicPtr<Window>; WINDOWS_MAX] = [const { AtomicPtr::new(std::ptr::null_mut()) }; WINDOWS_MAX];

/// Which numbers windows have. Who holds it may change the tables.
static NUMBERS: Mutex<[bool; WINDOWS_MAX]> = Mutex::new([false; WINDOWS_MAX]);

/// A bit for each mode that a window had.
static MODES: AtomicU8 = AtomicU8::new(0);

fn place(handle: u64) -> usize {
    (handle.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS_LOG2)) as usize
}

fn slot_of(handle: u64) -> Option<usize> {
    let start = place(handle);
    for step in 0..SLOTS {
        let slot = (start + step) % SLOTS;
        match HANDLES[slot].load(Ordering::Acquire) {
            known if known == handle => return Some(slot),
            EMPTY => return None,
            _ => {}
        }
    }
    None
}

/// The window of a handle, if it may be cached. It is there until the program frees it.
#[inline]
pub fn find(handle: u64) -> Option<&'static Window> {
    let slot = slot_of(handle)?;
    // SAFETY: who calls passes the handle to MPI, so no thread frees the window meanwhile. Windows are removed only then.
    unsafe { WINDOWS[slot].load(Ordering::Acquire).as_ref() }
}

/// A number for a window.
pub fn take_number() -> Option<u32> {
    let mut numbers = lock(&NUMBERS);
    let free = numbers.iter().position(|is_taken| !is_taken)?;
    numbers[free] = true;
    Some(free as u32)
}

/// No window has the number any more.
pub fn return_number(number: u32) {
    lock(&NUMBERS)[number as usize] = false;
}

/// Makes a window known.
pub fn insert(window: Box<Window>) {
    let _numbers = lock(&NUMBERS);
    let start = place(window.handle);
    let is_free = |slot: &usize| matches!(HANDLES[*slot].load(Ordering::Relaxed), EMPTY | DELETED);
    let slot = (0..SLOTS).map(|step| (start + step) % SLOTS).find(is_free).expect("there are more slots than numbers");
    let (handle, number, window) = (window.handle, window.space as usize, Box::into_raw(window));
    BY_NUMBER[number].store(window, Ordering::Release);
    WINDOWS[slot].store(window, Ordering::Release);
    HANDLES[slot].store(handle, Ordering::Release);
}

/// Takes a window that the program frees.
pub fn remove(handle: u64) -> Option<Box<Window>> {
    let _numbers = lock(&NUMBERS);
    let slot = slot_of(handle)?;
    let is_last = HANDLES[(slot + 1) % SLOTS].load(Ordering::Relaxed) == EMPTY;
    HANDLES[slot].store(if is_last { EMPTY } else { DELETED }, Ordering::Release);
    let window = WINDOWS[slot].swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: it came of a box, and nobody uses a window that is being freed.
    let window = (!window.is_null()).then(|| unsafe { Box::from_raw(window) })?;
    BY_NUMBER[window.space as usize].store(std::ptr::null_mut(), Ordering::Release);
    Some(window)
}

/// A window has this mode.
pub fn note_mode(mode: Mode) {
    MODES.fetch_or(1 << mode as u8, Ordering::Relaxed);
}

/// The modes that windows had.
pub fn modes_seen() -> Vec<String> {
    let seen = MODES.load(Ordering::Relaxed);
    (0..8).filter(|number| seen & 1 << number != 0).map(|number| Mode::from_number(number).to_string()).collect()
}

/// The window of a number.
pub fn of_space(space: u32) -> Option<&'static Window> {
    // SAFETY: a get of the window is not complete, so no thread frees it meanwhile.
    unsafe { BY_NUMBER[space as usize].load(Ordering::Acquire).as_ref() }
}
