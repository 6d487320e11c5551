//! The client's function to set alternate stacks, interposed before the C library's. A client that sets none, or takes
//! its own away, has the library's ([`alternate_stack`]). One in the segment is not given to the kernel, which finds no
//! page there: signals are handled on the library's.
//!
//! A client that only asks is told of the library's stack, so it need not set a smaller one. A client that sets one is
//! told of its own before: AddressSanitizer unmaps what it is told of.
//!
//! Source: POSIX.1-2017 `sigaltstack`, sigaltstack(2).

use crate::alternate_stack::{self, kernel_stack, no_stack, own_if_any};
use crate::errno::set_errno;
use crate::io::is_in_segment;
use std::cell::Cell;
use std::ffi::c_int;

thread_local! {
    /// The client's stack in the segment, as it has set it.
    static IN_SEGMENT: Cell<Option<libc::stack_t>> = const { Cell::new(None) };
}

/// As POSIX `sigaltstack`.
///
/// # Safety
/// `new` is null or valid for reads, and `old` null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    // SAFETY: `new` is null or valid. Reading it here brings its page, if it lies in the segment.
    let new = (!new.is_null()).then(|| unsafe { new.read() });
    match exchange(new) {
        Ok(before) => {
            if !old.is_null() {
                // SAFETY: `old` is valid for writes.
                unsafe { old.write(before) };
            }
            0
        }
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// Sets the client's stack, if there is a new one. Returns the one before, or for a mere question the kernel's.
fn exchange(new: Option<libc::stack_t>) -> Result<libc::stack_t, c_int> {
    let Some(new) = new else { return IN_SEGMENT.get().map_or_else(|| kernel_stack(None), Ok) };
    let is_off = new.ss_flags & libc::SS_DISABLE != 0;
    let is_kept = !is_off && new.ss_size > 0 && is_in_segment(new.ss_sp.addr());
    if is_kept {
        alternate_stack::prepare();
    }
    // Without a stack of the library's the kernel has the client's.
    let own = own_if_any();
    let before = kernel_stack(Some(own.filter(|_| is_kept || is_off).unwrap_or(new)))?;
    let was_own = own.is_some_and(|own| own.ss_sp == before.ss_sp);
    let of_client = if was_own { IN_SEGMENT.get().unwrap_or(no_stack()) } else { before };
    IN_SEGMENT.set(Some(new).filter(|_| is_kept));
    Ok(of_client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alternate_stack::STACK_BYTES;
    use std::ptr::{null, null_mut};

    fn now() -> libc::stack_t {
        kernel_stack(None).expect("a question")
    }

    /// Sets a stack, if there is one. Returns the one before.
    fn set_stack(new: Option<&libc::stack_t>) -> libc::stack_t {
        let mut old = no_stack();
        // SAFETY: both are valid, and the memory of the new one outlives its use.
        assert_eq!(unsafe { sigaltstack(new.map_or(null(), |new| &raw const *new), &raw mut old) }, 0);
        old
    }

    #[test]
    fn a_client_without_a_stack_has_the_librarys() {
        let thread = std::thread::spawn(|| {
            alternate_stack::prepare();
            set_stack(Some(&no_stack()));
            assert_eq!((now().ss_size, now().ss_flags), (STACK_BYTES, 0));
            assert_eq!(set_stack(None).ss_size, STACK_BYTES, "who asks sees it");
            let mut memory = vec![0_u8; 64 << 10];
            let own = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
            assert_eq!(set_stack(Some(&own)).ss_flags, libc::SS_DISABLE, "the client has set none");
            assert_eq!((set_stack(None).ss_sp, set_stack(None).ss_size), (own.ss_sp, own.ss_size));
            assert_eq!(set_stack(Some(&no_stack())).ss_sp, own.ss_sp);
            assert_eq!(now().ss_size, STACK_BYTES);
            let small = libc::stack_t { ss_size: 1, ..own };
            // SAFETY: the stack is refused.
            assert_eq!(unsafe { sigaltstack(&raw const small, null_mut()) }, -1);
        });
        thread.join().expect("it ends");
    }
}
