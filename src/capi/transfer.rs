//! Gets, puts and memsets: blocking, with explicit and with implicit handles, and by value.

use super::access::{
    self, Function, check_value_bytes, get_number, low_order_bytes, opened, put_number, put_value, start,
    start_implicit, transfer,
};
use super::boundary::{Refusal, attached, entry_points};
use super::sync::{OperationPointer, ValuePointer, to_pointer};
use crate::ops::{Operation, Remote};
use std::ffi::{c_int, c_void};

#[inline(always)]
fn at(rank: u32, address: *mut c_void, len_bytes: usize) -> Remote {
    Remote { rank, address: address.addr(), len_bytes }
}

/// Defines blocking gets and puts.
macro_rules! blocking {
    (gets [$($get:ident)*] puts [$($put:ident)*]) => {
        $(
            /// See `include/vgasnet.h`.
            ///
            /// # Safety
            /// `to` is null, or valid for `len` bytes.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $get(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
                struct This;
                impl Function for This {
                    const NAME: &'static str = stringify!($get);
                }
                // SAFETY: `to` is null, or valid for `len` bytes.
                unsafe { access::get::<This>(to, node, from, len) };
            }
        )*
        $(
            /// See `include/vgasnet.h`.
            ///
            /// # Safety
            /// `from` is null, or valid for `len` bytes.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $put(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
                struct This;
                impl Function for This {
                    const NAME: &'static str = stringify!($put);
                }
                // SAFETY: `from` is null, or valid for `len` bytes.
                unsafe { access::put::<This>(node, to, from, len) };
            }
        )*
    };
}

blocking! {
    gets [vgasnet_get vgasnet_get_bulk]
    puts [vgasnet_put vgasnet_put_bulk]
}

entry_points! {
    unsafe fn vgasnet_get_nb | vgasnet_get_nb_bulk(
        to: *mut c_void [len], node: u32, from: *mut c_void, len: usize,
    ) -> OperationPointer, hit (get_number(to, node, from, len)) => to_pointer(None); {
        Ok(to_pointer(start(Operation::Get(to.cast()), at(node, from, len))?))
    }

    unsafe fn vgasnet_get_nbi | vgasnet_get_nbi_bulk(
        to: *mut c_void [len], node: u32, from: *mut c_void, len: usize,
    ), hit (get_number(to, node, from, len)) => (); {
        start_implicit(Operation::Get(to.cast()), at(node, from, len))
    }
}

/// Defines the explicit and the implicit function of a put.
macro_rules! started_puts {
    ($($explicit:ident $implicit:ident $operation:ident)*) => {
        entry_points! {$(
            unsafe fn $explicit(
                node: u32, to: *mut c_void, from: *mut c_void [len], len: usize,
            ) -> OperationPointer, hit (put_number(node, to, from, len)) => to_pointer(None); {
                Ok(to_pointer(start(Operation::$operation(from.cast()), at(node, to, len))?))
            }

            unsafe fn $implicit(
                node: u32, to: *mut c_void, from: *mut c_void [len], len: usize,
            ), hit (put_number(node, to, from, len)) => (); {
                start_implicit(Operation::$operation(from.cast()), at(node, to, len))
            }
        )*}
    };
}

started_puts! {
    vgasnet_put_nb vgasnet_put_nbi PutNow
    vgasnet_put_nb_bulk vgasnet_put_nbi_bulk Put
}

entry_points! {
    // Like memset, these take the value as an unsigned char.
    unsafe fn vgasnet_memset(node: u32, to: *mut c_void, value: c_int, len: usize) {
        transfer(Operation::Set(value as u8), at(node, to, len))
    }

    unsafe fn vgasnet_memset_nb(node: u32, to: *mut c_void, value: c_int, len: usize) -> OperationPointer {
        Ok(to_pointer(start(Operation::Set(value as u8), at(node, to, len))?))
    }

    unsafe fn vgasnet_memset_nbi(node: u32, to: *mut c_void, value: c_int, len: usize) {
        start_implicit(Operation::Set(value as u8), at(node, to, len))
    }
}

/// A put of a value. The value is read before the put has begun.
#[inline(always)]
fn put_of(value: &u64, len: usize) -> Result<Operation, Refusal> {
    Ok(Operation::PutNow(low_order_bytes(std::ptr::from_ref(value).cast_mut(), len)?))
}

entry_points! {
    unsafe fn vgasnet_put_val(
        node: u32, to: *mut c_void, value: u64, len: usize,
    ), hit (put_value(node, to, value, len)) => (); {
        opened()?;
        transfer(put_of(&value, len)?, at(node, to, len))
    }

    unsafe fn vgasnet_put_nb_val(
        node: u32, to: *mut c_void, value: u64, len: usize,
    ) -> OperationPointer, hit (put_value(node, to, value, len)) => to_pointer(None); {
        Ok(to_pointer(start(put_of(&value, len)?, at(node, to, len))?))
    }

    unsafe fn vgasnet_put_nbi_val(
        node: u32, to: *mut c_void, value: u64, len: usize,
    ), hit (put_value(node, to, value, len)) => (); {
        start_implicit(put_of(&value, len)?, at(node, to, len))
    }
}

/// See `include/vgasnet.h`.
///
/// # Safety
/// If `from` is memory of this rank outside the segment, it is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vgasnet_get_val(node: u32, from: *mut c_void, len: usize) -> u64 {
    struct This;
    impl Function for This {
        const NAME: &'static str = "vgasnet_get_val";
    }
    // SAFETY: if `from` is memory of this rank outside the segment, it is valid for `len` bytes.
    unsafe { access::get_value::<This>(node, from, len) }
}

entry_points! {
    fn vgasnet_get_nb_val(node: u32, from: *mut c_void, len: usize) -> ValuePointer {
        check_value_bytes(len)?;
        Ok(to_pointer(Some(attached()?.ops().start_value(at(node, from, len))?)))
    }
}
