//! Tools of MPI's profiling interface in the same process, before and after the library.

mod suite;

use std::path::{Path, PathBuf};
use suite::SUITE;
use vgasnet_preloaded::{Ended, Language, Program};

/// The tools: one wraps all file functions, one wraps writes and closes, and one wraps the open alone.
const TOOLS: [&str; 3] = ["tool_all", "tool_some", "tool_open"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    Behind,
}

/// Runs a program with a tool in a place, and with a file served by the library.
fn run(
    program: &Program,
    (tool, place): (&Path, Place),
    ranks: u32,
    arguments: &[&str],
    more: &[(&str, &str)],
) -> Ended {
    let variables = [&[("VGASNET_MPI_FILES", "*"), ("EXPECT_CACHED", "1")], more].concat();
    match place {
        Place::Before => program.run_behind(tool, ranks, arguments, &variables),
        Place::Behind => program.run_before(tool, ranks, arguments, &variables),
    }
}

/// A path without a file.
fn fresh(program: &Program, name: &str) -> String {
    let path = program.scratch(name);
    let _gone = std::fs::remove_file(&path);
    path.to_str().expect("a path of ours").to_owned()
}

/// Runs a program with each tool in both places.
fn with_each_tool(program: &Program, check: impl Fn(&str, (&Path, Place))) {
    for name in TOOLS {
        let tool: PathBuf = SUITE.shared(name);
        for place in [Place::Before, Place::Behind] {
            check(&format!("{name} {place:?}: {}", program.scratch("").display()), (&tool, place));
        }
    }
}

/// Each access uses the pages, whichever calls a tool wraps. The numbers are the same as in `programs.rs`.
#[test]
fn random_accesses_pass_no_pages() {
    let program = SUITE.compile("mix", Language::C);
    let expected = [
        "rank 0: c2de996148796cba",
        "rank 1: 179b79ad1dfcb703",
        "rank 2: ef1d6d82d2d4c571",
        "rank 3: f02ead78f3cb975e",
    ];
    with_each_tool(&program, |what, tool| {
        let file = fresh(&program, "tools");
        let ended = run(&program, tool, 4, &[&file, "3", "6"], &[]);
        ended.expect_done();
        let mut lines: Vec<_> = ended.stdout.lines().filter(|line| line.starts_with("rank ")).collect();
        lines.sort_unstable();
        assert_eq!(lines, expected, "{what}: mpi/io/tests/programs/mix.c, seed 3, 4 ranks\n{ended}");
        let _gone = std::fs::remove_file(file);
    });
}

/// A tool writes its own file, by MPI, after the program has called `MPI_Finalize`. If the tool is before the library,
/// the file may be cached; if it is behind, MPI has begun to end.
#[test]
fn a_tool_writes_its_file_at_the_end() {
    let program = SUITE.compile("ways", Language::C);
    for name in ["tool_all", "tool_some"] {
        let tool = SUITE.shared(name);
        for place in [Place::Before, Place::Behind] {
            let [file, counts] = ["ways", "counts"].map(|name| fresh(&program, name));
            let ended = run(&program, (&tool, place), 3, &[&file, "sizes"], &[("TOOL_FILE", &counts)]);
            ended.expect_done().expect_silence();
            let bytes = std::fs::read(&counts).unwrap_or_else(|error| panic!("{counts}: {error}\n{ended}"));
            let number = |at: usize| u32::from_ne_bytes(bytes[at * 4..][..4].try_into().expect("four bytes"));
            let (opened, counted) = (number(0), number(1));
            assert_eq!(bytes.len(), 3 * 8, "{name} {place:?}");
            assert!((0..3).all(|rank| number(rank * 2) == opened && opened > 0), "{name} {place:?}: {bytes:?}");
            // A tool before the library sees all calls it wraps.
            assert!(place == Place::Behind || counted > 0, "{name}: {opened} {counted}");
            let _gone = [file, counts].map(std::fs::remove_file);
        }
    }
}

/// Behind the library are a tool that has ended and another one, which then opens its file by MPI's first name.
#[test]
fn a_tool_that_has_ended_is_called_no_more() {
    let program = SUITE.compile("ways", Language::C);
    let tools = ["tool_all", "tool_late"].map(|name| SUITE.shared(name).display().to_string()).join(":");
    let [file, late] = ["ways", "late"].map(|name| fresh(&program, name));
    let ended = run(&program, (Path::new(&tools), Place::Behind), 3, &[&file, "sizes"], &[("LATE_FILE", &late)]);
    ended.expect_done();
    assert_eq!(std::fs::read(&late).ok().as_deref(), Some(&b"xxx"[..]), "{ended}");
    let _gone = [file, late].map(std::fs::remove_file);
}

/// Darshan and mpiP, if built for this MPI: `VGASNET_TEST_MPI_TOOLS` has their shared objects with colons between them.
#[test]
fn installed_tools_leave_files_cached_in_any_order() {
    let Some(tools) = std::env::var("VGASNET_TEST_MPI_TOOLS").ok().filter(|tools| !tools.is_empty()) else {
        return SUITE.say_not_run("tools", "VGASNET_TEST_MPI_TOOLS names no shared object of Darshan or mpiP");
    };
    let program = SUITE.compile("ways", Language::C);
    let together = tools.clone();
    for tools in tools.split(':').chain([&*together]) {
        for place in [Place::Before, Place::Behind] {
            let file = fresh(&program, "installed");
            run(&program, (Path::new(tools), place), 3, &[&file, "sizes"], &[("MPIP", "-k 0")]).expect_done();
            let _gone = std::fs::remove_file(file);
        }
    }
}
