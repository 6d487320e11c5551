//! Errors for the user, of one line.

use std::fmt;

/// One line for the user: what is wrong and where, what is allowed, and what to change.
///
/// The line has no prefix and no newline; `job::report` puts `vgasnet: rank R: CALL: ` in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserError(String);

impl UserError {
    /// An error that reads `line`. Line breaks in it (a path may hold any byte) become spaces.
    pub fn new(line: impl Into<String>) -> UserError {
        let line: String = line.into();
        UserError(if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line })
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UserError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_line_whatever_it_quotes() {
        assert_eq!(UserError::new("no directory /a\nb").to_string(), "no directory /a b");
    }
}
