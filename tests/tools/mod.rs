//! Finding the tools that tests start.

use std::path::PathBuf;

/// The path of a tool of this workspace. Cargo puts it beside the directory of the running test, and does not build it for a test of
/// another package.
pub fn tool(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program has a path");
    let profile = test.ancestors().nth(2).expect("tests are two below their profile");
    let path = profile.join(name);
    assert!(
        path.is_file(),
        "{} is missing; run \"cargo build -p {name}\" first, with the profile, the features and the target directory of this test",
        path.display()
    );
    path
}
