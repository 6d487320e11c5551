//! The work of each rank of a team in a collective, round by round, computed from its rank alone.
//!
//! Rounds are computed one at a time, so the memory of a plan does not depend on the payload. All transfers of a round
//! proceed concurrently. When they are done, its local steps run in order and the next round begins. The two sides of a
//! transfer may be in rounds of different numbers: they match by rank and tag.
//!
//! | collective | small | large |
//! | --- | --- | --- |
//! | broadcast | binomial tree | the same, pipelined in segments |
//! | scatter, gather | binomial tree, through scratch | straight between the root and everybody |
//! | gather_all | Bruck's algorithm, through scratch | around a ring |
//! | exchange | straight between all pairs | the same |
//! | reduce | binomial tree in the order of ranks, to rank 0 and from there to the root | the same, in segments |
//! | reduce to all | as a reduction to rank 0, and a broadcast from there | the same |
//! | in and out for all | dissemination barrier | |
//!
//! Sources: Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems"
//! (1997); Hensgen, Finkel, Manber, "Two Algorithms for Barrier Synchronization" (1988), for the dissemination barrier;
//! Hoefler et al., "Implementation and Performance Analysis of Non-Blocking Collective Operations for MPI" (2007), for
//! the rounds.

mod everyone;
mod reduce;
mod rooted;
#[cfg(test)]
mod tests;
mod tree;

use alloc::vec;
use alloc::vec::Vec;

/// Minimum bytes of a segment in a pipelined broadcast.
pub const SEGMENT_BYTES: usize = 64 << 10;

/// Maximum bytes of a segment: the larger the segments, the later ranks further down the tree begin.
const SEGMENT_BYTES_MAX: usize = 4 << 20;

/// Number of segments of a large block, within the limits above.
const SEGMENTS: usize = 8;

/// Maximum bytes a rank buffers for others in a collective. Above it, bytes go straight to their destination.
pub const SMALL_BYTES: usize = 32 << 10;

/// Peers a rank sends to, or receives from, at the same time.
const PEERS_AT_ONCE: u32 = 16;

/// Maximum bytes of a block: tags number up to 2^28 segments.
pub const BLOCK_BYTES_MAX: usize = SEGMENT_BYTES << 28;

/// Added to the tags of the barrier before a collective.
const TAG_IN: u32 = 1 << 31;
/// Added to the tags of the barrier after it.
const TAG_OUT: u32 = 3 << 30;
/// Added to the tags of the results from rank 0 to the root of a reduction.
const TAG_RESULT: u32 = 1 << 30;

/// The memory of a collective at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// The client's, read by the collective.
    Source,
    /// The client's, written by the collective.
    Destination,
    /// The collective's own, of [`Plan::scratch_bytes`] bytes.
    Scratch,
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferOffset {
    /// The memory.
    pub buffer: Buffer,
    /// Offset from its start.
    pub offset_bytes: usize,
}

impl BufferOffset {
    fn source(offset_bytes: usize) -> BufferOffset {
        BufferOffset { buffer: Buffer::Source, offset_bytes }
    }

    fn destination(offset_bytes: usize) -> BufferOffset {
        BufferOffset { buffer: Buffer::Destination, offset_bytes }
    }

    fn scratch(offset_bytes: usize) -> BufferOffset {
        BufferOffset { buffer: Buffer::Scratch, offset_bytes }
    }

    /// The place `bytes` bytes further on.
    pub fn after(self, bytes: usize) -> BufferOffset {
        BufferOffset { offset_bytes: self.offset_bytes + bytes, ..self }
    }
}

/// One rank's side of a transfer of bytes, or of a signal, to another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The other rank.
    pub peer: u32,
    /// Identifies the transfer among the ones between the two ranks, in this direction, in this collective.
    pub tag: u32,
    /// Source or destination of the bytes.
    pub place: BufferOffset,
    /// Number of bytes; 0 for a signal.
    pub len_bytes: usize,
}

/// Work local to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalStep {
    /// Copies bytes.
    Copy {
        /// Source.
        from: BufferOffset,
        /// Destination.
        to: BufferOffset,
        /// Number of bytes.
        len_bytes: usize,
    },
    /// Reduces elements pair by pair.
    Combine {
        /// The left operands, from lower ranks, replaced by the results.
        into: BufferOffset,
        /// The right operands, from higher ranks.
        with: BufferOffset,
        /// Bytes of the left operands.
        len_bytes: usize,
    },
    /// Gathers the contributions of this rank's images into its source.
    Collect,
    /// Distributes its destination to this rank's images.
    Deliver,
}

/// Concurrent transfers, and the local steps after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// To other ranks.
    pub sends: Vec<Transfer>,
    /// From other ranks.
    pub receives: Vec<Transfer>,
    /// Run in this order after all transfers.
    pub local_steps: Vec<LocalStep>,
}

/// The kinds of collectives.
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
    /// The same to every destination. It has no root.
    ReduceToAll,
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
    /// Its kind.
    pub kind: CollectiveKind,
    /// This rank, less than `ranks`.
    pub me: u32,
    /// Number of ranks in the team; at least 1.
    pub ranks: u32,
    /// The root, less than `ranks`, if the kind has one.
    pub root: u32,
    /// Bytes sent by one rank to one other; at most [`BLOCK_BYTES_MAX`].
    pub block_bytes: usize,
    /// Bytes of an element of a reduction; at least 1, and a divisor of the block size.
    pub element_bytes: usize,
}

/// The work of one rank in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The collective.
    pub shape: Shape,
    /// No bytes move before every rank has started the collective.
    pub all_in: bool,
    /// No rank completes the collective before all bytes have moved.
    pub all_out: bool,
    /// The rank takes part for several images: gather their bytes first, distribute the result afterwards.
    pub for_images: bool,
}

impl Plan {
    /// Scratch bytes of the plan.
    pub fn scratch_bytes(&self) -> usize {
        let shape = &self.shape;
        match shape.kind {
            CollectiveKind::Broadcast | CollectiveKind::Exchange => 0,
            CollectiveKind::Scatter | CollectiveKind::Gather => shape.rooted_scratch_bytes(),
            CollectiveKind::GatherAll => shape.gather_all_scratch_bytes(),
            CollectiveKind::Reduce | CollectiveKind::ReduceToAll => shape.reduce_scratch_bytes(),
        }
    }

    /// The round numbered `at`; `None` after the last one.
    pub fn round(&self, at: u32) -> Option<Round> {
        let shape = &self.shape;
        let barrier_rounds = tree::ceil_log2(shape.ranks);
        let before = if self.all_in { barrier_rounds } else { 0 };
        if at < before {
            return Some(shape.barrier_round(at, TAG_IN));
        }
        let at = at - before;
        let local = u32::from(self.for_images && shape.block_bytes > 0);
        if at < local {
            return Some(Round { local_steps: vec![LocalStep::Collect], ..Round::default() });
        }
        let at = at - local;
        let data_rounds = shape.rounds();
        if at < data_rounds {
            return Some(shape.round(at));
        }
        let at = at - data_rounds;
        if at < local {
            return Some(Round { local_steps: vec![LocalStep::Deliver], ..Round::default() });
        }
        let at = at - local;
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
            CollectiveKind::Scatter | CollectiveKind::Gather => self.rooted_rounds(),
            CollectiveKind::GatherAll => self.gather_all_rounds(),
            CollectiveKind::Exchange => self.exchange_rounds(),
            CollectiveKind::Reduce => self.reduce_rounds(),
            CollectiveKind::ReduceToAll => self.reduce_to_all_rounds(),
        }
    }

    fn round(&self, at: u32) -> Round {
        debug_assert!(at < self.rounds(), "round {at} is one of {}", self.rounds());
        let round = match self.kind {
            CollectiveKind::Broadcast => self.broadcast_round(at),
            CollectiveKind::Scatter => self.scatter_round(at),
            CollectiveKind::Gather => self.gather_round(at),
            CollectiveKind::GatherAll => self.gather_all_round(at),
            CollectiveKind::Exchange => self.exchange_round(at),
            CollectiveKind::Reduce => self.reduce_round(at),
            CollectiveKind::ReduceToAll => self.reduce_to_all_round(at),
        };
        let is_another = |transfer: &Transfer| transfer.peer < self.ranks && transfer.peer != self.me;
        debug_assert!(round.sends.iter().chain(&round.receives).all(is_another), "{round:?} is of the team");
        round
    }

    /// A round of a dissemination barrier: a signal to the rank 2^`at` places on reports the arrival of this rank and
    /// of the 2^`at` - 1 before it.
    fn barrier_round(&self, at: u32, tag: u32) -> Round {
        let distance = 1 << at;
        debug_assert!(distance < self.ranks, "a signal goes to another rank");
        let signal = |peer| Transfer { peer, tag: tag | at, place: BufferOffset::scratch(0), len_bytes: 0 };
        Round {
            sends: vec![signal(self.further(distance))],
            receives: vec![signal(self.further(self.ranks - distance))],
            local_steps: Vec::new(),
        }
    }

    /// The rank `places` further on, around the circle of ranks.
    fn further(&self, places: u32) -> u32 {
        ((u64::from(self.me) + u64::from(places)) % u64::from(self.ranks)) as u32
    }

    /// This rank's count: its distance from the root, around the circle of ranks.
    fn count(&self) -> u32 {
        (self.me + self.ranks - self.root) % self.ranks
    }

    /// The rank with this count.
    fn at_count(&self, count: u32) -> u32 {
        (count + self.root) % self.ranks
    }

    /// Bytes of `count` blocks.
    fn blocks(&self, count: u32) -> usize {
        count as usize * self.block_bytes
    }

    /// Whether the blocks of all ranks fit into scratch.
    fn is_small(&self) -> bool {
        self.block_bytes.saturating_mul(self.ranks as usize) <= SMALL_BYTES
    }
}

/// Segment `at` of `len_bytes` bytes, in bytes: its start and its length.
fn segment(at: u32, segment_bytes: usize, len_bytes: usize) -> (usize, usize) {
    let start = at as usize * segment_bytes;
    debug_assert!(start < len_bytes, "segment {at} begins in the block");
    (start, segment_bytes.min(len_bytes - start))
}

fn copy(from: BufferOffset, to: BufferOffset, len_bytes: usize) -> LocalStep {
    LocalStep::Copy { from, to, len_bytes }
}
