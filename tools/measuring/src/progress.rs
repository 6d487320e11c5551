//! Progress of long work: a bar on a terminal; elsewhere nothing, or a line now and then.

pub use indicatif::ProgressBar;

use indicatif::{ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Without a line for longer than this, the work would seem to hang.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// A bar of `len` steps named `label`. It disappears when dropped. Only rank 0 draws, since a terminal has room for one
/// bar. Without a terminal nothing is drawn.
pub fn bar(is_first: bool, label: &'static str, len: u64) -> ProgressBar {
    if !is_first || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    on_terminal(label, len, "{msg:<24} {wide_bar} {percent:>3} % {eta:>5}")
}

fn on_terminal(label: &str, len: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.with_message(label.to_owned()).with_finish(ProgressFinish::AndClear)
}

/// Progress in bytes: a bar with the rate on a terminal, a line every ten seconds elsewhere.
pub struct Bytes {
    bar: ProgressBar,
    label: String,
    len: u64,
    done: u64,
    start: Instant,
    /// Time of the next line; `None` if a bar is drawn or another process shows the progress.
    next_line: Option<Instant>,
}

impl Bytes {
    /// Progress of `len` bytes. Nothing is shown unless `is_shown`.
    pub fn new(is_shown: bool, label: &str, len: u64) -> Bytes {
        let (start, label) = (Instant::now(), label.to_owned());
        let has_terminal = std::io::stderr().is_terminal();
        let bar = if is_shown && has_terminal {
            on_terminal(&label, len, "{msg} {wide_bar} {percent:>3} % {binary_bytes_per_sec:>12}")
        } else {
            ProgressBar::hidden()
        };
        let next_line = (is_shown && !has_terminal).then(|| start + SILENCE_MAX);
        Bytes { bar, label, len, done: 0, start, next_line }
    }

    /// Adds `bytes` of completed work.
    pub fn add(&mut self, bytes: u64) {
        self.done += bytes;
        self.bar.inc(bytes);
        let now = Instant::now();
        if self.next_line.is_some_and(|due| now >= due) {
            self.next_line = Some(now + SILENCE_MAX);
            let percent = 100 * self.done / self.len.max(1);
            let rate = self.done as f64 / (now - self.start).as_secs_f64() / f64::from(1 << 20);
            eprintln!("{} {percent} %, {rate:.0} MiB/s", self.label);
        }
    }
}
