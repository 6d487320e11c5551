//! Whether addresses are memory of this process.

use crate::loaded_objects::page_bytes;
use std::ptr::without_provenance_mut;

/// The pages asked about in one call of the system.
const PAGES: usize = 1024;

/// Whether each page that the `len_bytes` bytes from `address` touch is mapped, whatever access its mapping allows. Other
/// threads may change the answer at any time. No bytes are mapped anywhere.
pub fn is_mapped(address: usize, len_bytes: usize) -> bool {
    let Some(end) = address.checked_add(len_bytes) else { return false };
    if len_bytes == 0 {
        return true;
    }
    let page_bytes = page_bytes();
    let mut resident = [0; PAGES];
    (address / page_bytes * page_bytes..end).step_by(PAGES * page_bytes).all(|begin| {
        let chunk_bytes = (end - begin).min(PAGES * page_bytes);
        // SAFETY: the vector has room for a byte a page, and the system only looks the addresses up.
        unsafe { libc::mincore(without_provenance_mut(begin), chunk_bytes, resident.as_mut_ptr()) == 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_child::status_of;
    use std::ptr::null_mut;

    /// In a process of its own, in which nothing else is mapped meanwhile.
    #[test]
    fn holes_are_found_wherever_they_are() {
        let status = status_of(|| {
            let page_bytes = page_bytes();
            let len_bytes = (PAGES + 3) * page_bytes;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping, of which one page is freed below.
            let area = unsafe { libc::mmap(null_mut(), len_bytes, libc::PROT_NONE, flags, -1, 0) };
            let begin = area.addr();
            let whole = area != libc::MAP_FAILED && is_mapped(begin, len_bytes) && is_mapped(begin + 1, len_bytes - 1);
            let hole = (PAGES + 1) * page_bytes;
            // SAFETY: the page is in the mapping, and nothing uses it.
            let is_freed = unsafe { libc::munmap(area.byte_add(hole), page_bytes) } == 0;
            let around = is_mapped(begin, hole) && is_mapped(begin + hole + page_bytes, page_bytes);
            let within = is_mapped(begin, hole + 1) || is_mapped(begin + hole + 5, 1) || is_mapped(begin, len_bytes);
            whole && is_freed && around && !within
        });
        assert_eq!(status, 0);
    }

    #[test]
    fn no_bytes_are_mapped_anywhere_and_too_many_nowhere() {
        assert!(is_mapped(1, 0) && is_mapped(usize::MAX, 0));
        let local = 7u8;
        let here = (&raw const local).addr();
        assert!(is_mapped(here, 1) && !is_mapped(here, usize::MAX) && !is_mapped(usize::MAX, 1) && !is_mapped(1, 1));
    }
}
