//! Three adjacent arrays, and the loop over them: a = b + s * c.

use vgasnet_measuring::memory::large_page_bytes;

/// Arrays of floating-point numbers in any kind of memory.
///
/// All values are whole numbers with exact sums and products, so results are compared exactly.
pub struct Arrays<'m> {
    a: &'m mut [f64],
    b: &'m mut [f64],
    c: &'m mut [f64],
    seed: u64,
}

/// The number of arrays.
pub const ARRAYS: u64 = 3;

/// Bits of a value.
const VALUE_BITS: u32 = 24;

impl<'m> Arrays<'m> {
    /// Arrays of `array_bytes` each, starting at `start`.
    ///
    /// # Safety
    /// `start` is aligned for numbers. The memory is valid for `ARRAYS * array_bytes` bytes, initialised, and has no
    /// other user during the lifetime of the arrays.
    pub unsafe fn new(start: *mut u8, array_bytes: u64, seed: u64) -> Arrays<'m> {
        let len = array_bytes as usize / size_of::<f64>();
        let start: *mut f64 = start.cast();
        // SAFETY: the caller gives this value exclusive use of `ARRAYS` aligned and initialised arrays. They do not
        // overlap. Any bytes form a number.
        let array = |index: usize| unsafe { std::slice::from_raw_parts_mut(start.add(index * len), len) };
        Arrays { a: array(0), b: array(1), c: array(2), seed }
    }

    /// Writes every element.
    pub fn initialise(&mut self) {
        self.a.fill(-1.0);
        for (array, values) in [(&mut *self.b, self.seed), (&mut *self.c, !self.seed)] {
            for (index, element) in (0..).zip(array) {
                *element = value(values, index);
            }
        }
    }

    pub fn triad(&mut self, scalar: f64) {
        triad(self.a, self.b, self.c, scalar);
    }

    /// Bytes of the arrays currently mapped in large pages.
    pub fn large_page_bytes(&self) -> u64 {
        large_page_bytes(self.a.as_ptr().cast(), ARRAYS * size_of_val(self.a) as u64)
    }

    /// Checks that `a` is the result of a triad with `scalar`. The error names the first wrong element.
    pub fn check(&self, scalar: f64) -> Result<(), String> {
        let expected = |index: u64| value(self.seed, index) + scalar * value(!self.seed, index);
        let wrong = (0..).zip(&*self.a).find(|(index, element)| **element != expected(*index));
        wrong.map_or(Ok(()), |(index, element)| {
            Err(format!("element {index} of the triad's result is {element}, and {} is right", expected(index)))
        })
    }
}

/// The same machine code for all kinds of memory.
#[inline(never)]
fn triad(a: &mut [f64], b: &[f64], c: &[f64], scalar: f64) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = *b + scalar * *c;
    }
}

/// A value that differs from page to page, so a page in the wrong place is detected.
fn value(seed: u64, index: u64) -> f64 {
    let mixed = index.wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (u64::BITS - VALUE_BITS)) as f64
}
