//! Error lines for the user.

use std::cell::RefCell;
use std::fmt;
use std::panic::PanicHookInfo;

/// One line for the user: the mistake and its place, the allowed values, and the change to make.
///
/// The line has no prefix and no newline; `job::report` puts `vgasnet: rank R: CALL: ` in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserError(String);

impl UserError {
    /// An error with the text `line`. Line breaks in it become spaces, since a path may hold any byte.
    pub fn new(line: impl Into<String>) -> UserError {
        let line: String = line.into();
        UserError(if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line })
    }

    /// Stores the line about a panic of this thread for [`UserError::of_panic`].
    pub fn note_panic(info: &PanicHookInfo<'_>) {
        let payload = info.payload();
        let text =
            payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let place = info.location().map(|location| format!(" ({}:{})", location.file(), location.line()));
        let (text, place) = (text.unwrap_or("no message"), place.unwrap_or_default());
        let line = UserError::new(format!("internal error: {text}{place}; please report"));
        // A thread about to end has already dropped its thread-local values.
        let _ending = PANIC.try_with(|panic| panic.replace(Some(line)));
    }

    /// The line about the caught panic of this thread.
    pub fn of_panic() -> UserError {
        let kept = PANIC.try_with(|panic| panic.take()).ok().flatten();
        kept.unwrap_or_else(|| UserError::new("internal error; please report"))
    }
}

thread_local! {
    static PANIC: RefCell<Option<UserError>> = const { RefCell::new(None) };
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
