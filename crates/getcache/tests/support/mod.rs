//! Shared by tests of caches without memory.

use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_getcache::{Ask, GetCache, Key, Memory, Outcome};

/// Gets of a cache that is off miss and cache nothing; it has reported once being off.
pub fn expect_off<M: Memory>(cache: &GetCache<M>, told: &AtomicU32) {
    for at in 0..100 {
        let mut bytes = [0; 8];
        let key = Key { space: 0, target: 0, address: at % 7 * 8 };
        // SAFETY: the bytes outlive the get, which cannot join another.
        let outcome = unsafe { cache.get(&key, &Ask::all(8, 1.0, 0), bytes.as_mut_ptr()) };
        assert_eq!(outcome, Outcome::Miss { from: 0, fill: None });
    }
    assert_eq!((told.load(Ordering::Relaxed), cache.stats().gets), (1, 100));
}
