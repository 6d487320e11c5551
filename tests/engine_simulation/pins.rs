//! Pins and hints of a rank's client for its own segment, as in `Ops::pin`, `unpin` and `advise`.

use crate::client::{Range, contents};
use crate::job::{Job, PAGE_BYTES};
use fastrand::Rng;
use std::ops::RangeInclusive;
use vgasnet_engine::request::{Completion, CompletionId, Copy, Part};
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::{Access, PageId};
use vgasnet_protocol::{Rank, Space};

/// A thread that pins a range, uses it, and unpins it.
pub struct Pinner {
    pages: RangeInclusive<u32>,
    access: Access,
    /// Pinned pages of the range, from its start on.
    pinned: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the range is fetched.
    Counted,
    /// Before the next page is pinned.
    Next,
    /// The next page is not open.
    Missed,
    Waits(CompletionId),
    Pinned,
    /// The range is no longer in the engine's pin set. The pages are unpinned from the end of the range on.
    Unpins {
        closing: bool,
    },
}

impl Pinner {
    fn next(&self) -> u32 {
        self.pages.start() + self.pinned
    }
}

impl Job {
    /// The client of `rank` pins pages of its segment, if this many may be pinned.
    pub fn pin(&mut self, rank: usize, pages: RangeInclusive<u32>, access: Access) {
        let node = &mut self.nodes[rank];
        match node.engine.add_pins(pages.clone()) {
            Ok(()) => node.pinners.push(Pinner { pages, access, pinned: 0, stage: Stage::Counted }),
            Err(_) => self.seen.too_many += 1,
        }
    }

    /// Does the next step of a pinning thread. Returns `false` if it has to wait.
    pub fn advance_pinner(&mut self, rank: usize, at: usize, random: &mut Rng) -> bool {
        let node = &mut self.nodes[rank];
        let pinner = &mut node.pinners[at];
        match pinner.stage {
            Stage::Counted => {
                pinner.stage = Stage::Next;
                node.engine.fetch(Space::of_segment(Rank(rank as u32)), pinner.pages.clone());
                self.rouse(rank);
            }
            Stage::Next if pinner.next() > *pinner.pages.end() => pinner.stage = Stage::Pinned,
            Stage::Next if node.engine.pin_now(pinner.next(), pinner.access) => pinner.pinned += 1,
            Stage::Next => pinner.stage = Stage::Missed,
            Stage::Missed => {
                let completion = node.completions.begin();
                node.completions.add(completion);
                pinner.stage = Stage::Waits(completion);
                let (index, access) = (pinner.next(), pinner.access);
                let piece = Piece::of_page(PageId::of_segment(node.space.rank, index));
                let (copy, completion) = (Copy::Pin(access), Completion::Counted(completion));
                node.engine.submit(Part { piece, copy, completion });
                self.seen.pins_waited += 1;
                self.rouse(rank);
            }
            Stage::Waits(completion) => {
                if !node.completions.is_done(completion) {
                    return false;
                }
                node.completions.end(completion);
                pinner.pinned += 1;
                pinner.stage = Stage::Next;
            }
            Stage::Pinned if random.u32(0..8) > 0 => self.use_pinned(rank, at, random),
            Stage::Pinned => {
                pinner.stage = Stage::Unpins { closing: false };
                assert!(node.engine.remove_pins(pinner.pages.clone()), "a pinned range can be unpinned");
                self.rouse(rank);
            }
            Stage::Unpins { closing } => self.unpin_next(rank, at, closing),
        }
        true
    }

    /// Unpins a page. After the last one, notifies the engine if it waits for one of them.
    fn unpin_next(&mut self, rank: usize, at: usize, closing: bool) {
        let node = &mut self.nodes[rank];
        let pinner = &mut node.pinners[at];
        if pinner.pinned > 0 {
            pinner.pinned -= 1;
            let view = node.space.view.as_ref().expect("it was pinned there");
            pinner.stage = Stage::Unpins { closing: view.unpin(pinner.next()) | closing };
            return;
        }
        if closing {
            self.seen.deferred_closes += 1;
            node.space.own.table.notify_unpinned();
        }
        node.pinners.swap_remove(at);
    }

    /// A device loads from a pinned range, or stores there, without faults.
    fn use_pinned(&mut self, rank: usize, at: usize, random: &mut Rng) {
        let pinner = &self.nodes[rank].pinners[at];
        let (first, pages) = (*pinner.pages.start() as usize, pinner.pages.clone().count());
        let len_bytes = random.usize(1..=64);
        let start_bytes = first * PAGE_BYTES + random.usize(0..=pages * PAGE_BYTES - len_bytes);
        let range = Range { home: rank, start_bytes, len_bytes };
        let access = if random.bool() { Access::Read } else { pinner.access };
        let mut bytes = contents(range, random);
        self.access(rank, range, &mut bytes, access);
    }

    /// The pages pinned by the client of `rank`, the access of each pin, and whether the client is unpinning them.
    pub fn client_pins(&self, rank: usize) -> impl Iterator<Item = (PageId, Access, bool)> + '_ {
        let node = &self.nodes[rank];
        node.pinners.iter().flat_map(|pinner| {
            let has_next = matches!(pinner.stage, Stage::Waits(completion) if node.completions.is_done(completion));
            let of = |at| PageId::of_segment(node.space.rank, pinner.pages.start() + at);
            let is_unpinning = matches!(pinner.stage, Stage::Unpins { .. });
            (0..pinner.pinned + u32::from(has_next)).map(move |at| (of(at), pinner.access, is_unpinning))
        })
    }

    /// The threads of `rank` waiting for the engine to map a page.
    pub fn mappings_awaited(&self, rank: usize) -> usize {
        let node = &self.nodes[rank];
        let pinners = node.pinners.iter().filter(|pinner| matches!(pinner.stage, Stage::Waits(_))).count();
        pinners + node.threads.iter().filter(|thread| thread.waits()).count()
    }

    /// The client of `rank` gives a hint about pages of its segment.
    pub fn advise(&mut self, rank: usize, pages: &RangeInclusive<u32>, random: &mut Rng) {
        let (engine, space) = (&mut self.nodes[rank].engine, Space::of_segment(Rank(rank as u32)));
        match random.u32(0..4) {
            0 => engine.fetch(space, pages.clone()),
            1 => engine.discard(space, pages),
            2 => engine.expect_in_order(space, pages),
            _ => engine.clean(space, pages),
        }
        self.rouse(rank);
    }
}
