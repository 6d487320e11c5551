//! Handles of one file that find each other only by their claims.

mod suite;

use std::path::PathBuf;
use suite::{ALL_FILES, EXPECTED, SUITE};
use vgasnet_preloaded::{Language, Program};

/// A path for a file, and for the marks beside it (`waiting.inc`). All are removed when it is made and when it is
/// dropped.
struct Marked(PathBuf);

impl Marked {
    fn new(program: &Program, name: &str) -> Marked {
        let marked = Marked(program.scratch(name));
        marked.remove();
        marked
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a path of ours")
    }

    fn remove(&self) {
        for ending in ["", ".owned", ".written", ".closed"] {
            let _gone = std::fs::remove_file(format!("{}{ending}", self.text()));
        }
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        self.remove();
    }
}

#[test]
fn all_ranks_of_a_handle_wait_for_the_claim_of_a_file_that_was_absent() {
    let program = SUITE.compile("absent", Language::C);
    let tool = SUITE.shared("tool_held");
    for ranks in [2, 3, 4] {
        let file = Marked::new(&program, &format!("{ranks}"));
        program.run_before(&tool, ranks, &[file.text()], &[ALL_FILES, EXPECTED]).expect_done().expect_silence();
    }
}

#[test]
fn a_file_that_mpi_opens_on_some_ranks_only_keeps_nobody_waiting() {
    let program = SUITE.compile("partly", Language::C);
    let tool = SUITE.shared("tool_failing");
    for ranks in [2, 4] {
        let file = Marked::new(&program, &format!("{ranks}"));
        std::fs::write(file.text(), b"").expect("cargo's own directory");
        let ended = program.run_before(&tool, ranks, &[file.text()], &[ALL_FILES, ("FAILS", "1")]);
        assert!(std::fs::exists(format!("{}.written", file.text())).is_ok_and(|is| is), "{ended}");
        assert!(!ended.stderr.contains("waits for ranks of another communicator"), "{ended}");
    }
}
