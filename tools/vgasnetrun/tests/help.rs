//! The help text. Because of this test cargo also builds vgasnetrun for the tests at the root.

use std::process::Command;

#[test]
fn help_has_every_environment_variable() {
    let output = Command::new(env!("CARGO_BIN_EXE_vgasnetrun")).arg("--help").output().expect("vgasnetrun starts");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && text.contains("Signals are forwarded to the ranks"), "{text}");
    let table = vgasnet_settings::Config::help();
    assert!(text.contains(table.trim_end()), "{text}");
    assert!(table.lines().any(|line| line == "VGASNET_HOST_TIMEOUT"));
}
