//! Programs that use both MPI and vgasnet. Each may start and end MPI, and MPI gets addresses in segments.

use crate::support::compile::{self, Language, Linking, library, source_dir};
use crate::support::run::{IN_CONTAINERS, Setup, conduit, fresh_dir, run, say_not_run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of `tests/mpi/`, compiled as MPI's users do.
fn program(name: &str) -> PathBuf {
    linked_behind(&[], name)
}

/// The same, with these libraries before the library.
fn linked_behind(libraries: &[String], name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mpi-{name}-{}", libraries.len()));
    let shared = library("libvgasnet.so");
    let dir = shared.parent().expect("a library is in a directory");
    let mut command = Command::new(vgasnet_mpi::MPICC);
    command.args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O1", "-g"]);
    command.arg("-I").arg(source_dir().join("include"));
    command.arg(source_dir().join("tests/mpi").join(name).with_extension("c")).arg("-o").arg(&program);
    command
        .args(libraries)
        .arg("-L")
        .arg(dir)
        .arg("-lvgasnet")
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display()));
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The options by which MPI's compiler links MPI.
fn libraries_of_mpi() -> Vec<String> {
    let output = Command::new(vgasnet_mpi::MPICC).arg("-show").output().expect("the compiler of MPI");
    let shown = String::from_utf8(output.stdout).expect("options");
    let libraries: Vec<_> = shown.split_whitespace().filter(|word| word.starts_with("-l")).map(str::to_owned).collect();
    assert!(!libraries.is_empty(), "{shown}");
    libraries
}

/// Whether ranks run over MPI. Prints a line if not.
fn is_over_mpi() -> bool {
    let is_so = conduit() == "mpi";
    if !is_so {
        say_not_run("programs that call MPI", "CHECK_CONDUIT is not mpi");
    }
    is_so
}

const fn small(ranks: u32, pool_pages: u64, peer_memory: bool) -> Setup {
    Setup { ranks, page_bytes: 1 << 16, pool_pages, peer_memory, cooperative: true }
}

#[test]
fn whoever_starts_mpi_and_whoever_ends_it() {
    if !is_over_mpi() {
        return;
    }
    let client = program("client");
    for peer_memory in [true, false] {
        let setup = small(2, 8, peer_memory);
        for start in ["before", "threads-before", "after", "threads-after"] {
            for end in ["finalize", "exit", "return"] {
                // By the standard, a program that has started MPI ends it.
                if end != "return" || start.contains("after") {
                    run(&client, &[start, end], setup).expect(0);
                }
            }
        }
    }
}

/// The program's `MPI_Init` is MPI's own then, which may be called once.
#[test]
fn a_program_linked_with_mpi_before_the_library_may_start_mpi() {
    if !is_over_mpi() {
        return;
    }
    let client = linked_behind(&libraries_of_mpi(), "client");
    for start in ["before", "threads-before"] {
        for end in ["finalize", "exit"] {
            run(&client, &[start, end], small(2, 8, true)).expect(0);
        }
    }
}

#[test]
fn blocking_calls_take_buffers_in_the_segment() {
    if !is_over_mpi() {
        return;
    }
    let buffers = program("buffers");
    for setup in [small(1, 4, true), small(2, 4, false), small(4, 5, true)] {
        run(&buffers, &[], setup).expect(0);
    }
}

#[test]
fn calls_that_cannot_take_the_segment_end_the_job_with_a_line() {
    if !is_over_mpi() {
        return;
    }
    let refusals = program("refusals");
    let sent = ["MPI_Isend", "MPI_Issend", "MPI_Ibsend", "MPI_Irsend", "MPI_Irecv", "MPI_Send_init", "MPI_Recv_init"];
    let collective =
        ["MPI_Ibcast", "MPI_Igather", "MPI_Iallgatherv", "MPI_Ialltoallw", "MPI_Ireduce", "MPI_Iallreduce"];
    let others = ["MPI_Neighbor_alltoall", "MPI_Buffer_attach", "MPI_File_iread_at"];
    let one_sided = ["MPI_Win_create", "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op"];
    for call in [&sent[..], &collective, &others, &one_sided, &["bottom", "partly"]].into_iter().flatten() {
        let ended = run(&refusals, &[call], small(1, 4, true));
        ended.expect(1);
        let address = ended.stdout.lines().find_map(|line| line.strip_prefix("address ")).expect("a line");
        let (name, what) = match *call {
            "bottom" => ("MPI_Isend", "MPI_BOTTOM"),
            "partly" => ("MPI_Send", "partly"),
            name => (name, address),
        };
        let line = ended.stderr.lines().find(|line| line.starts_with(&format!("vgasnet: rank 0: {name}: ")));
        let line = line.unwrap_or_else(|| panic!("{ended}"));
        assert!(line.contains(what) && line.contains("ordinary memory"), "{ended}");
        assert!(!ended.stdout.contains("returned"), "{ended}");
    }
}

#[test]
fn a_copy_for_which_there_is_no_memory_is_refused() {
    if !is_over_mpi() {
        return;
    }
    let ended = run(&program("refusals"), &["memory"], small(1, 4, true));
    let line = "vgasnet: rank 0: MPI_Bcast: there is no memory for a copy of the buffer, which lies in the segment; hand MPI \
                less at a time";
    assert!(ended.expect(1).stderr.lines().any(|told| told == line), "{ended}");
}

/// Through functions without a stand-in of the library. On one host threads get their pages without MPI.
#[test]
fn a_load_within_mpi_gets_its_page_or_ends_with_a_line() {
    if !is_over_mpi() {
        return;
    }
    let inside = program("inside");
    run(&inside, &[], small(2, 4, true)).expect(0);
    let ended = run(&inside, &[], small(2, 4, false));
    if ended.status != Some(0) {
        ended.expect(128 + 11);
        let says = |line: &str| line.starts_with("vgasnet: rank ") && line.contains("the page comes by MPI");
        assert!(ended.stderr.lines().any(says), "{ended}");
    }
}

#[test]
fn what_calls_with_ordinary_buffers_take_besides() {
    if !is_over_mpi() {
        return;
    }
    let ended = run(&program("overhead"), &[], small(1, 4, true));
    println!("{}", ended.expect(0).stdout);
}

/// The examples for MPI alone, run by its own launcher.
#[test]
fn examples_by_mpi_alone_find_what_one_rank_finds() {
    if !is_over_mpi() {
        return;
    }
    for (name, args) in [
        ("lcc", &["--scale", "9"][..]),
        ("lcc", &["--scale", "9", "--batch", "8"]),
        ("barnes_hut", &["--bodies", "300"]),
        ("barnes_hut", &["--bodies", "300", "--batch", "--uniform"]),
        ("barnes_hut", &["--bodies", "300", "--direct-mapped", "20000"]),
    ] {
        let program = alone(name);
        for ranks in ["1", "2"] {
            let mut command = Command::new(vgasnet_mpi::MPIEXEC);
            command.envs(IN_CONTAINERS).args(["-n", ranks]).arg(&program).args(args);
            let output = command.output().expect("the launcher of MPI");
            let said = String::from_utf8_lossy(&output.stdout);
            let is_one_line = said.lines().count() == 1 && said.starts_with(&format!("{name} on {ranks} ranks"));
            assert!(output.status.success() && is_one_line, "{command:?}\n{output:?}");
        }
    }
}

/// An example, compiled without vgasnet.
fn alone(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("alone-{name}"));
    let mut command = Command::new(vgasnet_mpi::MPICC);
    command.args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-DUSE_MPI"]);
    command.arg(source_dir().join("examples").join(name).with_extension("c")).arg("-o").arg(&program).arg("-lm");
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// When a job ends early, one rank writes its files and cuts them to their size. Other ranks may still append.
#[test]
fn a_rescue_cuts_off_nothing_that_is_appended_meanwhile() {
    if !is_over_mpi() {
        return;
    }
    let program = compile::program("shared_file_appends", Language::C99, Linking::Shared);
    for (ranks, pool_pages, peer_memory) in [(2, 8, true), (2, 8, false), (4, 5, true)] {
        let dir = fresh_dir();
        let path = dir.to_str().expect("paths of tests are text");
        run(&program, &["rescue", path], small(ranks, pool_pages, peer_memory)).expect(0);
        std::fs::remove_dir_all(&dir).expect("a directory of ours");
    }
}
