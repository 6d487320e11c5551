//! The page table under the model checker: run with `RUSTFLAGS="--cfg loom" cargo test -p vgasnet --lib --release
//! model`.

use super::directory::WAYS;
use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use vgasnet_protocol::Rank;

const PAGE: PageId = PageId::of_segment(Rank(0), 0);
const FRAME: FrameId = FrameId(0);

/// A page table, the bytes of its first frame as pins guard them, and as reads without a pin see them.
struct Pool {
    table: PageTable,
    frame: UnsafeCell<u64>,
    bytes: [AtomicU64; 2],
}

// SAFETY: the model checker reports conflicting accesses to the frame.
unsafe impl Sync for Pool {}

/// A table of `frames` frames, in one chain.
fn pool(frames: usize) -> Arc<Pool> {
    let links = |count| (0..count).map(|_| AtomicU32::new(0)).collect::<Vec<_>>().leak();
    let table = PageTable {
        unpin_counter: Box::leak(Box::new(AtomicU32::new(0))),
        lent: Box::leak(Box::new(AtomicU32::new(0))),
        client_pins: Box::leak(Box::new(AtomicU32::new(0))),
        entries: (0..frames).map(|_| Entry::new()).collect::<Vec<_>>().leak(),
        index: Index { buckets: links(1), next: links(frames) },
    };
    Arc::new(Pool { table, frame: UnsafeCell::new(0), bytes: [AtomicU64::new(0), AtomicU64::new(0)] })
}

/// Uses the page if it is open, and notifies the engine if it waits for the last pin.
fn access(pool: &Pool, access: Access) {
    let Some(Pinned { frame, .. }) = pool.table.pin(PAGE, access) else { return };
    match access {
        // SAFETY: the checker reports any concurrent write.
        Access::Read => pool.frame.with(|bytes| unsafe { std::hint::black_box(*bytes) }),
        // SAFETY: the checker reports any concurrent use.
        Access::Write => pool.frame.with_mut(|bytes| unsafe {
            *bytes += 1;
            *bytes
        }),
    };
    if pool.table.unpin(frame) {
        pool.table.notify_unpinned();
    }
}

/// Closes the page as the engine does, which checks again only after a notice. Then the frame is the engine's alone.
fn close(pool: &Pool) {
    if pool.table.close(PAGE) == Closing::Pinned {
        let mut seen = 0;
        while pool.table.poll_closed(PAGE).is_none() {
            while pool.table.unpin_notices() == seen {
                thread::yield_now();
            }
            seen = pool.table.unpin_notices();
        }
    }
    // SAFETY: the checker reports any concurrent use.
    pool.frame.with_mut(|bytes| unsafe { *bytes = 7 });
}

#[test]
fn model_a_closed_page_is_the_engines_alone() {
    loom::model(|| {
        let pool = pool(1);
        // SAFETY: no other thread has it yet.
        pool.frame.with_mut(|bytes| unsafe { *bytes = 1 });
        pool.table.open(PAGE, FRAME, Access::Write, false);
        let client = thread::spawn({
            let pool = pool.clone();
            move || {
                access(&pool, Access::Write);
                access(&pool, Access::Read);
            }
        });
        close(&pool);
        client.join().unwrap();
    });
}

#[test]
fn model_readers_share_a_page_until_it_closes() {
    loom::model(|| {
        let pool = pool(1);
        pool.table.open(PAGE, FRAME, Access::Read, false);
        let readers = [0, 1].map(|_| {
            let pool = pool.clone();
            thread::spawn(move || access(&pool, Access::Read))
        });
        close(&pool);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// In an open page a client finds the bytes that the engine wrote before opening it.
#[test]
fn model_an_opened_page_is_complete() {
    loom::model(|| {
        let pool = pool(1);
        let client = thread::spawn({
            let pool = pool.clone();
            move || access(&pool, Access::Read)
        });
        // SAFETY: the checker reports any concurrent use.
        pool.frame.with_mut(|bytes| unsafe { *bytes = 9 });
        pool.table.open(PAGE, FRAME, Access::Read, false);
        client.join().unwrap();
    });
}

/// A read without a pin gets bytes of its page, and of one version of it, while the frame goes to another page and
/// back.
#[test]
fn model_a_read_without_a_pin_is_of_one_page() {
    // A page at another address, and one at the same address of another rank.
    [PageId::of_segment(Rank(0), 5), PageId::of_segment(Rank(1), 0)]
        .into_iter()
        .for_each(check_reads_while_frame_holds);
}

fn check_reads_while_frame_holds(other: PageId) {
    // Without a bound this takes many minutes.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(move || {
        let pool = pool(1);
        let begins_at =
            |page: PageId| pool.table.begins_at(FRAME, page.space.number(), 0x1000 * (1 + page.index as usize));
        begins_at(PAGE);
        let write = |pool: &Pool, value| pool.bytes.iter().for_each(|byte| byte.store(value, Ordering::Relaxed));
        write(&pool, 1);
        pool.table.open(PAGE, FRAME, Access::Read, false);
        pool.table.mark_quick(FRAME);
        let reader = thread::spawn({
            let pool = pool.clone();
            move || {
                let entry = &pool.table.entries[0];
                let bytes = Bytes { rank: PAGE.space.number(), address: 0x1008, offset_max: 0xff8 };
                let (begun, _) = entry.begin_read(&bytes)?;
                let read = [0, 1].map(|at| pool.bytes[at].load(Ordering::Relaxed));
                entry.was_open(begun).then_some(read)
            }
        });
        for (page, value) in [(other, 2), (PAGE, 3)] {
            let before = if value == 2 { PAGE } else { other };
            assert_eq!(pool.table.close(before), Closing::Done(FRAME));
            write(&pool, value);
            begins_at(page);
            pool.table.open(page, FRAME, Access::Read, false);
            pool.table.mark_quick(FRAME);
        }
        let read = reader.join().unwrap();
        assert!(matches!(read, None | Some([1, 1] | [3, 3])), "{read:?}");
    });
}

/// A pin by a changing index is on the right page, and pinned pages are found.
#[test]
fn model_the_index_leads_to_the_page_or_nowhere() {
    let page = |index| PageId::of_segment(Rank(0), index);
    loom::model(move || {
        let pool = pool(2);
        (0..2).for_each(|at| pool.table.open(page(at), FrameId(at), Access::Read, false));
        let client = thread::spawn({
            let pool = pool.clone();
            move || {
                let Some(Pinned { frame, .. }) = pool.table.pin(page(0), Access::Read) else { return };
                assert!(frame == FrameId(0) && pool.table.entries[0].is_of(page(0).into()));
                assert!(!pool.table.unpin(frame), "nobody closes it");
            }
        });
        assert_eq!(pool.table.close(page(1)), Closing::Done(FrameId(1)));
        pool.table.open(page(2), FrameId(1), Access::Read, false);
        assert_eq!(pool.table.find(page(2)), Some(FrameId(1)));
        client.join().unwrap();
    });
}

/// A borrower loads from a frame without a pin while it has it, and gives it back before the engine uses the frame.
#[test]
fn model_a_lent_frame_comes_back_before_its_page_is_closed() {
    loom::model(|| {
        // Two frames, so that one may be lent.
        let pool = pool(2);
        pool.table.open(PAGE, FRAME, Access::Read, false);
        let borrower = thread::spawn({
            let pool = pool.clone();
            move || {
                if pool.table.lend(FRAME, PAGE) {
                    // SAFETY: the checker reports any concurrent write.
                    pool.frame.with(|bytes| unsafe { std::hint::black_box(*bytes) });
                    if pool.table.give_back(FRAME) {
                        pool.table.notify_unpinned();
                    }
                }
                access(&pool, Access::Read);
            }
        });
        let is_told = pool.table.ask_back(FRAME);
        assert!(!is_told || !pool.table.lend(FRAME, PAGE), "it was asked back");
        close(&pool);
        borrower.join().unwrap();
        assert_eq!(pool.table.lent(), 0);
    });
}

/// A directory of `sets` sets of [`WAYS`] hints each.
fn directory(sets: usize) -> Directory {
    let part = (0..sets * WAYS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
    Directory::of_parts(std::iter::once(&*part))
}

/// Another page with the same hint as [`PAGE`] in the same frame.
fn page_of_the_same_hint() -> PageId {
    let hint_bits = |page: PageId| Key::from(page).scattered() >> 7 & 0xffff;
    let mut others = (1..1 << 20).map(|index| PageId::of_segment(Rank(0), index));
    others.find(|page| hint_bits(*page) == hint_bits(PAGE)).expect("one of a million")
}

/// A thread that follows a hint pins its own page or nothing, while the frame goes to a page with the same hint.
/// Afterwards the directory has the new page, and not the old one.
#[test]
fn model_a_hint_leads_to_its_page_or_is_refused() {
    let other = page_of_the_same_hint();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(move || {
        let (pool, directory) = (pool(1), Arc::new(directory(1)));
        // SAFETY: no other thread has it yet.
        pool.frame.with_mut(|bytes| unsafe { *bytes = 1 });
        let reader = thread::spawn({
            let (pool, directory) = (pool.clone(), directory.clone());
            move || {
                for (of, frame) in directory.find(PAGE) {
                    assert!(of == 3 && frame == FRAME, "nobody noted that");
                    let Some(Pinned { frame, .. }) = pool.table.pin_in(frame, PAGE, Access::Read) else { continue };
                    // SAFETY: the checker reports any concurrent write.
                    pool.frame.with(|bytes| assert_eq!(unsafe { *bytes }, 1, "it is of the other page"));
                    if pool.table.unpin(frame) {
                        pool.table.notify_unpinned();
                    }
                }
            }
        });
        pool.table.open(PAGE, FRAME, Access::Read, false);
        directory.note(PAGE, 3, FRAME);
        close(&pool);
        directory.forget(PAGE, 3, FRAME);
        assert_eq!(directory.find(PAGE).count(), 0, "it was forgotten");
        pool.table.open(other, FRAME, Access::Read, false);
        directory.note(other, 3, FRAME);
        reader.join().unwrap();
        assert!(directory.find(other).eq([(3, FRAME)]));
    });
}

/// Two ranks that note and remove pages of one set with room for both lose none and leave none.
#[test]
fn model_ranks_that_share_a_set_lose_no_hint() {
    let pages = [PAGE, PageId::of_segment(Rank(1), 5)];
    loom::model(move || {
        let directory = Arc::new(directory(1));
        let neighbour = thread::spawn({
            let directory = directory.clone();
            move || {
                directory.note(pages[1], 1, FRAME);
                assert!(directory.find(pages[1]).eq([(1, FRAME)]), "there was room");
            }
        });
        directory.note(pages[0], 0, FRAME);
        assert!(directory.find(pages[0]).eq([(0, FRAME)]), "there was room");
        directory.forget(pages[0], 0, FRAME);
        neighbour.join().unwrap();
        assert!(directory.find(pages[1]).eq([(1, FRAME)]));
        assert_eq!(directory.find(pages[0]).count(), 0);
    });
}

/// A rank that removes a page's hint replaced by a neighbour leaves the neighbour's hint, and that of a page with equal
/// bits.
#[test]
fn model_a_rank_forgets_its_own_hint_only() {
    let (similar, replacing) = (page_of_the_same_hint(), PageId::of_segment(Rank(1), 77));
    loom::model(move || {
        let directory = Arc::new(directory(1));
        directory.note(PAGE, 0, FRAME);
        directory.note(similar, 0, FrameId(1));
        let neighbour = thread::spawn({
            let directory = directory.clone();
            move || directory.note(replacing, 1, FRAME)
        });
        directory.forget(PAGE, 0, FRAME);
        neighbour.join().unwrap();
        assert!(directory.find(replacing).eq([(1, FRAME)]), "it has replaced one or found room");
        assert!(directory.find(PAGE).eq([(0, FrameId(1))]), "only the similar page is left");
    });
}
