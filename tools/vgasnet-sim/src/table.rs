//! Tables, as plain text and in Markdown.

use std::fmt;

/// A table. Numbers are aligned right, the first column left.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: &[&str]) -> Table {
        Table { rows: vec![heads.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row with as many cells as heads.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    /// The heads, then the rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The lines of the table in Markdown.
    pub fn markdown(&self) -> Vec<String> {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let dashes = vec!["---".to_owned(); self.rows[0].len()];
        let mut lines = vec![line(&self.rows[0]), line(&dashes)];
        lines.extend(self.rows[1..].iter().map(|cells| line(cells)));
        lines
    }
}

/// A number with about three digits.
pub fn short(number: f64) -> String {
    match number {
        _ if number >= 99.95 => format!("{number:.0}"),
        _ if number >= 9.995 => format!("{number:.1}"),
        _ if number >= 0.0995 => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}
