//! The inbox: a ring of records in shared memory, many producers, one consumer.
//!
//! Positions count 64-byte lines and never wrap; a position's place in memory is its remainder by the ring's length. A
//! producer reserves lines by advancing `tail`, writes its record, and commits it by storing its stamp, the record's
//! position + 1, in the first word of the record's first line. A record of one line thus moves one cache line between
//! processors. A record is contiguous: if the end of a lap is too short, a padding record in the same reservation fills
//! it.
//!
//! The first word of a free line never equals a future stamp of the line: positions only grow, so stamps of earlier
//! laps are invalid, and the consumer clears words resembling stamps in the other lines of a record before it frees
//! them.
//!
//! The consumer reads in order and stops at the first uncommitted record. Every producer rings the bell after its own
//! commit, so the producer delaying the others wakes the consumer when it is done. A producer of a record that can wait
//! rings for the ones behind it: see [`Ring::is_last`].

use vgasnet_conduit::{Busy, Urgency};

use crate::sync::{AtomicU64, Ordering};

/// The unit of allocation in a ring.
const LINE_BYTES: usize = 64;

/// Stamp, length and sender, a `u64` and two `u32`, before each record's payload.
const HEADER_BYTES: usize = STAMP_BYTES + 8;

const STAMP_BYTES: usize = size_of::<u64>();

/// In place of the sender: this record is padding, and its length counts lines.
const PADDING: u32 = u32::MAX;

/// Number of lines of an inbox.
pub(crate) const INBOX_LINES: u64 = 4096;

/// One line in this many is not available to messages that can wait for a call, so that protocol messages pass them.
const KEPT_FREE: u64 = 8;

/// Maximum message size: 32 KiB of a client's payload and its headers. Several fit an inbox.
pub(crate) const MESSAGE_BYTES_MAX: usize = (32 << 10) + 256;

/// One ring of [`Ring::bytes`] bytes in shared memory, initially zero.
pub(crate) struct Ring<'a> {
    /// First line not yet read. Written by the consumer only.
    head: &'a AtomicU64,
    /// First line not yet reserved.
    tail: &'a AtomicU64,
    /// A recent value of `head`, as seen by a producer. Adjacent to `tail`, since the consumer constantly writes the
    /// line of `head`.
    head_seen: &'a AtomicU64,
    /// Number of lines, a power of two.
    lap: u64,
    lines: *mut u8,
    /// The first words of the lines: the model checker's atomics cannot live in other memory.
    #[cfg(all(loom, test))]
    stamps: &'a [AtomicU64],
}

impl<'a> Ring<'a> {
    /// Memory of a ring of `lines` lines: head, tail, lines.
    pub(crate) const fn bytes(lines: u64) -> usize {
        (2 + lines as usize) * LINE_BYTES
    }

    /// The ring at `base`.
    ///
    /// # Safety
    /// `base` is a multiple of 64 and the start of [`Ring::bytes`] bytes, mapped readable and writable for `'a`,
    /// initially zero, and accessed only by rings of the same length.
    #[cfg(not(all(loom, test)))]
    #[inline]
    pub(crate) unsafe fn at(base: *mut u8, lines: u64) -> Self {
        assert!(base.addr() % LINE_BYTES == 0 && lines.is_power_of_two(), "ring of {lines} lines at {base:?}");
        // SAFETY: the caller guarantees the memory and its lifetime; zero is a valid value of every atomic, the offsets
        // are multiples of 64, and all accesses by other processes are by these same atomics.
        unsafe {
            Ring {
                head: &*base.cast::<AtomicU64>(),
                tail: &*base.add(LINE_BYTES).cast::<AtomicU64>(),
                head_seen: &*base.add(LINE_BYTES + size_of::<u64>()).cast::<AtomicU64>(),
                lap: lines,
                lines: base.add(2 * LINE_BYTES),
            }
        }
    }

    /// Appends a record; returns the position after it. Any process may call this at any time.
    pub(crate) fn push(&self, from: u32, head: &[u8], body: &[u8], urgency: Urgency) -> Result<u64, Busy> {
        let len_bytes = head.len() + body.len();
        assert!(len_bytes <= MESSAGE_BYTES_MAX, "a message of {len_bytes} bytes");
        assert_ne!(from, PADDING);
        let need = lines_of(len_bytes);
        let start = self.reserve(need, urgency)?;
        let record = self.line(start);
        // SAFETY: `reserve` gave lines `start..start + need` to this call alone, contiguous in memory, and had seen the
        // consumer's release of `head` beyond their last lap, so nobody reads or writes them until the commit below.
        unsafe {
            record.add(STAMP_BYTES).cast::<[u32; 2]>().write([len_bytes as u32, from]);
            let place = record.add(HEADER_BYTES);
            place.copy_from_nonoverlapping(head.as_ptr(), head.len());
            place.add(head.len()).copy_from_nonoverlapping(body.as_ptr(), body.len());
        }
        self.commit(start);
        Ok(start + need)
    }

    /// Whether nothing is reserved behind the record ending at `end`. The caller has committed the record and executed
    /// a `fence(SeqCst)`. If true, no committed record waits behind it: later producers ring.
    pub(crate) fn is_last(&self, end: u64) -> bool {
        self.tail.load(Ordering::Relaxed) == end
    }

    /// Passes the oldest record to `sink`, if it is committed. Returns whether it did. One thread at a time.
    ///
    /// # Errors
    /// The oldest record is not one of [`Ring::push`]: a description. It stays.
    pub(crate) fn pop(&self, sink: impl FnOnce(u32, &[u8])) -> Result<bool, String> {
        loop {
            let head = self.head.load(Ordering::Relaxed);
            if !self.is_committed(head) {
                return Ok(false);
            }
            let record = self.line(head);
            // SAFETY: the acquiring load in `is_committed` saw the producer's commit, and nobody writes a committed
            // record until `head` has passed it, which only this consumer does.
            let [len, from] = unsafe { record.add(STAMP_BYTES).cast::<[u32; 2]>().read() };
            let before_lap_end = self.lap - self.index(head);
            if from == PADDING {
                if u64::from(len) != before_lap_end {
                    return Err(format!("padding of {len} lines where {before_lap_end} are left"));
                }
                self.head.store(head + before_lap_end, Ordering::Release);
                continue;
            }
            let need = lines_of(len as usize);
            if len as usize > MESSAGE_BYTES_MAX || need > before_lap_end {
                return Err(format!("a record of {len} bytes where {before_lap_end} lines are left"));
            }
            // SAFETY: as above; the length was just checked to stay inside the ring, and the slice ends before `head`
            // moves.
            sink(from, unsafe { std::slice::from_raw_parts(record.add(HEADER_BYTES), len as usize) });
            self.clear_stamps(head + 1..head + need);
            self.head.store(head + need, Ordering::Release);
            return Ok(true);
        }
    }

    /// Whether `pop` would find a record.
    pub(crate) fn has_record(&self) -> bool {
        self.is_committed(self.head.load(Ordering::Acquire))
    }

    /// Reserves `need` contiguous lines, after padding if the lap is too short, and returns the first one's position.
    fn reserve(&self, need: u64, urgency: Urgency) -> Result<u64, Busy> {
        let lap = self.lap;
        let most = match urgency {
            Urgency::Now => lap,
            Urgency::WhenCalled => lap - lap / KEPT_FREE,
        };
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            let before_lap_end = lap - tail % lap;
            let padding = if before_lap_end < need { before_lap_end } else { 0 };
            let end = tail + padding + need;
            // The consumer has finished with the lines reused by this lap. `head` may be beyond an outdated `tail`;
            // then the exchange fails.
            if end.saturating_sub(self.head_seen.load(Ordering::Acquire)) > most {
                let head = self.head.load(Ordering::Acquire);
                self.head_seen.store(head, Ordering::Release);
                if end.saturating_sub(head) > most {
                    return Err(Busy);
                }
            }
            match self.tail.compare_exchange_weak(tail, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) if padding > 0 => {
                    // SAFETY: these lines belong to this call alone until they are committed.
                    unsafe { self.line(tail).add(STAMP_BYTES).cast::<[u32; 2]>().write([padding as u32, PADDING]) };
                    self.commit(tail);
                    return Ok(tail + padding);
                }
                Ok(_) => return Ok(tail),
                Err(now) => tail = now,
            }
        }
    }

    fn commit(&self, position: u64) {
        self.stamp(position).store(position + 1, Ordering::Release);
    }

    fn is_committed(&self, position: u64) -> bool {
        self.stamp(position).load(Ordering::Acquire) == position + 1
    }

    /// Clears the first words of consumed lines that look like stamps of these lines.
    fn clear_stamps(&self, positions: std::ops::Range<u64>) {
        for position in positions {
            let word = self.stamp(position);
            if self.index(word.load(Ordering::Relaxed).wrapping_sub(position + 1)) == 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// The first word of a line.
    #[cfg(not(all(loom, test)))]
    fn stamp(&self, position: u64) -> &'a AtomicU64 {
        // SAFETY: the word lies in the ring's memory, at a multiple of 64. Where several threads access it, it is the
        // first word of a record, and they do so by this function.
        unsafe { AtomicU64::from_ptr(self.line(position).cast()) }
    }

    #[cfg(all(loom, test))]
    fn stamp(&self, position: u64) -> &'a AtomicU64 {
        &self.stamps[self.index(position) as usize]
    }

    fn index(&self, position: u64) -> u64 {
        position & (self.lap - 1)
    }

    fn line(&self, position: u64) -> *mut u8 {
        self.lines.wrapping_add(self.index(position) as usize * LINE_BYTES)
    }
}

fn lines_of(payload_bytes: usize) -> u64 {
    (HEADER_BYTES + payload_bytes).div_ceil(LINE_BYTES) as u64
}

#[cfg(test)]
pub(crate) mod test_support {
    use super::{AtomicU64, LINE_BYTES, Ring};

    /// A ring in the memory of this process.
    pub(crate) struct OwnedRing {
        head: AtomicU64,
        tail: AtomicU64,
        head_seen: AtomicU64,
        lap: u64,
        lines: *mut u8,
        #[cfg(loom)]
        stamps: Vec<AtomicU64>,
    }

    // SAFETY: the lines are only accessed through `Ring`, whose protocol separates producers and consumer.
    unsafe impl Send for OwnedRing {}
    // SAFETY: the lines are only accessed through `Ring`, whose protocol separates producers and consumer.
    unsafe impl Sync for OwnedRing {}

    impl OwnedRing {
        pub(crate) fn new(lines: usize) -> Self {
            let memory = vec![[0_u64; LINE_BYTES / 8]; lines].leak();
            OwnedRing {
                head: AtomicU64::new(0),
                tail: AtomicU64::new(0),
                head_seen: AtomicU64::new(0),
                lap: lines as u64,
                lines: memory.as_mut_ptr().cast(),
                #[cfg(loom)]
                stamps: (0..lines).map(|_| AtomicU64::new(0)).collect(),
            }
        }

        pub(crate) fn ring(&self) -> Ring<'_> {
            Ring {
                head: &self.head,
                tail: &self.tail,
                head_seen: &self.head_seen,
                lap: self.lap,
                lines: self.lines,
                #[cfg(loom)]
                stamps: &self.stamps,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::test_support::OwnedRing;
    use super::*;

    #[test]
    fn records_of_all_sizes_come_out_in_order_over_many_laps() {
        let owned = OwnedRing::new(16);
        let ring = owned.ring();
        let mut expected = std::collections::VecDeque::new();
        for n in 0..5_000_usize {
            let payload = vec![n as u8; (n * 37) % 257];
            let (head, body) = payload.split_at(n % (payload.len() + 1));
            while ring.push(n as u32, head, body, Urgency::Now).is_err() {
                let (from, bytes): (u32, Vec<u8>) = expected.pop_front().expect("a full ring holds something");
                assert_eq!(ring.pop(|f, b| assert_eq!((f, b), (from, &bytes[..]))), Ok(true));
            }
            expected.push_back((n as u32, payload));
        }
        for (from, bytes) in expected {
            assert!(ring.has_record());
            assert_eq!(ring.pop(|f, b| assert_eq!((f, b), (from, &bytes[..]))), Ok(true));
        }
        assert!(!ring.has_record());
        assert_eq!(ring.pop(|_, _| panic!("empty")), Ok(false));
    }

    #[test]
    fn a_full_ring_is_busy_and_takes_more_after_a_pop() {
        let owned = OwnedRing::new(8);
        let ring = owned.ring();
        for n in 0..8 {
            assert_eq!(ring.push(n, &[1; 48], &[], Urgency::Now), Ok(u64::from(n) + 1));
        }
        assert_eq!(ring.push(8, &[], &[], Urgency::Now), Err(Busy));
        assert_eq!(ring.pop(|from, _| assert_eq!(from, 0)), Ok(true));
        assert_eq!(ring.push(8, &[], &[], Urgency::Now), Ok(9));
    }

    #[test]
    fn messages_that_can_wait_leave_room_to_those_that_cannot() {
        let owned = OwnedRing::new(16);
        let ring = owned.ring();
        while ring.push(0, &[1; 48], &[], Urgency::WhenCalled).is_ok() {}
        for n in 0..16 / KEPT_FREE {
            assert_eq!(ring.push(0, &[1; 48], &[], Urgency::WhenCalled), Err(Busy));
            assert!(ring.push(0, &[1; 48], &[], Urgency::Now).is_ok(), "message {n} of the protocol");
        }
        assert_eq!(ring.push(0, &[1; 48], &[], Urgency::Now), Err(Busy));
    }

    #[test]
    fn payloads_that_look_like_stamps_are_no_records() {
        const LAP: u64 = 8;
        for laps_later in [1, 2] {
            let owned = OwnedRing::new(LAP as usize);
            let ring = owned.ring();
            let stamp = |line: u64| (line + laps_later * LAP + 1).to_ne_bytes();
            let mut payload = [0; 3 * LINE_BYTES - HEADER_BYTES];
            for line in [1, 2] {
                payload[line * LINE_BYTES - HEADER_BYTES..][..STAMP_BYTES].copy_from_slice(&stamp(line as u64));
            }
            assert_eq!(ring.push(7, &payload, &[], Urgency::Now), Ok(3));
            assert_eq!(ring.pop(|from, bytes| assert_eq!((from, bytes), (7, &payload[..]))), Ok(true));
            for position in 3..3 * LAP {
                assert!(!ring.has_record(), "position {position}, {laps_later} laps later");
                assert_eq!(ring.push(1, &[1], &[], Urgency::Now), Ok(position + 1));
                assert_eq!(ring.pop(|from, bytes| assert_eq!((from, bytes), (1, &[1][..]))), Ok(true));
            }
        }
    }

    #[test]
    fn what_no_producer_writes_is_refused() {
        let owned = OwnedRing::new(8);
        let ring = owned.ring();
        for header in [[9 * 64, 1], [u32::MAX, 1], [MESSAGE_BYTES_MAX as u32 + 1, 0], [9, PADDING], [0, PADDING]] {
            assert!(ring.push(3, &[1; 40], &[], Urgency::Now).is_ok());
            let head = ring.head.load(Ordering::Relaxed);
            // SAFETY: the line begins with a header, and only this thread uses the ring.
            unsafe { ring.line(head).add(STAMP_BYTES).cast::<[u32; 2]>().write(header) };
            assert!(ring.pop(|_, _| panic!("{header:?} is no record")).is_err(), "{header:?}");
            // SAFETY: as above.
            unsafe { ring.line(head).add(STAMP_BYTES).cast::<[u32; 2]>().write([40, 3]) };
            assert_eq!(ring.pop(|from, bytes| assert_eq!((from, bytes), (3, &[1; 40][..]))), Ok(true));
        }
    }
}
