//! How far it is, on a terminal; silence anywhere else.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar of `len` steps for what `label` says. Only rank 0 draws: one bar is one terminal's worth.
pub fn bar(is_first: bool, label: &'static str, len: u64) -> ProgressBar {
    if !is_first || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template("{msg:<24} {wide_bar} {percent:>3} % {eta:>5}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.with_message(label)
}
