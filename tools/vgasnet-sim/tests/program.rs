//! The program: what it prints, and what it says of options that make no sense.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn machine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("machines/{name}.toml"))
}

/// The program with this subcommand, machine and options.
fn command(subcommand: &str, machine: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vgasnet-sim"));
    command.arg(subcommand).arg(machine).args(options);
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("it is text")
}

/// What it says where it fails, which is one line.
fn refusal(output: Output) -> String {
    let line = text(output.stderr);
    assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
    line
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is_one_line() {
    let mut run = command("run", &machine("paper"), &["-n", "2", "--data", "0.25"]);
    let (reader, writer) = UnixStream::pair().expect("there is room");
    drop(reader);
    let output = run.stdout(OwnedFd::from(writer)).output().expect("it starts");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let line = refusal(run.stdout(full).stderr(Stdio::piped()).output().expect("it starts"));
    assert!(line.starts_with("vgasnet-sim: standard output: No space left on device"), "{line}");
}
