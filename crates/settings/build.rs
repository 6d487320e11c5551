//! Sets `test_faults`.

include!("../../packaging/test_faults.rs");

fn main() {
    println!("cargo::rerun-if-changed=../../packaging/test_faults.rs");
    test_faults();
}
