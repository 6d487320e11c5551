//! Copies of any length, fast even if one side begins at a page and the other slightly behind one.
//!
//! Frames begin at pages, and memory that an allocator got from the system begins 16 bytes behind one. `rep movsb` of
//! AMD's Zen 3 and 4 copies from such a source to such a target at a tenth of the speed (glibc bug 30994), and the
//! memcpy of glibc before 2.39 uses it for 2 KiB and more. So copies from 1 KiB on use vectors.

#[cfg(target_arch = "x86_64")]
mod vectors;

/// Copies bytes.
///
/// # Safety
/// Both sides are valid for the length, and do not overlap.
#[inline]
pub unsafe fn copy_bytes(from: *const u8, to: *mut u8, len_bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if len_bytes >= vectors::LEN_BYTES_MIN {
        // SAFETY: both sides are valid for the length, and do not overlap.
        return unsafe { vectors::copy(from, to, len_bytes) };
    }
    // SAFETY: both sides are valid for the length, and do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len_bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_copied_and_no_other() {
        const LENGTHS: [usize; 12] = [0, 1, 1023, 1024, 1025, 2048, 4095, 4096, 65_535, 65_536, 65_600, 100_003];
        let source: Vec<u8> = (0..110_000_u32).map(|at| (at % 251) as u8).collect();
        for len_bytes in LENGTHS {
            for (from, to) in [(0, 0), (0, 16), (16, 0), (3, 64), (64, 61), (5, 5)] {
                let mut target = vec![0xFF_u8; 110_000];
                // SAFETY: both have as many bytes from these offsets on.
                unsafe { copy_bytes(source.as_ptr().add(from), target.as_mut_ptr().add(to), len_bytes) };
                assert_eq!(target[to..to + len_bytes], source[from..from + len_bytes], "{len_bytes} bytes");
                let is_left = |byte: &u8| *byte == 0xFF;
                assert!(target[..to].iter().all(is_left) && target[to + len_bytes..].iter().all(is_left));
            }
        }
    }
}
