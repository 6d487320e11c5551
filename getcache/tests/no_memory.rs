//! A cache for which the system has no address space. Alone in its process, whose limit it lowers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_getcache::{Ask, GetCache, Key, Limits, Outcome, TellingHeap};

/// Lets this process map so many bytes more.
fn limit_address_space(more: u64) {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = pages.split(' ').next().and_then(|size| size.parse().ok()).expect("it begins with a number");
    let most = pages * 4096 + more;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is valid for the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

#[test]
#[cfg_attr(miri, ignore = "it sets a limit of the system")]
fn a_cache_without_memory_for_tables_is_off_and_says_so_once() {
    limit_address_space(64 << 20);
    let told = Arc::new(AtomicU32::new(0));
    let tell = {
        let told = told.clone();
        move || _ = told.fetch_add(1, Ordering::Relaxed)
    };
    let cache: GetCache<TellingHeap<_>> = GetCache::new(Limits::of_memory(1 << 40, 1 << 16, 1), TellingHeap(tell));
    for at in 0..100 {
        let mut bytes = [0; 8];
        let key = Key { space: 0, target: 0, address: at % 7 * 8 };
        // SAFETY: the bytes are there until the get has ended, which it has at once.
        let outcome = unsafe { cache.get(&key, &Ask::all(8, 1.0, 0), bytes.as_mut_ptr()) };
        assert_eq!(outcome, Outcome::Miss { from: 0, fill: None });
    }
    assert_eq!((told.load(Ordering::Relaxed), cache.stats().gets), (1, 100));
}
