//! Complete transfers not yet reported.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use vgasnet_conduit::{Busy, Token};

/// Maximum number of completions waiting for a poll. Racing threads may exceed it by one each.
const COMPLETIONS_MAX: usize = 4096;

/// A bounded queue. Its length is readable without the lock, so an unsuccessful poll costs one load.
#[derive(Default)]
pub(crate) struct Completions {
    queue: Mutex<VecDeque<Token>>,
    waiting: AtomicUsize,
}

impl Completions {
    /// Whether one more may be started.
    pub(crate) fn check_room(&self) -> Result<(), Busy> {
        if self.waiting.load(Ordering::Relaxed) < COMPLETIONS_MAX { Ok(()) } else { Err(Busy) }
    }

    pub(crate) fn push(&self, token: Token) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(token);
        self.waiting.store(queue.len(), Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<Token> {
        if !self.has_any() {
            return None;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let token = queue.pop_front();
        self.waiting.store(queue.len(), Ordering::Release);
        token
    }

    pub(crate) fn has_any(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}
