//! The memory of a rank for the pages of its segment, besides their bytes: for each frame of the pool, and for each
//! touched page outside of the pool.

use vgasnet::job;
use vgasnet::live_bytes;
use vgasnet::ops::{Operation, Remote};
use vgasnet_memory::{Shape, table_bytes};
use vgasnet_protocol::coherence::{Access, Action, Event, PageId, Protocol, Waiter};
use vgasnet_protocol::{Limits, Rank, RankSizes};

/// The promised limit for each touched page without a frame, in bytes.
const PER_PAGE_BYTES_MAX: f64 = 64.0;

/// A limit for the data of each frame, in bytes: the page table, the order of eviction, the records of cache and home.
const PER_FRAME_BYTES_MAX: f64 = 266.0;

/// A limit for the records alone, for pages of the own segment without pending requests.
const RECORD_BYTES_MAX: f64 = 64.0;

const PAGE_BYTES: usize = 4 << 10;
const FRAMES: usize = 16 << 10;
const PAGES: usize = 8 * FRAMES;

/// Bytes of the records of cache and home for each frame of a full pool.
fn record_bytes() -> f64 {
    let before = live_bytes();
    let sizes = RankSizes { pages: PAGES as u32, frames: FRAMES as u32 };
    let mut protocol = Protocol::new(Limits::new(Rank(0), [sizes]), true);
    let (mut events, mut actions) = (Vec::new(), Vec::new());
    for page in some_pages().take(FRAMES) {
        let page = PageId::of_segment(Rank(0), page as u32);
        events.push(Event::Want { page, access: Access::Read, waiter: Waiter(0) });
        while let Some(event) = events.pop() {
            protocol.handle(event, &mut actions).expect("it makes sense");
            events.extend(actions.drain(..).filter_map(|action| match action {
                Action::Send { message, .. } => Some(Event::Message { from: Rank(0), message }),
                Action::Clear { page, .. } => Some(Event::Cleared(page)),
                _ => None,
            }));
        }
    }
    assert!(protocol.cache.is_quiet() && protocol.cache.copies().count() == FRAMES);
    (live_bytes() - before) as f64 / FRAMES as f64
}

/// Pages in an order with few adjacent neighbours.
fn some_pages() -> impl Iterator<Item = usize> {
    (1..).map(|at| at * 40_503 % PAGES)
}

#[test]
fn frames_and_pages_that_are_gone_take_few_bytes() {
    let record = record_bytes();
    let dir = env!("CARGO_TARGET_TMPDIR");
    let (page, pool) = (PAGE_BYTES.to_string(), (FRAMES * PAGE_BYTES).to_string());
    let limit = (PAGES * PAGE_BYTES).to_string();
    for (name, value) in [
        ("VGASNET_STORAGE_DIR", dir),
        ("VGASNET_PAGE_SIZE", &page),
        ("VGASNET_POOL_SIZE", &pool),
        ("VGASNET_MAX_SEGSIZE", &limit),
    ] {
        // SAFETY: no other thread of this process accesses the environment now.
        unsafe { std::env::set_var(name, value) };
    }
    job::init().unwrap_or_else(|failure| panic!("{:?}", failure.line));
    let before = live_bytes();
    let runtime = job::attach((PAGES * PAGE_BYTES) as u64).unwrap_or_else(|failure| panic!("{:?}", failure.line));
    let attached = live_bytes();
    let base = runtime.space().own_segment().base;
    let mut pages = some_pages();
    let mut touch = |count: usize| {
        for page in pages.by_ref().take(count) {
            let (mut word, len_bytes) = ([0_u8; 8], 8);
            let remote = Remote { rank: 0, address: base + page * PAGE_BYTES, len_bytes };
            // SAFETY: the word is as long as the get.
            unsafe { runtime.ops().transfer(Operation::Get(word.as_mut_ptr()), remote) }.expect("inside the segment");
            assert_eq!(word, [0; 8]);
        }
        live_bytes()
    };
    let full = touch(FRAMES);
    let twice = touch(FRAMES);
    let all = touch(PAGES - 2 * FRAMES);
    let each = |from: usize, to: usize, count: usize| to.saturating_sub(from) as f64 / count as f64;
    let shape = Shape { pages: PAGES as u32, frames: FRAMES as u32 };
    // Memory of a rank as a whole belongs to no frame.
    let table = each(table_bytes(Shape { frames: 1, ..shape }, PAGE_BYTES), table_bytes(shape, PAGE_BYTES), FRAMES - 1);
    let (heap, records) = (each(before, attached, FRAMES), each(attached, full, FRAMES));
    let (history, gone) = (each(full, twice, FRAMES), each(twice, all, PAGES - 2 * FRAMES));
    println!(
        "bytes a frame: {table:.1} shared, {heap:.1} at attach, {records:.1} when it has a page, {history:.1} when others had it"
    );
    println!("bytes a frame of the records alone: {record:.1}");
    println!("bytes a page that was touched and is gone: {gone:.1}");
    assert!(record <= RECORD_BYTES_MAX);
    assert!(gone <= PER_PAGE_BYTES_MAX);
    assert!(table + heap + records + history <= PER_FRAME_BYTES_MAX);
}
