//! Removing page table entries of many mappings at once.
//!
//! A mapping that is removed interrupts the other processors on which the process runs, unless it has no entries. So the
//! entries of several mappings are removed first, by one system call with one interrupt for all. It is a hint: the
//! mappings stay, and an access populates an entry again.
//!
//! Source: process_madvise(2) for the calling process. Linux takes the call since 6.14, and joins the interrupts since
//! 6.16. Entries that have been written through still cost one interrupt each.

use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_sys::{last_errno, set_errno};

/// Mappings whose entries are removed at once.
pub const UNMAPPED_AT_ONCE: usize = 16;

/// `PIDFD_SELF_THREAD` of `linux/pidfd.h`, since Linux 6.14: this thread, so this address space.
const OWN_THREAD: i32 = -10_000;

/// The system has refused the call, as older ones do.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// Removes the page table entries of ranges, each a start and a length in bytes, of shared mappings, without access, or
/// of bytes that nobody needs. Returns whether the system has done so for all. Keeps errno. Neither allocates nor locks.
pub(super) fn drop_entries(ranges: impl Iterator<Item = (usize, usize)>) -> bool {
    let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let (mut vectors, mut count, mut all_bytes) = ([none; UNMAPPED_AT_ONCE], 0, 0);
    for (start, len_bytes) in ranges.take(UNMAPPED_AT_ONCE) {
        let start = std::ptr::with_exposed_provenance_mut(start);
        vectors[count] = libc::iovec { iov_base: start, iov_len: len_bytes };
        count += 1;
        all_bytes += len_bytes;
    }
    if count < 2 || IS_REFUSED.load(Ordering::Relaxed) {
        return false;
    }
    let before = last_errno();
    // SAFETY: entries of shared mappings come back with the same bytes, and nobody needs those of other ranges.
    let dropped = unsafe {
        let vectors = vectors.as_ptr();
        libc::syscall(libc::SYS_process_madvise, OWN_THREAD, vectors, count, libc::MADV_DONTNEED, 0)
    };
    if dropped == -1 {
        let is_for_good = [libc::EBADF, libc::EINVAL, libc::EPERM, libc::ENOSYS].contains(&last_errno());
        IS_REFUSED.fetch_or(is_for_good, Ordering::Relaxed);
        set_errno(before);
    }
    dropped == all_bytes as libc::c_long
}

/// Removes the pages of at most [`UNMAPPED_AT_ONCE`] ranges of anonymous memory that nobody needs: an access finds none.
/// Keeps errno.
///
/// # Errors
/// The system's errno value. Some pages may be left.
pub(super) fn drop_pages(ranges: impl Iterator<Item = (usize, usize)> + Clone) -> Result<(), i32> {
    debug_assert!(ranges.clone().count() <= UNMAPPED_AT_ONCE, "so many at once");
    if drop_entries(ranges.clone()) {
        return Ok(());
    }
    let before = last_errno();
    // The second one is for memory that the program has locked (Linux 5.18).
    const ADVICES: [i32; 2] = [libc::MADV_DONTNEED, libc::MADV_DONTNEED_LOCKED];
    for (start, len_bytes) in ranges {
        let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
        // SAFETY: nobody needs the bytes of the range.
        let drops = |advice: &i32| unsafe { libc::syscall(libc::SYS_madvise, start, len_bytes, *advice) } == 0;
        if !ADVICES.iter().any(drops) {
            let errno = last_errno();
            set_errno(before);
            return Err(errno);
        }
    }
    set_errno(before);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_conduit::page_bytes;

    fn minor_faults() -> libc::c_long {
        // SAFETY: zero is a valid value of each field.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: there is room for the answer.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        usage.ru_minflt
    }

    #[test]
    fn entries_go_and_bytes_stay() {
        let len_bytes = 8 * page_bytes();
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len_bytes, rights, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let base = start.expose_provenance();
        let bytes = start.cast::<u8>();
        // SAFETY: the bytes are mapped, and only this test uses them.
        unsafe {
            (0..len_bytes).for_each(|at| bytes.add(at).write(at as u8));
            libc::mprotect(start, len_bytes, libc::PROT_READ);
            drop_entries((0..4).map(|page| (base + 2 * page * page_bytes(), page_bytes())));
            let before = minor_faults();
            assert!((0..len_bytes).all(|at| bytes.add(at).read() == at as u8));
            assert!(IS_REFUSED.load(Ordering::Relaxed) || minor_faults() > before, "entries are populated again");
            libc::munmap(start, len_bytes);
        }
    }
}
