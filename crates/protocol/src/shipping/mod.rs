//! Whether a small operation on a missing page moves the page here or ships its bytes: reads or writes them at the
//! page's location.
//!
//! This is the ski-rental problem. Each page has a meter to which shipping adds its cost. When the meter reaches the
//! cost of a move, the next operation moves the page. The total cost is at most twice the optimum (Karlin, Manasse,
//! Rudolph and Sleator, "Competitive Snoopy Caching", Algorithmica 3, 1988). Four things are outside their model:
//!
//! - In a full pool a move evicts another page. A page deserves a frame only if it is used more than the resident ones,
//!   so each meter leaks a frame's share of all shipping. Among equally used pages, more than there are frames, none
//!   moves.
//! - A page that costs less than two requests moves at once while there is room for it, since it may be used again. In a
//!   full pool even such a page has to deserve its frame, unless a block is most of it.
//! - Pages read in order move at once: their continuation is predictable.
//! - A page written by several ranks alternately keeps being shipped to: its holder would lose it to the next writer.
//!   An undisturbed rank reading much of it in order gets it.
//!
//! Costs are expressed in bytes a disk or network moves in the same time.

use crate::Rank;
use crate::coherence::PageId;
use alloc::vec;
use alloc::vec::Vec;

/// Default fixed cost of a request, in bytes: a disk reading 2 GB/s moves this much while it answers one.
pub const REQUEST_BYTES: u64 = 96 << 10;

/// A request needing neither disk nor another rank costs one part in this many.
const AT_HAND_PART: u64 = 48;

/// Bytes in order that make a scan.
const SCAN_BYTES: u32 = 16 << 10;

/// Maximum size of a part mapped for a load or store, as a divisor of the page and in bytes. Twice as many bytes in
/// order are a scan for them.
const FILL_PARTS_MIN: u32 = 2;
const FILL_BYTES_MAX: u32 = 64 << 10;

/// Factor by which the scan threshold is raised for a page also written by others, without an interleaved write; capped
/// at one part in `CONTENDED_PARTS` of the page.
const CONTENDED_SCAN: u32 = 4;
const CONTENDED_PARTS: u32 = 4;

/// A page written alternately moves after at least this many puts of one rank without an interleaved put of another. A
/// turn may have dozens.
const UNDISTURBED_MIN: u64 = 64;

/// The least that a disk reads, in bytes.
const DISK_BLOCK_BYTES: u64 = 4096;

/// A page of at least this many disk blocks has parts worth reading alone.
const BLOCKS_MIN_OF_PAGE: u64 = 4;

/// Meters in one place of the table.
const WAYS: usize = 4;

/// Meters per frame, and bounds: a page of a working set that fits keeps its own meter. Pages that are always moved at
/// once rarely need a meter: only the alternately written ones do.
const METERS_OF_FRAME: u32 = 4;
const METERS_MIN: u32 = 64;
const METERS_MAX: u32 = 1 << 18;
const METERS_MAX_OF_SMALL: u32 = 1024;

/// No rank; never the sender of a message.
const NOBODY: Rank = Rank(u32::MAX);

/// The handling of a small operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Execute it at the page's location.
    Ship,
    /// Fetch the page.
    Move,
}

/// A small operation on a page not in this pool.
#[derive(Clone, Copy, Debug)]
pub struct SmallOperation {
    /// Offset of its bytes in the page.
    pub offset_bytes: u32,
    /// Number of bytes.
    pub len_bytes: u32,
    /// Whether it writes them. On a disk, a write is two requests.
    pub is_put: bool,
    /// Whether it needs neither a disk nor another rank.
    pub is_at_hand: bool,
    /// Whether it serves a fault of a load or store, mapping the bytes read.
    pub is_fill: bool,
}

/// State of one page.
#[derive(Clone, Copy, Debug)]
struct Meter {
    page: Option<PageId>,
    /// Cost of shipping so far, less the leak.
    level: u64,
    /// Total shipping at the last update.
    updated_at: u64,
    /// End of the last operation's bytes, and the bytes in order before it.
    end_bytes: u32,
    in_order_bytes: u32,
    /// The last rank to write here by shipping.
    writer: Rank,
    /// Whether other ranks have also written the page since it was last here.
    is_contended: bool,
}

impl Meter {
    const NONE: Meter = Meter {
        page: None,
        level: 0,
        updated_at: 0,
        end_bytes: u32::MAX,
        in_order_bytes: 0,
        writer: NOBODY,
        is_contended: false,
    };

    /// The bytes in order before the operation.
    fn in_order_before(&self, operation: &SmallOperation) -> u32 {
        if operation.offset_bytes == self.end_bytes { self.in_order_bytes } else { 0 }
    }

    /// Records the operation's position. Returns whether it continues a scan, `scan_bytes` in order of a page of
    /// `page_bytes`.
    fn is_scan(&mut self, operation: &SmallOperation, scan_bytes: u32, page_bytes: u32) -> bool {
        let contended_bytes = (scan_bytes * CONTENDED_SCAN).min(page_bytes / CONTENDED_PARTS);
        let scan_bytes = if self.is_contended { contended_bytes.max(scan_bytes) } else { scan_bytes };
        let before = self.in_order_before(operation);
        self.in_order_bytes = before.saturating_add(operation.len_bytes);
        self.end_bytes = operation.offset_bytes + operation.len_bytes;
        before >= scan_bytes
    }

    /// Another rank writes the page, or has.
    fn disturb(&mut self) {
        (self.level, self.in_order_bytes, self.is_contended) = (0, 0, true);
    }
}

/// The meters of one rank.
#[derive(Debug)]
pub struct Meters {
    rank: Rank,
    meters: Vec<Meter>,
    /// Fixed cost of a request.
    request_bytes: u64,
    /// Cost of moving a page.
    move_bytes: u64,
    frames: u64,
    /// Total cost of shipping.
    shipped: u64,
}

impl Meters {
    /// Meters of `rank` with a pool of `frames` frames of `page_bytes`, and a fixed request cost as [`REQUEST_BYTES`].
    pub fn new(rank: Rank, page_bytes: usize, frames: u32, request_bytes: u64) -> Meters {
        let most = if has_parts(page_bytes as u64) { METERS_MAX } else { METERS_MAX_OF_SMALL };
        let meters = frames.saturating_mul(METERS_OF_FRAME).clamp(METERS_MIN, most).next_power_of_two() as usize;
        assert!(meters >= WAYS && meters.is_power_of_two(), "the table has whole places");
        Meters {
            rank,
            meters: vec![Meter::NONE; meters],
            request_bytes,
            move_bytes: request_bytes + page_bytes as u64,
            frames: u64::from(frames.max(1)),
            shipped: 0,
        }
    }

    /// Number of bytes to read and map for a faulting load or store: as many as were in order before it, so the bytes
    /// wasted are at most the bytes used.
    pub fn fill_bytes(&mut self, page: PageId, operation: &SmallOperation) -> u32 {
        debug_assert!(operation.offset_bytes + operation.len_bytes <= self.page_bytes(), "the bytes lie in {page:?}");
        let most = self.fill_bytes_max().max(operation.len_bytes);
        let left = self.page_bytes() - operation.offset_bytes;
        let before = self.meter(page).in_order_before(operation);
        let fill_bytes = before.clamp(operation.len_bytes, most).min(left);
        debug_assert!(fill_bytes >= operation.len_bytes, "the bytes of the operation itself are read");
        fill_bytes
    }

    fn fill_bytes_max(&self) -> u32 {
        FILL_BYTES_MAX.min(self.page_bytes() / FILL_PARTS_MIN)
    }

    fn page_bytes(&self) -> u32 {
        (self.move_bytes - self.request_bytes) as u32
    }

    /// Decides on an operation, and records its cost. `has_room`: the pool has a spare frame.
    pub fn choose(&mut self, page: PageId, operation: &SmallOperation, has_room: bool) -> Choice {
        assert!(operation.offset_bytes + operation.len_bytes <= self.page_bytes(), "the bytes lie in {page:?}");
        let each = self.request_bytes / if operation.is_at_hand { AT_HAND_PART } else { 1 };
        let requests = if operation.is_put && !operation.is_at_hand { 2 } else { 1 };
        let cost = each * requests + u64::from(operation.len_bytes);
        let undisturbed = UNDISTURBED_MIN * 2 * self.request_bytes;
        let (move_bytes, frames, shipped) = (self.move_bytes, self.frames, self.shipped);
        let scan_bytes = if operation.is_fill { 2 * self.fill_bytes_max() } else { SCAN_BYTES };
        let page_bytes = self.page_bytes();
        let meter = self.meter(page);
        let is_scan = meter.is_scan(operation, scan_bytes, page_bytes);
        debug_assert!(shipped >= meter.updated_at, "a meter is updated by what was shipped");
        let leaked = if has_room { 0 } else { (shipped - meter.updated_at) / frames };
        meter.level = meter.level.saturating_sub(leaked);
        let most = if meter.is_contended { move_bytes.max(undisturbed) } else { move_bytes };
        let may_be_dear = !meter.is_contended && (has_room || !has_parts(u64::from(page_bytes)));
        let is_dear = may_be_dear && is_dear(move_bytes, cost);
        if is_dear || meter.level + cost > most || is_scan {
            (meter.level, meter.is_contended) = (0, false);
            return Choice::Move;
        }
        meter.level += cost;
        debug_assert!(meter.level <= most, "a page moves before its meter exceeds the cost of that");
        meter.updated_at = shipped + cost;
        self.shipped += cost;
        Choice::Ship
    }

    /// Bytes of a page are written here for a rank, possibly this one. Returns whether another rank wrote last.
    pub fn on_written(&mut self, page: PageId, by: Rank) -> bool {
        debug_assert_ne!(by, NOBODY, "some rank writes {page:?}");
        let own = self.rank;
        let meter = self.meter(page);
        let before = core::mem::replace(&mut meter.writer, by);
        let is_contended = before != by && before != NOBODY;
        if by != own || is_contended {
            meter.disturb();
        }
        is_contended
    }

    /// A shipped write is done. `is_contended`: other ranks have written the page since this rank last did.
    pub fn on_shipped(&mut self, page: PageId, is_contended: bool) {
        if is_contended {
            self.on_lost(page);
        }
    }

    /// This rank had write access to the page and loses it to another rank.
    pub fn on_lost(&mut self, page: PageId) {
        self.meter(page).disturb();
    }

    /// The meter of a page. A new one replaces the least significant meter of another page.
    fn meter(&mut self, page: PageId) -> &mut Meter {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let key = u64::from(page.space.number()) << 32 | u64::from(page.index);
        let sets = self.meters.len() / WAYS;
        let set = (key.wrapping_mul(GOLDEN) >> 32) as usize % sets * WAYS;
        debug_assert!(set + WAYS <= self.meters.len(), "each place is in the table");
        let ways = &mut self.meters[set..set + WAYS];
        let found = ways.iter().position(|meter| meter.page == Some(page));
        let least = |meter: &Meter| (meter.page.is_some(), meter.is_contended, meter.level, meter.updated_at);
        let at = found.or_else(|| (0..WAYS).min_by_key(|at| least(&ways[*at]))).expect("a place has meters");
        let meter = &mut ways[at];
        if meter.page != Some(page) {
            *meter = Meter { page: Some(page), updated_at: self.shipped, ..Meter::NONE };
        }
        meter
    }
}

/// Whether a disk reads a part of a page in much less than the page.
fn has_parts(page_bytes: u64) -> bool {
    page_bytes >= BLOCKS_MIN_OF_PAGE * DISK_BLOCK_BYTES
}

/// Whether two requests cost more than the move they defer.
fn is_dear(move_bytes: u64, cost: u64) -> bool {
    move_bytes < 2 * cost
}

#[cfg(test)]
mod tests;
