//! Lines for the user.

use std::fmt::Display;

/// Shows a line to the user, prefixed with the library's name.
pub fn say(library: &str, line: impl Display) {
    vgasnet_conduit::say(&format!("{library}: {line}"));
}
