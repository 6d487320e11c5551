//! Lines for the user.

use std::fmt::Display;
use std::io::Write;

/// Shows a line to the user, as one of this library.
pub fn say(library: &str, line: impl Display) {
    // One write, so that lines of several ranks do not mix. If stderr cannot be written, there is nobody to tell, which is no reason to end
    // the program.
    std::io::stderr().write_all(format!("{library}: {line}\n").as_bytes()).ok();
}
