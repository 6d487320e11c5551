//! Waits for frames that neighbours have borrowed.

use super::Driver;
use crate::TooManyPins;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Timeout for lent frames. Neighbours return them at once, unless they are stopped.
const LOANS_PATIENCE: Duration = Duration::from_secs(5);

impl Driver {
    /// After [`Engine::add_pins`], waits until the lent frames are within the limit.
    ///
    /// # Errors
    /// Neighbours do not return frames. The pages have been removed from the pin set.
    pub fn await_loans(&self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        let table = &self.space().own.table;
        let has_room = || table.lent_too_many() == 0;
        if !has_room() {
            self.step();
            self.wait_until_or(&has_room, Some(Instant::now() + LOANS_PATIENCE));
        }
        match table.lent_too_many() {
            0 => Ok(()),
            missing => {
                self.engine().take_back_pins(pages);
                Err(TooManyPins::Lent(missing))
            }
        }
    }
}
