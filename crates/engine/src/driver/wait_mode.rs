//! How waiting threads share the processors: a hint of the client.

use std::sync::atomic::{AtomicU8, Ordering};

/// Behaviour of a waiting thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WaitMode {
    /// Keeps its processor.
    Spin,
    /// Sleeps at once.
    Block,
    /// Spins for a short time, then sleeps.
    SpinBlock,
}

static MODE: AtomicU8 = AtomicU8::new(WaitMode::SpinBlock as u8);

impl WaitMode {
    /// The present mode of this rank.
    #[inline]
    pub fn current() -> WaitMode {
        match MODE.load(Ordering::Relaxed) {
            0 => WaitMode::Spin,
            1 => WaitMode::Block,
            _ => WaitMode::SpinBlock,
        }
    }

    /// Sets the mode of this rank's threads.
    pub fn make_current(self) {
        MODE.store(self as u8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_the_last_one_set() {
        for mode in [WaitMode::Spin, WaitMode::Block, WaitMode::SpinBlock] {
            mode.make_current();
            assert_eq!(WaitMode::current(), mode);
        }
    }
}
