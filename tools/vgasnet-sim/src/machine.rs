//! A machine, read from a file.

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::Path;
use toml::de::DeTable;

/// A cluster of equal nodes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name in reports.
    pub name: String,
    /// Each node.
    pub node: Node,
    /// The link between a node and the others.
    pub link: Link,
    /// The SSD of a node.
    pub disk: Disk,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Ranks on the node.
    pub ranks: u32,
    /// The pool of a rank, in bytes.
    #[serde(deserialize_with = "size")]
    pub pool: u64,
    /// A page, in bytes.
    #[serde(deserialize_with = "size")]
    pub page: u64,
    /// Bytes copied by a thread in a second.
    #[serde(deserialize_with = "rate")]
    pub copy: u64,
    /// Time of a rank to handle a message, in microseconds.
    pub message_us: f64,
}

/// A node's link. Each direction has the full bandwidth.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// From the last byte sent to the last byte received, in microseconds.
    pub latency_us: f64,
    /// Bytes a second, in each direction.
    #[serde(deserialize_with = "rate")]
    pub bandwidth: u64,
}

/// An SSD. It does one transfer at a time. Latencies overlap: there are no seeks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// In addition to the transfer, in microseconds.
    pub latency_us: f64,
    /// Bytes read in a second.
    #[serde(deserialize_with = "rate")]
    pub read: u64,
    /// Bytes written in a second.
    #[serde(deserialize_with = "rate")]
    pub write: u64,
    /// Operations in flight per rank.
    pub depth: usize,
}

/// Minimum number of frames in a scaled pool.
const FRAMES_MIN: u64 = 16;

/// Minimum number of frames in an unscaled pool.
const WHOLE_FRAMES_MIN: u64 = 4;

/// Maximum number of pages in a pool: frame numbers are limited.
const FRAMES_MAX: u64 = 1 << 28;

/// Limit on the bytes of all pools of a node.
const NODE_POOLS_MAX: u64 = 1 << 60;

/// Maximum number of ranks on a host.
const RANKS_A_NODE_MAX: u32 = 4096;

/// The lowest rate and the longest latency. Within these limits no sum of times overflows.
const RATE_MIN: u64 = 1_000_000;
const TIME_MAX_US: f64 = 1e6;

impl Machine {
    /// The machine of the paper.
    ///
    /// # Panics
    /// Never: a test parses it.
    pub fn paper() -> Machine {
        Machine::parse("paper.toml", include_str!("../machines/paper.toml")).expect("it is well-formed")
    }

    /// A present-day machine.
    ///
    /// # Panics
    /// Never: a test parses it.
    pub fn today() -> Machine {
        Machine::parse("today.toml", include_str!("../machines/today.toml")).expect("it is well-formed")
    }

    /// Frames of a pool scaled down by this factor.
    pub fn frames_at(&self, scale: u64) -> u64 {
        self.node.pool / scale / self.node.page
    }

    /// The largest possible scale.
    pub fn scale_max(&self) -> u64 {
        (self.node.pool / self.node.page / FRAMES_MIN).max(1)
    }

    /// Whether a pool has room for enough pages of this size.
    pub(crate) fn can_have_pages_of(&self, page_bytes: u64) -> bool {
        self.node.pool / page_bytes >= WHOLE_FRAMES_MIN
    }

    /// Checks that pools can be scaled down by this factor.
    ///
    /// # Errors
    /// Pools would have too few pages. One line.
    pub(crate) fn check_scale(&self, scale: u64) -> Result<(), String> {
        let (frames, max) = (self.frames_at(scale), self.scale_max());
        if frames > FRAMES_MAX {
            return Err(format!(
                "at a scale of {scale} a pool has {frames} pages, more than {FRAMES_MAX}; give a larger scale"
            ));
        }
        if frames >= FRAMES_MIN || scale == 1 && self.can_have_pages_of(self.node.page) {
            return Ok(());
        }
        if max == 1 {
            let (pool, page) = (self.node.pool, self.node.page);
            return Err(format!(
                "a pool of {pool} bytes has {frames} pages of {page} at a scale of {scale}; give larger pools, or a scale of 1 if it \
                 has {WHOLE_FRAMES_MIN} then"
            ));
        }
        Err(format!(
            "at a scale of {scale} a pool has {frames} pages, and needs {FRAMES_MIN}; give a scale of at most {max}"
        ))
    }

    /// Reads a machine file.
    ///
    /// # Errors
    /// One line with the file, the place in it and the mistake.
    pub fn read(path: &Path) -> Result<Machine, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        Machine::parse(&shown.to_string(), &text)
    }

    /// Parses the text of a machine file with this name.
    fn parse(shown: &str, text: &str) -> Result<Machine, String> {
        let machine: Machine = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let (line, column) = place(text, start);
            format!("{shown}:{line}:{column}: {}", error.message().replace('\n', ", "))
        })?;
        machine.check().map_err(|(name, wrong)| {
            let (line, column) = place(text, start_of(text, name));
            format!("{shown}:{line}:{column}: {wrong}")
        })?;
        Ok(machine)
    }

    /// Checks all values. An error has the name of the wrong value, and one line about it.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let Machine { node, link, disk, .. } = self;
        let wrong = |name, what: String| Err((name, format!("{name} is {what}")));
        if node.ranks == 0 || node.ranks > RANKS_A_NODE_MAX {
            return wrong("node.ranks", format!("{}; give at least 1 and at most {RANKS_A_NODE_MAX}", node.ranks));
        }
        let rates = [
            ("node.copy", node.copy),
            ("link.bandwidth", link.bandwidth),
            ("disk.read", disk.read),
            ("disk.write", disk.write),
        ];
        if let Some((name, rate)) = rates.into_iter().find(|(_, rate)| *rate < RATE_MIN) {
            return wrong(name, format!("{rate} bytes a second; give at least 1M"));
        }
        if disk.depth == 0 {
            return wrong("disk.depth", "0; give at least 1".into());
        }
        let times = [
            ("node.message_us", node.message_us),
            ("link.latency_us", link.latency_us),
            ("disk.latency_us", disk.latency_us),
        ];
        if let Some((name, value)) = times.into_iter().find(|(_, value)| !(0.0..=TIME_MAX_US).contains(value)) {
            return wrong(name, format!("{value}; give microseconds from 0 to {TIME_MAX_US}"));
        }
        if !node.page.is_power_of_two() || node.page < 4096 || node.page > 64 << 20 {
            return wrong("node.page", format!("{} bytes; give a power of two from 4K to 64M", node.page));
        }
        if !self.can_have_pages_of(node.page) || node.pool / node.page > FRAMES_MAX {
            let allowed = format!("from {WHOLE_FRAMES_MIN} to {FRAMES_MAX} pages");
            return wrong("node.pool", format!("{} bytes; give {allowed}", node.pool));
        }
        if node.pool > NODE_POOLS_MAX / u64::from(node.ranks) {
            let what =
                format!("{} bytes of each of {} ranks; give at most {NODE_POOLS_MAX} for all", node.pool, node.ranks);
            return wrong("node.pool", what);
        }
        Ok(())
    }
}

/// The offset of a value, given its table and key.
fn start_of(text: &str, name: &str) -> usize {
    let find = || {
        let (table, key) = name.split_once('.')?;
        let root = DeTable::parse(text).ok()?;
        let (_, table) = root.get_ref().iter().find(|(name, _)| name.get_ref() == table)?;
        let (_, value) = table.get_ref().as_table()?.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(value.span().start)
    };
    find().unwrap_or_default()
}

/// Line and column of a byte in a text, counted from 1.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..byte.min(text.len())];
    let line = before.matches('\n').count() + 1;
    (line, before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1)
}

/// A number with its unit, as a string such as this.
struct Text(&'static str);

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string such as {}", self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = from.deserialize_str(Text("\"16G\""))?;
    vgasnet_settings::parse_size(&text).map_err(|wrong| serde::de::Error::custom(format!("\"{text}\" {wrong}")))
}

/// Bytes a second, in powers of 1000 as used by makers of disks and links.
fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = from.deserialize_str(Text("\"510M\""))?;
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" => Some(1),
        "K" => Some(1_000),
        "M" => Some(1_000_000),
        "G" => Some(1_000_000_000),
        _ => None,
    };
    let bytes = factor.and_then(|factor: u64| digits.parse::<u64>().ok()?.checked_mul(factor));
    bytes.ok_or_else(|| {
        serde::de::Error::custom(format!(
            "\"{text}\" is no rate; give bytes a second as digits and K, M or G (powers of 1000)"
        ))
    })
}
