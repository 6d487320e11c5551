//! What each rank of a team does in a collective, round by round, computed from its place alone.
//!
//! Rounds are made one at a time, so that a plan takes no memory however large the payload is. In a round all transfers go
//! on side by side; when they are through, its local steps are done in order, and the next round begins. The sides of a
//! transfer may be in rounds of different numbers: they find each other by rank and tag.
//!
//! | collective | small | large |
//! | --- | --- | --- |
//! | broadcast | binomial tree | the same, in segments that follow each other down the tree |
//! | scatter, gather | binomial tree, through scratch | straight between the root and everybody |
//! | gather_all | Bruck's algorithm, through scratch | around a ring |
//! | exchange | straight between all pairs | the same |
//! | reduce | binomial tree in the order of ranks, to rank 0 and from there to the root | the same, in segments |
//! | in and out for all | dissemination barrier | |
//!
//! Source: Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems" (1997);
//! the rounds are in the manner of Hoefler et al., "Implementation and Performance Analysis of Non-Blocking Collective
//! Operations for MPI" (2007).

mod everyone;
mod reduce;
mod rooted;
#[cfg(test)]
mod tests;
mod tree;

use alloc::vec;
use alloc::vec::Vec;

/// The segments in which broadcasts and reductions go through their tree, in bytes.
pub const SEGMENT_BYTES: usize = 64 << 10;

/// What a rank may keep for others in a collective, in bytes. Where it would be more, bytes go straight to where they
/// belong.
pub const SMALL_BYTES: usize = 32 << 10;

/// Peers that a rank sends to, or receives from, at the same time.
const PEERS_AT_ONCE: u32 = 16;

/// The most bytes that a rank may give a collective for another one: tags have room for as many segments.
pub const BLOCK_BYTES_MAX: usize = SEGMENT_BYTES << 28;

const TAG_IN: u32 = 1 << 31;
const TAG_OUT: u32 = 3 << 30;
/// Of what goes from rank 0 to the root of a reduction.
const TAG_RESULT: u32 = 1 << 30;

/// Memory that a collective has at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// What the client gives.
    Source,
    /// What the client gets.
    Destination,
    /// The collective's own.
    Scratch,
}

/// A place in such memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which memory.
    pub buffer: Buffer,
    /// Where in it.
    pub offset_bytes: usize,
}

impl Place {
    fn source(offset_bytes: usize) -> Place {
        Place { buffer: Buffer::Source, offset_bytes }
    }

    fn destination(offset_bytes: usize) -> Place {
        Place { buffer: Buffer::Destination, offset_bytes }
    }

    fn scratch(offset_bytes: usize) -> Place {
        Place { buffer: Buffer::Scratch, offset_bytes }
    }

    /// So many bytes further on.
    pub fn after(self, bytes: usize) -> Place {
        Place { offset_bytes: self.offset_bytes + bytes, ..self }
    }
}

/// One rank's side of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The other rank.
    pub peer: u32,
    /// Names the message among those of the two ranks in this collective.
    pub tag: u32,
    /// Where the bytes are, or belong.
    pub place: Place,
    /// How many there are. A message without bytes is a signal.
    pub len_bytes: usize,
}

/// What a rank does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalStep {
    /// Copies bytes.
    Copy {
        /// From here.
        from: Place,
        /// To there.
        to: Place,
        /// So many.
        len_bytes: usize,
    },
    /// Reduces elements with others, which come from higher ranks.
    Combine {
        /// The elements of lower ranks, and the results.
        into: Place,
        /// Those of higher ranks.
        with: Place,
        /// So many bytes of elements.
        len_bytes: usize,
    },
}

/// What goes on side by side, and what comes after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Messages to others.
    pub sends: Vec<Transfer>,
    /// Messages from others.
    pub receives: Vec<Transfer>,
    /// What is done when all of these are through, in this order.
    pub locals: Vec<LocalStep>,
}

/// What a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// The root's source to every destination.
    Broadcast,
    /// A block of the root's source to each rank.
    Scatter,
    /// Every source to a block of the root's destination.
    Gather,
    /// Every source to a block of every destination.
    GatherAll,
    /// A block of every source to a block of every destination.
    Exchange,
    /// Every source, reduced element by element, to the root's destination.
    Reduce,
}

impl CollectiveKind {
    /// Whether rank `me` has a source.
    pub fn reads(self, me: u32, root: u32) -> bool {
        me == root || !matches!(self, CollectiveKind::Broadcast | CollectiveKind::Scatter)
    }

    /// Whether rank `me` has a destination.
    pub fn writes(self, me: u32, root: u32) -> bool {
        me == root || !matches!(self, CollectiveKind::Gather | CollectiveKind::Reduce)
    }
}

/// A collective, as one rank of its team sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What it does.
    pub kind: CollectiveKind,
    /// This rank.
    pub me: u32,
    /// How many there are.
    pub ranks: u32,
    /// Whose memory the kind is about, if that is one rank's.
    pub root: u32,
    /// Bytes of a block: what one rank has for, or from, one other.
    pub block_bytes: usize,
    /// Bytes of an element of a [`CollectiveKind::Reduce`]; they divide the block.
    pub element_bytes: usize,
}

/// What one rank does in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What for.
    pub shape: Shape,
    /// No bytes move before every rank has entered.
    pub all_in: bool,
    /// No rank is through before all bytes have moved.
    pub all_out: bool,
}

impl Plan {
    /// Memory that the plan needs besides the client's.
    pub fn scratch_bytes(&self) -> usize {
        let shape = &self.shape;
        match shape.kind {
            CollectiveKind::Broadcast | CollectiveKind::Exchange => 0,
            CollectiveKind::Scatter | CollectiveKind::Gather => shape.rooted_scratch_bytes(),
            CollectiveKind::GatherAll => shape.gather_all_scratch_bytes(),
            CollectiveKind::Reduce => shape.reduce_scratch_bytes(),
        }
    }

    /// The round of this number; `None` when there are no more.
    pub fn round(&self, at: u32) -> Option<Round> {
        let shape = &self.shape;
        let barrier_rounds = tree::ceil_log2(shape.ranks);
        let before = if self.all_in { barrier_rounds } else { 0 };
        if at < before {
            return Some(shape.barrier_round(at, TAG_IN));
        }
        let at = at - before;
        let data_rounds = shape.rounds();
        if at < data_rounds {
            return Some(shape.round(at));
        }
        let at = at - data_rounds;
        (self.all_out && at < barrier_rounds).then(|| shape.barrier_round(at, TAG_OUT))
    }
}

impl Shape {
    fn rounds(&self) -> u32 {
        if self.block_bytes == 0 {
            return 0;
        }
        match self.kind {
            CollectiveKind::Broadcast => self.broadcast_rounds(),
            CollectiveKind::Scatter => self.scatter_rounds(),
            CollectiveKind::Gather => self.gather_rounds(),
            CollectiveKind::GatherAll => self.gather_all_rounds(),
            CollectiveKind::Exchange => self.exchange_rounds(),
            CollectiveKind::Reduce => self.reduce_rounds(),
        }
    }

    fn round(&self, at: u32) -> Round {
        match self.kind {
            CollectiveKind::Broadcast => self.broadcast_round(at),
            CollectiveKind::Scatter => self.scatter_round(at),
            CollectiveKind::Gather => self.gather_round(at),
            CollectiveKind::GatherAll => self.gather_all_round(at),
            CollectiveKind::Exchange => self.exchange_round(at),
            CollectiveKind::Reduce => self.reduce_round(at),
        }
    }

    /// Round `at` tells the rank that is 2^`at` further on that all up to that many before it have come.
    fn barrier_round(&self, at: u32, tag: u32) -> Round {
        let distance = 1 << at;
        let signal = |peer| Transfer { peer, tag: tag | at, place: Place::scratch(0), len_bytes: 0 };
        Round {
            sends: vec![signal(self.further(distance))],
            receives: vec![signal(self.further(self.ranks - distance))],
            locals: Vec::new(),
        }
    }

    /// The rank so many places further on.
    fn further(&self, places: u32) -> u32 {
        ((u64::from(self.me) + u64::from(places)) % u64::from(self.ranks)) as u32
    }

    /// This rank counted from the root, around the circle of ranks.
    fn count(&self) -> u32 {
        (self.me + self.ranks - self.root) % self.ranks
    }

    /// The rank with this count.
    fn at_count(&self, count: u32) -> u32 {
        (count + self.root) % self.ranks
    }

    /// So many blocks, in bytes.
    fn blocks(&self, count: u32) -> usize {
        count as usize * self.block_bytes
    }

    /// Whether what all ranks have fits into scratch.
    fn is_small(&self) -> bool {
        self.block_bytes.saturating_mul(self.ranks as usize) <= SMALL_BYTES
    }
}

/// The part of `len_bytes` bytes that is segment `at` of such size: where it starts, and how long it is.
fn segment(at: u32, segment_bytes: usize, len_bytes: usize) -> (usize, usize) {
    let start = at as usize * segment_bytes;
    (start, segment_bytes.min(len_bytes - start))
}

fn copy(from: Place, to: Place, len_bytes: usize) -> LocalStep {
    LocalStep::Copy { from, to, len_bytes }
}
