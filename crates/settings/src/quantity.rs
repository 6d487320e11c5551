//! Numbers and sizes in the notation of GASNet's users: in GASNet's variables, and in variables read by its clients
//! through its tools.
//!
//! A size is a number, with a fraction or without, then at most one unit: `K`, `M`, `G`, `T`, `P` for powers of 1024,
//! each alone or before `B` or `iB`, or `B` for bytes. Units have either case, with blanks around and between: `128.0
//! MB`, `4gb`, `64 KiB`. The number may be hexadecimal, with `0x`.

/// `(letter, bytes)`.
const UNITS: [(u8, u64); 5] = [(b'K', 1 << 10), (b'M', 1 << 20), (b'G', 1 << 30), (b'T', 1 << 40), (b'P', 1 << 50)];

const SIZE: &str = "is not a size: a number, then at most one of B, KB, MB, GB, TB";

/// The bytes of a size; a number alone counts units of `unit_bytes`.
///
/// # Errors
/// The mistake in `text`, as the end of a sentence.
pub fn parse_quantity(text: &str, unit_bytes: u64) -> Result<i64, String> {
    let (number, named_unit) = split_unit(text)?;
    let unit_bytes = named_unit.unwrap_or(unit_bytes);
    let too_large = || "is too large: it must stay under 2^63 bytes".to_string();
    if let Ok(count) = parse_integer(number) {
        let unit = i64::try_from(unit_bytes).map_err(|_| too_large())?;
        return count.checked_mul(unit).ok_or_else(too_large);
    }
    let bytes = parse_decimal(number).ok_or(SIZE)? * unit_bytes as f64;
    if bytes.abs() >= i64::MAX as f64 { Err(too_large()) } else { Ok(bytes.round() as i64) }
}

/// A number, and the bytes of its unit, if there is one.
fn split_unit(text: &str) -> Result<(&str, Option<u64>), String> {
    let text = text.trim();
    let is_of_unit = |letter: char| letter.is_ascii_alphabetic() && !is_hexadecimal(text);
    let end = text.find(|letter: char| is_of_unit(letter) || letter.is_whitespace()).unwrap_or(text.len());
    let (number, unit) = (text[..end].trim_end(), text[end..].trim_start().to_ascii_uppercase());
    let unit_bytes = match unit.as_bytes() {
        [] => None,
        [b'B'] => Some(1),
        [letter] | [letter, b'B'] | [letter, b'I', b'B'] => {
            Some(UNITS.iter().find(|(known, _)| known == letter).ok_or(SIZE)?.1)
        }
        _ => return Err(SIZE.into()),
    };
    Ok((number, unit_bytes))
}

fn is_hexadecimal(text: &str) -> bool {
    let magnitude = text.strip_prefix(['-', '+']).unwrap_or(text);
    magnitude.starts_with("0x") || magnitude.starts_with("0X")
}

/// A decimal number, without exponent.
fn parse_decimal(text: &str) -> Option<f64> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.bytes().all(is_digit) { text.parse().ok() } else { None }
}

/// An integer, decimal or with `0x`, with a sign or without.
///
/// # Errors
/// The mistake in `text`, as the end of a sentence.
pub fn parse_integer(text: &str) -> Result<i64, String> {
    const GRAMMAR: &str = "is not an integer under 2^63: digits, or 0x and hexadecimal digits, perhaps behind a sign";
    let text = text.trim();
    let (is_negative, magnitude) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (magnitude, 10),
    };
    if digits.starts_with(['+', '-']) {
        return Err(GRAMMAR.into());
    }
    let value = i128::from_str_radix(digits, radix).map_err(|_| GRAMMAR)?;
    i64::try_from(if is_negative { -value } else { value }).map_err(|_| GRAMMAR.into())
}

/// A number, or two with a slash between them, as `3/8`.
///
/// # Errors
/// The mistake in `text`, as the end of a sentence.
pub fn parse_fraction(text: &str) -> Result<f64, String> {
    const GRAMMAR: &str = "is neither a number nor two with a slash between them, the second not 0";
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let value = match text.split_once('/') {
        None => number(text),
        Some((above, below)) => number(above).zip(number(below)).map(|(above, below)| above / below),
    };
    value.filter(|value| value.is_finite()).ok_or_else(|| GRAMMAR.into())
}

/// `value` in the largest unit that leaves no fraction. [`parse_quantity`] gives the same number back.
pub fn format_quantity(value: i64) -> String {
    let exact = UNITS.iter().rev().find(|(_, unit_bytes)| value != 0 && value.unsigned_abs() % unit_bytes == 0);
    match exact {
        Some((letter, unit_bytes)) => format!("{} {}B", value / *unit_bytes as i64, char::from(*letter)),
        None => format!("{value} B"),
    }
}

/// GASNet's limit on segments, in bytes per rank: a size, or a fraction of the memory, of a rank (`/P`, or nothing) or
/// of all ranks of the host (`/H`). A number alone is a fraction if it has a point, else bytes.
///
/// # Errors
/// The mistake in `text`, as the end of a sentence.
pub fn parse_segment_limit(text: &str, memory_bytes: u64, ranks_on_host: u32) -> Result<u64, String> {
    const GRAMMAR: &str =
        "is not a limit: a size, or a fraction of the memory, then perhaps /P or /H, as 512MB/P or 0.5/H";
    let (amount, ranks) = match text.trim().rsplit_once('/') {
        Some((amount, "P" | "p")) => (amount, 1),
        Some((amount, "H" | "h")) => (amount, u64::from(ranks_on_host)),
        Some(_) => return Err(GRAMMAR.into()),
        None => (text, 1),
    };
    let (number, unit) = split_unit(amount).map_err(|_| GRAMMAR)?;
    let bytes = match parse_decimal(number) {
        Some(fraction) if unit.is_none() && number.contains('.') => (fraction * memory_bytes as f64) as i64,
        None if !is_hexadecimal(number) => return Err(GRAMMAR.into()),
        _ => parse_quantity(amount, 1)?,
    };
    Ok(u64::try_from(bytes).map_err(|_| GRAMMAR)? / ranks)
}

/// The answer of a text by its first letter, if it is yes or no.
pub fn parse_answer(text: &str) -> Option<bool> {
    match text.bytes().next()?.to_ascii_lowercase() {
        b'y' | b't' | b'1' => Some(true),
        b'n' | b'f' | b'0' => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes() {
        let cases = [
            ("128.0 MB", 128 << 20),
            ("128.0MB", 128 << 20),
            (" 4gb ", 4 << 30),
            ("64 KiB", 64 << 10),
            ("0.5K", 512),
            ("7B", 7),
            ("0x10", 16 << 10),
            ("0x10 MB", 16 << 20),
            ("-0X1B", -(27 << 10)),
            ("3", 3 << 10),
            ("-2M", -(2 << 20)),
            (".25 k", 256),
            ("9223372036854775807 B", i64::MAX),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_quantity(text, 1024), Ok(bytes), "{text}");
        }
        for text in
            ["", "MB", "1 XB", "1MBB", "1e3", "1 M B", "1.2.3M", "0x", "0xg", "0x1.8", "nan", "much", "8 GiBs", "١"]
        {
            assert!(parse_quantity(text, 1).is_err_and(|why| why.contains("not a size")), "{text}");
        }
        for text in ["8 EB", "9999 PB", "9223372036854775808", "1e400"] {
            assert!(parse_quantity(text, 1).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_integers_and_fractions() {
        for (text, value) in [("12", 12), ("-0x1F", -31), ("+7", 7), (" 0 ", 0), ("-9223372036854775808", i64::MIN)] {
            assert_eq!(parse_integer(text), Ok(value), "{text}");
        }
        for text in
            ["", "1K", "1.0", "--1", "0x", "0x-1", "9223372036854775808", "99999999999999999999999999999999999999999"]
        {
            assert!(parse_integer(text).is_err(), "{text}");
        }
        for (text, value) in [("3/8", 0.375), ("1.5", 1.5), ("-1e4", -1e4), (" 1 / 4 ", 0.25)] {
            assert_eq!(parse_fraction(text), Ok(value), "{text}");
        }
        for text in ["", "/", "1/0", "a", "inf", "1/2/3", "nan"] {
            assert!(parse_fraction(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_formatted_reads_back() {
        for value in (0..62).map(|bit| 1_i64 << bit).chain([0, -1, 1023, -4096, 3 << 19, i64::MAX, i64::MIN + 1]) {
            assert_eq!(parse_quantity(&format_quantity(value), 1), Ok(value), "{value}");
        }
        assert_eq!(format_quantity(128 << 20), "128 MB");
    }

    #[test]
    fn reads_limits_of_segments() {
        let limit = |text| parse_segment_limit(text, 1 << 30, 4);
        for (text, bytes) in [
            ("128.0MB/P", 128 << 20),
            ("128.0 MB", 128 << 20),
            ("4G/H", 1 << 30),
            ("0.5/H", 1 << 27),
            ("0.5", 1 << 29),
            ("0.5/p", 1 << 29),
            ("4096", 4096),
            ("2.0/P", 2 << 30),
            ("0x1000/H", 1024),
        ] {
            assert_eq!(limit(text), Ok(bytes), "{text}");
        }
        for text in ["", "much", "-1M", "1M/Q", "1/2", "/P", "1M/P/H", "-0.5/H"] {
            assert!(limit(text).is_err_and(|why| why.contains("as 512MB/P")), "{text}: {:?}", limit(text));
        }
    }
}
