//! Measurements as rows of named values. A value's unit is the end of its name: `list_ns`, `bytes_per_second`.

use crate::baseline::median;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use vgasnet_settings::format_size_about;

/// Named values, in order. Serialised for the process that started the job; [`Json`] is the form for users.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// The subject, for people.
    pub label: String,
    /// The column of a matrix. Rows with the same label form one of its lines.
    pub column: String,
    /// Rows with the same group are in one chart.
    pub group: String,
    fields: Vec<Field>,
    /// Names of values and of their baselines, for charts.
    compared: Vec<(String, String)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Field {
    name: String,
    data: Data,
    /// Whether tables have it, or only JSON.
    is_shown: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Data {
    Value(Value),
    Row(Box<Row>),
    Rows(Vec<Row>),
}

impl Row {
    pub fn labelled(label: impl Into<String>) -> Row {
        Row { label: label.into(), ..Row::default() }
    }

    pub fn relabelled(self, label: impl Into<String>) -> Row {
        Row { label: label.into(), ..self }
    }

    /// A cell of a matrix.
    pub fn cell(label: impl Into<String>, column: impl Into<String>) -> Row {
        Row { column: column.into(), ..Row::labelled(label) }
    }

    /// Adds a value to tables and JSON. JSON has no NaN: its place is empty.
    pub fn show(self, name: &str, value: impl Serialize) -> Row {
        self.with(name, Data::Value(to_value(value)), true)
    }

    /// Adds a value to JSON only.
    pub fn keep(self, name: &str, value: impl Serialize) -> Row {
        self.with(name, Data::Value(to_value(value)), false)
    }

    /// Adds a value to JSON if there is one.
    pub fn keep_some(self, name: &str, value: Option<impl Serialize>) -> Row {
        match value {
            Some(value) => self.keep(name, value),
            None => self,
        }
    }

    /// Adds the value of a round: the value shown is the median, and JSON also has the rounds, as `NAME_each`.
    pub fn add(&mut self, name: &str, value: f64) {
        let name_each = format!("{name}_each");
        let mut each = self.numbers(&name_each);
        each.push(value);
        self.fields.retain(|field| field.name != name && field.name != name_each);
        *self = std::mem::take(self).median(name, &each);
    }

    /// Leaves these values to JSON.
    pub fn hide(mut self, names: &[&str]) -> Row {
        let hidden = self.fields.iter_mut().filter(|field| names.contains(&&*field.name));
        hidden.for_each(|field| field.is_shown = false);
        self
    }

    /// Shows the median of all rounds. JSON also has the rounds, as `NAME_each`.
    pub fn median(self, name: &str, each: &[f64]) -> Row {
        self.show(name, median(each)).keep(&format!("{name}_each"), each)
    }

    /// Shows a value divided by its baseline, both of this row.
    pub fn ratio(self, name: &str, value: &str, baseline: &str) -> Row {
        let ratio = self.number(value) / self.number(baseline);
        self.show(name, ratio).against(value, baseline)
    }

    /// Shows how many times as fast as its baseline a time is.
    pub fn speedup(self, name: &str, time: &str, baseline: &str) -> Row {
        let ratio = self.number(baseline) / self.number(time);
        self.show(name, ratio).against(time, baseline)
    }

    /// Draws a value next to another one of this row.
    pub fn against(mut self, value: &str, baseline: &str) -> Row {
        self.compared.push((value.to_owned(), baseline.to_owned()));
        self
    }

    pub fn in_group(self, group: impl Into<String>) -> Row {
        Row { group: group.into(), ..self }
    }

    pub fn rows(self, name: &str, rows: Vec<Row>) -> Row {
        self.with(name, Data::Rows(rows), true)
    }

    /// Adds a row, labelled by its name if it has no label.
    pub fn row(self, name: &str, row: Row) -> Row {
        let label = if row.label.is_empty() { name.replace('_', " ") } else { row.label };
        self.with(name, Data::Row(Box::new(Row { label, ..row })), true)
    }

    /// Changes a row of this row, if there is one.
    pub fn amend(mut self, name: &str, change: impl FnOnce(Row) -> Row) -> Row {
        let found = self.fields.iter_mut().find(|field| field.name == name);
        if let Some(Data::Row(row)) = found.map(|field| &mut field.data) {
            **row = change(std::mem::take(row));
        }
        self
    }

    /// Replaces the rows of a list.
    pub fn replaced(mut self, name: &str, rows: Vec<Row>) -> Row {
        self.fields
            .iter_mut()
            .filter(|field| field.name == name)
            .for_each(|field| field.data = Data::Rows(rows.clone()));
        self
    }

    /// Adds all fields of another row.
    pub fn and(mut self, other: &Row) -> Row {
        self.fields.extend_from_slice(&other.fields);
        self.compared.extend_from_slice(&other.compared);
        self
    }

    fn with(mut self, name: &str, data: Data, is_shown: bool) -> Row {
        self.fields.push(Field { name: name.to_owned(), data, is_shown });
        self
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|field| field.name == name).and_then(|field| match &field.data {
            Data::Value(value) => Some(value),
            Data::Row(_) | Data::Rows(_) => None,
        })
    }

    /// A value; NaN if it is absent.
    pub fn number(&self, name: &str) -> f64 {
        self.value(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    pub fn numbers(&self, name: &str) -> Vec<f64> {
        let all = self.value(name).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_f64).collect()
    }

    pub fn text(&self, name: &str) -> &str {
        self.value(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn is(&self, name: &str, expected: impl Into<Value>) -> bool {
        self.value(name) == Some(&expected.into())
    }

    pub fn list(&self, name: &str) -> &[Row] {
        self.lists().find(|(other, _)| *other == name).map_or(&[], |(_, rows)| rows)
    }

    /// The values to draw, each with its baseline.
    pub fn compared(&self) -> &[(String, String)] {
        &self.compared
    }

    /// The names and cells of a table.
    pub fn cells(&self) -> impl Iterator<Item = (&str, String)> {
        let shown = self.fields.iter().filter(|field| field.is_shown);
        shown.filter_map(|field| match &field.data {
            Data::Value(value) => Some((&*field.name, cell(&field.name, value))),
            Data::Row(_) | Data::Rows(_) => None,
        })
    }

    /// The rows in this row, by name.
    pub fn lists(&self) -> impl Iterator<Item = (&str, &[Row])> {
        self.fields.iter().filter_map(|field| match &field.data {
            Data::Value(_) => None,
            Data::Row(row) => Some((&*field.name, std::slice::from_ref(&**row))),
            Data::Rows(rows) => Some((&*field.name, &rows[..])),
        })
    }
}

/// The name of a value in JSON.
pub fn name(value: impl Serialize) -> String {
    to_value(value).as_str().unwrap_or_default().to_owned()
}

/// The same in words.
pub fn words(value: impl Serialize) -> String {
    name(value).replace('_', " ")
}

fn to_value(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A row as users get it.
pub struct Json<'a>(pub &'a Row);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for Field { name, data, .. } in &self.0.fields {
            match data {
                Data::Value(value) => map.serialize_entry(name, value)?,
                Data::Row(row) => map.serialize_entry(name, &Json(row))?,
                Data::Rows(rows) => map.serialize_entry(name, &rows.iter().map(Json).collect::<Vec<_>>())?,
            }
        }
        map.end()
    }
}

/// A unit: the end of the names of its values, its name, and its size.
pub struct Unit {
    end: &'static str,
    pub name: &'static str,
    pub size: f64,
}

/// An end comes before ends that are part of it.
const UNITS: [Unit; 7] = [
    Unit { end: "bytes_per_second", name: "GB/s", size: 1e9 },
    Unit { end: "per_second", name: "1/s", size: 1.0 },
    Unit { end: "seconds", name: "s", size: 1.0 },
    Unit { end: "us", name: "us", size: 1.0 },
    Unit { end: "ns", name: "ns", size: 1.0 },
    Unit { end: "bytes", name: "", size: 1.0 },
    Unit { end: "bytes_all_ranks", name: "", size: 1.0 },
];

impl Unit {
    /// The unit of a value, and its name without the unit, in words.
    pub fn of(name: &str) -> (Option<&'static Unit>, String) {
        let before = |unit: &Unit| {
            let before = name.strip_suffix(unit.end)?;
            before.strip_suffix('_').or(before.is_empty().then_some(""))
        };
        let found = UNITS.iter().find_map(|unit| Some((unit, before(unit)?)));
        let words = found.map_or(name, |(_, before)| before).replace('_', " ");
        (found.map(|(unit, _)| unit), words)
    }
}

/// The head of a column: words and the unit.
pub fn head(name: &str) -> String {
    let (unit, words) = Unit::of(name);
    format!("{words} {}", unit.map_or("", |unit| unit.name)).trim().to_owned()
}

fn cell(name: &str, value: &Value) -> String {
    let unit = Unit::of(name).0;
    match value {
        Value::Null => "-".into(),
        Value::Bool(is_on) => if *is_on { "on" } else { "off" }.into(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(|value| cell(name, value)).collect::<Vec<_>>().join(" "),
        Value::Number(number) => match (number.as_u64(), unit) {
            (Some(bytes), Some(Unit { name: "", .. })) => format_size_about(bytes),
            (Some(whole), _) => whole.to_string(),
            (None, unit) => digits(number.as_f64().unwrap_or(f64::NAN) / unit.map_or(1.0, |unit| unit.size)),
        },
        Value::Object(_) => value.to_string(),
    }
}

/// With about three digits.
pub fn digits(value: f64) -> String {
    match value.abs() {
        ..0.01 if value != 0.0 => format!("{value:.5}"),
        ..1.0 => format!("{value:.3}"),
        1.0..100.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_in_units() {
        let heads = ["list_ns", "bytes_per_second", "copy_bytes_per_second", "puts_per_second", "size_bytes", "status"];
        assert_eq!(heads.map(head), ["list ns", "GB/s", "copy GB/s", "puts 1/s", "size", "status"]);
    }

    #[test]
    fn a_row_has_cells_for_people_and_all_values_for_programs() {
        let row = Row::labelled("a").median("list_ns", &[3.0, 1.0, 2.0]).keep("copy_ns", 4.0);
        let row = row.ratio("to_copy", "list_ns", "copy_ns").show("none_us", f64::NAN).show("size_bytes", 4 << 20);
        let cells: Vec<_> = row.cells().collect();
        let expected = [("list_ns", "2.00"), ("to_copy", "0.500"), ("none_us", "-"), ("size_bytes", "4M")];
        assert_eq!(cells, expected.map(|(name, cell)| (name, cell.to_owned())));
        let sent: Row = serde_json::from_str(&serde_json::to_string(&row).unwrap()).unwrap();
        let json = serde_json::to_string(&Json(&sent)).unwrap();
        let fields = r#""list_ns":2.0,"list_ns_each":[3.0,1.0,2.0],"copy_ns":4.0,"to_copy":0.5"#;
        assert_eq!(json, format!(r#"{{{fields},"none_us":null,"size_bytes":4194304}}"#));
    }
}
