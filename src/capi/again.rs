//! Calls from a stack in the segment. The function is called again, on another stack: under a lock of the library no page
//! of the segment is touched.

use vgasnet_sys::alternate_stack::off_the_segment;

/// A function of the C interface, by its arguments. Functions of one type share this code; closures would not.
pub(super) trait Again<Arguments> {
    /// Its result.
    type Answer;

    /// Calls it on a stack outside of the segment.
    ///
    /// # Safety
    /// The arguments are as the function requires.
    unsafe fn again(self, arguments: Arguments) -> Self::Answer;
}

/// For functions with these arguments.
macro_rules! called_again {
    ($(($($argument:ident: $type:ident),*))*) => {
        $(
            impl<T, $($type),*> Again<($($type,)*)> for unsafe extern "C" fn($($type),*) -> T {
                type Answer = T;

                #[cold]
                #[inline(never)]
                unsafe fn again(self, ($($argument,)*): ($($type,)*)) -> T {
                    // SAFETY: the arguments are as the function requires.
                    off_the_segment(move || unsafe { self($($argument),*) })
                }
            }
        )*
    };
}

called_again! {
    ()
    (a: A)
    (a: A, b: B)
    (a: A, b: B, c: C)
    (a: A, b: B, c: C, d: D)
    (a: A, b: B, c: C, d: D, e: E)
    (a: A, b: B, c: C, d: D, e: E, f: F)
    (a: A, b: B, c: C, d: D, e: E, f: F, g: G)
    (a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H)
    (a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I)
    (a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J)
    (a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J, k: K)
    (a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J, k: K, l: L)
}

/// Calls the function `name` again, and returns its answer, if this is a stack in the segment.
macro_rules! leave_segment {
    ($name:path, ($($argument:ident: $type:ty),*) $($result:tt)*) => {
        if vgasnet_sys::alternate_stack::is_on_segment() {
            let function: unsafe extern "C" fn($($type),*) $($result)* = $name;
            // SAFETY: the arguments are this function's own.
            return unsafe { crate::capi::again::Again::again(function, ($($argument,)*)) };
        }
    };
}
pub(super) use leave_segment;
