//! The queues of a pool's frames.

use super::Lists;

/// The queue of unevictable frames.
pub(super) const HELD: usize = 0;

/// The queue of frames with unused read-ahead pages.
pub(super) const AHEAD: usize = 1;

/// The queue of frames with guests.
pub(super) const GUESTS: usize = 2;

/// The first of the policy's three queues.
pub(super) const POLICY: usize = 3;

/// All queues; a frame is in at most one.
pub type Queues = Lists<6>;
