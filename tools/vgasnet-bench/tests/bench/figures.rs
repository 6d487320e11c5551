//! The data of the page of figures.

use crate::folder::{Folder, say_not_run, text};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The sections required by the page.
const SECTIONS: [&str; 11] = [
    "parameters",
    "claims",
    "figure-4",
    "figure-5",
    "figure-6",
    "figure-7",
    "nodes",
    "parts",
    "hints",
    "start-up",
    "this-machine",
];

fn blocks<'a>(data: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let sections = data["sections"].as_array().expect("sections");
    let blocks = sections.iter().flat_map(|section| section["blocks"].as_array().expect("blocks"));
    blocks.map(move |block| &block[kind]).filter(|block| !block.is_null())
}

#[test]
fn the_data_have_all_pictures_and_tables_and_can_be_drawn() {
    let folder = Folder::new("figures");
    let file = folder.path("figures.json");
    let output = folder.run(&["figures", "--quick", "--out", &file]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // No progress in a pipe. Measurements not possible here are reported.
    for line in text(&output.stderr).lines() {
        assert!(line.starts_with("NOT RUN: "), "{line}");
        println!("{line}");
    }
    let json = fs::read_to_string(&file).unwrap();
    let data: Value = serde_json::from_str(&json).expect("JSON");
    let names: Vec<&str> = data["sections"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, SECTIONS);
    assert_eq!((blocks(&data, "table").count(), blocks(&data, "chart").count()), (14, 10));
    for part in ["6.78", "17.9", "node.message_us", "messages together", "homes in turns", "the paper, 32 ranks, least"]
    {
        assert!(json.contains(part), "{part}");
    }
    let hosts =
        if text(&output.stderr).is_empty() { "MPI, two hosts, " } else { "NOT RUN: over MPI between two hosts" };
    assert!(json.contains(hosts), "{hosts}");
    // Ratios, and no verdicts: verdicts are printed.
    assert!(json.contains("\"modelled / paper\"") && json.contains("\"402\"") && !json.contains("missed"));
    assert!(text(&output.stdout).lines().any(|line| line.ends_with("  missed")), "{}", text(&output.stdout));
    check_page(&folder, &file);
    assert_eq!(fs::read_dir(folder.path("storage")).unwrap().count(), 0, "files are left");
}

/// Checks that the page is self-contained.
fn check_page(folder: &Folder, data: &str) {
    let page = folder.path("figures.html");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/site/figures.py");
    let drawn = Command::new("python3").args([program, data, &page]).output();
    let Ok(drawn) = drawn else {
        say_not_run("the page of figures: there is no python3");
        return;
    };
    assert!(drawn.status.success(), "{}", text(&drawn.stderr));
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!((html.matches("<table>").count(), html.matches("<svg").count()), (14, 10));
    assert_eq!(html.matches("<details>").count(), html.matches("</details>").count());
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http") && !outside.contains("<script") && !outside.to_lowercase().contains("nan<"));
}

#[test]
fn a_page_that_cannot_be_made_leaves_no_file() {
    let folder = Folder::new("figures-none");
    let page = folder.path("figures.json");
    fs::remove_dir(folder.path("storage")).unwrap();
    let output = folder.run(&["figures", "--quick", "--out", &page]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(fs::metadata(&page).is_err(), "{said}");
}
