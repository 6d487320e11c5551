//! Copies by the processor's vectors.

use crate::observers::has_sanitizer;
use std::arch::x86_64::{__m128i, __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256};
use std::sync::atomic::{AtomicU8, Ordering};

/// Shorter copies use memcpy, which does not use `rep movsb` for them. For twice the length it may, and vectors are as
/// fast.
pub(super) const LEN_BYTES_MIN: usize = 1024;

/// From here on four parts are copied side by side: the processor prefetches each up to its page's end, so more lines
/// are in flight if the source is in no cache.
const PARTS_BYTES_MIN: usize = 64 << 10;

const LINE_BYTES: usize = 64;

const UNKNOWN: u8 = 0;
const BY_C_LIBRARY: u8 = 1;
const BY_16_BYTES: u8 = 2;
const BY_32_BYTES: u8 = 3;

/// The method of copying in this process.
static WAY: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Copies bytes.
///
/// # Safety
/// Both sides are valid for the length, at least [`LEN_BYTES_MIN`], and do not overlap.
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len_bytes: usize) {
    let is_short = len_bytes < PARTS_BYTES_MIN;
    // SAFETY: both sides are valid for the length and do not overlap, and the processor has the vectors.
    unsafe {
        match (way(), is_short) {
            (BY_32_BYTES, true) => by_32_bytes::<1>(from, to, len_bytes),
            (BY_32_BYTES, false) => by_32_bytes::<4>(from, to, len_bytes),
            (BY_16_BYTES, true) => by_16_bytes::<1>(from, to, len_bytes),
            (BY_16_BYTES, false) => by_16_bytes::<4>(from, to, len_bytes),
            _ => std::ptr::copy_nonoverlapping(from, to, len_bytes),
        }
    }
}

fn way() -> u8 {
    match WAY.load(Ordering::Relaxed) {
        UNKNOWN => choose(),
        way => way,
    }
}

#[cold]
fn choose() -> u8 {
    let way = match is_x86_feature_detected!("avx") {
        // Sanitizers check the arguments of memcpy.
        _ if has_sanitizer() => BY_C_LIBRARY,
        true => BY_32_BYTES,
        false => BY_16_BYTES,
    };
    WAY.store(way, Ordering::Relaxed);
    way
}

/// Copies the lines of the parts side by side, and the remainder behind the last one.
macro_rules! copy_lines {
    ($from:expr, $to:expr, $len:expr, $parts:ident, $vector:ty, $load:ident, $store:ident) => {{
        const VECTORS: usize = LINE_BYTES / size_of::<$vector>();
        let part_bytes = $len / $parts / LINE_BYTES * LINE_BYTES;
        for at in (0..part_bytes).step_by(LINE_BYTES) {
            for part in 0..$parts {
                let (from, to) = ($from.add(part * part_bytes + at), $to.add(part * part_bytes + at));
                let line: [$vector; VECTORS] = std::array::from_fn(|nth| $load(from.cast::<$vector>().add(nth)));
                line.iter().enumerate().for_each(|(nth, vector)| $store(to.cast::<$vector>().add(nth), *vector));
            }
        }
        let done = $parts * part_bytes;
        std::ptr::copy_nonoverlapping($from.add(done), $to.add(done), $len - done);
    }};
}

/// # Safety
/// As [`copy`], on a processor with AVX.
#[target_feature(enable = "avx")]
unsafe fn by_32_bytes<const PARTS: usize>(from: *const u8, to: *mut u8, len_bytes: usize) {
    // SAFETY: the lines of all parts, and the remainder, lie inside.
    unsafe { copy_lines!(from, to, len_bytes, PARTS, __m256i, _mm256_loadu_si256, _mm256_storeu_si256) }
}

/// # Safety
/// As [`copy`].
unsafe fn by_16_bytes<const PARTS: usize>(from: *const u8, to: *mut u8, len_bytes: usize) {
    // SAFETY: the lines of all parts, and the remainder, lie inside. Each processor of this architecture has SSE2.
    unsafe { copy_lines!(from, to, len_bytes, PARTS, __m128i, _mm_loadu_si128, _mm_storeu_si128) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const PARTS: usize>(len_bytes: usize) {
        let source: Vec<u8> = (0..len_bytes).map(|at| (at % 251) as u8).collect();
        let mut target = vec![0; len_bytes];
        // SAFETY: both have as many bytes.
        unsafe { by_16_bytes::<PARTS>(source.as_ptr(), target.as_mut_ptr(), len_bytes) };
        assert_eq!(target, source);
        if is_x86_feature_detected!("avx") {
            target.fill(0);
            // SAFETY: both have as many bytes, and the processor has AVX.
            unsafe { by_32_bytes::<PARTS>(source.as_ptr(), target.as_mut_ptr(), len_bytes) };
            assert_eq!(target, source);
        }
    }

    #[test]
    fn both_vectors_copy_each_byte() {
        [1024, 5000, 65_535].into_iter().for_each(check::<1>);
        [65_536, 100_003].into_iter().for_each(check::<4>);
    }
}
