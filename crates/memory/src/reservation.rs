//! Reserves a segment's range of virtual addresses, and removes access to parts of it.

use super::Segment;
use std::io;
use vgasnet_sys::last_errno;
use vgasnet_sys::observers::has_thread_sanitizer;

/// Places at which ranks try to put their segments, so that all get the same base: every 8 TiB from 32 TiB on.
/// Programs, heaps, stacks and the shadow memory of sanitizers lie elsewhere on Linux with 47-bit addresses.
const PLACES: u32 = 8;

const FIRST_PLACE: usize = 32 << 40;
const PLACE_STEP: usize = 8 << 40;

/// Bytes reserved behind a segment, so that an access there hits nothing else and is reported.
const GUARD_BYTES: usize = 64 << 20;

/// A reserved range: no access, no memory. It stays reserved until the process ends.
#[derive(Debug)]
pub struct Reservation {
    segment: Segment,
}

/// End of the range reserved for a non-empty segment.
pub fn guard_end(segment: Segment) -> usize {
    segment.base + segment.size_bytes + GUARD_BYTES
}

impl Reservation {
    /// The places at which `size_bytes` bytes are free now, one bit each. ThreadSanitizer knows none of them.
    pub fn free_places(size_bytes: usize) -> u32 {
        if has_thread_sanitizer() {
            return 0;
        }
        (0..PLACES).filter(|place| probe(*place, size_bytes)).fold(0, |places, place| places | 1 << place)
    }

    /// Reserves a range at the lowest of `places`, or anywhere if there is no such place or it is no longer free. The
    /// base is a multiple of `align_bytes`, a power of two.
    ///
    /// # Errors
    /// The system has no such range left.
    pub fn new(size_bytes: usize, places: u32, align_bytes: usize) -> io::Result<Reservation> {
        if size_bytes == 0 {
            return Ok(Reservation { segment: Segment::default() });
        }
        let place = places.trailing_zeros();
        if place < PLACES {
            if let Ok(base) = reserve(address_of(place), size_bytes + GUARD_BYTES, libc::MAP_FIXED_NOREPLACE) {
                return Ok(Reservation { segment: Segment { base, size_bytes } });
            }
        }
        let raw = reserve(0, size_bytes + align_bytes + GUARD_BYTES, 0)?;
        Ok(Reservation { segment: Segment { base: raw.next_multiple_of(align_bytes), size_bytes } })
    }

    /// The range.
    pub fn segment(&self) -> Segment {
        self.segment
    }
}

fn address_of(place: u32) -> usize {
    FIRST_PLACE + place as usize * PLACE_STEP
}

/// Whether a range is free: reserves it and gives it back.
fn probe(place: u32, size_bytes: usize) -> bool {
    if size_bytes == 0 {
        return true;
    }
    let size_bytes = size_bytes + GUARD_BYTES;
    let Ok(base) = reserve(address_of(place), size_bytes, libc::MAP_FIXED_NOREPLACE) else { return false };
    // SAFETY: the range was mapped just now, and nobody else knows of it.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(base), size_bytes) };
    true
}

/// Reserves a range at `address`, or anywhere for 0.
pub(super) fn reserve(address: usize, size_bytes: usize, flags: i32) -> io::Result<usize> {
    let hint = std::ptr::without_provenance_mut(address);
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: without MAP_FIXED no existing mapping is touched, and the new one allows no access.
    let mapped = unsafe { libc::mmap(hint, size_bytes, libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let base = mapped.expose_provenance();
    if address != 0 && base != address {
        // Kernels before 4.17 take MAP_FIXED_NOREPLACE for a mere hint.
        // SAFETY: the range was mapped just now, and nobody else knows of it.
        unsafe { libc::munmap(mapped, size_bytes) };
        return Err(io::ErrorKind::AddrInUse.into());
    }
    Ok(base)
}

/// Removes all access to a range of a segment, of whole system pages with only mappings of frames.
///
/// # Errors
/// The system's errno value, if it has no room for another mapping.
pub(super) fn cover(at: usize, len_bytes: usize) -> Result<(), i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let at = std::ptr::with_exposed_provenance_mut::<libc::c_void>(at);
    // SAFETY: the range lies in the segment's, which belongs to the mappers, and has only mappings of frames.
    let mapped = unsafe { libc::syscall(libc::SYS_mmap, at, len_bytes, libc::PROT_NONE, flags, -1, 0_u64) };
    if mapped == -1 { Err(last_errno()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_once() {
        let size_bytes = 1 << 40;
        let free = Reservation::free_places(size_bytes);
        assert_ne!(free, 0);
        let first = Reservation::new(size_bytes, free, 1 << 22).expect("a terabyte of addresses").segment();
        assert_eq!(first.base, address_of(free.trailing_zeros()));
        assert_eq!(Reservation::free_places(size_bytes), free & (free - 1));
        let second = Reservation::new(size_bytes, free, 1 << 22).expect("a terabyte of addresses").segment();
        assert_eq!(second.base % (1 << 22), 0);
        assert!(!second.overlaps(first.base, first.size_bytes));
    }

    #[test]
    fn no_segment_needs_no_addresses() {
        let none = Reservation::new(0, u32::MAX, 1 << 22).expect("nothing to reserve").segment();
        assert_eq!(none, Segment::default());
    }
}
