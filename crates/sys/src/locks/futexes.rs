//! The system call `futex` on words of the segment, by programs that use it themselves: C++'s `std::atomic::wait`, Rust's
//! `Mutex`.
//!
//! Source: futex(2), syscall(2).

use super::parking::{Ended, Limits, cancelled, wait, wake};
use crate::errno::set_errno;
use crate::futex::Deadline;
use crate::io::is_in_segment;
use std::arch::asm;
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicU32, Ordering};

/// As the C library's function of this name; see syscall(2). The kernel uses as many arguments as its call has.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    first: c_long,
    second: c_long,
    third: c_long,
    fourth: c_long,
    fifth: c_long,
    sixth: c_long,
) -> c_long {
    let answer = if number == libc::SYS_futex && is_in_segment(first as usize) {
        // SAFETY: as this function requires.
        unsafe { futex(first as usize, second as c_int, third as u32, fourth as *const libc::timespec, sixth as u32) }
    } else {
        None
    };
    // SAFETY: the same.
    let answer = answer.unwrap_or_else(|| unsafe { kernel(number, [first, second, third, fourth, fifth, sixth]) });
    if (-4095..0).contains(&answer) {
        set_errno(-answer as c_int);
        return -1;
    }
    answer
}

/// Waits and wakes, with the kernel's answer. `None` for other operations.
///
/// # Safety
/// `address` is that of a word. `time` is null or valid for reads, if the thread waits.
unsafe fn futex(
    address: usize,
    operation: c_int,
    value: u32,
    time: *const libc::timespec,
    bits: u32,
) -> Option<c_long> {
    const ALL_BITS: u32 = libc::FUTEX_BITSET_MATCH_ANY as u32;
    let flags = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
    let is_real_time = operation & libc::FUTEX_CLOCK_REALTIME != 0;
    let has_bits = matches!(operation & !flags, libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAKE_BITSET);
    if has_bits && bits == 0 {
        return Some(-c_long::from(libc::EINVAL));
    }
    match operation & !flags {
        // Whoever waits for other bits wakes spuriously.
        libc::FUTEX_WAKE_BITSET if bits != ALL_BITS => Some(wake(address, usize::MAX) as c_long),
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => {
            Some(wake(address, value.min(i32::MAX as u32) as usize) as c_long)
        }
        kind @ (libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) => {
            let clock = if is_real_time { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
            // SAFETY: it is null or valid.
            let time = unsafe { time.as_ref() };
            if time.is_some_and(|time| time.tv_sec < 0 || !(0..1_000_000_000).contains(&time.tv_nsec)) {
                return Some(-c_long::from(libc::EINVAL));
            }
            let deadline = time.map(|&time| match kind {
                libc::FUTEX_WAIT => Deadline::after(clock, time),
                _ => Deadline { clock, time },
            });
            // SAFETY: it is the address of a word, which threads access in atomic operations.
            let word = unsafe { AtomicU32::from_ptr(address as *mut u32) };
            let differs = || (word.load(Ordering::SeqCst) != value).then_some(());
            let limits = Limits { deadline, is_interruptible: true };
            Some(match wait(address, cancelled(), limits, differs) {
                Ended::Ready(()) => -c_long::from(libc::EAGAIN),
                Ended::TimedOut => -c_long::from(libc::ETIMEDOUT),
                Ended::Interrupted => -c_long::from(libc::EINTR),
                Ended::Woken | Ended::Disturbed => 0,
            })
        }
        _ => None,
    }
}

/// # Safety
/// As for the system call.
#[cfg(target_arch = "x86_64")]
unsafe fn kernel(number: c_long, [first, second, third, fourth, fifth, sixth]: [c_long; 6]) -> c_long {
    let answer;
    // SAFETY: as this function requires. The kernel overwrites these registers alone.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth, in("r9") sixth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// # Safety
/// As for the system call.
#[cfg(target_arch = "aarch64")]
unsafe fn kernel(number: c_long, [first, second, third, fourth, fifth, sixth]: [c_long; 6]) -> c_long {
    let answer;
    // SAFETY: as this function requires. The kernel overwrites one register alone.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") first => answer,
            in("x1") second, in("x2") third, in("x3") fourth, in("x4") fifth, in("x5") sixth,
            options(nostack),
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::last_errno;

    #[test]
    fn calls_have_the_kernels_answers() {
        // SAFETY: the calls have no conditions, or fail.
        unsafe {
            assert_eq!(syscall(libc::SYS_getpid, 0, 0, 0, 0, 0, 0), c_long::from(libc::getpid()));
            assert_eq!(syscall(libc::SYS_close, -1, 0, 0, 0, 0, 0), -1);
        }
        assert_eq!(last_errno(), libc::EBADF);
    }

    #[test]
    fn words_are_waited_for_as_by_the_kernel() {
        let word = AtomicU32::new(5);
        let address = std::ptr::from_ref(&word).addr();
        let short = libc::timespec { tv_sec: 0, tv_nsec: 1000 };
        let call = |operation, value| {
            // SAFETY: it is the address of a word, and the time is valid.
            unsafe { futex(address, operation | libc::FUTEX_PRIVATE_FLAG, value, &raw const short, u32::MAX) }
        };
        let never = libc::timespec { tv_sec: 0, tv_nsec: -1 };
        // SAFETY: as above.
        let refused = unsafe { futex(address, libc::FUTEX_WAIT, 5, &raw const never, 0) };
        assert_eq!(refused, Some(-c_long::from(libc::EINVAL)));
        assert_eq!(call(libc::FUTEX_WAIT, 4), Some(-c_long::from(libc::EAGAIN)));
        assert_eq!(call(libc::FUTEX_WAIT, 5), Some(-c_long::from(libc::ETIMEDOUT)));
        assert_eq!(call(libc::FUTEX_WAIT_BITSET, 5), Some(-c_long::from(libc::ETIMEDOUT)));
        assert_eq!(call(libc::FUTEX_WAKE, 1), Some(0));
        assert_eq!(call(libc::FUTEX_LOCK_PI, 1), None);
    }
}
