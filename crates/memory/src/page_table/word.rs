//! An entry of the page table: the page of a frame, and one atomic word with the operations allowed on it.
//!
//! ```text
//!  63       32 31  30   29    28     27     26      25     24  23         0
//! ┌───────────┬──┬─────┬────┬─────┬───────┬───────┬──────┬──────┬──────────┐
//! │  version  │  │asked│lent│quick│ ahead │closing│write │ read │   pins   │
//! └───────────┴──┴─────┴────┴─────┴───────┴───────┴──────┴──────┴──────────┘
//! ```
//!
//! The version changes whenever the frame's page is opened or closed, and the page changes only while it is closed. So
//! a word that is open and has the same version before and after belongs to one page throughout.
//!
//! A lent frame has one more pin. Only the home of its page borrows it, so one bit is enough.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use vgasnet_protocol::coherence::{Access, PageId};

const PIN: u64 = 1;
const PINS: u64 = (1 << 24) - 1;
pub(super) const READ: u64 = 1 << 24;
const WRITE: u64 = 1 << 25;
const CLOSING: u64 = 1 << 26;
/// The page was read ahead and has not been used yet.
const AHEAD: u64 = 1 << 27;
/// The page may be read without a pin since the engine's last check. Only an open page has this, and none with AHEAD.
const QUICK: u64 = 1 << 28;
/// The page's home, a neighbour, has the frame mapped in its segment.
const LENT: u64 = 1 << 29;
/// The frame may not be lent: it was asked back since the engine last allowed loans.
const ASKED: u64 = 1 << 30;
const VERSION: u64 = 1 << 32;
/// Uses that keep a page from being closed.
const USES: u64 = PINS | LENT;
const VERSIONS: u64 = !(VERSION - 1);

/// A page as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub(super) u64);

impl From<PageId> for Key {
    #[inline(always)]
    fn from(page: PageId) -> Key {
        Key(u64::from(page.space.number()) << 32 | u64::from(page.index))
    }
}

/// The outcome of [`Entry::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    Now,
    WhenUnpinned,
}

/// The table's state of one frame. All zeros: it has held no page. Half a cache line, so that it lies in one.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Entry {
    word: AtomicU64,
    key: AtomicU64,
    /// The address of the page in the segment of `rank`.
    start: AtomicU64,
    rank: AtomicU32,
}

/// Bytes at an address of some rank's segment.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The rank of the segment, which need not exist.
    pub rank: u32,
    /// The first address, which need not be in the segment.
    pub address: usize,
    /// The last offset in a page at which as many bytes end in the page.
    pub offset_max: usize,
}

#[inline(always)]
fn rights(access: Access) -> u64 {
    match access {
        Access::Read => READ,
        Access::Write => READ | WRITE,
    }
}

/// Marks the calling branch as unlikely, so that the compiler does not merge conditions, which takes registers. The
/// fast path keeps its state in registers so that the processor can overlap several gets.
#[cold]
#[inline(always)]
fn seldom() {}

/// Whether the page is open and marked now, and was open when it was `begun`: only pins and access differ.
#[cold]
fn is_same_opening(now: u64, begun: u64) -> bool {
    now & QUICK != 0 && (now ^ begun) & VERSIONS == 0
}

impl Entry {
    /// Pins the frame if it holds this page, open for this access. Returns whether the page was read ahead.
    #[inline]
    pub(super) fn pin(&self, key: Key, access: Access) -> Option<bool> {
        let needed = rights(access);
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            // If the page has changed by now, so has the version, and the exchange fails.
            if seen & needed != needed || !self.is_of(key) {
                return None;
            }
            match self.word.compare_exchange_weak(seen, seen + PIN, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(seen & AHEAD != 0),
                Err(now) => seen = now,
            }
        }
    }

    /// Undoes one pin. Returns whether the engine waits for it.
    #[inline]
    pub(crate) fn unpin(&self) -> bool {
        let before = self.word.fetch_sub(PIN, Ordering::Release);
        debug_assert!(before & PINS != 0);
        before & (USES | CLOSING) == PIN | CLOSING
    }

    /// Lends the frame if it holds this page, open, and may be lent. Returns whether it does.
    pub(super) fn lend(&self, key: Key) -> bool {
        let lent = |before: u64| {
            (before & (READ | LENT | ASKED) == READ && self.is_of(key)).then_some((before | LENT) & !AHEAD)
        };
        self.word.fetch_update(Ordering::Acquire, Ordering::Acquire, lent).is_ok()
    }

    /// Ends the loan. Returns whether the engine waits for it: to close the page, or because it has asked.
    pub(super) fn give_back(&self) -> bool {
        let before = self.word.fetch_and(!LENT, Ordering::Release);
        debug_assert!(before & LENT != 0);
        before & ASKED != 0 || before & (PINS | CLOSING) == CLOSING
    }

    /// Notes that the frame is asked back. Returns whether it is lent and was not asked back before.
    pub(super) fn ask_back(&self) -> bool {
        self.has(LENT) && self.word.fetch_or(ASKED, Ordering::Relaxed) & (LENT | ASKED) == LENT
    }

    /// Allows the frame, which is not lent, to be lent again.
    pub(super) fn allow_loans(&self) {
        if self.has(ASKED) {
            self.word.fetch_and(!ASKED, Ordering::Relaxed);
        }
    }

    pub(super) fn is_lent(&self) -> bool {
        self.has(LENT)
    }

    /// Adds a pin to the present ones.
    pub(super) fn pin_again(&self) {
        let before = self.word.fetch_add(PIN, Ordering::Relaxed);
        debug_assert!(before & PINS != 0);
    }

    /// Begins a read of these bytes without a pin, if this is the frame of their page and marked for such reads.
    /// Returns the word and their offset. The bytes read are valid only if [`Entry::was_open`] holds for this word
    /// afterwards.
    #[inline(always)]
    pub(crate) fn begin_read(&self, bytes: &Bytes) -> Option<(u64, usize)> {
        let seen = self.word.load(Ordering::Acquire);
        if seen & QUICK == 0 {
            seldom();
            return None;
        }
        Some((seen, self.offset_of(bytes)?))
    }

    /// Whether the page was open from the [`Entry::begin_read`] that gave `begun` until now. A closed page has no mark,
    /// nor has an unused read-ahead one.
    #[inline(always)]
    pub(crate) fn was_open(&self, begun: u64) -> bool {
        // Earlier reads happen before the word is read again.
        fence(Ordering::Acquire);
        let now = self.word.load(Ordering::Relaxed);
        now == begun || is_same_opening(now, begun)
    }

    /// Pins the frame to write these bytes, if it holds their page, open for writing and marked for uses without a
    /// trace. Returns their offset. May also refuse under concurrent pins.
    #[inline(always)]
    pub(crate) fn pin_quickly(&self, bytes: &Bytes) -> Option<usize> {
        const NEEDED: u64 = WRITE | QUICK;
        let seen = self.word.load(Ordering::Acquire);
        // If the page has changed by now, so has the version, and the exchange fails.
        let offset_bytes = self.offset_of(bytes).filter(|_| seen & NEEDED == NEEDED)?;
        let pinned = self.word.compare_exchange(seen, seen + PIN, Ordering::Acquire, Ordering::Relaxed);
        pinned.is_ok().then_some(offset_bytes)
    }

    /// The offset of bytes in the frame's present or last page, if they are in it.
    #[inline(always)]
    fn offset_of(&self, bytes: &Bytes) -> Option<usize> {
        let offset_bytes = bytes.address.wrapping_sub(self.start.load(Ordering::Relaxed) as usize);
        if offset_bytes > bytes.offset_max {
            seldom();
            return None;
        }
        if self.rank.load(Ordering::Relaxed) != bytes.rank {
            seldom();
            return None;
        }
        Some(offset_bytes)
    }

    /// Notes the address of the page opened next. While a page is open this is called for this page only.
    pub(super) fn begins_at(&self, rank: u32, start: usize) {
        self.start.store(start as u64, Ordering::Relaxed);
        self.rank.store(rank, Ordering::Relaxed);
    }

    /// Whether the frame's present or last page is this one.
    #[inline(always)]
    pub(super) fn is_of(&self, key: Key) -> bool {
        self.key.load(Ordering::Relaxed) == key.0
    }

    /// Opens the page in this frame, or adds access to it, and pins it if `pin`. Returns whether it was closed.
    pub(super) fn open(&self, key: Key, access: Access, pin: bool) -> bool {
        let seen = self.word.load(Ordering::Relaxed);
        assert!(seen & CLOSING == 0, "a closing page is not opened");
        let added = rights(access);
        if seen & READ != 0 {
            assert!(self.is_of(key), "an open frame holds another page");
            let opened = |before: u64| Some((before + u64::from(pin) * PIN) | added);
            let _ = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, opened);
            return false;
        }
        assert!(seen & USES == 0, "a closed page is not in use");
        self.key.store(key.0, Ordering::Relaxed);
        let version = (seen & VERSIONS).wrapping_add(VERSION);
        self.word.store(version | added | (u64::from(pin) * PIN), Ordering::Release);
        true
    }

    /// Closes the page: no thread pins it any more.
    pub(super) fn close(&self) -> Closed {
        let closed = |before: u64| {
            let version = (before & VERSIONS).wrapping_add(VERSION);
            Some(version | if before & USES == 0 { 0 } else { (before & (USES | ASKED)) | CLOSING })
        };
        let before = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, closed).unwrap_or_default();
        // A reader without a pin that sees a later byte of the frame, or its next page, also sees the new version.
        fence(Ordering::Release);
        if before & USES == 0 { Closed::Now } else { Closed::WhenUnpinned }
    }

    /// Ends the closing once the page is neither pinned nor lent. Returns whether it did.
    pub(super) fn poll_closed(&self) -> bool {
        let seen = self.word.load(Ordering::Acquire);
        assert!(seen & CLOSING != 0, "the page was not closing");
        if seen & USES != 0 {
            return false;
        }
        self.word.store(seen & VERSIONS, Ordering::Release);
        true
    }

    pub(super) fn mark_ahead(&self) {
        let marked = |before: u64| Some((before | AHEAD) & !QUICK);
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, marked);
    }

    pub(super) fn is_ahead(&self) -> bool {
        self.has(AHEAD)
    }

    /// Removes the mark. Returns whether it was there.
    pub(super) fn take_ahead(&self) -> bool {
        self.has(AHEAD) && self.word.fetch_and(!AHEAD, Ordering::Relaxed) & AHEAD != 0
    }

    /// Marks the page as readable without a pin.
    pub(super) fn mark_quick(&self) {
        let marked = |before: u64| (before & (READ | AHEAD | QUICK) == READ).then_some(before | QUICK);
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, marked);
    }

    /// Removes this mark. Returns whether it was there.
    pub(super) fn take_quick(&self) -> bool {
        self.has(QUICK) && self.word.fetch_and(!QUICK, Ordering::Relaxed) & QUICK != 0
    }

    pub(super) fn may(&self, access: Access) -> bool {
        let needed = rights(access);
        self.word.load(Ordering::Relaxed) & needed == needed
    }

    pub(super) fn is_closing(&self) -> bool {
        self.has(CLOSING)
    }

    pub(super) fn pins(&self) -> u32 {
        (self.word.load(Ordering::Relaxed) & PINS) as u32
    }

    fn has(&self, mark: u64) -> bool {
        self.word.load(Ordering::Relaxed) & mark != 0
    }

    #[cfg(all(loom, test))]
    pub(super) fn new() -> Entry {
        Entry { word: AtomicU64::new(0), key: AtomicU64::new(0), start: AtomicU64::new(0), rank: AtomicU32::new(0) }
    }
}
