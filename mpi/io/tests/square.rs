//! Several handles of one file, served by MPI or by the library, and unusual names and communicators.

mod suite;

use suite::{ALL_FILES, SUITE};
use vgasnet_preloaded::{Ended, Language, Program};

/// Number of kinds of handles in `square.c`: hints, communicators and modes. Names are random.
const KINDS: u32 = 3 * 6 * 4;

/// Numbers of ranks; for each the first round and the number of rounds.
const ROUNDS: [(u32, u32, u32); 4] = [(1, 0, 20), (2, 1000, 30), (3, 3003, 11), (4, 2000, 6)];

fn plays(program: &Program, ranks: u32, seed: &str, first: u32, rounds: u32) {
    let dir = program.scratch(&format!("square-{ranks}-{first}"));
    std::fs::create_dir_all(&dir).expect("cargo's own directory");
    let arguments = [dir.to_str().expect("a path of ours"), seed, &first.to_string(), &rounds.to_string()];
    let ended = program.run(ranks, &arguments, &[ALL_FILES, ("SAY_ROUNDS", "1")]);
    let replay =
        format!("mpi/io/tests/programs/square.c: {ranks} ranks, seed {seed}, the last of these rounds\n{ended}");
    assert!(ended.status == Some(0) && ended.stdout.contains("done"), "{replay}");
    assert!(!ended.stderr.contains("vgasnet"), "{replay}");
    let _gone = std::fs::remove_dir_all(dir);
}

/// As [`plays`], of all pairs of kinds. Some rounds with ordered writes fail under Open MPI without the library as well.
fn plays_all(program: &Program) {
    let mut first = 0;
    while first < KINDS * KINDS {
        let rounds = KINDS - first % KINDS;
        let dir = program.scratch("square-all");
        let path = dir.to_str().expect("a path of ours");
        let fresh = || {
            let _gone = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir).expect("cargo's own directory");
        };
        fresh();
        let arguments = [path, "2", &first.to_string(), &rounds.to_string()];
        let ended = program.run(3, &arguments, &[ALL_FILES, ("SAY_ROUNDS", "1")]);
        if ended.status == Some(0) && ended.stdout.contains("done") {
            ended.expect_silence();
            first += rounds;
            continue;
        }
        let last = ended.stderr.lines().filter_map(|line| line.strip_prefix("round ")?.parse::<u32>().ok()).next_back();
        let last = last.unwrap_or_else(|| panic!("square.c: 3 ranks, seed 2, from {first}\n{ended}"));
        fresh();
        let plain = program.run_without(3, &[path, "2", &last.to_string(), "1"], &[]);
        assert!(
            plain.status != Some(0),
            "square.c: 3 ranks, seed 2, round {last}: fails with the library only\n{ended}"
        );
        SUITE.say_not_run(&format!("round {last}, seed 2"), "it fails without the library as well");
        first = last + 1;
    }
}

/// With `CHECK_ALL=1` all pairs of kinds, which takes hours if ranks spin.
#[test]
fn handles_of_one_file_lose_nothing_of_each_other() {
    let program = SUITE.compile("square", Language::C);
    for (ranks, first, rounds) in ROUNDS {
        plays(&program, ranks, "1", first, rounds);
    }
    if std::env::var_os("CHECK_ALL").is_some_and(|value| value == "1") {
        plays_all(&program);
    }
}

#[test]
fn a_file_that_another_communicator_opens_is_handed_back() {
    let program = SUITE.compile("handed", Language::C);
    let file = program.scratch("handed-file");
    let path = file.to_str().expect("a path of ours");
    for more in [&[ALL_FILES, ("EXPECT_CACHED", "1")][..], &[("EXPECT_CACHED", "1")]] {
        program.run(2, &[path], more).expect_done().expect_silence();
    }
    let _gone = std::fs::remove_file(file);
}

/// The program's output lines, in order. The launcher's lines are on stderr.
fn said(ended: &Ended) -> Vec<String> {
    let mut lines: Vec<_> = ended.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn communicators_that_no_file_is_opened_by_are_refused_by_mpi() {
    let program = SUITE.compile("strange", Language::C);
    for (ranks, comm) in [(1, "null"), (2, "null"), (2, "inter"), (4, "inter")] {
        let arguments = ["/none/such", comm];
        let (plain, ended) =
            (program.run_without(ranks, &arguments, &[]), program.run(ranks, &arguments, &[ALL_FILES]));
        assert_eq!((said(&ended), ended.status), (said(&plain), plain.status), "{plain}\nwith the library: {ended}");
    }
}

/// Without the library the bytes are in the system's cache by then.
#[test]
fn a_job_that_ends_in_the_middle_leaves_what_was_written() {
    let program = SUITE.compile("abandoned", Language::C);
    let (file, expected) =
        (program.scratch("abandoned-file"), ["a", "b", "c"].map(|letter| letter.repeat(100)).concat());
    for how in ["abort", "segv", "term", "self", "exit", "handled"] {
        let _gone = std::fs::remove_file(&file);
        let arguments = [file.to_str().expect("a path of ours"), how];
        let ended = program.run(3, &arguments, &[ALL_FILES, ("EXPECT_CACHED", "1")]);
        let found = std::fs::read(&file).unwrap_or_default();
        assert!(ended.stdout.contains("written") && ended.status != Some(0), "{how}: {ended}");
        assert!(found == expected.as_bytes(), "{how}: {} bytes\n{ended}", found.len());
        assert!(!ended.stderr.contains("may be lost"), "{how}: {ended}");
    }
    let _gone = std::fs::remove_file(&file);
}

/// A batch system signals all ranks, wherever they are.
#[test]
fn ranks_that_are_ended_while_they_write_lose_nothing() {
    let program = SUITE.compile("interrupted", Language::C);
    let (file, log) = (program.scratch("interrupted-file"), program.scratch("interrupted-log"));
    let paths = [&file, &log].map(|path| path.to_str().expect("a path of ours"));
    for (ranks, pool) in [(1, "16M"), (2, "64M"), (2, "16M"), (4, "16M")] {
        let _gone = [&file, &log].map(std::fs::remove_file);
        let variables = [ALL_FILES, ("EXPECT_CACHED", "1"), ("VGASNET_POOL_SIZE", pool)];
        let ended = program.run(ranks, &[paths[0], paths[1], "write"], &variables);
        assert!(ended.status != Some(0) && !ended.stderr.contains("may be lost"), "{ranks}, {pool}: {ended}");
        program.run_without(1, &[paths[0], paths[1], "check", &ranks.to_string()], &[]).expect_done();
    }
    let _gone = [&file, &log].map(std::fs::remove_file);
}

#[test]
fn a_job_that_cannot_write_what_it_has_names_the_file() {
    let program = SUITE.compile("abandoned", Language::C);
    let file = program.scratch("lost-file");
    let path = file.to_str().expect("a path of ours");
    for (how, why) in
        [("abort", "MPI_Abort"), ("segv", "signal 11"), ("term", "signal 15"), ("self", "signal 6"), ("exit", "exit")]
    {
        let _gone = std::fs::remove_file(&file);
        let variables = [ALL_FILES, ("EXPECT_CACHED", "1"), ("VGASNET_TEST_IO_ERROR", "file-write:1:1000000")];
        let ended = program.run(3, &[path, how], &variables);
        assert!(ended.stdout.contains("written") && ended.status != Some(0), "{how}: {ended}");
        let line = format!("rank 0: {why}: {path} is open; what was written since it was last synced may be lost");
        assert_eq!(ended.stderr.matches(&line).count(), 1, "{how}: {ended}");
    }
    let _gone = std::fs::remove_file(&file);
}

#[test]
fn a_second_handle_cuts_or_replaces_the_file() {
    let program = SUITE.compile("cut", Language::C);
    for part in ["cut", "replaced"] {
        for ranks in [1, 2, 4] {
            let file = program.scratch(&format!("{part}-{ranks}"));
            let arguments = [file.to_str().expect("a path of ours"), part];
            program.run_without(ranks, &arguments, &[]).expect_done();
            program.run(ranks, &arguments, &[ALL_FILES, ("EXPECT_CACHED", "1")]).expect_done().expect_silence();
            let _gone = std::fs::remove_file(file);
        }
    }
}

/// Coupled programs have one `MPI_COMM_WORLD`.
#[test]
fn two_programs_of_one_job_have_their_files_cached() {
    let program = SUITE.compile("cut", Language::C);
    let file = program.scratch("coupled");
    let launcher = format!("shift 2; exec {} -n 1 \"$@\" : -n 2 \"$@\"", SUITE.mpi("mpiexec"));
    let launcher = ["sh", "-c", &launcher, "launcher"];
    let arguments = [file.to_str().expect("a path of ours"), "cut"];
    program.run_by(&launcher, 3, &arguments, &[ALL_FILES, ("EXPECT_CACHED", "1")]).expect_done().expect_silence();
    let _gone = std::fs::remove_file(file);
}

/// Nobody can know before that a rank lacks the library.
#[test]
fn ranks_that_wait_for_others_without_the_library_say_so() {
    let program = SUITE.compile("partial", Language::C);
    let file = program.scratch("partial-lines");
    let mpiexec = SUITE.mpi("mpiexec");
    let script = format!(
        "shift 2; set -f; for word; do case $word in LD_PRELOAD=*) ;; *) plain=\"$plain $word\" ;; esac; done; \
         exec {mpiexec} -n 1 $plain : -n 1 \"$@\""
    );
    let _gone = std::fs::remove_file(&file);
    let arguments = [file.to_str().expect("a path of ours")];
    let ended = program.run_by(&["sh", "-c", &script, "launcher"], 2, &arguments, &[ALL_FILES]);
    let line = "vgasnet-mpi-io: rank 1: MPI_Init: waits for all ranks of the job; preload the library for all of its programs, or for none";
    // What a rank prints before MPI_Abort may be lost, so the file is read instead.
    let told = std::fs::read_to_string(&file).expect("the rank with the library has made the file");
    assert!(told.lines().any(|told| told == line) && ended.status == Some(7), "{told}{ended}");
    let _gone = std::fs::remove_file(&file);
}

#[test]
fn prefixes_of_names_are_what_they_are_to_mpi() {
    let program = SUITE.compile("prefixed", Language::C);
    let dir = program.scratch("prefixes");
    std::fs::create_dir_all(&dir).expect("cargo's own directory");
    for name in ["ufs:data", "nfs:data", "lustre:data", "c:data"] {
        let arguments = [dir.to_str().expect("a path of ours"), name];
        let (plain, ended) = (program.run_without(2, &arguments, &[]), program.run(2, &arguments, &[ALL_FILES]));
        assert_eq!((said(&ended), ended.status), (said(&plain), plain.status), "{plain}\nwith the library: {ended}");
    }
    let _gone = std::fs::remove_dir_all(dir);
}
