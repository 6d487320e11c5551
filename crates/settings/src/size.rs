//! Sizes in the notation of users.
//!
//! A size is decimal digits, then at most one of `K`, `M`, `G`, `T` in either case, for powers of 1024.

/// `(suffix, bytes)`, largest first.
const UNITS: [(char, u64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

/// The bytes of a size: `256M` is 268,435,456. Spaces, signs, fractions, `B` and `iB` are refused.
///
/// # Errors
/// The mistake in `text`, as the end of a sentence.
pub fn parse_size(text: &str) -> Result<u64, String> {
    const GRAMMAR: &str = "is not a size: digits, then at most one of K, M, G, T";
    let Some(last) = text.chars().last() else { return Err(GRAMMAR.into()) };
    let unit = UNITS.iter().find(|(suffix, _)| *suffix == last.to_ascii_uppercase());
    let (digits, unit_bytes) = match unit {
        Some((_, unit_bytes)) => (&text[..text.len() - 1], *unit_bytes),
        None => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(GRAMMAR.into());
    }
    let too_large = || "is too large: it must stay under 16777216T (2^64 bytes)".to_string();
    let count: u64 = digits.parse().map_err(|_| too_large())?;
    count.checked_mul(unit_bytes).ok_or_else(too_large)
}

/// `bytes` exactly, in the largest unit without a fraction. [`parse_size`] gives the same number back.
pub fn format_size(bytes: u64) -> String {
    match UNITS.iter().find(|(_, unit_bytes)| bytes != 0 && bytes % unit_bytes == 0) {
        Some((suffix, unit_bytes)) => format!("{}{suffix}", bytes / unit_bytes),
        None => bytes.to_string(),
    }
}

/// `bytes` rounded down to at least three significant digits, in a form for [`parse_size`]. Lines for the user show
/// measured amounts this way: they are rarely round, and a value copied by the user never exceeds the amount.
pub fn format_size_about(bytes: u64) -> String {
    match UNITS.iter().find(|(_, unit_bytes)| bytes / unit_bytes >= 100) {
        Some((_, unit_bytes)) => format_size(bytes / unit_bytes * unit_bytes),
        None => format_size(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_grammar_allows() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("64K", 65_536),
            ("64k", 65_536),
            ("256M", 268_435_456),
            ("1g", 1 << 30),
            ("3T", 3 << 40),
            ("007", 7),
            ("18446744073709551615", u64::MAX),
            ("16777215T", 16_777_215 << 40),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        let malformed = [
            "",
            "M",
            " 1",
            "1 ",
            "1 M",
            "+1",
            "-1",
            "1.5G",
            "1e3",
            "0x10",
            "1B",
            "1KB",
            "1KiB",
            "1MM",
            "1P",
            "١",
            "1\0",
            "ſ",
            "1K\u{212A}",
            "nonsense",
        ];
        for text in malformed {
            assert!(parse_size(text).is_err_and(|why| why.contains("not a size")), "{text:?}");
        }
        for text in ["18446744073709551616", "16777216T", "99999999999999999999K"] {
            assert!(parse_size(text).is_err_and(|why| why.contains("too large")), "{text:?}");
        }
    }

    #[test]
    fn what_is_formatted_reads_back() {
        for bytes in [0, 1, 1023, 1024, 1025, 1 << 20, 3 << 19, 5 << 30, 1 << 50, u64::MAX, u64::MAX - 1023] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
            let about = parse_size(&format_size_about(bytes)).unwrap();
            assert!(about <= bytes && bytes - about <= bytes / 100, "{bytes} about {about}");
        }
        assert_eq!(format_size(4 << 20), "4M");
        assert_eq!(format_size_about((100 << 30) + 12_345), "100G");
    }
}
