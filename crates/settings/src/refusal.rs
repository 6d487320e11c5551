//! The one line about a refused value of an environment variable.

use crate::variables::VARIABLES;
use crate::{UserError, parse_size};
use std::ops::RangeInclusive;

/// The line about a refused value of a variable in the table, with its allowed values. `why` is the end of a sentence
/// that begins `NAME=VALUE`.
///
/// # Panics
/// If the table has no such variable.
pub fn refusal(name: &str, value: &str, why: &str) -> UserError {
    let variable = VARIABLES.iter().find(|variable| variable.name == name);
    refusal_of(name, value, why, variable.expect("the variable is in the table").allowed)
}

/// As [`refusal`], for values allowed on this machine or with the other settings.
pub(crate) fn refusal_of(name: &str, value: &str, why: &str, allowed: &str) -> UserError {
    UserError::new(format!("{name}={value} {why}; allowed: {allowed}"))
}

/// A number in a range.
///
/// # Errors
/// It is outside; the text is the end of a sentence.
pub(crate) fn in_range(number: u64, range: RangeInclusive<u64>) -> Result<u64, String> {
    if range.contains(&number) { Ok(number) } else { Err("is out of range".into()) }
}

/// The bytes of a size in a range.
///
/// # Errors
/// The mistake in `text`, as the end of a sentence.
pub fn parse_size_in(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    in_range(parse_size(text)?, range)
}
