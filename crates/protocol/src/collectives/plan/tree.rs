//! The binomial tree over counts 0 to n - 1: the subtree of a count extends from the count itself to the next multiple
//! of its lowest bit.

/// The base-2 logarithm of `number`, rounded up.
pub(super) fn ceil_log2(number: u32) -> u32 {
    number.next_power_of_two().trailing_zeros()
}

/// Number of counts in the subtree of `count`, itself included.
pub(super) fn subtree(count: u32, ranks: u32) -> u32 {
    debug_assert!(count < ranks, "count {count} is one of {ranks}");
    let below = ranks - count;
    if count == 0 { below } else { below.min(1 << count.trailing_zeros()) }
}

/// The parent of a count; 0 has none.
pub(super) fn parent(count: u32) -> Option<u32> {
    (count > 0).then(|| count & (count - 1))
}

/// The children of a count, by ascending subtree size.
pub(super) fn children(count: u32, ranks: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..ceil_log2(subtree(count, ranks))).map(move |bit| count + (1 << bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_the_child_of_its_parent_and_subtrees_add_up() {
        for ranks in 1..=70 {
            for count in 0..ranks {
                let below: alloc::vec::Vec<u32> = children(count, ranks).collect();
                assert!(below.iter().all(|child| *child < ranks && parent(*child) == Some(count)));
                let sizes: u32 = below.iter().map(|child| subtree(*child, ranks)).sum();
                assert_eq!(sizes + 1, subtree(count, ranks), "{count} of {ranks}");
            }
            let all: u32 = (0..ranks).map(|count| children(count, ranks).count() as u32).sum();
            assert_eq!(all, ranks - 1);
        }
    }
}
