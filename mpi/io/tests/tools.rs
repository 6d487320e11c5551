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

/// The arguments of `mix` after the file, on four ranks.
const MIXED: [&str; 2] = ["3", "6"];

/// It has read and written the right bytes: the numbers are the same as in `programs.rs`.
fn expect_mixed(what: &str, ended: &Ended) {
    let expected = [
        "rank 0: c2de996148796cba",
        "rank 1: 179b79ad1dfcb703",
        "rank 2: ef1d6d82d2d4c571",
        "rank 3: f02ead78f3cb975e",
    ];
    ended.expect_done();
    let mut lines: Vec<_> = ended.stdout.lines().filter(|line| line.starts_with("rank ")).collect();
    lines.sort_unstable();
    assert_eq!(lines, expected, "{what}: mpi/io/tests/programs/mix.c, seed 3, 4 ranks\n{ended}");
}

/// Each access uses the pages, whichever calls a tool wraps.
#[test]
fn random_accesses_pass_no_pages() {
    let program = SUITE.compile("mix", Language::C);
    with_each_tool(&program, |what, tool| {
        let file = fresh(&program, "tools");
        expect_mixed(what, &run(&program, tool, 4, &[&file, MIXED[0], MIXED[1]], &[]));
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

/// The places of tools: which are before the library, and which are behind it, each with colons between them. All
/// orders of one tool and of two.
fn arrangements(tools: &[&str]) -> Vec<[String; 2]> {
    let mut all = Vec::new();
    for first in tools {
        all.extend([[(*first).to_owned(), String::new()], [String::new(), (*first).to_owned()]]);
        for second in tools.iter().filter(|second| second != &first) {
            let both = format!("{first}:{second}");
            all.extend([[both.clone(), String::new()], [String::new(), both]]);
            all.push([(*first).to_owned(), (*second).to_owned()]);
        }
    }
    all
}

/// Whether a program fails with the tools alone.
fn fails_alone(program: &Program, tools: &str, mpip: &str) -> bool {
    let file = fresh(program, "alone");
    let ended = program.run_with_others(tools.trim_matches(':'), 3, &[&file, "sizes"], &[("MPIP", mpip)]);
    let _gone = std::fs::remove_file(file);
    ended.status != Some(0)
}

/// Darshan and mpiP, if built for this MPI: `VGASNET_TEST_MPI_TOOLS` has their shared objects with colons between them.
#[test]
fn installed_tools_leave_files_cached_in_any_order() {
    let Some(tools) = std::env::var("VGASNET_TEST_MPI_TOOLS").ok().filter(|tools| !tools.is_empty()) else {
        return SUITE.say_not_run("tools", "VGASNET_TEST_MPI_TOOLS names no shared object of Darshan or mpiP");
    };
    let (ways, mix) = (SUITE.compile("ways", Language::C), SUITE.compile("mix", Language::C));
    let tools: Vec<&str> = tools.split(':').collect();
    // mpiP writes its reports there.
    let reports = ways.scratch("reports");
    std::fs::create_dir_all(&reports).expect("cargo's own directory");
    let mpip = format!("-k 0 -f {}", reports.display());
    let variables = [("VGASNET_MPI_FILES", "*"), ("EXPECT_CACHED", "1"), ("MPIP", &*mpip)];
    for [before, behind] in arrangements(&tools) {
        let (order, file) = (format!("{before} before, {behind} behind"), fresh(&ways, "installed"));
        let ended = ways.run_between([&before, &behind], 3, &[&file, "sizes"], &variables);
        // Darshan in front of mpiP does not start mpiP, which then crashes in calls that Darshan does not wrap.
        if ended.status != Some(0) && fails_alone(&ways, &format!("{before}:{behind}"), &mpip) {
            SUITE.say_not_run(&order, "the tools fail in this order without the library as well");
            continue;
        }
        ended.expect_done();
        let _gone = std::fs::remove_file(file);
        let file = fresh(&mix, "installed");
        let ended = mix.run_between([&before, &behind], 4, &[&file, MIXED[0], MIXED[1]], &variables);
        expect_mixed(&order, &ended);
        let _gone = std::fs::remove_file(file);
    }
    let _gone = std::fs::remove_dir_all(reports);
}
