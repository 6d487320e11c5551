//! What a rank's client says of its own segment: pins and hints, as `Runtime::pin`, `unpin` and `advise` carry them out.

use crate::client::{Range, contents};
use crate::job::{Job, PAGE_BYTES};
use fastrand::Rng;
use std::ops::RangeInclusive;
use vgasnet::memory::Piece;
use vgasnet::request::{Completion, CompletionId, Copy, Part};
use vgasnet_protocol::coherence::{Access, PageId};

/// A thread that pins a range, uses it, and unpins it.
pub struct Holder {
    pages: RangeInclusive<u32>,
    access: Access,
    /// Pages of the range that are pinned, from its start on.
    pinned: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the range is fetched.
    Counted,
    /// Goes on with the next page.
    Next,
    /// The next page cannot be pinned at once.
    Missed,
    Waits(CompletionId),
    Holds,
    /// The engine knows that the range is not held any more; pages are let go from the end of the range on.
    Releases {
        closing: bool,
    },
}

impl Holder {
    fn next(&self) -> u32 {
        self.pages.start() + self.pinned
    }
}

impl Job {
    /// The client of `rank` pins pages of its segment, if so many may be pinned.
    pub fn hold(&mut self, rank: usize, pages: RangeInclusive<u32>, access: Access) {
        let node = &mut self.nodes[rank];
        match node.engine.add_pins(pages.clone()) {
            Ok(()) => node.holders.push(Holder { pages, access, pinned: 0, stage: Stage::Counted }),
            Err(_) => self.seen.too_many += 1,
        }
    }

    /// A thread that pins goes on. Returns `false` where it has to wait.
    pub fn advance_holder(&mut self, rank: usize, at: usize, random: &mut Rng) -> bool {
        let node = &mut self.nodes[rank];
        let holder = &mut node.holders[at];
        match holder.stage {
            Stage::Counted => {
                holder.stage = Stage::Next;
                node.engine.fetch(holder.pages.clone());
                self.rouse(rank);
            }
            Stage::Next if holder.next() > *holder.pages.end() => holder.stage = Stage::Holds,
            Stage::Next if node.engine.pin_now(holder.next(), holder.access) => holder.pinned += 1,
            Stage::Next => holder.stage = Stage::Missed,
            Stage::Missed => {
                let completion = node.completions.begin();
                node.completions.add(completion);
                holder.stage = Stage::Waits(completion);
                let (index, access) = (holder.next(), holder.access);
                let piece = Piece::of_page(PageId { home: node.space.rank, index });
                let (copy, completion) = (Copy::Pin(access), Completion::Counted(completion));
                node.engine.submit(Part { piece, copy, completion });
                self.seen.holds_waited += 1;
                self.rouse(rank);
            }
            Stage::Waits(completion) => {
                if !node.completions.is_done(completion) {
                    return false;
                }
                node.completions.end(completion);
                holder.pinned += 1;
                holder.stage = Stage::Next;
            }
            Stage::Holds if random.u32(0..8) > 0 => self.use_held(rank, at, random),
            Stage::Holds => {
                holder.stage = Stage::Releases { closing: false };
                assert!(node.engine.remove_pins(holder.pages.clone()), "a range that is held is released");
                self.rouse(rank);
            }
            Stage::Releases { closing } => self.release(rank, at, closing),
        }
        true
    }

    /// A page is let go; after the last one, the engine is kicked if it waits for any of them.
    fn release(&mut self, rank: usize, at: usize, closing: bool) {
        let node = &mut self.nodes[rank];
        let holder = &mut node.holders[at];
        if holder.pinned > 0 {
            holder.pinned -= 1;
            let view = node.space.view.as_ref().expect("it was pinned there");
            holder.stage = Stage::Releases { closing: view.unpin(holder.next()) | closing };
            return;
        }
        if closing {
            self.seen.deferred_closes += 1;
            node.space.own.table.notify_unpinned();
        }
        node.holders.swap_remove(at);
    }

    /// A device loads from a range that is pinned, or stores there: it does not fault.
    fn use_held(&mut self, rank: usize, at: usize, random: &mut Rng) {
        let holder = &self.nodes[rank].holders[at];
        let (first, pages) = (*holder.pages.start() as usize, holder.pages.clone().count());
        let len_bytes = random.usize(1..=64);
        let start_bytes = first * PAGE_BYTES + random.usize(0..=pages * PAGE_BYTES - len_bytes);
        let range = Range { home: rank, start_bytes, len_bytes };
        let access = if random.bool() { Access::Read } else { holder.access };
        let mut bytes = contents(range, random);
        self.access(rank, range, &mut bytes, access);
    }

    /// Pages that are pinned at `rank` because its client said so, how they may be used, and whether they are on the way
    /// to be let go.
    pub fn held_pages(&self, rank: usize) -> impl Iterator<Item = (PageId, Access, bool)> + '_ {
        let node = &self.nodes[rank];
        node.holders.iter().flat_map(|holder| {
            let has_next = matches!(holder.stage, Stage::Waits(completion) if node.completions.is_done(completion));
            let of = |at| PageId { home: node.space.rank, index: holder.pages.start() + at };
            let is_released = matches!(holder.stage, Stage::Releases { .. });
            (0..holder.pinned + u32::from(has_next)).map(move |at| (of(at), holder.access, is_released))
        })
    }

    /// How many threads of `rank` wait for the engine to show a page.
    pub fn admissions_waiting(&self, rank: usize) -> usize {
        let node = &self.nodes[rank];
        let holds = node.holders.iter().filter(|holder| matches!(holder.stage, Stage::Waits(_))).count();
        holds + node.threads.iter().filter(|thread| thread.waits()).count()
    }

    /// The client of `rank` says what it will do with pages of its segment.
    pub fn advise(&mut self, rank: usize, pages: &RangeInclusive<u32>, random: &mut Rng) {
        let engine = &mut self.nodes[rank].engine;
        match random.u32(0..4) {
            0 => engine.fetch(pages.clone()),
            1 => engine.discard(pages),
            2 => engine.expect_in_order(pages),
            _ => engine.clean(pages),
        }
        self.rouse(rank);
    }
}
