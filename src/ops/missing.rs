//! Parts of a transfer that miss. They go to the engine together. Few of one transfer wait for their pages at a time, so that its memory,
//! and the time that it has the engine, do not grow with its pages.

use super::Ops;
use crate::request::{Completion, Part};

/// As many. A transfer with more misses goes on when these are complete.
pub const PARTS_MAX: usize = 4096;

impl Ops {
    /// Adds a part to those of its transfer that are to go to the engine.
    pub(super) fn add_missing(&self, missing: &mut Vec<Part>, part: Part) {
        if missing.len() == PARTS_MAX {
            self.finish_parts(missing);
        }
        missing.push(part);
    }

    /// Hands all parts to the engine. What this thread waits for next may be bytes that they are to fetch.
    pub(super) fn submit_missing(&self, missing: &mut Vec<Part>) {
        if !missing.is_empty() {
            self.driver.submit(missing.drain(..));
        }
    }

    /// Hands parts to the engine, and returns when they are complete. Why one could not be done, their transfer hears.
    #[cold]
    fn finish_parts(&self, parts: &mut Vec<Part>) {
        let transfer = parts.iter().find_map(|part| match &part.completion {
            Completion::Counted(transfer) | Completion::Then(transfer, _) => Some(*transfer),
            Completion::Fault(_) | Completion::Served(_) => None,
        });
        let now = self.begin_pieces();
        let parts = std::mem::take(parts).into_iter();
        self.driver.submit(parts.map(|part| Part { completion: part.completion.counted_in(now), ..part }));
        self.driver.wait(now);
        if let (Some(transfer), Some(cause)) = (transfer, self.completions().failure(now)) {
            self.completions().fail(transfer, cause);
        }
        self.completions().end(now);
    }
}
