//! Finds and starts tools for tests.

#![allow(dead_code, unused_imports, reason = "not every test program needs all of it")]

mod dispositions;
mod memory_limit;

pub use dispositions::{with_default_signals, with_disposition};
pub use memory_limit::MemoryLimit;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The directory of another build than the running test's, with the library and the tools to test: `CHECK_BUILD`.
pub fn other_build() -> Option<PathBuf> {
    std::env::var_os("CHECK_BUILD").map(PathBuf::from)
}

/// The path of a tool of this workspace. Cargo places it next to the directory of the running test, and does not build
/// it for a test of another package.
pub fn tool(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program has a path");
    let profile = test.ancestors().nth(2).expect("tests are two below their profile");
    let path = other_build().unwrap_or_else(|| profile.to_owned()).join(name);
    assert!(
        path.is_file(),
        "{} is missing; run \"cargo build -p {name}\" first, with the profile, the features and the target directory of this test",
        path.display()
    );
    for source in sources(&path) {
        assert!(
            changed(&source) <= changed(&path),
            "{} is older than {}; run \"cargo build -p {name}\" again",
            path.display(),
            source.display()
        );
    }
    path
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// The sources of a tool. Cargo writes them next to the tool, in the form of a makefile.
fn sources(path: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(path.with_extension("d")).unwrap_or_default();
    let sources = text.split_once(": ").map_or("", |(_, sources)| sources);
    sources.split_whitespace().map(PathBuf::from).collect()
}
