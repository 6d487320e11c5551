//! Locks of whole files by the program, its libraries and MPI: `fcntl` and `lockf`. They would wait for ever for the
//! bytes of claims (`claims.rs`), which are locked while the file is open. So a lock that begins before these bytes ends
//! before them. No data lies there, and two processes with such locks exclude each other as before.
//!
//! Open MPI locks the whole file around each access on NFS.

use crate::claims::PLACES;
use crate::next_function::NextFunction;
use std::ffi::c_int;

/// The first byte of claims.
const END: i64 = *PLACES.start();

/// The C library's `fcntl`, or that of a library behind this one. Its last argument is an integer or an address.
type Fcntl = unsafe extern "C" fn(c_int, c_int, usize) -> c_int;

/// The same of `lockf`.
type Lockf = unsafe extern "C" fn(c_int, c_int, i64) -> c_int;

static FCNTL: NextFunction = NextFunction::new(c"fcntl");
static FCNTL64: NextFunction = NextFunction::new(c"fcntl64");
static LOCKF: NextFunction = NextFunction::new(c"lockf");
static LOCKF64: NextFunction = NextFunction::new(c"lockf64");

extern "C" fn look_all_up() {
    for next in [&FCNTL, &FCNTL64, &LOCKF, &LOCKF64] {
        next.look_up();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_all_up;

/// The place from which a lock's numbers count.
fn base_of(descriptor: c_int, whence: c_int) -> Option<i64> {
    match whence {
        libc::SEEK_SET => Some(0),
        libc::SEEK_CUR => {
            // SAFETY: the call moves nothing. A descriptor that is not open is refused.
            Some(unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) }).filter(|place| *place >= 0)
        }
        libc::SEEK_END => {
            // SAFETY: all fields may be 0.
            let mut about: libc::stat = unsafe { std::mem::zeroed() };
            // SAFETY: there is room for the answer. A descriptor that is not open is refused.
            (unsafe { libc::fstat(descriptor, &mut about) } == 0).then_some(about.st_size)
        }
        _ => None,
    }
}

/// The length that ends a range before the claims, if the range begins before them and reaches them. A length of 0
/// reaches the end of all files.
fn shortened(start: i64, len: i64) -> Option<i64> {
    let reaches_them = len == 0 || len > 0 && start.checked_add(len).is_none_or(|end| end > END);
    ((0..END).contains(&start) && reaches_them).then(|| END - start)
}

/// A lock that ends before the claims, if this one reaches them.
fn shortened_lock(descriptor: c_int, command: c_int, lock: &libc::flock) -> Option<libc::flock> {
    let is_of_process = matches!(command, libc::F_SETLK | libc::F_SETLKW);
    // Claims are locks of open files, never of the process.
    if c_int::from(lock.l_type) == libc::F_UNLCK && is_of_process {
        return None;
    }
    let start = base_of(descriptor, c_int::from(lock.l_whence))?.checked_add(lock.l_start)?;
    let len = shortened(start, lock.l_len)?;
    Some(libc::flock { l_whence: libc::SEEK_SET as i16, l_start: start, l_len: len, ..*lock })
}

/// # Safety
/// As for `fcntl` of the C library, which is next.
unsafe fn shorten(next: &NextFunction, descriptor: c_int, command: c_int, argument: usize) -> c_int {
    let address = next.address();
    if address == 0 {
        // SAFETY: the arguments are the caller's.
        return unsafe { libc::syscall(libc::SYS_fcntl, descriptor, command, argument) } as c_int;
    }
    // SAFETY: the C library has a function of this name, with this type on all platforms of the library: an argument
    // is in the same register, whether it is variable or not.
    let next = unsafe { std::mem::transmute::<usize, Fcntl>(address) };
    let asks = matches!(command, libc::F_GETLK | libc::F_OFD_GETLK);
    let is_lock = asks || matches!(command, libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW);
    let given = argument as *mut libc::flock;
    if !is_lock || given.is_null() {
        // SAFETY: the arguments are the caller's.
        return unsafe { next(descriptor, command, argument) };
    }
    // SAFETY: by the command the caller has passed the address of a lock.
    let Some(mut lock) = shortened_lock(descriptor, command, unsafe { &*given }) else {
        // SAFETY: the arguments are the caller's.
        return unsafe { next(descriptor, command, argument) };
    };
    // SAFETY: the lock is there until the call ends.
    let answer = unsafe { next(descriptor, command, &raw mut lock as usize) };
    if asks && answer == 0 {
        let is_free = c_int::from(lock.l_type) == libc::F_UNLCK;
        // SAFETY: the command has an answer there. Of a free range it changes the kind alone.
        unsafe {
            if is_free {
                (*given).l_type = lock.l_type;
            } else {
                *given = lock;
            }
        }
    }
    answer
}

/// # Safety
/// As for `lockf` of the C library, which is next.
unsafe fn shorten_lockf(next: &NextFunction, descriptor: c_int, command: c_int, len: i64) -> c_int {
    let address = next.address();
    if address == 0 {
        // SAFETY: `errno` is the calling thread's.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    }
    // SAFETY: the C library has a function of this name and type.
    let next = unsafe { std::mem::transmute::<usize, Lockf>(address) };
    let shorter = if command == libc::F_ULOCK { None } else { base_of(descriptor, libc::SEEK_CUR) };
    let len = shorter.and_then(|start| shortened(start, len)).unwrap_or(len);
    // SAFETY: the arguments are the caller's, or as good.
    unsafe { next(descriptor, command, len) }
}

/// # Safety
/// As for the C library's function, whose last argument is variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(descriptor: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { shorten(&FCNTL, descriptor, command, argument) }
}

/// # Safety
/// As for the C library's function, whose last argument is variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(descriptor: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { shorten(&FCNTL64, descriptor, command, argument) }
}

/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockf(descriptor: c_int, command: c_int, len: i64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { shorten_lockf(&LOCKF, descriptor, command, len) }
}

/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockf64(descriptor: c_int, command: c_int, len: i64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { shorten_lockf(&LOCKF64, descriptor, command, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_range_that_reaches_the_claims_from_before_is_shortened() {
        assert_eq!(shortened(0, 0), Some(END));
        assert_eq!(shortened(10, i64::MAX), Some(END - 10));
        assert_eq!(shortened(END - 1, 2), Some(1));
        assert_eq!(
            [(0, END), (END - 1, 1), (END, 0), (END + 5, 1), (100, -100), (-1, 0)].map(|(at, len)| shortened(at, len)),
            [None; 6]
        );
    }
}
