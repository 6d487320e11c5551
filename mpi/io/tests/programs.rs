//! Unmodified programs with MPI files, compiled and started as MPI's users do it.

mod suite;

use std::path::PathBuf;
use suite::{ALL_FILES, EXPECTED, SUITE};
use vgasnet_preloaded::{Ended, Language, Program};

/// A path without a file. A file created there is removed when this is dropped.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(program: &Program, name: &str) -> Scratch {
        let path = program.scratch(name);
        let _gone = std::fs::remove_file(&path);
        Scratch { path }
    }

    fn text(&self) -> &str {
        self.path.to_str().expect("a path of ours")
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

fn c(name: &str) -> Program {
    SUITE.compile(name, Language::C)
}

/// Runs a program with a file served by the library.
fn passes(program: &Program, ranks: u32, file: &Scratch, arguments: &[&str], more: &[(&str, &str)]) -> Ended {
    let variables = [&[ALL_FILES, EXPECTED], more].concat();
    let ended = program.run(ranks, &[&[file.text()], arguments].concat(), &variables);
    ended.expect_done();
    ended
}

/// The ranks' output lines, in order.
fn of_ranks(ended: &Ended) -> Vec<String> {
    let mut lines: Vec<String> =
        ended.stdout.lines().filter(|line| line.starts_with("rank ")).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Seeds of `mix.c`, the numbers printed by its ranks, and sizes of pages.
const MIXES: [(u32, &[u64], &str); 4] = [
    (2, &[0x374ef6de1469cd50, 0xace45476dc3d073c, 0x1b9f96eca61c4f5b], "256K"),
    (3, &[0xc2de996148796cba, 0x179b79ad1dfcb703, 0xef1d6d82d2d4c571, 0xf02ead78f3cb975e], "256K"),
    (8, &[0xcd18a33bdc4f806a], "256K"),
    (11, &[0x30792ab819f67c0d, 0xc3a609d0b0c4f2c6, 0x46d09aa30a5d18d2, 0xd3e6f56321064ef7], "4K"),
];

/// Random views, datatypes and accesses give the results of Open MPI without the library, including accesses refused or
/// done wrong by MPICH's ROMIO. Open MPI 4.1 prints these numbers without the library; under Open MPI the test runs
/// this case as well.
#[test]
fn random_accesses_read_and_write_what_mpi_does() {
    let program = c("mix");
    for (seed, expected, page_bytes) in MIXES {
        let ranks = expected.len() as u32;
        let arguments = [&*seed.to_string(), "6"];
        let file = Scratch::new(&program, "file");
        let ended = passes(&program, ranks, &file, &arguments, &[("VGASNET_PAGE_SIZE", page_bytes)]);
        let replay = format!("mpi/io/tests/programs/mix.c, seed {seed}, {ranks} ranks\n{ended}");
        let lines: Vec<_> =
            expected.iter().enumerate().map(|(rank, hash)| format!("rank {rank}: {hash:016x}")).collect();
        assert_eq!(of_ranks(&ended), lines, "{replay}");
        if SUITE.is_of_others_than_openmpi() {
            continue;
        }
        let plain = Scratch::new(&program, "plain");
        let without = program.run_without(ranks, &[plain.text(), arguments[0], arguments[1]], &[]);
        assert_eq!(of_ranks(without.expect_done()), lines, "without: {replay}");
        assert!(file.bytes() == plain.bytes(), "the files differ: {replay}");
    }
}

#[test]
fn sizes_and_the_end_of_files() {
    of_ways("sizes", 3);
}

#[test]
fn individual_and_shared_pointers() {
    of_ways("pointers", 3);
}

#[test]
fn in_mode_atomic_each_call_is_one_step() {
    of_ways("atomicity", 4);
}

#[test]
fn files_of_some_ranks() {
    of_ways("groups", 4);
}

#[test]
fn other_programs_see_what_was_synced() {
    of_ways("others", 2);
}

#[test]
fn what_mpi_says_of_a_file_that_is_cached() {
    of_ways("asked", 3);
}

#[test]
fn representations_that_are_not_native_are_left_to_mpi() {
    of_ways("representations", 2);
}

fn of_ways(part: &str, ranks: u32) {
    let program = c("ways");
    let file = Scratch::new(&program, part);
    passes(&program, ranks, &file, &[part], &[]);
    if part != "atomicity" {
        passes(&program, 1, &file, &[part], &[("VGASNET_PAGE_SIZE", "4K")]);
    }
}

#[test]
fn files_that_are_open_more_than_once() {
    let program = c("twice");
    let file = Scratch::new(&program, "file");
    passes(&program, 4, &file, &[], &[]).expect_silence();
    program.run_without(4, &[file.text()], &[]).expect_done();
}

#[test]
fn what_ranks_do_together_while_others_write() {
    let program = c("meanwhile");
    for part in ["end", "current", "appended", "longer"] {
        let file = Scratch::new(&program, part);
        passes(&program, 3, &file, &[part], &[]);
    }
}

fn of_seconds(part: &str) -> Ended {
    let program = c("seconds");
    let file = Scratch::new(&program, part);
    passes(&program, 3, &file, &[part], &[])
}

#[test]
fn second_handles_keep_their_pointers_and_modes() {
    of_seconds("left");
}

#[test]
fn second_handles_of_several_ranks_have_a_shared_pointer() {
    of_seconds("pointers");
}

#[test]
fn sync_shows_readers_what_another_handle_wrote() {
    of_seconds("synced");
}

#[test]
fn a_file_that_gets_another_name_stays_itself() {
    of_seconds("renamed").expect_silence();
}

#[test]
fn second_handles_make_a_file_longer() {
    of_seconds("sized");
}

#[test]
fn communicators_that_have_ranks_in_common() {
    let program = c("overlaps");
    let file = Scratch::new(&program, "file");
    passes(&program, 4, &file, &[], &[]).expect_silence();
    let plain = Scratch::new(&program, "plain");
    program.run_without(4, &[plain.text()], &[]).expect_done();
}

#[test]
fn errors_are_those_of_mpi() {
    let program = c("errors");
    let file = Scratch::new(&program, "file");
    let ended = passes(&program, 2, &file, &[], &[]);
    let plain = Scratch::new(&program, "plain");
    let without = program.run_without(2, &[plain.text()], &[]);
    assert!(without.expect_done().stdout.lines().count() > 10, "{without}");
    assert_eq!(ended.stdout, without.stdout, "{ended}");
}

/// Runs a part of `corners.c`. Returns its file, too.
fn of_corners(part: &str, ranks: u32, more: &[(&str, &str)]) -> (Ended, Scratch) {
    let program = c("corners");
    let file = Scratch::new(&program, part);
    let ended = program.run(ranks, &[part, file.text()], &[&[ALL_FILES, EXPECTED], more].concat());
    ended.expect_done();
    (ended, file)
}

#[test]
fn offsets_that_no_file_has_are_refused() {
    assert_eq!(of_corners("far", 2, &[]).1.bytes().len(), 1000 + 2 * 16);
}

#[test]
fn an_open_that_has_failed_is_none_whatever_its_code() {
    of_corners("handler", 2, &[]);
}

#[test]
fn an_open_that_fails_on_one_rank_leaves_the_others_to_mpi() {
    // Open MPI's other component waits for the ranks with a failed open, even without the library.
    let (_, file) = of_corners("some", 3, &[("OMPI_MCA_io", "romio321")]);
    assert_eq!(&file.bytes()[..], b"togethertogethertogether");
}

#[test]
fn a_file_that_is_open_when_mpi_ends_is_written() {
    let (ended, file) = of_corners("unclosed", 3, &[]);
    let lines = ended.stderr.matches(": MPI_Finalize: ").count();
    assert_eq!((lines, &file.bytes()[..]), (1, &b"bytes ofbytes ofbytes of"[..]), "{ended}");
}

#[test]
fn a_program_that_ends_with_an_open_file_leaves_what_it_wrote_or_says_so() {
    let program = c("corners");
    let file = Scratch::new(&program, "left");
    let ended = program.run(2, &["left", file.text()], &[ALL_FILES, EXPECTED]);
    let is_told = ended.stderr.contains(": exit: ") && ended.stderr.contains("may be lost; call MPI_File_close");
    assert!(file.bytes() == b"syncedand not" || is_told && file.bytes().starts_with(b"synced"), "{ended}");
    for line in ["rank 0: exit: ", "rank 1: exit: "] {
        assert!(ended.stderr.matches(line).count() <= 1, "{ended}");
    }
}

#[test]
fn a_line_that_cannot_be_written_ends_no_program() {
    let program = c("corners");
    for part in ["unheard", "unread"] {
        let file = Scratch::new(&program, part);
        let ended = program.run(2, &[part, file.text()], &[ALL_FILES, EXPECTED]);
        assert!(ended.stdout.contains("ended"), "{ended}");
    }
}

#[test]
fn a_program_that_ends_without_mpi_finalize_ends_as_without_the_library() {
    let program = c("corners");
    for part in ["gone", "all-gone"] {
        let file = Scratch::new(&program, part);
        let plain = program.run_without(2, &[part, file.text()], &[]);
        for patterns in [ALL_FILES, ("VGASNET_MPI_FILES", "/none")] {
            let ended = program.run(2, &[part, file.text()], &[patterns]);
            assert_eq!(ended.status, plain.status, "{part}: {plain}\nwith the library: {ended}");
        }
    }
}

#[test]
fn operations_after_an_error_go_on() {
    of_corners("again", 2, &[("VGASNET_TEST_IO_ERROR", "file-read:3:6")]);
}

#[test]
fn second_handles_do_not_go_past_the_pages() {
    of_corners("second", 2, &[]);
}

#[test]
fn another_mpi_than_that_of_the_library_is_left_alone() {
    let program = c("corners");
    let file = Scratch::new(&program, "other");
    let ended = program.run_before(&SUITE.shared("other_mpi"), 2, &["other", file.text()], &[ALL_FILES]);
    let lines = ended.expect_done().stderr.matches("the program has another MPI than this library").count();
    assert_eq!(lines, 1, "{ended}");
}

#[test]
fn what_the_disk_refuses_is_an_answer_of_mpi() {
    let program = c("full");
    for (class, fault) in [("space", "file-full:3:4"), ("io", "file-write:3:4")] {
        let file = Scratch::new(&program, class);
        passes(&program, 2, &file, &[class], &[("VGASNET_TEST_IO_ERROR", fault)]);
    }
}

#[test]
fn hints_and_patterns_say_what_is_cached() {
    let program = c("hints");
    let file = Scratch::new(&program, "name.dat");
    let cases = [
        (["-", "-", "0"], ""),
        (["vgasnet_cache", "enable", "1"], ""),
        (["romio_caching", "enable", "1"], ""),
        (["vgasnet_cache", "disable", "0"], "*"),
        (["-", "-", "1"], "*.nc:*.dat"),
        (["-", "-", "0"], "*.nc:*.da"),
        (["striping_unit", "1048576", "1"], "*/hints-name.dat"),
        (["cb_nodes", "1", "1"], "*"),
        (["striping_unit", "1000", "1"], "*"),
        (["romio_cb_write", "enable", "1"], "*"),
        (["romio_cb_write", "enable", "0"], ""),
    ];
    for (arguments, patterns) in cases {
        let variables: &[(&str, &str)] = if patterns.is_empty() { &[] } else { &[("VGASNET_MPI_FILES", patterns)] };
        let arguments = [&[file.text()], &arguments[..]].concat();
        let unmatched = patterns.split(':').filter(|part| ["*.nc", "*.da"].contains(part)).count();
        let ended = program.run(2, &arguments, variables);
        let are_told = ended.expect_done().stderr.matches("no file that was opened matches").count();
        assert_eq!((are_told, ended.stderr.matches("vgasnet-mpi-io: ").count()), (unmatched, unmatched), "{ended}");
    }
    let ended = program.run(2, &[file.text(), "striping_unit", "nonsense", "1"], &[ALL_FILES]);
    let line = "MPI_File_open: hint striping_unit=nonsense: a number up to 4294967295 is allowed; ignored";
    assert_eq!(ended.expect_done().stderr.matches(line).count(), 2, "it is opened twice: {ended}");
    // Reported once, if checks are enabled.
    let arguments = [file.text(), "romio_cb_write", "enable", "1"];
    let ended = program.run(2, &arguments, &[ALL_FILES, ("VGASNET_CHECK", "1")]);
    let lines = ended.expect_done().stderr.lines().filter(|line| line.ends_with("do nothing: romio_cb_write")).count();
    assert_eq!(lines, 1, "{ended}");
}

/// Files named by no hint and no pattern cost no communicator. A line is shown once.
#[test]
fn files_that_are_not_meant_and_lines() {
    let program = c("lines");
    let file = Scratch::new(&program, "file");
    let ended = program.run(3, &[file.text(), "1"], &[]);
    let lines: Vec<_> = ended.expect_done().stderr.lines().filter(|line| line.contains("vgasnet")).collect();
    let line =
        "vgasnet-mpi-io: rank 0: MPI_File_open: hint vgasnet_cache=enabled: enable and disable are allowed; ignored";
    assert_eq!(lines, [line], "{ended}");
    let without = program.run_without(3, &[file.text(), "0"], &[]);
    assert_eq!(ended.stdout, without.expect_done().stdout, "{ended}");
    // With this setting vgasnet does not start on any rank.
    let ended = program.run(3, &[file.text(), "0"], &[("VGASNET_PAGE_SIZE", "3")]);
    let lines = ended.expect_done().stderr.lines().filter(|line| line.starts_with("vgasnet-mpi-io: ")).count();
    assert_eq!(lines, 1, "{ended}");
}

#[test]
fn the_library_may_be_linked() {
    let program = c("hints").linked();
    let file = Scratch::new(&program, "linked.dat");
    program.run_without(2, &[file.text(), "vgasnet_cache", "enable", "1"], &[]).expect_done().expect_silence();
}

/// The program of docs/tutorials/mpi-files.md, with and without the library. The test compares the files; the tutorial
/// does so by `cmp`.
#[test]
fn the_program_of_the_tutorial() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tutorials/mpi-files.md");
    let document = std::fs::read_to_string(document).expect("the documentation");
    let source = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/rows.c")).expect("it");
    assert!(document.contains(&format!("```c\n{source}```\n")), "docs/tutorials/mpi-files.md has another rows.c");
    let program = c("rows");
    let (file, plain) = (Scratch::new(&program, "rows.dat"), Scratch::new(&program, "plain.dat"));
    let ended = program.run(4, &[file.text()], &[ALL_FILES, ("VGASNET_STATS", "1")]);
    // Each row was written and read through the library.
    let counted = |row: &str| ended.stderr.lines().any(|line| line.split_whitespace().take(2).eq([row, "8192"]));
    assert!(ended.status == Some(0) && counted("reads") && counted("writes"), "{ended}");
    assert!(ended.stdout.starts_with("sum 33550336, "), "{ended}");
    let without = program.run_without(4, &[plain.text()], &[]);
    assert!(without.status == Some(0) && without.stdout.starts_with("sum 33550336, "), "{without}");
    assert!(file.bytes() == plain.bytes() && plain.bytes().len() == 64 << 20, "the files differ: {ended}");
}

/// The library works together with the library for cached gets, in either order.
#[test]
fn gets_may_be_cached_as_well() {
    let program = c("both");
    let cache = SUITE.other_library("libvgasnet_mpi_cache.so");
    let gets = ("VGASNET_MPI_CACHE", "always");
    for is_first in [true, false] {
        let file = Scratch::new(&program, "file");
        let arguments = [file.text()];
        let variables = [ALL_FILES, EXPECTED, gets];
        let ended = if is_first {
            program.run_behind(&cache, 3, &arguments, &variables)
        } else {
            program.run_before(&cache, 3, &arguments, &variables)
        };
        ended.expect_done();
    }
}

#[test]
fn counts_of_mpi_4() {
    if SUITE.is_of_others_than_openmpi() {
        let program = c("large");
        let file = Scratch::new(&program, "file");
        passes(&program, 2, &file, &[], &[]);
    }
}

#[test]
fn fortran() {
    for name in ["mpifh", "usempi", "usempif08"] {
        let program = SUITE.compile(name, Language::Fortran);
        let file = Scratch::new(&program, "file");
        program.run(3, &[file.text()], &[ALL_FILES]).expect_done();
    }
}

/// Writes a file with an I/O library on four ranks, and reads it on other numbers of ranks, with and without the
/// library under test. Returns it and a file written without the library.
fn written_and_read(program: &Program, end: &str) -> (Scratch, Scratch) {
    let (file, plain) = (Scratch::new(program, &format!("file{end}")), Scratch::new(program, &format!("plain{end}")));
    let with = [ALL_FILES, EXPECTED];
    program.run(4, &["write", file.text()], &with).expect_done();
    for ranks in [3, 1] {
        program.run(ranks, &["read", file.text()], &with).expect_done();
    }
    program.run_without(2, &["read", file.text()], &[]).expect_done();
    program.run_without(4, &["write", plain.text()], &[]).expect_done();
    program.run(4, &["read", plain.text()], &with).expect_done();
    (file, plain)
}

/// Compares the output of a tool without MPI for both files, except their names.
fn expect_same_text(tool: &str, files: &(Scratch, Scratch)) {
    let text = |file: &Scratch| {
        let output = std::process::Command::new(tool).arg(file.text()).output();
        let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert!(output.status.success(), "{tool} {}: {}", file.text(), String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().skip(1).collect::<Vec<_>>().join("\n")
    };
    let (of_file, of_plain) = (text(&files.0), text(&files.1));
    assert!(of_file.lines().count() > 500, "{tool} {}: {of_file}", files.0.text());
    assert!(of_file == of_plain, "{tool}: {} and {} differ", files.0.text(), files.1.text());
}

/// The bytes are not compared: HDF5 leaves uninitialized memory in some object headers.
#[test]
fn files_of_hdf5() {
    if let Some(program) = SUITE.compile_with("hdf5", "hdf5") {
        expect_same_text("h5dump", &written_and_read(&program, ".h5"));
    }
}

#[test]
fn files_of_pnetcdf() {
    if let Some(program) = SUITE.compile_with("pnetcdf", "pnetcdf") {
        let files = written_and_read(&program, ".nc");
        assert!(files.0.bytes() == files.1.bytes(), "{} and {} differ", files.0.text(), files.1.text());
        expect_same_text("ncdump", &files);
    }
}

/// Freed memory is overwritten, so that its use shows.
#[test]
fn threads_that_use_a_new_datatype_at_once() {
    let program = c("typerace");
    let file = Scratch::new(&program, "file");
    let variables = [ALL_FILES, EXPECTED, ("MALLOC_PERTURB_", "165")];
    program.run_before(&SUITE.shared("late_attributes"), 1, &[file.text()], &variables).expect_done();
}

/// As Python's packages do.
#[test]
fn programs_that_load_mpi_later_for_themselves_alone() {
    let (python, plugin) = (SUITE.installed_program("python3"), SUITE.shared("plugin"));
    let file = Scratch::new(&python, "file");
    let script = format!("import ctypes; ctypes.CDLL('{}').run(b'{}')", plugin.display(), file.text());
    for ranks in [1, 3] {
        python.run(ranks, &["-c", &script], &[ALL_FILES]).expect_done();
    }
}

/// Programs without MPI may be started with the library, such as a launcher or a shell of a job.
#[test]
fn programs_without_mpi_do_not_mind() {
    SUITE.run_shell_with_library();
}

#[test]
fn what_is_replaced_is_documented() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/mpi-programs.md");
    let others = "fcntl fcntl64 lockf lockf64 _exit _Exit write ompi_mpi_abort sigaction signal bsd_signal ssignal sysv_signal __sysv_signal sigset raise kill execv execve execvp execvpe execveat fexecve";
    let others: Vec<&str> = others.split(' ').collect();
    SUITE.expect_replaced_as_documented(document, &others);
}
