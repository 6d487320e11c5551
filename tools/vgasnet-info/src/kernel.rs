//! The kernel's permissions for this process, and obstacles.

use crate::machine::number;
use crate::report::{Report, Section};
use std::fs;
use std::io;

/// `Seccomp:` in `/proc/self/status` of a process with a filter.
const FILTERED: &str = "2";

/// Adds the kernel's permissions, except for io_uring: testing io_uring needs a file.
pub fn observe(report: &mut Report) {
    report.flag(Section::Kernel, "seccomp_filter", has_seccomp_filter());
    report.flag(Section::Kernel, "reads_of_other_processes", reads_processes());
    let keeps = keeps_addresses();
    report.flag(Section::Kernel, "addresses_equal_on_all_ranks", keeps);
    if !keeps {
        report.advise(
            "the kernel refuses personality(), so functions lie at different addresses in each rank: programs that pass pointers to \
             functions between ranks need a container whose seccomp profile permits it",
        );
    }
}

/// Adds whether storage can use io_uring. `refused` is the error of the attempt.
pub fn tell_of_io_uring(report: &mut Report, refused: Option<&io::Error>) {
    report.flag(Section::Kernel, "io_uring", refused.is_none());
    let Some(error) = refused else { return };
    let disabled = number("/proc/sys/kernel/io_uring_disabled").unwrap_or(0);
    let hint = match error.raw_os_error() {
        Some(libc::ENOMEM) => "raise ulimit -l".to_owned(),
        Some(libc::ENOSYS) if !has_seccomp_filter() => "this Linux has none; 5.6 or later has".to_owned(),
        _ if disabled > 0 => format!("kernel.io_uring_disabled is {disabled}: sysctl -w kernel.io_uring_disabled=0"),
        _ if has_seccomp_filter() => {
            "a seccomp filter refuses it: in Docker, --security-opt seccomp=PROFILE with a profile that permits \
                                      io_uring_setup, io_uring_enter and io_uring_register"
                .to_owned()
        }
        _ => "Linux 5.6 or later has what is needed of it".to_owned(),
    };
    report.advise(format!(
        "io_uring cannot be used ({error}), so threads with blocking calls read and write, which is slower; {hint}"
    ));
}

fn has_seccomp_filter() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == FILTERED)
}

/// Whether `process_vm_readv` is permitted at all.
fn reads_processes() -> bool {
    let (from, mut to) = (7_u8, 0_u8);
    let here = libc::iovec { iov_base: (&raw mut to).cast(), iov_len: 1 };
    let there = libc::iovec { iov_base: (&raw const from).cast_mut().cast(), iov_len: 1 };
    // SAFETY: the kernel reads one byte of this process and writes one. Both outlive the call.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &raw const here, 1, &raw const there, 1, 0) };
    copied == 1
}

/// Whether the launcher may turn off address randomization for ranks.
fn keeps_addresses() -> bool {
    const ANY: libc::c_ulong = 0xffff_ffff;
    // SAFETY: the calls take numbers. The third undoes the second, and no program is started in between.
    unsafe {
        let current = libc::personality(ANY);
        let is_permitted =
            current >= 0 && libc::personality(current as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong) >= 0;
        if is_permitted {
            libc::personality(current as libc::c_ulong);
        }
        is_permitted
    }
}
