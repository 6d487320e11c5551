//! Lines for the user.

use crate::{LIBRARY, ffi};
use std::io::Write;

/// Shows one line about a call.
pub fn line(call: &str, text: &str) {
    let rank = ffi::world_rank().map_or_else(|| "?".to_owned(), |rank| rank.to_string());
    tell(&format!("{LIBRARY}: rank {rank}: {call}: {text}\n"));
}

/// Shows a text in one piece, since all ranks share the terminal. A failure cannot be reported.
pub fn tell(text: &str) {
    _ = std::io::stderr().write_all(text.as_bytes());
}
