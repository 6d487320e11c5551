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

/// The least a disk reads, and the smallest pages with parts worth reading alone.
const PARTS_MIN_OF_PAGE: u64 = 4;
const DISK_BLOCK_BYTES: u64 = 4096;

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
    page_bytes >= PARTS_MIN_OF_PAGE * DISK_BLOCK_BYTES
}

/// Whether two requests cost more than the move they defer.
fn is_dear(move_bytes: u64, cost: u64) -> bool {
    move_bytes < 2 * cost
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 4 << 20;

    fn page(index: u32) -> PageId {
        PageId::of_segment(Rank(0), index)
    }

    fn meters(page_bytes: usize, frames: u32) -> Meters {
        Meters::new(Rank(0), page_bytes, frames, REQUEST_BYTES)
    }

    fn get(offset_bytes: u32, len_bytes: u32) -> SmallOperation {
        SmallOperation { offset_bytes, len_bytes, is_put: false, is_at_hand: false, is_fill: false }
    }

    /// Pseudorandom numbers.
    fn draw(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn a_page_costs_at_most_twice_the_optimum_however_often_it_is_used() {
        for (seed, page_bytes) in [(1, 64 << 10), (2, 256 << 10), (3, 1 << 20), (4, LARGE), (5, 64 << 20)] {
            let mut state = seed;
            for uses in [1, 2, 3, 10, 40, 45, 90, 1000] {
                let mut meters = meters(page_bytes, 16);
                let (mut paid, mut shipping) = (0, 0);
                let move_bytes = REQUEST_BYTES + page_bytes as u64;
                for _ in 0..uses {
                    let operation = get((draw(&mut state) % 4000 * 8) as u32, 8);
                    let cost = REQUEST_BYTES + 8;
                    shipping += cost;
                    match meters.choose(page(0), &operation, true) {
                        Choice::Ship => paid += cost,
                        Choice::Move => {
                            paid += move_bytes;
                            break;
                        }
                    }
                }
                shipping = if uses == 1000 { move_bytes } else { shipping };
                let optimum = shipping.min(move_bytes);
                assert!(paid <= 2 * optimum, "{uses} uses of pages of {page_bytes}: {paid}, {optimum} at best");
            }
        }
    }

    #[test]
    fn however_many_pages_there_are_room_for_them_costs_at_most_twice_the_moves() {
        for (page_bytes, frames) in [(LARGE, 512), (LARGE, 16_384), (256 << 10, 4_096), (128 << 10, 20_000)] {
            let (mut meters, mut state) = (meters(page_bytes, frames), 11);
            let (mut paid, mut here) = (0, vec![false; frames as usize]);
            let move_bytes = REQUEST_BYTES + page_bytes as u64;
            let mut left = frames;
            while left > 0 {
                let index = (draw(&mut state) % u64::from(frames)) as usize;
                if here[index] {
                    continue;
                }
                let operation = get((draw(&mut state) % (page_bytes as u64 / 8) * 8) as u32, 8);
                here[index] = meters.choose(page(index as u32), &operation, true) == Choice::Move;
                left -= u32::from(here[index]);
                paid += if here[index] { move_bytes } else { REQUEST_BYTES + 8 };
            }
            let moves = move_bytes * u64::from(frames);
            assert!(paid * 10 <= 21 * moves, "{frames} pages of {page_bytes}: {paid}, {moves} at best");
        }
    }

    #[test]
    fn of_pages_that_are_used_alike_none_goes_to_a_full_pool_and_a_hot_one_does() {
        let frames = 8;
        let mut meters = meters(LARGE, frames);
        let mut state = 7;
        for _ in 0..20_000 {
            let operation = get((draw(&mut state) % 500_000 * 8) as u32, 8);
            let any = page((draw(&mut state) % u64::from(8 * frames)) as u32);
            assert_eq!(meters.choose(any, &operation, false), Choice::Ship);
        }
        let moves = (0..200).position(|_| {
            let any = page((draw(&mut state) % u64::from(8 * frames)) as u32);
            meters.choose(any, &get((draw(&mut state) % 500_000 * 8) as u32, 8), false);
            meters.choose(page(1000), &get((draw(&mut state) % 500_000 * 8) as u32, 8), false) == Choice::Move
        });
        assert!(moves.is_some_and(|uses| uses < 60), "half of all operations are of one page: {moves:?}");
    }

    #[test]
    fn what_is_read_in_order_moves_and_fields_of_a_record_do_not() {
        let mut meters = meters(LARGE, 16);
        let mut scan = (0..).map(|at| meters.choose(page(0), &get(at * 4096, 4096), true));
        assert_eq!(scan.position(|choice| choice == Choice::Move), Some(4));
        drop(scan);
        for record in 0..10 {
            for field in 0..4 {
                let operation = get(record * 100_000 + field * 8, 8);
                assert_eq!(meters.choose(page(1), &operation, true), Choice::Ship);
            }
        }
    }

    #[test]
    fn pages_of_which_two_requests_cost_more_are_moved_at_once_if_there_is_room() {
        for (page_bytes, has_room, is_shipped) in [
            (4 << 10, true, false),
            (64 << 10, true, false),
            (256 << 10, true, true),
            (4 << 10, false, false),
            (16 << 10, false, true),
            (64 << 10, false, true),
        ] {
            let mut meters = meters(page_bytes, 16);
            let choice = meters.choose(page(0), &get(8, 8), has_room);
            assert_eq!(choice == Choice::Ship, is_shipped, "pages of {page_bytes}, room {has_room}");
        }
    }

    #[test]
    fn small_pages_that_fit_a_full_pool_move_and_more_of_them_do_not() {
        let moves = |pages: u64| {
            let (mut meters, mut state) = (meters(64 << 10, 64), 3);
            let mut draw = || page((draw(&mut state) % pages) as u32);
            (0..10_000).filter(|_| meters.choose(draw(), &get(8, 8), false) == Choice::Move).count()
        };
        assert!(moves(8) > 4000, "every second or third use moves one of {}", moves(8));
        assert!(moves(256) < 1500, "of four times as many pages as frames most stay: {}", moves(256));
    }

    #[test]
    fn what_loads_read_in_order_grows_until_the_page_moves() {
        for (page_bytes, expected) in
            [(LARGE, vec![4, 4, 8, 16, 32, 64]), (256 << 10, vec![4, 4, 8]), (128 << 10, vec![4, 4])]
        {
            let mut meters = meters(page_bytes, 16);
            let (mut at, mut parts) = (page_bytes as u32 / 2, Vec::new());
            loop {
                let fault = SmallOperation { is_fill: true, ..get(at, 4096) };
                let len_bytes = meters.fill_bytes(page(0), &fault);
                if meters.choose(page(0), &SmallOperation { len_bytes, ..fault }, true) == Choice::Move {
                    break;
                }
                parts.push(len_bytes >> 10);
                at += len_bytes;
            }
            assert_eq!(parts, expected, "pages of {page_bytes}");
            let last = SmallOperation { is_fill: true, ..get(page_bytes as u32 - 4096, 4096) };
            assert_eq!(meters.fill_bytes(page(0), &last), 4096, "no more than the page has");
        }
    }

    /// The first byte of a scan by loads at which the page moves, if any; `disturb` is called before each part.
    fn moved_at(meters: &mut Meters, page_bytes: usize, mut disturb: impl FnMut(&mut Meters, u32)) -> Option<u32> {
        let mut at = 0;
        while at < page_bytes as u32 {
            disturb(meters, at);
            let fault = SmallOperation { is_fill: true, ..get(at, 4096) };
            let len_bytes = meters.fill_bytes(page(0), &fault);
            if meters.choose(page(0), &SmallOperation { len_bytes, ..fault }, true) == Choice::Move {
                return Some(at);
            }
            at += len_bytes;
        }
        None
    }

    #[test]
    fn a_page_that_others_wrote_moves_to_who_reads_it_in_order_undisturbed() {
        for (page_bytes, expected) in [(LARGE, 512 << 10), (1 << 20, 256 << 10), (256 << 10, 128 << 10)] {
            let mut meters = meters(page_bytes, 16);
            meters.on_written(page(0), Rank(1));
            assert_eq!(moved_at(&mut meters, page_bytes, |_, _| ()), Some(expected), "pages of {page_bytes}");
            meters.on_written(page(0), Rank(1));
            let half = page_bytes as u32 / 2;
            let mut is_written = false;
            let at = moved_at(&mut meters, page_bytes, |meters, at| {
                if at >= half.min(expected / 2) && !core::mem::replace(&mut is_written, true) {
                    meters.on_written(page(0), Rank(2));
                }
            });
            assert!(at.is_some_and(|at| at > expected), "pages of {page_bytes}: {at:?}");
        }
    }

    #[test]
    fn a_page_that_is_scanned_while_others_write_it_stays_where_it_is() {
        let mut meters = meters(LARGE, 16);
        let disturb = |meters: &mut Meters, at: u32| {
            if at % (256 << 10) == 0 {
                meters.on_written(page(0), Rank(1));
            }
        };
        for _ in 0..100 {
            assert_eq!(moved_at(&mut meters, LARGE, disturb), None);
        }
    }

    #[test]
    fn what_is_at_hand_moves_no_page_for_long() {
        let mut meters = meters(LARGE, 16);
        let operation = |at: u32| SmallOperation { is_at_hand: true, ..get(at % 7 * 64, 8) };
        assert!((0..2000).all(|at| meters.choose(page(0), &operation(at), true) == Choice::Ship));
        assert!((0..200).any(|at| meters.choose(page(0), &operation(at), true) == Choice::Move));
    }

    #[test]
    fn a_page_that_ranks_write_in_turns_stays_where_it_is() {
        let put = SmallOperation { is_put: true, ..get(0, 1) };
        let mut meters = meters(64 << 10, 16);
        assert_eq!(meters.choose(page(0), &put, true), Choice::Move);
        meters.on_lost(page(0));
        for at in 0..100 {
            assert_eq!(meters.choose(page(0), &put, true), Choice::Ship);
            meters.on_shipped(page(0), at % 4 == 0);
        }
        // No other rank writes any more.
        let mut moves = (0..).map(|_| {
            let choice = meters.choose(page(0), &put, true);
            meters.on_shipped(page(0), false);
            choice
        });
        let undisturbed = UNDISTURBED_MIN as usize;
        assert!(
            moves
                .position(|choice| choice == Choice::Move)
                .is_some_and(|at| (undisturbed / 2..=undisturbed).contains(&at))
        );
    }

    #[test]
    fn a_home_knows_who_writes_by_turns() {
        let mut meters = meters(LARGE, 16);
        let writers = [0, 0, 1, 1, 2, 0, 0].map(Rank);
        assert_eq!(
            writers.map(|rank| meters.on_written(page(3), rank)),
            [false, false, true, false, true, true, false]
        );
    }
}
