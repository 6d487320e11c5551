//! Progress on a terminal.

use nix::pty::openpty;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_job_that_takes_long_says_how_far_it_is() {
    let terminal = openpty(None, None).expect("a terminal");
    let mut shown = File::from(terminal.master);
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/paper.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vgasnet-sim"));
    command.arg("run").arg(machine).args(["-n", "32", "--data", "16", "--order", "random", "--passes", "4"]);
    let mut child = command.stdout(Stdio::null()).stderr(terminal.slave).spawn().expect("it starts");
    // The terminal's other end closes with the child.
    drop(command);
    let mut text = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(len @ 1..) = shown.read(&mut bytes) {
        text.extend(&bytes[..len]);
    }
    assert!(child.wait().expect("it ends").success());
    let text = String::from_utf8_lossy(&text);
    let said: Vec<&str> = text.split("accesses, ").collect();
    assert!(text.contains("jobs: 0 of 1; ") && said.len() > 1, "{text:?}");
    assert!(text.ends_with("\r\x1b[K"), "the line goes at the end: {text:?}");
}
