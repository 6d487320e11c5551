//! Programs that use MPI as well as vgasnet. Either may start and end MPI.

use crate::support::compile::{library, source_dir};
use crate::support::run::{Setup, conduit, run, say_not_run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that uses both, compiled as MPI's users do it.
fn client() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpi-client");
    let shared = library("libvgasnet.so");
    let dir = shared.parent().expect("a library is in a directory");
    let mut command = Command::new(vgasnet_mpi::MPICC);
    command.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-g"]).arg("-I").arg(source_dir().join("include"));
    command.arg(source_dir().join("tests/mpi/client.c")).arg("-o").arg(&program);
    command.arg("-L").arg(dir).arg("-lvgasnet").arg(format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display()));
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn whoever_starts_mpi_and_whoever_ends_it() {
    if conduit() != "mpi" {
        return say_not_run("programs that call MPI", "CHECK_CONDUIT is not mpi");
    }
    let client = client();
    for peer_memory in [true, false] {
        let setup = Setup { ranks: 2, page_bytes: 1 << 16, pool_pages: 8, peer_memory, cooperative: true };
        for start in ["before", "threads-before", "after", "threads-after"] {
            for end in ["finalize", "exit", "return"] {
                // A program that has started MPI ends it, says the standard.
                if end != "return" || start.contains("after") {
                    run(&client, &[start, end], setup).expect(0);
                }
            }
        }
    }
}
