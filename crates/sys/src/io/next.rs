//! The next functions behind the library's own, in the search order of the dynamic linker. In a static program there is
//! no such order, and the system call or the C library's other name of the function takes their place.
//!
//! They are cancellation points: a thread cancelled in one of them unwinds through its caller.

use crate::cancellation::cancellable;
use crate::next_definition::next_definition;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function, once it has been looked up.
pub(super) struct Next(AtomicPtr<c_void>);

impl Next {
    pub(super) const fn new() -> Next {
        Next(AtomicPtr::new(null_mut()))
    }

    /// Its address, or `alone` if there is none behind the library's.
    #[inline(always)]
    pub(super) fn address(&self, name: &CStr, alone: *mut c_void) -> *mut c_void {
        let address = self.0.load(Ordering::Relaxed);
        if address.is_null() { self.look_up(name, alone) } else { address }
    }

    #[cold]
    fn look_up(&self, name: &CStr, alone: *mut c_void) -> *mut c_void {
        let next = next_definition(name);
        let address = if next.is_null() { alone } else { next };
        self.0.store(address, Ordering::Relaxed);
        address
    }
}

/// For each function `name` defines `name::call`, which calls the next one. All of them are looked up at the start of
/// the program: later the caller may be a signal handler.
macro_rules! next_functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty = $alone:expr;)*) => {
        $(
            pub(super) mod $name {
                use super::*;

                type Function = unsafe extern "C-unwind" fn($($type),*) -> $answer;

                static NEXT: Next = Next::new();

                unsafe extern "C-unwind" fn alone($($argument: $type),*) -> $answer {
                    // SAFETY: the arguments are as for the function of this name.
                    unsafe { $alone }
                }

                pub(super) fn address() -> *mut c_void {
                    const NAME: &str = concat!(stringify!($name), "\0");
                    let name = const {
                        match CStr::from_bytes_with_nul(NAME.as_bytes()) {
                            Ok(name) => name,
                            Err(_) => panic!("a name has no zeros"),
                        }
                    };
                    NEXT.address(name, alone as Function as *mut c_void)
                }

                /// # Safety
                /// As for the C library's function of this name.
                #[inline(always)]
                pub(in super::super) unsafe fn call($($argument: $type),*) -> $answer {
                    // SAFETY: the address is of a function of this name, which has this type.
                    unsafe { std::mem::transmute::<*mut c_void, Function>(address())($($argument),*) }
                }
            }
        )*

        extern "C" fn look_all_up() {
            $($name::address();)*
        }
    };
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_all_up;

// The C library's functions by their other names.
unsafe extern "C-unwind" {
    fn _IO_fread(memory: *mut c_void, size: usize, count: usize, stream: *mut libc::FILE) -> usize;
    fn _IO_fwrite(memory: *const c_void, size: usize, count: usize, stream: *mut libc::FILE) -> usize;
    fn _IO_fputs(text: *const libc::c_char, stream: *mut libc::FILE) -> c_int;
    fn _IO_puts(text: *const libc::c_char) -> c_int;
}

/// A system call in which a thread may be cancelled, with the errno value where the C library has it.
macro_rules! system_call {
    ($number:ident, $($argument:expr),*) => {
        cancellable(|| libc::syscall(libc::$number, $($argument),*) as isize)
    };
}

type Memory = *mut c_void;
type Constant = *const c_void;
type Vectors = *const libc::iovec;
type Offset = libc::off64_t;
type Stream = *mut libc::FILE;

next_functions! {
    fn read(file: c_int, to: Memory, len: usize) -> isize = system_call!(SYS_read, file, to, len);
    fn write(file: c_int, from: Constant, len: usize) -> isize = system_call!(SYS_write, file, from, len);
    fn pread64(file: c_int, to: Memory, len: usize, at: Offset) -> isize = system_call!(SYS_pread64, file, to, len, at);
    fn pwrite64(file: c_int, from: Constant, len: usize, at: Offset) -> isize
        = system_call!(SYS_pwrite64, file, from, len, at);
    fn readv(file: c_int, to: Vectors, count: c_int) -> isize = system_call!(SYS_readv, file, to, count);
    fn writev(file: c_int, from: Vectors, count: c_int) -> isize = system_call!(SYS_writev, file, from, count);
    fn preadv64(file: c_int, to: Vectors, count: c_int, at: Offset) -> isize
        = system_call!(SYS_preadv, file, to, count, at, 0_usize);
    fn pwritev64(file: c_int, from: Vectors, count: c_int, at: Offset) -> isize
        = system_call!(SYS_pwritev, file, from, count, at, 0_usize);
    fn preadv64v2(file: c_int, to: Vectors, count: c_int, at: Offset, flags: c_int) -> isize
        = system_call!(SYS_preadv2, file, to, count, at, 0_usize, flags);
    fn pwritev64v2(file: c_int, from: Vectors, count: c_int, at: Offset, flags: c_int) -> isize
        = system_call!(SYS_pwritev2, file, from, count, at, 0_usize, flags);
    fn recv(socket: c_int, to: Memory, len: usize, flags: c_int) -> isize
        = system_call!(SYS_recvfrom, socket, to, len, flags, 0_usize, 0_usize);
    fn send(socket: c_int, from: Constant, len: usize, flags: c_int) -> isize
        = system_call!(SYS_sendto, socket, from, len, flags, 0_usize, 0_usize);
    fn recvfrom(socket: c_int, to: Memory, len: usize, flags: c_int, name: *mut libc::sockaddr, name_len: *mut u32) -> isize
        = system_call!(SYS_recvfrom, socket, to, len, flags, name, name_len);
    fn sendto(socket: c_int, from: Constant, len: usize, flags: c_int, name: *const libc::sockaddr, name_len: u32) -> isize
        = system_call!(SYS_sendto, socket, from, len, flags, name, name_len);
    fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize
        = system_call!(SYS_recvmsg, socket, message, flags);
    fn sendmsg(socket: c_int, message: *const libc::msghdr, flags: c_int) -> isize
        = system_call!(SYS_sendmsg, socket, message, flags);
    fn recvmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: u32, flags: c_int, timeout: *mut libc::timespec) -> c_int
        = system_call!(SYS_recvmmsg, socket, messages, count, flags, timeout) as c_int;
    fn sendmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: u32, flags: c_int) -> c_int
        = system_call!(SYS_sendmmsg, socket, messages, count, flags) as c_int;
    fn fread(to: Memory, size: usize, count: usize, stream: Stream) -> usize = _IO_fread(to, size, count, stream);
    fn fwrite(from: Constant, size: usize, count: usize, stream: Stream) -> usize = _IO_fwrite(from, size, count, stream);
    fn fread_unlocked(to: Memory, size: usize, count: usize, stream: Stream) -> usize
        = _IO_fread(to, size, count, stream);
    fn fwrite_unlocked(from: Constant, size: usize, count: usize, stream: Stream) -> usize
        = _IO_fwrite(from, size, count, stream);
    fn fputs(text: *const libc::c_char, stream: Stream) -> c_int = _IO_fputs(text, stream);
    fn puts(text: *const libc::c_char) -> c_int = _IO_puts(text);
}
