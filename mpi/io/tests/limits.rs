//! Cases in which the library itself leaves a file to MPI: no descriptors are left, MPI ends, or nothing names the
//! file.

mod suite;

use std::path::PathBuf;
use suite::{ALL_FILES, EXPECTED, SUITE};
use vgasnet_preloaded::{Language, Program};

/// An empty directory for a program, removed when dropped.
struct Dir(PathBuf);

impl Dir {
    fn new(program: &Program, name: &str) -> Dir {
        let dir = program.scratch(name);
        let _gone = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a directory of ours");
        Dir(dir)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of ours").to_owned()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// The numbers in a rank's output line: cached files, and descriptors for a hundred files.
fn of_rank(stdout: &str, rank: u32) -> (u32, u32) {
    let line = stdout.lines().find_map(|line| line.strip_prefix(&format!("rank {rank}: "))).expect("a line");
    let numbers: Vec<u32> = line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

#[test]
fn as_many_files_are_open_as_plain_mpi_can_have() {
    let program = SUITE.compile("many", Language::C);
    let dir = Dir::new(&program, "files");
    let variables = [ALL_FILES, ("VGASNET_POOL_SIZE", "16M")];
    let launcher = format!("ulimit -Sn 256; exec {} \"$@\"", SUITE.mpi("mpiexec"));
    let launcher = ["sh", "-c", &launcher, "launcher"];
    let ended = program.run_by(&launcher, 2, &[&dir.file("limited"), "100"], &variables);
    ended.expect_done();
    let (cached, descriptors) = of_rank(&ended.stdout, 0);
    assert!((20..100).contains(&cached), "{ended}");
    assert!(descriptors < 250, "{ended}");
    for rank in ["rank 0: ", "rank 1: "] {
        assert!(ended.stderr.matches(&format!("{rank}MPI_File_open: ")).count() <= 1, "{ended}");
    }
    assert!(ended.stderr.contains("more than half of the 256 descriptors"), "{ended}");
    // With enough descriptors each file is cached. Besides MPI's own descriptor it takes one for the pages and, at the
    // first rank, one for the claim. The rescue thread has taken its four in MPI_Init.
    let plain = program.run_without(2, &[&dir.file("plain"), "40"], &[]);
    let of_mpi = [0, 1].map(|rank| of_rank(&plain.expect_done().stdout, rank).1);
    let ended = program.run(2, &[&dir.file("all"), "40"], &variables);
    let found = [0, 1].map(|rank| of_rank(&ended.expect_done().stdout, rank));
    assert_eq!(found, [(40, of_mpi[0] + 200), (40, of_mpi[1] + 100)], "{ended}");
}

#[test]
fn a_file_that_mpi_serves_for_lack_of_descriptors_is_cached_by_nobody() {
    let program = SUITE.compile("short", Language::C);
    let dir = Dir::new(&program, "short");
    let launcher = format!("ulimit -Sn 256; exec {} \"$@\"", SUITE.mpi("mpiexec"));
    let launcher = ["sh", "-c", &launcher, "launcher"];
    let variables = [ALL_FILES, ("VGASNET_POOL_SIZE", "16M")];
    for ranks in [1, 2, 4] {
        program.run_by(&launcher, ranks, &[&dir.file(&format!("{ranks}-")), "200"], &variables).expect_done();
    }
}

#[test]
fn files_leave_mpi_the_communicators_that_it_needs() {
    let program = SUITE.compile("scarce", Language::C);
    let dir = Dir::new(&program, "scarce");
    let plain = program.run_without(2, &[&dir.file("plain")], &[]);
    if plain.expect_done().stdout.contains("plenty") {
        return SUITE.say_not_run("scarce", "this MPI has more than 5,000 communicators");
    }
    program.run(2, &[&dir.file("cached")], &[ALL_FILES, EXPECTED]).expect_done();
}

/// The processor time of the busiest rank within a second, in microseconds, with this many files open.
fn idle_us(program: &Program, dir: &Dir, files: u32) -> u64 {
    let launcher = format!("ulimit -Sn 4096; exec {} \"$@\"", SUITE.mpi("mpiexec"));
    let launcher = ["sh", "-c", &launcher, "launcher"];
    let variables = [ALL_FILES, ("VGASNET_POOL_SIZE", "16M")];
    let ended = program.run_by(&launcher, 2, &[&dir.file(&format!("idle{files}-")), &files.to_string()], &variables);
    let spent = ended.expect_done().stdout.lines().find_map(|line| line.strip_suffix(" us")?.parse().ok());
    spent.expect("a line")
}

#[test]
fn open_files_take_no_processor_time() {
    let program = SUITE.compile("idle", Language::C);
    let dir = Dir::new(&program, "idle");
    let (one, many) = (idle_us(&program, &dir, 1), idle_us(&program, &dir, 300));
    assert!(many < one + 15_000, "of a second, {many} us with 300 files, {one} us with one");
}

#[test]
fn a_file_of_a_session_goes_on_after_mpi_finalize() {
    if !SUITE.is_of_others_than_openmpi() {
        return SUITE.say_not_run("session", "this MPI has no sessions");
    }
    let program = SUITE.compile("session", Language::C);
    let dir = Dir::new(&program, "session");
    for ranks in [1, 2] {
        let name = format!("cached{ranks}");
        program.run(ranks, &[&dir.file(&name)], &[ALL_FILES, EXPECTED]).expect_done();
        // MPICH 4.0 opens no file in a program that never calls MPI_Init.
        let ended = program.run(ranks, &[&dir.file(&format!("only{ranks}")), "only"], &[ALL_FILES]);
        let line = "MPI_File_open: MPI was started by a session";
        assert_eq!(ended.stderr.matches(line).count(), 1, "{ended}");
        program.run_without(ranks, &[&dir.file(&format!("plain{ranks}"))], &[]).expect_done();
    }
}

#[test]
fn patterns_name_any_file() {
    let program = SUITE.compile("hints", Language::C);
    let dir = Dir::new(&program, "names");
    // MPICH takes the part before a colon for a file system.
    let before = if SUITE.is_of_others_than_openmpi() { "ufs:" } else { "" };
    let (whole, colon) = (dir.file("*"), format!("{before}{}", dir.file("run:1.dat")));
    // Relative to the directory of the tests.
    let here = std::env::current_dir().expect("there is one");
    let relative = format!("names-{}.dat", std::process::id());
    for (file, patterns, is_cached) in [
        (&colon, r"run\:*.dat", "1"),
        (&colon, "/none/such\nrun:1.dat", "1"),
        (&colon, "run:1.dat", "0"),
        (&relative, &format!("{}/*", here.display()), "1"),
        (&relative, &whole, "0"),
    ] {
        let ended = program.run(2, &[file, "-", "-", is_cached], &[("VGASNET_MPI_FILES", patterns)]);
        ended.expect_done();
        let lines = ended.stderr.matches("MPI_Finalize: VGASNET_MPI_FILES: ").count();
        let unmatched = match patterns {
            "run:1.dat" => 2,
            _ if is_cached == "0" || patterns.contains("/none/such") => 1,
            _ => 0,
        };
        assert_eq!(lines, unmatched, "{patterns:?}: {ended}");
    }
    let _gone = std::fs::remove_file(here.join(relative));
}
