//! Lines for the user.

use std::fmt::Display;

/// Shows a line to the user, as one of this library.
pub fn say(library: &str, line: impl Display) {
    vgasnet_conduit::say(&format!("{library}: {line}"));
}
