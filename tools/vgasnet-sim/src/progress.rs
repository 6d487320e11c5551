//! Progress of a run, on a terminal only.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The line of the innermost visible [`Progress`].
static LINE: Mutex<String> = Mutex::new(String::new());

/// A line on the terminal with the number of completed points.
pub struct Progress {
    what: &'static str,
    done: usize,
    all: usize,
    is_shown: bool,
}

impl Progress {
    /// Progress of `all` points. It is visible if standard error is a terminal.
    pub fn new(what: &'static str, all: usize) -> Progress {
        let progress = Progress { what, done: 0, all, is_shown: stderr().is_terminal() };
        progress.show();
        progress
    }

    /// Counts a completed point.
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

/// Errors are ignored: no result depends on the progress line.
fn print(line: &str) {
    let _ = write!(stderr(), "\r\x1b[K{line}");
}

/// Interval between updates of a point.
const EVERY: Duration = Duration::from_millis(200);

/// Number of calls between looks at the clock.
const CALLS: u32 = 1 << 12;

/// Progress of a long point, shown behind the line of a [`Progress`].
pub struct Pace {
    calls: u32,
    told: Instant,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { calls: 0, told: Instant::now() }
    }

    /// Shows the text if an update is due.
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
