//! The page of figures as data. `docs/site/figures.py` draws it, and `docs/explanation/figures.md` has its text.

use super::lines::Chart;
use serde::Serialize;
use vgasnet_sim::Table;

/// Sections in the order of their creation.
#[derive(Default, Serialize)]
pub struct Page {
    /// Provenance of the page.
    made: Vec<(&'static str, String)>,
    sections: Vec<Section>,
}

#[derive(Serialize)]
struct Section {
    /// The name used by the text to refer to the section.
    name: String,
    blocks: Vec<Block>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Block {
    Chart(Chart),
    Table { caption: String, heads: Vec<String>, rows: Vec<Vec<String>> },
    List { caption: String, items: Vec<String> },
    Note(String),
}

impl Page {
    pub fn made(&mut self, what: &'static str, value: String) {
        self.made.push((what, value));
    }

    pub fn section(&mut self, name: impl Into<String>) {
        self.sections.push(Section { name: name.into(), blocks: Vec::new() });
    }

    pub fn note(&mut self, text: String) {
        self.add(Block::Note(text));
    }

    /// Adds a table of the model. The page is for users, so verdicts on targets are removed.
    pub fn sim_table(&mut self, caption: impl Into<String>, table: &Table) {
        if let [heads, rows @ ..] = table.rows() {
            let fact = |cell: &String| cell.trim_end_matches(", missed").to_owned();
            let rows = rows.iter().map(|row| row.iter().map(fact).collect()).collect();
            self.add(Block::Table { caption: caption.into(), heads: heads.clone(), rows });
        }
    }

    /// Adds a list, unless it is empty.
    pub fn list(&mut self, caption: &str, items: impl Iterator<Item = String>) {
        let items: Vec<String> = items.collect();
        if !items.is_empty() {
            self.add(Block::List { caption: caption.into(), items });
        }
    }

    pub fn table(&mut self, caption: &str, heads: &[&str], rows: Vec<Vec<String>>) {
        let heads = heads.iter().map(ToString::to_string).collect();
        self.add(Block::Table { caption: caption.into(), heads, rows });
    }

    pub fn chart(&mut self, chart: Chart) {
        self.add(Block::Chart(chart));
    }

    /// The data, with each row of a table and each point of a line on a separate line.
    ///
    /// # Errors
    /// None known.
    pub fn end(&self) -> Result<String, String> {
        serde_json::to_string(self)
            .map(|text| text.replace("],[", "],\n[").replace("},{", "},\n{") + "\n")
            .map_err(|error| error.to_string())
    }

    fn add(&mut self, block: Block) {
        self.sections.last_mut().expect("a section was begun").blocks.push(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_left_out_and_empty_lists() {
        let mut page = Page::default();
        page.section("nodes");
        let mut table = Table::new(&["", "part"]);
        table.row(vec!["far".into(), "0.22, missed".into()]);
        page.sim_table("Parts", &table);
        page.list("nothing", std::iter::empty());
        let text = page.end().expect("JSON");
        let data: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(data["sections"][0]["blocks"][0]["table"]["rows"][0][1], "0.22");
        assert!(!text.contains("nothing") && !text.contains("missed"), "{text}");
    }
}
