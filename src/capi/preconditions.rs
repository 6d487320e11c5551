//! What the headers ask of a pointer, looked at before the function begins: with `VGASNET_CHECK=1` a pointer that is not
//! aligned for its type, or leads to memory that this process has not mapped, ends the job with a line, not with SIGSEGV.
//! Null pointers are the functions' own matter: some take them.

use crate::ex::{Client, Domain, Endpoint, Segment, Team};
use std::any::TypeId;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_settings::UserError;
use vgasnet_sys::is_mapped;

/// Written once, by init.
static ARE_CHECKED: AtomicBool = AtomicBool::new(false);

/// Makes functions look at their arguments from now on.
pub(super) fn check_from_now_on() {
    ARE_CHECKED.store(true, Ordering::Relaxed);
}

#[inline(always)]
pub(super) fn are_checked() -> bool {
    ARE_CHECKED.load(Ordering::Relaxed)
}

/// An argument as these checks see it.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    /// 0 for null pointers, and for arguments that are no pointers.
    address: usize,
    align_bytes: usize,
    /// `None` if they are more than there are addresses.
    len_bytes: Option<usize>,
}

/// An argument of a function of the C interface.
pub(super) trait Argument {
    /// The argument, and how many items of its type it leads to: one if `items` is empty, and none at an address whose
    /// type has no size.
    fn seen(self, items: &[usize]) -> Seen;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Argument for $number {
            fn seen(self, _: &[usize]) -> Seen {
                Seen::default()
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 usize i32 i64 f32 f64 }

impl<T> Argument for Option<T> {
    fn seen(self, _: &[usize]) -> Seen {
        Seen::default()
    }
}

impl<T: 'static> Argument for *mut T {
    fn seen(self, items: &[usize]) -> Seen {
        self.cast_const().seen(items)
    }
}

impl<T: 'static> Argument for *const T {
    fn seen(self, items: &[usize]) -> Seen {
        if items == [0] || is_handle::<T>() {
            return Seen::default();
        }
        // `c_void` counts as one byte.
        let items = items.first().copied().unwrap_or(usize::from(size_of::<T>() > 1));
        Seen { address: self.addr(), align_bytes: align_of::<T>(), len_bytes: items.checked_mul(size_of::<T>()) }
    }
}

/// Whether pointers to this type are handles of GASNet-EX's objects: [`crate::ex::find`] knows those given out.
fn is_handle<T: 'static>() -> bool {
    let objects = [
        TypeId::of::<Client>(),
        TypeId::of::<Domain>(),
        TypeId::of::<Endpoint>(),
        TypeId::of::<Segment>(),
        TypeId::of::<Team>(),
    ];
    objects.contains(&TypeId::of::<T>())
}

/// A number of items as C gives it. A negative one is the function's own matter.
pub(super) fn items(count: impl TryInto<usize>) -> usize {
    count.try_into().unwrap_or(0)
}

/// Looks at all arguments of a call.
///
/// # Errors
/// An argument does not keep to the header.
#[cold]
pub(super) fn check(arguments: &[Seen]) -> Result<(), UserError> {
    let fault = arguments.iter().zip(1..).find_map(|(argument, at)| Some((fault_of(argument)?, at)));
    fault.map_or(Ok(()), |(fault, at)| Err(UserError::new(format!("argument {at} is {fault}"))))
}

/// Looks at the local side of a blocking transfer.
///
/// # Errors
/// It is not all memory of this process.
#[inline(always)]
pub(super) fn check_buffer(address: *const c_void, len_bytes: usize) -> Result<(), UserError> {
    #[cold]
    fn look(buffer: &Seen) -> Result<(), UserError> {
        fault_of(buffer).map_or(Ok(()), |fault| Err(UserError::new(format!("the local address is {fault}"))))
    }
    if are_checked() { look(&address.seen(&[len_bytes])) } else { Ok(()) }
}

fn fault_of(argument: &Seen) -> Option<String> {
    let Seen { address, align_bytes, len_bytes } = *argument;
    if address == 0 {
        return None;
    }
    if address % align_bytes != 0 {
        return Some(format!("{address:#x}; give an address that is a multiple of {align_bytes}, as its type's are"));
    }
    match len_bytes {
        Some(len_bytes) if is_mapped(address, len_bytes) => None,
        Some(len_bytes) => Some(format!(
            "{address:#x}, and not all of the {len_bytes} bytes from there are memory of this process; give an address \
             and a number of bytes or items that belong together"
        )),
        None => Some(format!("{address:#x}, with items of more than 2^64 bytes; give the number of its items")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address that no process has mapped: below the first page that the system gives out.
    const WILD: usize = 0x1000;

    fn fault<A: Argument>(argument: A, items: &[usize]) -> String {
        fault_of(&argument.seen(items)).unwrap_or_default()
    }

    #[test]
    fn pointers_are_aligned_and_lead_to_memory_of_the_process() {
        let words = [0u64; 4];
        let place = words.as_ptr();
        assert_eq!(fault(place, &[4]), "");
        assert_eq!(
            fault(place.wrapping_byte_add(4), &[]),
            format!("{:#x}; give an address that is a multiple of 8, as its type's are", place.addr() + 4)
        );
        let wild = std::ptr::without_provenance::<u64>(WILD);
        assert!(fault(wild, &[]).contains("not all of the 8 bytes"), "{}", fault(wild, &[]));
        assert!(fault(wild, &[3]).contains("not all of the 24 bytes"), "{}", fault(wild, &[3]));
        assert!(fault(place, &[usize::MAX]).contains("more than 2^64 bytes"));
        assert!(fault(place.cast::<u8>(), &[usize::MAX]).contains("not all of the"));
    }

    #[test]
    fn what_need_not_lead_anywhere_is_not_looked_at() {
        let wild = std::ptr::without_provenance::<u64>(WILD + 1);
        assert_eq!(fault(wild, &[0]), "", "a place that the call may not use");
        assert_eq!(fault(wild.cast::<c_void>(), &[]), "", "an address of another rank");
        assert_eq!(fault(wild.cast::<Team>(), &[]), "", "a handle");
        assert_eq!(fault(std::ptr::null::<u64>(), &[7]), "", "a null pointer");
        assert_eq!(fault(WILD, &[]), "", "a number");
    }

    #[test]
    fn the_line_names_the_argument() {
        let wild = std::ptr::without_provenance_mut::<u32>(WILD);
        let line = check(&[7u32.seen(&[]), wild.seen(&[]), wild.seen(&[])]).expect_err("a wild pointer").to_string();
        assert!(line.starts_with("argument 2 is 0x1000, and not all of the 4 bytes"), "{line}");
        assert!(check(&[7u32.seen(&[]), wild.seen(&[0])]).is_ok() && check(&[]).is_ok());
    }
}
