//! A bound on memory taken and given back while the job runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A budget of bytes.
#[derive(Clone, Debug)]
pub struct Budget {
    left_bytes: Arc<AtomicUsize>,
    whole_bytes: usize,
}

/// Bytes taken from a budget; dropping gives them back.
#[derive(Debug)]
pub struct Reserved {
    len_bytes: usize,
    left_bytes: Arc<AtomicUsize>,
}

impl Budget {
    /// A budget of `len_bytes` bytes.
    pub fn new(len_bytes: usize) -> Budget {
        Budget { left_bytes: Arc::new(AtomicUsize::new(len_bytes)), whole_bytes: len_bytes }
    }

    /// Takes bytes, if as many are left.
    pub fn take(&self, len_bytes: usize) -> Option<Reserved> {
        let less = |left: usize| left.checked_sub(len_bytes);
        self.left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(Reserved { len_bytes, left_bytes: Arc::clone(&self.left_bytes) })
    }

    /// As [`Budget::take`]. A request larger than the whole budget takes all of it, once no other bytes are taken.
    pub fn take_even_if_large(&self, len_bytes: usize) -> Option<Reserved> {
        self.take(len_bytes.min(self.whole_bytes))
    }
}

impl Reserved {
    /// Splits off `len_bytes`, or all if there are fewer.
    pub fn split_off(&mut self, len_bytes: usize) -> Reserved {
        let len_bytes = len_bytes.min(self.len_bytes);
        self.len_bytes -= len_bytes;
        Reserved { len_bytes, left_bytes: Arc::clone(&self.left_bytes) }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.left_bytes.fetch_add(self.len_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_bytes_can_be_taken_again() {
        let budget = Budget::new(10);
        let seven = budget.take(7).expect("ten are left");
        assert!(budget.take(4).is_none());
        let three = budget.take(3).expect("three are left");
        drop(seven);
        assert!(budget.take(8).is_none());
        drop(three);
        assert!(budget.take(10).is_some());
    }

    #[test]
    fn a_request_above_the_budget_waits_for_all_of_it() {
        let budget = Budget::new(10);
        let one = budget.take(1).expect("ten are left");
        assert!(budget.take_even_if_large(11).is_none() && budget.take_even_if_large(9).is_some());
        drop(one);
        let mut all = budget.take_even_if_large(11).expect("ten are left");
        let parts = [4, 4, 3].map(|len_bytes| all.split_off(len_bytes));
        assert!(budget.take(1).is_none());
        drop(all);
        assert!(budget.take(1).is_none());
        drop(parts);
        assert!(budget.take(10).is_some());
    }
}
