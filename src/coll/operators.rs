//! Operators of reductions: functions of the client's, and built-in operations.

use std::ffi::{c_int, c_void};
use vgasnet_sys::call_client;

/// The client's function for reductions (reference, K.5). It gets the results, their number, the left operands, their
/// number, the right operands, the bytes of an element, the flags and the argument. Results and left operands may be
/// the same memory.
pub type ReduceFunction =
    unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize, *const c_void, usize, c_int, c_int);

/// A function of the client's table.
#[derive(Clone, Copy, Debug)]
pub struct Reducer {
    /// The function.
    pub function: ReduceFunction,
    /// Its flags parameter.
    pub flags: c_int,
}

/// `gex_Coll_ReduceFn_t` (GASNet-EX, Collectives Part III). Its parameters are the left operands, the right operands,
/// which the results replace, the number of each, and the client's data.
pub type CombineFunction = unsafe extern "C" fn(*const c_void, *mut c_void, usize, *const c_void);

/// A built-in operation. Its parameters are the left operands, which the results replace, the right operands, and the
/// number of each.
type BuiltIn = unsafe fn(*mut c_void, *const c_void, usize);

/// The operation of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// Bytes of an element.
    pub element_bytes: usize,
    /// The operator.
    pub operator: Operator,
}

/// The operator of a reduction.
#[derive(Clone, Copy, Debug)]
pub enum Operator {
    /// A function of the client's table.
    Registered {
        /// The function.
        reducer: Reducer,
        /// Its argument parameter.
        argument: c_int,
    },
    /// A function given in the client's call.
    OfCall {
        /// The function.
        function: CombineFunction,
        /// Its data parameter, as an address.
        cdata: usize,
        /// Operands may be exchanged.
        commutes: bool,
    },
    /// A built-in operation, of [`built_in`].
    BuiltIn(BuiltIn),
}

/// The element types of built-in operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// `int32_t`
    I32,
    /// `uint32_t`
    U32,
    /// `int64_t`
    I64,
    /// `uint64_t`
    U64,
    /// `float`
    F32,
    /// `double`
    F64,
}

/// The built-in operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combining {
    /// Bitwise, for integers only.
    And,
    /// Bitwise, for integers only.
    Or,
    /// Bitwise, for integers only.
    Xor,
    /// Integers wrap.
    Add,
    /// Integers wrap.
    Multiply,
    /// The least. NaNs are skipped.
    Min,
    /// The greatest. NaNs are skipped.
    Max,
}

impl ElementType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            ElementType::I32 | ElementType::U32 | ElementType::F32 => 4,
            ElementType::I64 | ElementType::U64 | ElementType::F64 => 8,
        }
    }
}

impl Reduction {
    /// Reduces the elements in `len_bytes` bytes at `into` with the elements at `with`, which are unspecified
    /// afterwards.
    ///
    /// # Safety
    /// Both are valid for `len_bytes` bytes, aligned for the elements, and not used by anybody else meanwhile.
    pub(super) unsafe fn combine(&self, into: usize, with: usize, len_bytes: usize) {
        let into = std::ptr::with_exposed_provenance_mut::<c_void>(into);
        let with = std::ptr::with_exposed_provenance_mut::<c_void>(with);
        let count = len_bytes / self.element_bytes;
        // SAFETY: both are valid and aligned for `count` elements, and do not overlap. The client gave its function for
        // such operands, and a built-in operation is for the elements' type.
        unsafe {
            match self.operator {
                Operator::Registered { reducer: Reducer { function, flags }, argument } => {
                    call_client(|| function(into, count, into, count, with, self.element_bytes, flags, argument));
                }
                Operator::OfCall { function, cdata, commutes: true } => {
                    call_client(|| function(with, into, count, std::ptr::with_exposed_provenance(cdata)));
                }
                Operator::OfCall { function, cdata, commutes: false } => {
                    call_client(|| function(into, with, count, std::ptr::with_exposed_provenance(cdata)));
                    std::ptr::copy_nonoverlapping(with.cast::<u8>(), into.cast(), len_bytes);
                }
                Operator::BuiltIn(apply) => apply(into, with, count),
            }
        }
    }
}

/// The operation for elements of a type. It replaces each left operand by `$apply` of the two.
macro_rules! of_type {
    ($type:ty, $apply:expr) => {{
        /// # Safety
        /// Both are valid for `count` elements, aligned, and not used by anybody else meanwhile.
        unsafe fn combine(into: *mut c_void, with: *const c_void, count: usize) {
            let apply: fn($type, $type) -> $type = $apply;
            // SAFETY: both are valid for `count` elements, aligned, and not used by anybody else meanwhile.
            let (into, with) = unsafe {
                (std::slice::from_raw_parts_mut(into.cast(), count), std::slice::from_raw_parts(with.cast(), count))
            };
            for (into, with) in into.iter_mut().zip(with) {
                *into = apply(*into, *with);
            }
        }
        combine as BuiltIn
    }};
}

macro_rules! of_integers {
    ($type:ty, $combining:expr) => {
        match $combining {
            Combining::And => of_type!($type, |a, b| a & b),
            Combining::Or => of_type!($type, |a, b| a | b),
            Combining::Xor => of_type!($type, |a, b| a ^ b),
            Combining::Add => of_type!($type, <$type>::wrapping_add),
            Combining::Multiply => of_type!($type, <$type>::wrapping_mul),
            Combining::Min => of_type!($type, Ord::min),
            Combining::Max => of_type!($type, Ord::max),
        }
    };
}

macro_rules! of_floats {
    ($type:ty, $combining:expr) => {
        match $combining {
            Combining::And | Combining::Or | Combining::Xor => return None,
            Combining::Add => of_type!($type, |a, b| a + b),
            Combining::Multiply => of_type!($type, |a, b| a * b),
            Combining::Min => of_type!($type, <$type>::min),
            Combining::Max => of_type!($type, <$type>::max),
        }
    };
}

/// A built-in operation; `None` if elements of the type do not have it.
pub fn built_in(of: ElementType, combining: Combining) -> Option<Reduction> {
    let apply = match of {
        ElementType::I32 => of_integers!(i32, combining),
        ElementType::U32 => of_integers!(u32, combining),
        ElementType::I64 => of_integers!(i64, combining),
        ElementType::U64 => of_integers!(u64, combining),
        ElementType::F32 => of_floats!(f32, combining),
        ElementType::F64 => of_floats!(f64, combining),
    };
    Some(Reduction { element_bytes: of.bytes(), operator: Operator::BuiltIn(apply) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Combines two vectors.
    fn combined<T: Copy, const N: usize>(of: ElementType, combining: Combining, left: [T; N], right: [T; N]) -> [T; N] {
        let (mut left, mut right) = (left, right);
        let reduction = built_in(of, combining).expect("the type has it");
        assert_eq!(reduction.element_bytes, size_of::<T>());
        let (into, with) = (left.as_mut_ptr().expose_provenance(), right.as_mut_ptr().expose_provenance());
        // SAFETY: both are arrays of these elements.
        unsafe { reduction.combine(into, with, size_of_val(&left)) };
        left
    }

    #[test]
    fn elements_are_combined_as_their_type_says() {
        use Combining::{Add, And, Max, Min, Multiply, Or, Xor};
        assert_eq!(combined(ElementType::I32, Add, [1, i32::MAX], [-3, 1]), [-2, i32::MIN]);
        assert_eq!(combined(ElementType::I32, Min, [-1, 7], [1, -7]), [-1, -7]);
        assert_eq!(combined(ElementType::U32, Min, [u32::MAX, 7], [1, 8]), [1, 7]);
        assert_eq!(combined(ElementType::I64, Max, [-1_i64, 1 << 40], [0, 1 << 41]), [0, 1 << 41]);
        assert_eq!(combined(ElementType::U64, Multiply, [1_u64 << 40, 3], [1 << 30, 5]), [0, 15]);
        assert_eq!(combined(ElementType::U64, And, [12_u64], [10]), [8]);
        assert_eq!(combined(ElementType::I64, Or, [12_i64], [10]), [14]);
        assert_eq!(combined(ElementType::U32, Xor, [12_u32], [10]), [6]);
        assert_eq!(combined(ElementType::F32, Multiply, [1.5_f32, -2.0], [2.0, 0.25]), [3.0, -0.5]);
        assert_eq!(combined(ElementType::F64, Max, [-1.0, f64::INFINITY], [-2.0, 0.0]), [-1.0, f64::INFINITY]);
        assert_eq!(combined(ElementType::F64, Add, [0.5_f64; 0], [0.5; 0]), [0.0; 0]);
    }

    #[test]
    fn floats_have_no_bits() {
        for combining in [Combining::And, Combining::Or, Combining::Xor] {
            assert!(built_in(ElementType::F32, combining).is_none() && built_in(ElementType::F64, combining).is_none());
        }
    }
}
