//! The handler table, and the calls of handlers.

use super::description::Description;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use vgasnet_protocol::active_message::{Args, Category};
use vgasnet_sys::Signalproof;

/// Indices from here on are the client's; lower ones are the library's (GASNet-1, C.2).
pub const CLIENT_FIRST: u8 = 128;

/// The index of the library's own handler, which no client has.
pub(crate) const LIBRARY: u8 = 1;

/// An entry of the client's table: an index, or 0 for any, and a function.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The index; after the registration, the assigned one.
    pub index: u8,
    /// The function. Its type depends on the messages sent to it.
    pub function: Option<unsafe extern "C" fn()>,
}

/// An error in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadEntry {
    /// The entry at this position has an index outside the client's range.
    Reserved(usize, u8),
    /// The entry at this position has the index of another entry.
    Twice(usize, u8),
    /// The entry at this position has no function.
    NoFunction(usize),
    /// There are more entries than indices, including earlier registrations.
    TooMany(usize),
    /// The entry at this position has an invalid description, for this reason.
    Described(usize, &'static str),
}

/// The functions by index, and their descriptions.
#[derive(Debug)]
pub struct Handlers {
    functions: [AtomicUsize; 256],
    descriptions: [OnceLock<Description>; 256],
    registering: Mutex<()>,
}

impl Default for Handlers {
    fn default() -> Handlers {
        Handlers {
            functions: [const { AtomicUsize::new(0) }; 256],
            descriptions: [const { OnceLock::new() }; 256],
            registering: Mutex::default(),
        }
    }
}

impl Handlers {
    /// Registers the client's table. Entries with any index get the lowest free ones in order, so that the same table
    /// gets the same indices on all ranks.
    ///
    /// # Errors
    /// The table is invalid; nothing is registered.
    pub fn register(&self, entries: &mut [Entry]) -> Result<(), BadEntry> {
        let _registering = Signalproof::lock(&self.registering);
        let taken = self.taken(entries.iter().map(|entry| (entry.index, entry.function.is_some())))?;
        let mut free = (CLIENT_FIRST..=u8::MAX).filter(|index| !taken[usize::from(*index)]);
        for entry in entries {
            if entry.index == 0 {
                entry.index = free.next().expect("no more entries than indices");
            }
            self.describe(Description::of_any_message(*entry));
            self.set(entry.index, entry.function);
        }
        Ok(())
    }

    /// Registers more handlers, described by the client. Entries with any index get the highest free ones in order.
    ///
    /// # Errors
    /// As [`Handlers::register`]; nothing is registered.
    ///
    /// Source: GASNet-EX, `gex_EP_RegisterHandlers`.
    pub fn register_described(&self, entries: &mut [Description]) -> Result<(), BadEntry> {
        let _registering = Signalproof::lock(&self.registering);
        if let Some((at, what)) = entries.iter().enumerate().find_map(|(at, entry)| Some((at, entry.misfit()?))) {
            return Err(BadEntry::Described(at, what));
        }
        let taken = self.taken(entries.iter().map(|entry| (entry.index, entry.function.is_some())))?;
        let mut free = (CLIENT_FIRST..=u8::MAX).rev().filter(|index| !taken[usize::from(*index)]);
        for entry in entries {
            if entry.index == 0 {
                entry.index = free.next().expect("no more entries than indices");
            }
            self.describe(*entry);
            self.set(entry.index, entry.function);
        }
        Ok(())
    }

    /// The indices taken after adding these entries, each given as its index and whether it has a function.
    fn taken(&self, entries: impl ExactSizeIterator<Item = (u8, bool)>) -> Result<[bool; 256], BadEntry> {
        let registered = (CLIENT_FIRST..=u8::MAX).filter(|index| self.get(*index).is_some()).count();
        if entries.len() > 256 - usize::from(CLIENT_FIRST) - registered {
            return Err(BadEntry::TooMany(entries.len() + registered));
        }
        let mut taken: [bool; 256] = std::array::from_fn(|index| self.get(index as u8).is_some());
        for (at, (index, has_function)) in entries.enumerate() {
            match index {
                _ if !has_function => return Err(BadEntry::NoFunction(at)),
                0 => {}
                index if index < CLIENT_FIRST => return Err(BadEntry::Reserved(at, index)),
                index if taken[usize::from(index)] => return Err(BadEntry::Twice(at, index)),
                index => taken[usize::from(index)] = true,
            }
        }
        Ok(taken)
    }

    fn describe(&self, description: Description) {
        // An index is registered once, so the slot is empty.
        let _ = self.descriptions[usize::from(description.index)].set(description);
    }

    /// The client's description of a handler.
    #[inline]
    pub fn description(&self, index: u8) -> Option<&Description> {
        self.descriptions[usize::from(index)].get()
    }

    /// Registers one function.
    pub fn set(&self, index: u8, function: Option<unsafe extern "C" fn()>) {
        let address = function.map_or(0, |function| function as usize);
        self.functions[usize::from(index)].store(address, Ordering::Release);
    }

    /// The function of an index.
    pub fn get(&self, index: u8) -> Option<usize> {
        Some(self.functions[usize::from(index)].load(Ordering::Acquire)).filter(|function| *function != 0)
    }
}

/// A handler's parameters before its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Names the message inside the handler.
    pub token: *mut c_void,
    /// The first byte of the payload, unless the message is a [`Category::Short`].
    pub payload: *mut c_void,
    /// The payload's length.
    pub payload_bytes: usize,
}

/// Calls `$function` with the given first arguments and as many of `$args` as there are, as 64-bit integers.
macro_rules! call {
    ($function:expr, $args:expr, ($($first:expr => $type:ty),*)) => {
        call!(@each $function, $args, ($($first => $type),*), [], [
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
        ])
    };
    (@each $function:expr, $args:expr, ($($first:expr => $type:ty),*), [$($done:tt)*], []) => {
        call!(@one $function, $args, ($($first => $type),*), [$($done)*])
    };
    (@each $function:expr, $args:expr, ($($first:expr => $type:ty),*), [$($done:tt)*], [$next:tt $($tail:tt)*]) => {
        if $args.len() == call!(@count $($done)*) {
            call!(@one $function, $args, ($($first => $type),*), [$($done)*])
        } else {
            call!(@each $function, $args, ($($first => $type),*), [$($done)* $next], [$($tail)*])
        }
    };
    (@one $function:expr, $args:expr, ($($first:expr => $type:ty),*), [$($at:tt)*]) => {
        std::mem::transmute::<usize, unsafe extern "C" fn($($type,)* $(call!(@type $at)),*)>($function)(
            $($first,)* $(i64::from($args[$at])),*
        )
    };
    (@type $at:tt) => { i64 };
    (@count) => { 0 };
    (@count $first:tt $($tail:tt)*) => { 1 + call!(@count $($tail)*) };
}

/// Calls a handler. The arguments are sign-extended to 64 bits, so that handlers with wider parameters get the values
/// sent (reference, L.9).
///
/// # Safety
/// `function` is a handler for messages of this category with as many arguments. The frame's payload has the stated
/// length.
pub(super) unsafe fn call(function: usize, category: Category, frame: Frame, args: &Args) {
    let Frame { token, payload, payload_bytes } = frame;
    let args = args.as_slice();
    // SAFETY: `function` is a handler for this category and as many arguments, and the payload has the stated length.
    // The handler may declare 32-bit arguments: the calling conventions of x86-64 and AArch64 pass them like 64-bit
    // ones, and ignore the upper half.
    unsafe {
        match category {
            Category::Short => call!(function, args, (token => *mut c_void)),
            Category::Medium | Category::Long => {
                call!(function, args, (token => *mut c_void, payload => *mut c_void, payload_bytes => usize));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static SEEN: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
    }

    extern "C" fn none() {}

    extern "C" fn short_of_three(token: *mut c_void, a: i32, b: u32, c: i64) {
        SEEN.with_borrow_mut(|seen| seen.extend([token.addr() as i64, a.into(), b.into(), c]));
    }

    extern "C" fn medium_of_nine(
        token: *mut c_void,
        payload: *mut c_void,
        bytes: usize,
        first: i32,
        b: i32,
        c: i32,
        d: i32,
        e: i32,
        f: i32,
        g: i32,
        h: i32,
        last: i64,
    ) {
        let numbers = [first, b, c, d, e, f, g, h].map(i64::from);
        SEEN.with_borrow_mut(|seen| seen.extend([token.addr() as i64, payload.addr() as i64, bytes as i64]));
        SEEN.with_borrow_mut(|seen| seen.extend(numbers.into_iter().chain([last])));
    }

    #[test]
    fn handlers_get_their_arguments() {
        let frame = |token, payload, payload_bytes| Frame {
            token: std::ptr::without_provenance_mut(token),
            payload: std::ptr::without_provenance_mut(payload),
            payload_bytes,
        };
        // SAFETY: the functions are handlers of these categories with as many arguments, and do not touch the payload.
        unsafe {
            let args = Args::new(&[-1, -2, -3]).expect("three");
            call(short_of_three as *const () as usize, Category::Short, frame(5, 0, 0), &args);
            let args = Args::new(&[1, 2, 3, 4, 5, 6, 7, 8, -9]).expect("nine");
            call(medium_of_nine as *const () as usize, Category::Medium, frame(6, 7, 8), &args);
        }
        let seen = SEEN.take();
        assert_eq!(seen, [5, -1, i64::from(-2_i32 as u32), -3, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, -9]);
    }

    #[test]
    fn free_indices_go_in_order_to_entries_with_any_index() {
        let handlers = Handlers::default();
        let entry = |index| Entry { index, function: Some(none) };
        let mut entries = [0, 129, 0, 255, 0].map(entry);
        assert_eq!(handlers.register(&mut entries), Ok(()));
        assert_eq!(entries.map(|entry| entry.index), [128, 129, 130, 255, 131]);
        assert!(handlers.get(131).is_some() && handlers.get(132).is_none());
        let refused = |mut entries: Vec<Entry>| Handlers::default().register(&mut entries);
        assert_eq!(refused(vec![entry(128), entry(127)]), Err(BadEntry::Reserved(1, 127)));
        assert_eq!(refused(vec![entry(200), entry(200)]), Err(BadEntry::Twice(1, 200)));
        assert_eq!(refused(vec![Entry { index: 128, function: None }]), Err(BadEntry::NoFunction(0)));
        assert_eq!(refused(vec![entry(0); 129]), Err(BadEntry::TooMany(129)));
        assert_eq!(refused(vec![entry(0); 128]), Ok(()));
    }
}
