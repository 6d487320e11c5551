//! Lines for the user.

use crate::signals::without_sigpipe;
use std::io::Write;

/// Writes a line for the user to stderr. A failure is ignored: there is nobody to tell, and it is no reason to end the
/// program.
pub fn say(line: &str) {
    // One write, so lines of several ranks do not mix.
    without_sigpipe(|| std::io::stderr().write_all(format!("{line}\n").as_bytes()).ok());
}
