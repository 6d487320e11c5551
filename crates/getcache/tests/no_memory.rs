//! A cache without address space. Runs alone in its process, whose limit it lowers.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_getcache::{GetCache, Limits, TellingHeap};

/// Limits this process to `more` bytes of further mappings.
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
    support::expect_off(&cache, &told);
}
