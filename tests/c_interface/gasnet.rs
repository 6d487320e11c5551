//! A program that calls both GASNet and vgasnet.

use crate::support::compile::{SYSTEM_LIBRARIES, library, source_dir};
use crate::support::run::{Setup, conduit, run, run_with, say_not_run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, compiled as GASNet's users do, and linked with the library of this file name.
fn client(file: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("real-gasnet-client-{file}"));
    let library = library(file);
    let mut words = vgasnet_gasnet::COMPILE.split_whitespace();
    let mut command = Command::new(words.next().expect("GASNet's compiler"));
    command.args(words).args(["-Wall", "-Wextra", "-O1", "-g"]).arg("-I").arg(source_dir().join("include"));
    command.arg(source_dir().join("tests/real_gasnet/client.c")).arg("-o").arg(&program).arg(&library);
    let dir = library.parent().expect("a file is in a directory").display();
    command.arg(format!("-Wl,--disable-new-dtags,-rpath,{dir}"));
    command.args(vgasnet_gasnet::LIBRARIES.split_whitespace()).args(SYSTEM_LIBRARIES);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

const SETUP: Setup = Setup { ranks: 3, page_bytes: 1 << 16, pool_pages: 8, peer_memory: true, cooperative: true };

#[test]
fn a_program_calls_gasnet_itself() {
    if !conduit().starts_with("gasnet") {
        return say_not_run("programs that call GASNet", "CHECK_CONDUIT is not gasnet");
    }
    let client = client("libvgasnet.a");
    for peer_memory in [true, false] {
        let setup = Setup { peer_memory, ..SETUP };
        for end in ["gasnet", "vgasnet"] {
            run(&client, &[end], setup).expect(0);
        }
        run_with(&client, &["vgasnet"], setup, &[("GASNET_SUPERNODE_MAXSIZE", "1")]).expect(0);
    }
    run(&client, &["fails"], SETUP).expect(7);
}

#[test]
fn two_copies_of_gasnet_are_one_line() {
    if !conduit().starts_with("gasnet") {
        return say_not_run("programs that call GASNet", "CHECK_CONDUIT is not gasnet");
    }
    let ended = run(&client("libvgasnet.so"), &["gasnet"], Setup { ranks: 1, ..SETUP });
    let line =
        "vgasnet_attach_gasnet: GASNet is not initialised, or another copy of it is; call gasnet_init first, and link";
    assert!(ended.expect(1).stderr.contains(line), "{ended}");
}
