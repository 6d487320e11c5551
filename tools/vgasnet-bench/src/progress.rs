//! Progress bars on a terminal; nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::io::IsTerminal;

/// A bar of `len` steps named `label`, which disappears when it is dropped. Only rank 0 draws: a terminal has room for one.
pub fn bar(is_first: bool, label: &'static str, len: u64) -> ProgressBar {
    if !is_first || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template("{msg:<24} {wide_bar} {percent:>3} % {eta:>5}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.with_message(label).with_finish(ProgressFinish::AndClear)
}
