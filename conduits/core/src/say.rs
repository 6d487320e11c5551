//! Lines for the user.

use crate::signals::without_sigpipe;
use std::io::Write;

/// Shows a line to the user, on stderr. Where that cannot be written, or nobody reads it, there is nobody to tell, which is no reason to end
/// the program.
pub fn say(line: &str) {
    // One write, so that lines of several ranks do not mix.
    without_sigpipe(|| std::io::stderr().write_all(format!("{line}\n").as_bytes()).ok());
}
