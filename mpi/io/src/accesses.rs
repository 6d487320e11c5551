//! Reads and writes for C callers: a table of names for each kind of access, with counts of 4 or 8 bytes.

use crate::access::{Access, At};
use std::ffi::c_int;
use vgasnet_mpi_front::handle;

/// A count passed as an `int`.
#[inline]
pub fn short(argument: usize) -> i64 {
    i64::from(argument as c_int)
}

/// A count that fills its register.
#[cfg(mpi_4)]
#[inline]
pub fn long(argument: usize) -> i64 {
    argument as i64
}

pub fn access([buffer, datatype]: [usize; 2], count: i64, file: usize, at: At, is_write: bool) -> Access {
    Access { file: file as u64, at, is_write, buffer, count, datatype: handle(datatype) }
}

/// The name of a split collective, from the name of one of its functions.
pub fn split_name(function: &'static str) -> &'static str {
    let name = function.strip_suffix("_c").unwrap_or(function);
    name.strip_suffix("_begin").unwrap_or(name)
}

/// Defines functions for one kind of access: at an offset, their second argument, or at a pointer.
macro_rules! accesses {
    ($($way:ident $at:tt $is_write:literal $count:ident: $($name:ident)+;)+) => {
        $($(accesses!(@$way $at $is_write $count $name);)+)+
    };
    (@now offset $is_write:literal $count:ident $name:ident) => {
        vgasnet_mpi_front::calls! {
            $name(file offset buf count kind status) |next| $crate::access::now(
                &$crate::accesses::access([buf, kind], $crate::accesses::$count(count), file, $crate::access::At::Offset(offset as i64), $is_write),
                $crate::ffi::Status::C(status),
                next,
            );
        }
    };
    (@now $at:ident $is_write:literal $count:ident $name:ident) => {
        vgasnet_mpi_front::calls! {
            $name(file buf count kind status) |next| $crate::access::now(
                &$crate::accesses::access([buf, kind], $crate::accesses::$count(count), file, $crate::access::At::$at, $is_write),
                $crate::ffi::Status::C(status),
                next,
            );
        }
    };
    (@later offset $is_write:literal $count:ident $name:ident) => {
        vgasnet_mpi_front::calls! {
            $name(file offset buf count kind request) |next| $crate::access::later(
                &$crate::accesses::access([buf, kind], $crate::accesses::$count(count), file, $crate::access::At::Offset(offset as i64), $is_write),
                request as *mut std::ffi::c_void,
                next,
            );
        }
    };
    (@later $at:ident $is_write:literal $count:ident $name:ident) => {
        vgasnet_mpi_front::calls! {
            $name(file buf count kind request) |next| $crate::access::later(
                &$crate::accesses::access([buf, kind], $crate::accesses::$count(count), file, $crate::access::At::$at, $is_write),
                request as *mut std::ffi::c_void,
                next,
            );
        }
    };
    (@begin offset $is_write:literal $count:ident $name:ident) => {
        vgasnet_mpi_front::calls! {
            $name(file offset buf count kind) |next| $crate::access::begin(
                &$crate::accesses::access([buf, kind], $crate::accesses::$count(count), file, $crate::access::At::Offset(offset as i64), $is_write),
                $crate::accesses::split_name(stringify!($name)),
                next,
            );
        }
    };
    (@begin $at:ident $is_write:literal $count:ident $name:ident) => {
        vgasnet_mpi_front::calls! {
            $name(file buf count kind) |next| $crate::access::begin(
                &$crate::accesses::access([buf, kind], $crate::accesses::$count(count), file, $crate::access::At::$at, $is_write),
                $crate::accesses::split_name(stringify!($name)),
                next,
            );
        }
    };
}
