//! Copies of blocks in the segment, for loads: neither making nor removing one changes the address space.
//!
//! Mapping a block and unmapping it splits and joins mappings, under the lock of the whole address space. So a block that
//! a load has missed is copied instead: the kernel fills one system page of an anonymous mapping, which is the whole
//! segment's but for mapped pages and blocks. A load from a part without a copy raises SIGBUS. Copies are removed in
//! groups, the oldest first. A put to a block removes its copy before it writes and allows none until it has written, so
//! a load never finds older bytes than a get.
//!
//! Source: userfaultfd(2) with `UFFD_FEATURE_SIGBUS` and `UFFDIO_COPY` (`userfaultfd.rs`).

use super::Segment;
use super::block_mapper::MAPPED_BLOCK_BYTES;
use super::open_pages::OpenPages;
use super::reservation::cover;
use super::unmapping::{UNMAPPED_AT_ONCE, drop_pages};
use super::userfaultfd::{fill, join, open_range, open_userfaultfd};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use vgasnet_sys::Signalproof;

/// Copies blocks into the segment. At first copies are allowed everywhere. Calls of [`BlockCopier::copy`] come at any
/// time, all others one at a time.
pub trait BlockCopier: Send + Sync {
    /// Allows copies in page `index`, of which nothing is mapped, after it was mapped or dropped.
    ///
    /// # Errors
    /// The system's errno value, or EAGAIN if the page would be one more mapping where there are too many. No copies are
    /// made there.
    fn open_page(&self, index: u32) -> Result<(), i32>;

    /// Removes all copies of a page. None are made until the page is opened again.
    ///
    /// # Errors
    /// The system's errno value. Copies may still be there.
    fn drop_page(&self, index: u32) -> Result<(), i32>;

    /// Copies a block for loads. Returns false, and copies nothing, if no copy is allowed or something is mapped there.
    ///
    /// # Safety
    /// `from` is valid for reads of a block.
    unsafe fn copy(&self, index: u32, block: u32, from: *const u8) -> bool;

    /// A put to a block of an open page begins: removes its copy, and allows none until all puts have ended.
    ///
    /// # Errors
    /// The system's errno value. The copy may still be there.
    fn close(&self, index: u32, block: u32) -> Result<(), i32>;

    /// The put has ended.
    fn reopen(&self, index: u32, block: u32);
}

/// Fewer copies at a time gain nothing.
pub const READ_COPIES_MIN: usize = 2 * UNMAPPED_AT_ONCE;

/// Locks of the blocks, by page.
const STRIPES: usize = 64;

/// State of a block that has a copy or may have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Present {
    /// A copy with this number.
    Copied(u32),
    /// This many puts.
    Closed(u32),
}

/// A stripe of blocks by number in the segment, locked.
type Stripe<'a> = Signalproof<MutexGuard<'a, BTreeMap<u64, Present>>>;

/// The copies in a rank's segment.
pub struct ReadCopies {
    descriptor: OwnedFd,
    segment: Segment,
    page_bytes: usize,
    /// Maximum number of copies, apart from those about to be removed.
    most: usize,
    pages: OpenPages,
    /// Number of copies ever made, modulo 2^32.
    made: AtomicU32,
    /// A copy is made, and removed for a put, under the lock of its stripe. The oldest are removed without it: a block
    /// noted as copied may have none, but no copy is without note.
    stripes: [Mutex<BTreeMap<u64, Present>>; STRIPES],
    /// The copies with their numbers, in the order in which they were made. Some may have been removed.
    order: Mutex<VecDeque<(u64, u32)>>,
}

impl ReadCopies {
    /// No copies yet, and at most `most`, in a segment without access. At most `covered_max` pages stay without access.
    /// `None` if the system offers no copies, or `most` is too small to gain anything.
    pub(super) fn new(segment: Segment, page_bytes: usize, most: usize, covered_max: u32) -> Option<ReadCopies> {
        if most < READ_COPIES_MIN {
            return None;
        }
        let descriptor = open_userfaultfd()?;
        if open_range(&descriptor, segment.base, segment.size_bytes).is_err() || !join(&descriptor, segment.base) {
            cover(segment.base, segment.size_bytes).expect("a range of one mapping stays one");
            return None;
        }
        Some(ReadCopies {
            descriptor,
            segment,
            page_bytes,
            most,
            pages: OpenPages::new(segment.size_bytes.div_ceil(page_bytes), covered_max),
            made: AtomicU32::new(0),
            stripes: [const { None::<()> }; STRIPES].map(|_| Mutex::default()),
            order: Mutex::default(),
        })
    }

    fn number(&self, index: u32, block: u32) -> u64 {
        u64::from(index) * (self.page_bytes / MAPPED_BLOCK_BYTES) as u64 + u64::from(block)
    }

    fn index_of(&self, number: u64) -> u32 {
        (number / (self.page_bytes / MAPPED_BLOCK_BYTES) as u64) as u32
    }

    fn address(&self, number: u64) -> usize {
        self.segment.base + number as usize * MAPPED_BLOCK_BYTES
    }

    fn stripe(&self, index: u32) -> Stripe<'_> {
        Signalproof::lock_briefly(&self.stripes[index as usize % STRIPES])
    }

    /// A page was unmapped, and is without access.
    pub(super) fn on_covered(&self, index: u32) {
        if !self.pages.on_covered(index) {
            self.open_or_leave(index);
        }
    }

    /// All blocks of a page were unmapped together, and it is without access. No copies are allowed before
    /// [`BlockCopier::open_page`]: one might be under way.
    pub(super) fn on_blocks_covered(&self, index: u32) {
        self.pages.leave(index);
    }

    /// Opens a page without access, unless it would be one more mapping.
    pub(super) fn open_or_leave(&self, index: u32) {
        if self.open(index).is_err() {
            self.pages.leave(index);
        }
    }

    /// A page was mapped.
    #[inline]
    pub(super) fn on_mapped(&self, index: u32) {
        self.pages.on_mapped(index);
    }

    /// Whether the page was left without access.
    pub(super) fn is_covered(&self, index: u32) -> bool {
        self.pages.is_covered(index)
    }

    fn open(&self, index: u32) -> Result<(), i32> {
        let part = self.pages.part_for(index).ok_or(libc::EAGAIN)?;
        open_range(&self.descriptor, self.address(self.number(index, 0)), self.page_bytes)?;
        self.pages.on_opened(index, part);
        Ok(())
    }

    /// Allows copies of blocks without access. Returns whether it does.
    pub(super) fn open_blocks(&self, blocks: RangeInclusive<u64>) -> bool {
        let len_bytes = (blocks.end() + 1 - blocks.start()) as usize * MAPPED_BLOCK_BYTES;
        let is_new = self.renew(blocks.clone()).is_ok();
        is_new && open_range(&self.descriptor, self.address(*blocks.start()), len_bytes).is_ok()
    }

    /// Replaces places without access. A copy that was tried there has made the kernel keep them apart from others.
    fn renew(&self, blocks: RangeInclusive<u64>) -> Result<(), i32> {
        let len_bytes = (blocks.end() + 1 - blocks.start()) as usize * MAPPED_BLOCK_BYTES;
        cover(self.address(*blocks.start()), len_bytes)
    }

    /// Keeps the copies' places from being read as zeros after the program has closed all descriptors: the calling thread
    /// keeps one of its own, and no other, for as long as it lives.
    pub fn keep_descriptor(&self) {
        let (raw, last) = (self.descriptor.as_raw_fd() as u32, u32::MAX);
        // SAFETY: the call takes numbers only. From the first one on the thread has descriptors of its own, which no
        // code but this uses.
        unsafe {
            if libc::syscall(libc::SYS_close_range, raw + 1, last, libc::CLOSE_RANGE_UNSHARE) == 0 && raw > 0 {
                libc::syscall(libc::SYS_close_range, 0, raw - 1, 0);
            }
        }
    }

    /// Notes a copy, and removes the oldest ones if there are too many.
    fn note(&self, number: u64, made: u32) {
        let oldest: Vec<(u64, u32)> = {
            let mut order = Signalproof::lock_briefly(&self.order);
            order.push_back((number, made));
            if order.len() < self.most + UNMAPPED_AT_ONCE {
                return;
            }
            order.drain(..UNMAPPED_AT_ONCE).collect()
        };
        let is_here = |(number, made): &(u64, u32)| {
            self.stripe(self.index_of(*number)).get(number) == Some(&Present::Copied(*made))
        };
        let oldest: Vec<(u64, u32)> = oldest.into_iter().filter(is_here).collect();
        let places = oldest.iter().map(|(number, _)| (self.address(*number), MAPPED_BLOCK_BYTES));
        // A copy that another thread makes here meanwhile goes as well, and its next load misses.
        if drop_pages(places).is_err() {
            Signalproof::lock_briefly(&self.order).extend(oldest);
            return;
        }
        for (number, made) in oldest {
            let mut stripe = self.stripe(self.index_of(number));
            if stripe.get(&number) == Some(&Present::Copied(made)) {
                stripe.remove(&number);
            }
        }
    }
}

impl BlockCopier for ReadCopies {
    fn open_page(&self, index: u32) -> Result<(), i32> {
        if !self.pages.is_covered(index) {
            return Ok(());
        }
        self.renew(self.number(index, 0)..=self.number(index + 1, 0) - 1)?;
        self.open(index)
    }

    fn drop_page(&self, index: u32) -> Result<(), i32> {
        let mut stripe = self.stripe(index);
        let of_page = self.number(index, 0)..self.number(index + 1, 0);
        let present: Vec<(u64, Present)> = stripe.range(of_page).map(|(number, present)| (*number, *present)).collect();
        if present.iter().any(|(_, present)| matches!(present, Present::Copied(_))) {
            drop_pages([(self.address(self.number(index, 0)), self.page_bytes)].into_iter())?;
        }
        for (number, _) in present {
            stripe.remove(&number);
        }
        Ok(())
    }

    unsafe fn copy(&self, index: u32, block: u32, from: *const u8) -> bool {
        let number = self.number(index, block);
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        {
            let mut stripe = self.stripe(index);
            let before = stripe.get(&number).copied();
            if let Some(Present::Closed(_)) = before {
                return false;
            }
            match fill(&self.descriptor, self.address(number), from) {
                Ok(()) => stripe.insert(number, Present::Copied(made)),
                // Another thread has made the copy.
                Err(libc::EEXIST) if before.is_some() => return true,
                Err(_) => return false,
            };
        }
        self.note(number, made);
        true
    }

    fn close(&self, index: u32, block: u32) -> Result<(), i32> {
        let number = self.number(index, block);
        let mut stripe = self.stripe(index);
        let puts = match stripe.get(&number) {
            Some(Present::Copied(_)) => {
                drop_pages([(self.address(number), MAPPED_BLOCK_BYTES)].into_iter())?;
                0
            }
            Some(Present::Closed(puts)) => *puts,
            None => 0,
        };
        stripe.insert(number, Present::Closed(puts + 1));
        Ok(())
    }

    fn reopen(&self, index: u32, block: u32) {
        let number = self.number(index, block);
        let mut stripe = self.stripe(index);
        match stripe.get(&number).copied() {
            Some(Present::Closed(1)) => stripe.remove(&number),
            Some(Present::Closed(puts)) => stripe.insert(number, Present::Closed(puts - 1)),
            // The page has been dropped since.
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reservation::Reservation;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    const PAGE_BYTES: usize = 4 * MAPPED_BLOCK_BYTES;
    const MOST: usize = READ_COPIES_MIN;

    /// Copies in a segment, and the process's memory as a debugger sees it: a place without a copy cannot be read.
    struct Bench {
        copies: ReadCopies,
        memory: File,
    }

    impl Bench {
        /// `None` where the system refuses userfaultfd.
        fn new(pages: usize, covered_max: u32) -> Option<Bench> {
            let segment = Reservation::new(pages * PAGE_BYTES, 0, PAGE_BYTES).expect("there is room").segment();
            let copies = ReadCopies::new(segment, PAGE_BYTES, MOST, covered_max);
            if copies.is_none() {
                println!("NOT RUN: the system refuses userfaultfd");
            }
            Some(Bench { copies: copies?, memory: File::open("/proc/self/mem").expect("Linux has it") })
        }

        fn copy(&self, index: u32, block: u32, byte: u8) -> bool {
            let from = [byte; MAPPED_BLOCK_BYTES];
            // SAFETY: it is a block.
            unsafe { self.copies.copy(index, block, from.as_ptr()) }
        }

        fn read(&self, index: u32, block: u32) -> Option<u8> {
            let (address, mut byte) = (self.copies.address(self.copies.number(index, block)), [0]);
            let read = self.memory.read_exact_at(&mut byte, address as u64 + 17);
            read.is_ok().then_some(byte[0])
        }
    }

    #[test]
    fn a_put_removes_a_copy_and_keeps_others_away() {
        let Some(bench) = Bench::new(2, 1) else { return };
        let copies = &bench.copies;
        assert_eq!(bench.read(0, 1), None);
        assert!(bench.copy(0, 1, 7) && bench.copy(0, 1, 8), "the second thread finds the first one's");
        assert_eq!((bench.read(0, 1), bench.read(0, 2)), (Some(7), None));
        copies.close(0, 1).expect("copies can be removed");
        copies.close(0, 1).expect("copies can be removed");
        assert_eq!(bench.read(0, 1), None);
        copies.reopen(0, 1);
        assert!(!bench.copy(0, 1, 9), "another put has not ended");
        copies.reopen(0, 1);
        assert!(bench.copy(0, 1, 9) && bench.copy(1, 1, 10));
        copies.drop_page(0).expect("copies can be removed");
        assert_eq!((bench.read(0, 1), bench.read(1, 1)), (None, Some(10)));
    }

    #[test]
    fn the_oldest_copies_go() {
        let Some(bench) = Bench::new(64, 1) else { return };
        (0..MOST as u32 * 3).for_each(|at| assert!(bench.copy(at / 4, at % 4, at as u8)));
        let here: Vec<u32> = (0..MOST as u32 * 3).filter(|at| bench.read(at / 4, at % 4) == Some(*at as u8)).collect();
        assert!((MOST..MOST + UNMAPPED_AT_ONCE).contains(&here.len()), "{here:?}");
        assert_eq!(here.last(), Some(&(MOST as u32 * 3 - 1)));
        assert!(
            bench.copies.stripes.iter().map(|stripe| stripe.lock().expect("sound").len()).sum::<usize>() == here.len()
        );
    }

    /// Mappings of the system in a segment.
    fn mappings(segment: Segment) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
        let starts = maps.lines().filter_map(|line| usize::from_str_radix(line.split('-').next()?, 16).ok());
        starts.filter(|start| segment.overlaps(*start, 1)).count()
    }

    #[test]
    fn unmapped_pages_are_opened_again_at_once_or_when_they_are_used() {
        let Some(bench) = Bench::new(6, 1) else { return };
        let (copies, before) = (&bench.copies, mappings(bench.copies.segment));
        let unmap = |index| {
            cover(copies.address(copies.number(index, 0)), PAGE_BYTES).expect("a range of ours");
            copies.on_covered(index);
        };
        [0, 2].into_iter().for_each(unmap);
        assert!(!bench.copy(0, 3, 1) && bench.copy(2, 3, 1), "one page is left without access");
        copies.open_page(0).expect("there is room for a mapping");
        assert!(bench.copy(0, 3, 1));
        [1, 4].into_iter().for_each(unmap);
        assert!(!bench.copy(1, 3, 1) && bench.copy(4, 3, 1), "another page may be left so");
        copies.on_mapped(1);
        assert!(!copies.is_covered(1));
        unmap(1);
        copies.open_page(1).expect("there is room for a mapping");
        assert_eq!(mappings(copies.segment), before);
    }

    #[test]
    fn pages_that_are_opened_are_parts_of_one_mapping() {
        let Some(bench) = Bench::new(64, 0) else { return };
        let (copies, before) = (&bench.copies, mappings(bench.copies.segment));
        let hide = |index| {
            cover(copies.address(copies.number(index, 0)), PAGE_BYTES).expect("a range of ours");
            copies.on_mapped(index);
        };
        (0..64).for_each(hide);
        (0..64).step_by(2).for_each(|index| copies.on_covered(index));
        (0..64).for_each(|index| assert_eq!(copies.is_covered(index), index % 2 == 0, "it is apart from open ones"));
        assert_eq!(copies.open_page(2), Err(libc::EAGAIN));
        assert!(!bench.copy(2, 0, 1));
        assert!(mappings(copies.segment) <= before + 1);
    }

    #[test]
    fn copies_in_locked_memory_are_removed() {
        let Some(bench) = Bench::new(2, 0) else { return };
        let start = std::ptr::with_exposed_provenance::<libc::c_void>(bench.copies.segment.base);
        // SAFETY: the call changes no bytes.
        let is_locked = unsafe { libc::mlock2(start, 2 * PAGE_BYTES, libc::MLOCK_ONFAULT) } == 0;
        assert!(bench.copy(0, 1, 7) && bench.read(0, 1) == Some(7));
        let closed = bench.copies.close(0, 1);
        assert!(closed.is_ok() && bench.read(0, 1).is_none(), "locked: {is_locked}");
    }

    #[test]
    fn closed_descriptors_leave_copies_alone() {
        let Some(bench) = Bench::new(2, 0) else { return };
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let copies = &bench.copies;
            scope.spawn(move || {
                copies.keep_descriptor();
                tell.send(()).expect("it is awaited");
                // The other side is dropped.
                let _ = ended.recv();
            });
            told.recv().expect("it is told");
            let nothing = File::open("/dev/null").expect("Linux has it");
            // SAFETY: the descriptor stays one of the copies'.
            assert!(unsafe { libc::dup2(nothing.as_raw_fd(), copies.descriptor.as_raw_fd()) } >= 0);
            assert_eq!(bench.read(0, 1), None, "the place is registered");
            drop(end);
        });
    }
}
