//! How far a run has come, on a terminal; nothing elsewhere.

use std::io::{IsTerminal, Write, stderr};

/// A line on the terminal that says how many of all points are done.
pub struct Progress {
    what: &'static str,
    done: usize,
    all: usize,
    is_shown: bool,
}

impl Progress {
    /// Of so many points. Shown where standard error is a terminal.
    pub fn new(what: &'static str, all: usize) -> Progress {
        let progress = Progress { what, done: 0, all, is_shown: stderr().is_terminal() };
        progress.show();
        progress
    }

    /// One more is done.
    pub fn step(&mut self) {
        self.done += 1;
        self.show();
    }

    fn show(&self) {
        if self.is_shown {
            // Nothing depends on whether somebody reads it.
            let _ = write!(stderr(), "\r{}: {} of {}", self.what, self.done, self.all);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
