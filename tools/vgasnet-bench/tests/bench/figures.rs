//! The page of figures.

use crate::folder::{Folder, text};
use std::fs;

#[test]
fn the_page_needs_nothing_besides_itself() {
    let folder = Folder::new("figures");
    let page = folder.path("figures.html");
    let output = folder.run(&["figures", "--quick", "--out", &page]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "no progress in a pipe: {}", text(&output.stderr));
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
        "memcpy",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!((html.matches("<table>").count(), html.matches("<svg").count()), (5, 2));
    assert_eq!(html.matches("<tr>").count(), html.matches("</tr>").count());
    // Nothing is fetched, and nothing runs.
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http") && !outside.contains("<script") && !outside.contains("NaN"));
    assert_eq!(fs::read_dir(folder.path("storage")).unwrap().count(), 0, "files are left");
}
