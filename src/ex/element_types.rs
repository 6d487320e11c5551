//! Element types by GASNet-EX's names and numbers, for reductions and atomic domains.

use crate::coll::ElementType;

impl ElementType {
    const ALL: [(ElementType, &'static str); 6] = [
        (ElementType::I32, "I32"),
        (ElementType::U32, "U32"),
        (ElementType::I64, "I64"),
        (ElementType::U64, "U64"),
        (ElementType::F32, "FLT"),
        (ElementType::F64, "DBL"),
    ];

    /// The type with the bit `GEX_DT_I32`, and so on, if there is one.
    pub fn of_bit(bit: u32) -> Option<ElementType> {
        let known = ElementType::ALL.get(bit.trailing_zeros() as usize).filter(|_| bit.is_power_of_two());
        known.map(|known| known.0)
    }

    /// `GEX_DT_I32`, and so on.
    pub fn bit(self) -> u32 {
        1 << self as u32
    }

    /// "I32", and so on.
    pub fn name(self) -> &'static str {
        ElementType::ALL[self as usize].1
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, ElementType::F32 | ElementType::F64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_bit() {
        for (place, (element_type, name)) in ElementType::ALL.into_iter().enumerate() {
            assert_eq!(element_type.bit(), 1 << place, "{name}");
            assert_eq!(ElementType::of_bit(1 << place), Some(element_type), "{name}");
        }
        assert_eq!([0, 3, 1 << 6].map(ElementType::of_bit), [None; 3]);
    }
}
