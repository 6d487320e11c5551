//! The report, as a table and as JSON.

use serde_json::{Map, Value, json};
use std::fmt::Write;
use vgasnet_settings::format_size_about;

/// The parts of the report, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Machine,
    Limits,
    Kernel,
    Job,
    Storage,
}

const SECTIONS: [(Section, &str); 5] = [
    (Section::Machine, "machine"),
    (Section::Limits, "limits"),
    (Section::Kernel, "kernel"),
    (Section::Job, "job"),
    (Section::Storage, "storage"),
];

/// One row.
struct Fact {
    section: Section,
    /// The key in JSON: words with underscores, the unit last.
    key: &'static str,
    value: Value,
    shown: String,
}

/// The facts and advice found.
pub struct Report {
    facts: Vec<Fact>,
    /// Obstacles, each with a remedy.
    advice: Vec<String>,
    /// Whether a job would start.
    pub is_job_possible: bool,
}

impl Report {
    /// An empty report about a machine with this page size.
    pub fn new(page_bytes: u64) -> Report {
        let mut report = Report { facts: Vec::new(), advice: Vec::new(), is_job_possible: true };
        report.say(Section::Machine, "vgasnet", env!("CARGO_PKG_VERSION"));
        report.bytes(Section::Machine, "page_bytes", page_bytes);
        report
    }

    /// Adds a text.
    pub fn say(&mut self, section: Section, key: &'static str, text: impl Into<String>) {
        let shown = text.into();
        self.facts.push(Fact { section, key, value: Value::from(shown.as_str()), shown });
    }

    /// Adds a size in bytes.
    pub fn bytes(&mut self, section: Section, key: &'static str, bytes: u64) {
        self.facts.push(Fact { section, key, value: bytes.into(), shown: format_size_about(bytes) });
    }

    /// Adds a number with its unit, if it has one.
    pub fn number(&mut self, section: Section, key: &'static str, number: u64, unit: &str) {
        self.facts.push(Fact {
            section,
            key,
            value: number.into(),
            shown: format!("{number} {unit}").trim_end().into(),
        });
    }

    /// Adds a number displayed as `shown`.
    pub fn number_as(&mut self, section: Section, key: &'static str, number: u64, shown: String) {
        self.facts.push(Fact { section, key, value: number.into(), shown });
    }

    /// Adds a limit; `None` for unlimited.
    pub fn limit(&mut self, section: Section, key: &'static str, limit: Option<u64>, shown: impl Fn(u64) -> String) {
        let text = limit.map_or_else(|| "unlimited".to_owned(), shown);
        self.facts.push(Fact { section, key, value: limit.map_or(Value::Null, Value::from), shown: text });
    }

    /// Adds a yes or no.
    pub fn flag(&mut self, section: Section, key: &'static str, holds: bool) {
        self.facts.push(Fact { section, key, value: holds.into(), shown: if holds { "yes" } else { "no" }.into() });
    }

    /// Adds advice about an obstacle that slows jobs down or will make larger jobs fail.
    pub fn advise(&mut self, line: impl Into<String>) {
        let line = line.into();
        if !self.advice.contains(&line) {
            self.advice.push(line);
        }
    }

    /// Adds advice about an obstacle that prevents the job from starting.
    pub fn refuse(&mut self, line: impl Into<String>) {
        self.is_job_possible = false;
        self.advise(line);
    }

    /// The report for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let width = self.facts.iter().map(|fact| title(fact.key).len()).max().unwrap_or(0);
        for (section, name) in SECTIONS {
            let mut facts = self.facts.iter().filter(|fact| fact.section == section).peekable();
            if facts.peek().is_some() {
                writeln!(text, "{name}").expect("memory");
            }
            for fact in facts {
                writeln!(text, "  {:width$}  {}", title(fact.key), fact.shown).expect("memory");
            }
        }
        for line in &self.advice {
            writeln!(text, "! {line}").expect("memory");
        }
        if self.advice.is_empty() {
            text += "nothing stands in the way\n";
        }
        text
    }

    /// The report for programs: one object per section, sizes as numbers, `null` for unlimited.
    pub fn json(&self) -> String {
        let mut object = Map::new();
        for (section, name) in SECTIONS {
            let facts = self.facts.iter().filter(|fact| fact.section == section);
            let facts: Map<_, _> = facts.map(|fact| (fact.key.to_owned(), fact.value.clone())).collect();
            object.insert(name.to_owned(), facts.into());
        }
        object.insert("is_job_possible".to_owned(), self.is_job_possible.into());
        object.insert("advice".to_owned(), json!(self.advice));
        format!("{}\n", Value::from(object))
    }
}

/// A key in readable form, without its unit: the value shows it.
fn title(key: &str) -> String {
    let units = ["_bytes_s", "_bytes", "_us"];
    let bare = units.iter().find_map(|unit| key.strip_suffix(unit)).unwrap_or(key);
    bare.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let mut report = Report::new(4096);
        report.limit(Section::Limits, "locked_memory_bytes", None, |bytes| bytes.to_string());
        report.number(Section::Storage, "read_us", 80, "us");
        report.advise("raise it");
        report.advise("raise it");
        let text = report.text();
        assert!(text.contains("\nlimits\n  locked memory  unlimited\n"), "{text}");
        assert!(text.ends_with("  read           80 us\n! raise it\n"), "{text}");
        let json: Value = serde_json::from_str(&report.json()).expect("JSON");
        assert_eq!(json["machine"]["page_bytes"], 4096);
        assert!(json["limits"]["locked_memory_bytes"].is_null());
        assert_eq!((&json["is_job_possible"], &json["advice"]), (&json!(true), &json!(["raise it"])));
        report.refuse("no directory");
        assert!(!report.is_job_possible);
    }
}
