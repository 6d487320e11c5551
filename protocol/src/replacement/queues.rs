//! The queues of a pool's frames.

use super::Lists;

/// The queue of frames that cannot be evicted now.
pub(super) const HELD: usize = 0;

/// The queue of frames with pages that were fetched ahead and that nobody has used.
pub(super) const AHEAD: usize = 1;

/// The queue of frames with pages that are kept for another rank.
pub(super) const GUESTS: usize = 2;

/// The first of three queues that are the policy's.
pub(super) const POLICY: usize = 3;

/// All queues, of which a frame is in one at most.
pub type Queues = Lists<6>;
