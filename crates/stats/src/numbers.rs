//! Numbers for users, in three digits or four.

use super::rows::Kind;

/// A row's number, by its kind; a dash for 0.
pub(super) fn shown(kind: Kind, value: u64) -> String {
    match kind {
        _ if value == 0 => "-".to_owned(),
        Kind::Count | Kind::Latency => count(value),
        Kind::Bytes | Kind::SettingBytes => bytes(value),
        Kind::SpanNs | Kind::TimeNs | Kind::Wait => duration(value),
    }
}

/// A count: `99999`, `123 k`, `4.56 M`.
pub(super) fn count(value: u64) -> String {
    if value < 100_000 { value.to_string() } else { scaled(value, 1000, &["", " k", " M", " G", " T", " P", " E"]) }
}

/// A size: `512`, `64K`, `4.50M`.
pub(super) fn bytes(value: u64) -> String {
    scaled(value, 1024, &["", "K", "M", "G", "T", "P", "E"])
}

/// A duration: `250 ns`, `1.23 us`, `4 ms`, `61.2 s`.
pub(super) fn duration(ns: u64) -> String {
    const UNITS: [&str; 4] = [" ns", " us", " ms", " s"];
    if ns >= 1_000_000_000_000 { format!("{} s", ns / 1_000_000_000) } else { scaled(ns, 1000, &UNITS) }
}

/// In the largest unit not above the value. Each unit is `step` of the one before. A whole number of units has no
/// digits behind the point.
fn scaled(value: u64, step: u64, units: &[&str]) -> String {
    let (mut unit, mut one) = (0, 1);
    while unit + 1 < units.len() && value / one >= step {
        (unit, one) = (unit + 1, one * step);
    }
    let (whole, part) = (value / one, value % one);
    let digits = if part == 0 { 0 } else { 2_usize.saturating_sub(whole.max(1).ilog10() as usize) };
    format!("{:.digits$}{}", value as f64 / one as f64, units[unit])
}

/// A part of a whole in percent, 0 to 100.
pub(super) fn percent(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 100).checked_div(u128::from(whole)).unwrap_or(0).min(100) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!([0, 7, 99_999, 123_456, 4_560_000].map(count), ["0", "7", "99999", "123 k", "4.56 M"]);
        assert_eq!([0, 512, 65_536, 4_718_592, 1 << 62].map(bytes), ["0", "512", "64K", "4.50M", "4E"]);
        assert_eq!([250, 1_234, 4_000_000, 61_230_000_000].map(duration), ["250 ns", "1.23 us", "4 ms", "61.2 s"]);
        assert_eq!(duration(5_000_000_000_000), "5000 s");
        assert_eq!(shown(Kind::Wait, 0), "-");
        assert_eq!([percent(1, 0), percent(1, 3), percent(5, 4)], [0, 33, 100]);
    }
}
