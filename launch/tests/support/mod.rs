//! Finding the programs that tests run as ranks.

use std::path::PathBuf;

/// An example of this package, which cargo builds for its tests.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("tests are two below their profile");
    let path = profile.join("examples").join(name);
    assert!(path.is_file(), "{} is missing; `cargo test -p vgasnet-launch` builds it", path.display());
    path
}
