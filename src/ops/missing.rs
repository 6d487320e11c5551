//! Missing parts of a transfer. They are submitted together, but in bounded numbers, so that a transfer's memory and
//! its time under the engine's lock do not grow with its pages.

use super::Ops;
use vgasnet_engine::request::{Completion, Part};

/// Maximum missing parts of a transfer at a time. A transfer with more continues when these are complete.
pub const PARTS_MAX: usize = 4096;

impl Ops {
    /// Adds a missing part of a transfer.
    pub(super) fn add_missing(&self, missing: &mut Vec<Part>, part: Part) {
        if missing.len() == PARTS_MAX {
            self.finish_parts(missing);
        }
        missing.push(part);
    }

    /// Submits all parts. This thread may wait for their bytes next.
    pub(super) fn submit_missing(&self, missing: &mut Vec<Part>) {
        if !missing.is_empty() {
            self.driver.submit(missing.drain(..));
        }
    }

    /// Submits parts and waits for their completion. A failure is reported to their transfer.
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
