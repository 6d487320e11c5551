//! How far a run has come, on a terminal; nothing elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The line of the innermost [`Progress`] that is shown.
static LINE: Mutex<String> = Mutex::new(String::new());

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
            let line = format!("{}: {} of {}", self.what, self.done, self.all);
            print(&line);
            *LINE.lock().unwrap_or_else(PoisonError::into_inner) = line;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            print("");
            LINE.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

/// Nothing depends on whether somebody reads it.
fn print(line: &str) {
    let _ = write!(stderr(), "\r\x1b[K{line}");
}

/// How often a point says how far it is.
const EVERY: Duration = Duration::from_millis(200);

/// Looks at a clock are so many calls apart.
const CALLS: u32 = 1 << 12;

/// What a point that takes long says behind the line of a [`Progress`].
pub struct Pace {
    calls: u32,
    told: Instant,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { calls: 0, told: Instant::now() }
    }

    /// Shows the text, if it is time again.
    pub fn tell(&mut self, text: impl FnOnce() -> String) {
        self.calls = self.calls.wrapping_add(1);
        if self.calls % CALLS == 0 && self.told.elapsed() >= EVERY {
            self.told = Instant::now();
            let line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
            if !line.is_empty() {
                print(&format!("{line}; {}", text()));
            }
        }
    }
}
