//! docs/reference/statistics.md and the structure of C name every row, in order: both are generated from the table of
//! rows.

use super::rows::{Kind, ROWS, Row, sections};
use std::fs;
use std::path::Path;

/// The fields of `vgasnet_stats_t` after its size, as in the header.
fn fields() -> String {
    let field = |name: &str, kind: Kind, meaning: &str| {
        let kind = if kind.is_timed() { "vgasnet_stats_times_t" } else { "uint64_t" };
        wrapped(&format!("    {kind} {name}; /* {}", meaning.replace('`', "")), "     * ", " */\n")
    };
    ROWS.iter()
        .map(|declared| field(declared.name, declared.kind, &with_unit(declared.kind, declared.meaning)))
        .collect()
}

fn with_unit(kind: Kind, meaning: &str) -> String {
    match kind {
        Kind::SpanNs | Kind::TimeNs => format!("{meaning}, in nanoseconds"),
        Kind::SettingBytes => format!("{meaning}, in bytes"),
        _ => meaning.to_owned(),
    }
}

/// Wraps a text to lines of at most 120 letters.
fn wrapped(text: &str, indent: &str, end: &str) -> String {
    const WIDTH: usize = 120;
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.trim_start().split(' ') {
        if line.len() + 1 + word.len() + end.trim_end().len() > WIDTH {
            lines += &format!("{line}\n");
            line = format!("{indent}{word}");
        } else if line.is_empty() {
            line = format!("    {word}");
        } else {
            line += &format!(" {word}");
        }
    }
    lines + &line + end
}

/// The rows as tables in Markdown.
fn tables() -> String {
    let row = |name: &str, label: &str, kind: Kind, meaning: &str| {
        let unit = match kind {
            Kind::Count => "number",
            Kind::Bytes | Kind::SettingBytes => "bytes",
            Kind::SpanNs | Kind::TimeNs => "ns",
            Kind::Latency | Kind::Wait => "times",
        };
        format!("| {label} | `{name}` | {unit} | {meaning} |\n")
    };
    let table = |section: &'static str| {
        let rows: String =
            Row::of_section(section).map(|row_| row(row_.name, row_.label, row_.kind, row_.meaning)).collect();
        format!("**{section}**\n\n| row | name | unit | counted |\n| --- | --- | --- | --- |\n{rows}\n")
    };
    sections().into_iter().map(table).collect()
}

/// Checks that a file has a text between two lines. With `STATS_WRITE=1`, puts it there.
fn check(file: &str, begin: &str, end: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = fs::read_to_string(&path).expect("the file");
    let (before, rest) = text.split_once(begin).expect("the line before");
    let (found, after) = rest.split_once(end).expect("the line behind");
    if found != wanted && std::env::var_os("STATS_WRITE").is_some() {
        fs::write(&path, format!("{before}{begin}{wanted}{end}{after}")).expect("the file can be written");
        return;
    }
    assert!(found == wanted, "{file} lacks this; STATS_WRITE=1 puts it there:\n{wanted}");
}

#[test]
fn the_structure_of_c_has_every_row() {
    const BEGIN: &str = "    uint64_t size_bytes; /* of what vgasnet_stats has filled in, this field included */\n";
    check("include/vgasnet/stats.h", BEGIN, "} vgasnet_stats_t;", &fields());
}

#[test]
fn the_page_about_statistics_has_every_row() {
    check("docs/reference/statistics.md", "<!-- rows -->\n\n", "<!-- end of rows -->", &tables());
}
