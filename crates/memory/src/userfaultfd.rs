//! The system's calls for copies of blocks: pages without a thread that serves their faults.
//!
//! Source: userfaultfd(2), ioctl_userfaultfd(2); `linux/userfaultfd.h`.

use super::block_mapper::MAPPED_BLOCK_BYTES;
use super::unmapping::drop_pages;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use vgasnet_sys::{last_errno, set_errno};

/// `struct uffdio_api`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    start: u64,
    len_bytes: u64,
    mode: u64,
    ioctls: u64,
}

/// `struct uffdio_copy`.
#[repr(C)]
struct Fill {
    to: u64,
    from: u64,
    len_bytes: u64,
    mode: u64,
    copied: i64,
}

const TYPE: u32 = 0xaa;
const UFFDIO_API: libc::Ioctl = libc::_IOWR::<Api>(TYPE, 0x3f);
const UFFDIO_REGISTER: libc::Ioctl = libc::_IOWR::<Register>(TYPE, 0x00);
const UFFDIO_COPY: libc::Ioctl = libc::_IOWR::<Fill>(TYPE, 0x03);
const UFFD_API: u64 = 0xaa;
const UFFD_FEATURE_SIGBUS: u64 = 1 << 7;
const UFFDIO_REGISTER_MODE_MISSING: u64 = 1;
/// Faults of the kernel's own accesses are not served; other users may open such a descriptor (Linux 5.11).
const UFFD_USER_MODE_ONLY: libc::c_long = 1;

/// Whether the system offers copies.
pub fn offers_copies() -> bool {
    open_userfaultfd().is_some()
}

/// A descriptor whose missing pages raise SIGBUS, unless the system refuses it.
pub(super) fn open_userfaultfd() -> Option<OwnedFd> {
    // SAFETY: the call takes flags only.
    let raw =
        unsafe { libc::syscall(libc::SYS_userfaultfd, libc::c_long::from(libc::O_CLOEXEC) | UFFD_USER_MODE_ONLY) };
    // SAFETY: the descriptor was opened just now, and nobody else has it.
    let descriptor = (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw as i32) })?;
    let mut api = Api { api: UFFD_API, features: UFFD_FEATURE_SIGBUS, ioctls: 0 };
    control(&descriptor, UFFDIO_API, &mut api).ok()?;
    Some(descriptor)
}

/// Makes a copy and removes it. The kernel joins parts of a mapping only if they had their first page together, so it has
/// one before the mapping is split.
pub(super) fn join(descriptor: &OwnedFd, start: usize) -> bool {
    let zeros = [0; MAPPED_BLOCK_BYTES];
    fill(descriptor, start, zeros.as_ptr()).is_ok() && drop_pages([(start, MAPPED_BLOCK_BYTES)].into_iter()).is_ok()
}

/// Makes a range without access readable where it has copies. Whatever is done stays done: a range that is not readable
/// has no copies.
pub(super) fn open_range(descriptor: &OwnedFd, start: usize, len_bytes: usize) -> Result<(), i32> {
    let mode = UFFDIO_REGISTER_MODE_MISSING;
    let mut register = Register { start: start as u64, len_bytes: len_bytes as u64, mode, ioctls: 0 };
    // Once the range is readable, an access must not find it unregistered: it would read zeros.
    control(descriptor, UFFDIO_REGISTER, &mut register)?;
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
    // SAFETY: the range lies in the segment's, which belongs to the mappers. A forked child is not served, and so does
    // not inherit it; a core dump would have as many zeros as the segment is large.
    let refused = unsafe {
        libc::syscall(libc::SYS_madvise, start, len_bytes, libc::MADV_DONTFORK) != 0
            || libc::syscall(libc::SYS_madvise, start, len_bytes, libc::MADV_DONTDUMP) != 0
            || libc::syscall(libc::SYS_mprotect, start, len_bytes, libc::PROT_READ) != 0
    };
    if refused { Err(last_errno()) } else { Ok(()) }
}

/// Fills a missing system page with a copy. Keeps errno.
pub(super) fn fill(descriptor: &OwnedFd, to: usize, from: *const u8) -> Result<(), i32> {
    let from = from.expose_provenance() as u64;
    let mut fill = Fill { to: to as u64, from, len_bytes: MAPPED_BLOCK_BYTES as u64, mode: 0, copied: 0 };
    control(descriptor, UFFDIO_COPY, &mut fill)
}

fn control<T>(descriptor: &OwnedFd, request: libc::Ioctl, argument: &mut T) -> Result<(), i32> {
    let before = last_errno();
    // SAFETY: the argument is the structure of this request. The kernel keeps no pointer to it, and changes no memory
    // but missing pages of ranges registered here.
    if unsafe { libc::syscall(libc::SYS_ioctl, descriptor.as_raw_fd(), request, std::ptr::from_mut(argument)) } == 0 {
        return Ok(());
    }
    let errno = last_errno();
    set_errno(before);
    Err(errno)
}
