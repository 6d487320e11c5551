//! The page of figures.

use crate::folder::{Folder, text};
use std::fs;

#[test]
fn the_page_needs_nothing_besides_itself() {
    let folder = Folder::new("figures");
    let page = folder.path("figures.html");
    let output = folder.run(&["figures", "--quick", "--out", &page]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // No progress in a pipe; what cannot run here says so.
    for line in text(&output.stderr).lines() {
        assert!(line.starts_with("NOT RUN: "), "{line}");
        println!("{line}");
    }
    let html = fs::read_to_string(&page).unwrap();
    for part in [
        "<svg",
        "Figure 4",
        "Figure 5",
        "Figure 6",
        "Figure 7",
        "6.78",
        "17.9",
        "false sharing",
        "this library, modelled",
        "Targets",
        "missed",
        "node.message_us",
        "paper.toml",
        "messages together",
        "homes in turns",
        "known",
        "Over GASNet",
        "the target",
        "the paper, 32 ranks, least",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let hosts =
        if text(&output.stderr).is_empty() { "MPI, two hosts, " } else { "NOT RUN: over MPI between two hosts" };
    assert!(html.contains(hosts), "{hosts}");
    // Tables and charts, each in what a narrow screen moves sideways.
    assert_eq!((html.matches("<table>").count(), html.matches("<svg").count()), (15, 10));
    assert_eq!(html.matches("<div class=\"table\"><table>").count(), 15);
    assert_eq!(html.matches("<figure><svg").count(), 10);
    assert_eq!(html.matches("<tr>").count(), html.matches("</tr>").count());
    // Nothing is fetched, and nothing runs.
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http") && !outside.contains("<script") && !outside.contains("NaN"));
    assert_eq!(fs::read_dir(folder.path("storage")).unwrap().count(), 0, "files are left");
}

#[test]
fn a_page_that_cannot_be_made_leaves_no_file() {
    let folder = Folder::new("figures-none");
    let page = folder.path("figures.html");
    fs::remove_dir(folder.path("storage")).unwrap();
    let output = folder.run(&["figures", "--quick", "--out", &page]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(fs::metadata(&page).is_err(), "{said}");
}
