//! GASNet-EX clients' descriptions of handlers: the messages they are for, and the number of arguments.
//!
//! Source: GASNet-EX (specification 0.19), `gex_AM_Entry_t`.

use super::handlers::Entry;
use std::ffi::{c_char, c_void};
use vgasnet_protocol::active_message::{ARGS_MAX, Category};

/// `GEX_FLAG_AM_SHORT`, and so on.
const SHORT: u32 = 1;
const MEDIUM: u32 = 1 << 1;
const LONG: u32 = 1 << 2;
const REQUEST: u32 = 1 << 3;
const REPLY: u32 = 1 << 4;

/// `gex_AM_Entry_t`: a handler with its description. The pointers are the client's; the library never dereferences
/// them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The index; 0 for any.
    pub index: u8,
    /// The function. Its type depends on the messages sent to it.
    pub function: Option<unsafe extern "C" fn()>,
    /// The categories of its messages, and whether they are requests or replies.
    pub flags: u32,
    /// Number of arguments of its messages.
    pub args: u32,
    /// Arbitrary data of the client.
    pub cdata: *const c_void,
    /// Its name, or null.
    pub name: *const c_char,
}

// SAFETY: the library hands the pointers back and does nothing else with them.
unsafe impl Send for Description {}
// SAFETY: the library hands the pointers back and does nothing else with them.
unsafe impl Sync for Description {}

impl Description {
    /// The description of a handler registered by index only.
    pub(super) fn of_any_message(entry: Entry) -> Description {
        let flags = SHORT | MEDIUM | LONG | REQUEST | REPLY;
        let (cdata, name) = (std::ptr::null(), std::ptr::null());
        Description { index: entry.index, function: entry.function, flags, args: ARGS_MAX as u32, cdata, name }
    }

    /// The reason if the description is invalid.
    pub(super) fn misfit(&self) -> Option<&'static str> {
        let categories = self.flags & (SHORT | MEDIUM | LONG);
        let is_known = [SHORT, MEDIUM, LONG, MEDIUM | LONG].contains(&categories);
        if !is_known {
            return Some("flags without a category: give GEX_FLAG_AM_SHORT, _MEDIUM, _LONG or _MEDLONG");
        }
        if self.flags & (REQUEST | REPLY) == 0 {
            return Some("flags without a kind: give GEX_FLAG_AM_REQUEST, _REPLY or _REQREP");
        }
        (self.args as usize > ARGS_MAX).then_some("more than 16 arguments")
    }

    /// Whether the handler accepts such a message.
    pub fn takes(&self, category: Category, is_reply: bool, args: usize) -> bool {
        let category = match category {
            Category::Short => SHORT,
            Category::Medium => MEDIUM,
            Category::Long => LONG,
        };
        let kind = if is_reply { REPLY } else { REQUEST };
        let is_any = self.flags & (SHORT | MEDIUM) == SHORT | MEDIUM;
        self.flags & category != 0 && self.flags & kind != 0 && (is_any || self.args as usize == args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::am::{BadEntry, Handlers};

    extern "C" fn none() {}

    fn described(index: u8, flags: u32, args: u32) -> Description {
        Description { index, function: Some(none), flags, args, cdata: std::ptr::null(), name: std::ptr::null() }
    }

    #[test]
    fn the_highest_free_indices_go_in_order_to_entries_with_any_index() {
        let handlers = Handlers::default();
        let mut first = [Entry { index: 254, function: Some(none) }];
        assert_eq!(handlers.register(&mut first), Ok(()));
        let mut entries = [0, 253, 0, 0].map(|index| described(index, SHORT | REQUEST, 1));
        assert_eq!(handlers.register_described(&mut entries), Ok(()));
        assert_eq!(entries.map(|entry| entry.index), [255, 253, 252, 251]);
        let mut more = [described(0, LONG | MEDIUM | REPLY, 0)];
        assert_eq!(handlers.register_described(&mut more), Ok(()));
        assert_eq!(more[0].index, 250);
        assert_eq!(handlers.register_described(&mut [described(254, SHORT | REPLY, 0)]), Err(BadEntry::Twice(0, 254)));
        assert_eq!(
            handlers.register_described(&mut [described(127, SHORT | REPLY, 0)]),
            Err(BadEntry::Reserved(0, 127))
        );
        let mut many = [described(0, SHORT | REPLY, 0); 123];
        assert_eq!(handlers.register_described(&mut many), Err(BadEntry::TooMany(129)));
        assert_eq!(handlers.register_described(&mut many[..122]), Ok(()));
    }

    #[test]
    fn invalid_descriptions_are_refused() {
        for (flags, args) in [(REQUEST, 0), (SHORT, 0), (SHORT | MEDIUM | REQUEST, 0), (MEDIUM | REPLY, 17)] {
            assert!(described(128, flags, args).misfit().is_some(), "{flags:#x} {args}");
        }
        assert!(described(128, MEDIUM | LONG | REQUEST | REPLY, 16).misfit().is_none());
    }

    #[test]
    fn a_handler_takes_the_messages_it_is_described_for() {
        let handler = described(128, MEDIUM | LONG | REQUEST, 3);
        assert!(handler.takes(Category::Medium, false, 3) && handler.takes(Category::Long, false, 3));
        assert!(!handler.takes(Category::Short, false, 3));
        assert!(!handler.takes(Category::Medium, true, 3) && !handler.takes(Category::Medium, false, 2));
        let any = Description::of_any_message(Entry { index: 130, function: Some(none) });
        assert!(any.takes(Category::Short, true, 0) && any.takes(Category::Long, false, 16));
    }
}
