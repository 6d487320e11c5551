//! Processes that end early have their files written.

mod suite;

use suite::{ALL_FILES, EXPECTED, SUITE};
use vgasnet_preloaded::Language;

/// Signals that end a process and are mostly sent from outside, by their numbers: SIGUSR1, SIGUSR2, SIGALRM, SIGSTKFLT, SIGVTALRM,
/// SIGPROF, SIGIO, SIGPWR, and two real-time ones. Then those of the program's own code: SIGTRAP, SIGXFSZ, SIGSYS.
const SIGNALS: [u32; 13] = [10, 12, 14, 16, 26, 27, 29, 30, 34, 64, 5, 25, 31];

/// Without the library the bytes are in the system's cache by then.
#[test]
fn whatever_ends_a_process_its_files_are_written() {
    let program = SUITE.compile("abandoned", Language::C);
    let file = program.scratch("ended-file");
    let signals = SIGNALS.map(|signal| (format!("sig{signal}"), &[2][..]));
    let ways = ["pipe", "_Exit", "quick_exit", "again6", "back", "exec", "sysv15", "sigset15"];
    let ways = ways.map(|how| (how.to_owned(), &[2][..]));
    let within = ["close", "timer", "overflow", "own15", "own14", "itself"].map(|how| (how.to_owned(), &[2, 4][..]));
    let often =
        ["error", "_exit", "in-handler", "again15", "again11", "default"].map(|how| (how.to_owned(), &[1, 2, 4][..]));
    for (how, all_ranks) in often.into_iter().chain(ways).chain(within).chain(signals) {
        for &ranks in all_ranks {
            let _gone = std::fs::remove_file(&file);
            let arguments = [file.to_str().expect("a path of ours"), &how];
            let ended = program.run(ranks, &arguments, &[ALL_FILES, EXPECTED]);
            let found = std::fs::read(&file).unwrap_or_default();
            let expected: String =
                ["a", "b", "c", "d"][..ranks as usize].iter().map(|letter| letter.repeat(100)).collect();
            assert!(ended.stdout.contains("written") && ended.status != Some(0), "{how}, {ranks}: {ended}");
            assert!(found == expected.as_bytes(), "{how}, {ranks}: {} bytes\n{ended}", found.len());
            assert!(!ended.stderr.contains("may be lost"), "{how}, {ranks}: {ended}");
            assert!(!ended.stdout.contains("behind"), "{how}, {ranks}: {ended}");
        }
    }
    let _gone = std::fs::remove_file(&file);
}

/// A rank ends the job that has not opened the file. Launchers kill the others at once.
#[test]
fn files_that_the_ending_rank_lacks_are_written() {
    let program = SUITE.compile("abandoned", Language::C);
    let file = program.scratch("ended-lacked");
    for how in ["lacks-abort", "lacks-_exit", "lacks-segv"] {
        for ranks in [2, 4] {
            let _gone = std::fs::remove_file(&file);
            let ended = program.run(ranks, &[file.to_str().expect("a path of ours"), how], &[ALL_FILES, EXPECTED]);
            let found = std::fs::read(&file).unwrap_or_default();
            let letters = ["\0", "b", "c", "d"];
            let expected: String = letters[..ranks as usize].iter().map(|letter| letter.repeat(100)).collect();
            assert!(ended.stdout.contains("written") && ended.status != Some(0), "{how}, {ranks}: {ended}");
            assert!(found == expected.as_bytes(), "{how}, {ranks}: {} bytes\n{ended}", found.len());
        }
    }
    let _gone = std::fs::remove_file(&file);
}

#[test]
fn what_one_rank_cannot_write_stops_no_other() {
    let program = SUITE.compile("going_back", Language::C);
    let file = program.scratch("ended-limited");
    let _gone = std::fs::remove_file(&file);
    let ended = program.run(2, &[file.to_str().expect("a path of ours"), "limited"], &[ALL_FILES, EXPECTED]);
    let found = std::fs::read(&file).expect("it was written");
    assert!(ended.stderr.contains("may be lost") && ended.stdout.contains("written"), "{ended}");
    assert!(found.get(68 << 20..).is_some_and(|far| far.starts_with(b"far away")), "{} bytes: {ended}", found.len());
    let _gone = std::fs::remove_file(&file);
}

/// A program cannot be replaced, and goes on.
#[test]
fn an_exec_that_fails_holds_no_write() {
    let program = SUITE.compile("going_back", Language::C);
    let file = program.scratch("ended-not");
    for ranks in [1, 2, 4] {
        let _gone = std::fs::remove_file(&file);
        program.run(ranks, &[file.to_str().expect("a path of ours"), "exec"], &[ALL_FILES, EXPECTED]).expect_done();
    }
    let _gone = std::fs::remove_file(&file);
}

/// Signals that the program blocks are pending, and no thread of the library takes them.
#[test]
fn blocked_signals_are_left_to_the_program() {
    let program = SUITE.compile("going_back", Language::C);
    let file = program.scratch("ended-blocked");
    let _gone = std::fs::remove_file(&file);
    program.run(2, &[file.to_str().expect("a path of ours"), "blocked"], &[ALL_FILES, EXPECTED]).expect_done();
    let _gone = std::fs::remove_file(&file);
}

/// The handler was registered before MPI began, so it runs after those of the library.
#[test]
fn mpi_may_end_in_an_exit_handler() {
    let program = SUITE.compile("going_back", Language::C);
    let file = program.scratch("ended-at-exit");
    let _gone = std::fs::remove_file(&file);
    program.run(2, &[file.to_str().expect("a path of ours"), "atexit"], &[ALL_FILES, EXPECTED]).expect_done();
    let _gone = std::fs::remove_file(&file);
}

#[test]
fn an_end_that_cannot_write_names_the_file() {
    let program = SUITE.compile("abandoned", Language::C);
    let file = program.scratch("ended-lost");
    let path = file.to_str().expect("a path of ours");
    for (how, why) in [("_exit", "_exit"), ("quick_exit", "quick_exit"), ("sig14", "signal 14"), ("pipe", "signal 13")]
    {
        let _gone = std::fs::remove_file(&file);
        let variables = [ALL_FILES, EXPECTED, ("VGASNET_TEST_IO_ERROR", "file-write:1:1000000")];
        let ended = program.run(2, &[path, how], &variables);
        assert!(ended.stdout.contains("written") && ended.status != Some(0), "{how}: {ended}");
        let line = format!("rank 0: {why}: {path} is open; what was written since it was last synced may be lost");
        assert_eq!(ended.stderr.matches(&line).count(), 1, "{how}: {ended}");
    }
    let _gone = std::fs::remove_file(&file);
}

/// One rank ends while the others go on writing. A write that has returned is in the file, whichever rank has written it.
#[test]
fn what_other_ranks_have_written_when_one_ends_is_written() {
    let program = SUITE.compile("going_on", Language::C);
    let (file, counts) = (program.scratch("going-on-file"), program.scratch("going-on-counts"));
    let [path, counted] = [&file, &counts].map(|path| path.to_str().expect("a path of ours"));
    for (how, ranks) in [(&["15"][..], 3), (&["11"], 3), (&["15"], 2), (&["6"], 4), (&["15", "later"], 3)] {
        let _gone = [&file, &counts].map(std::fs::remove_file);
        let ended = program.run(ranks, &[&[path, counted], how].concat(), &[ALL_FILES, EXPECTED]);
        let bytes = std::fs::read(&file).expect("it was written");
        let counts = std::fs::read(&counts).expect("the program has made it");
        let counts = counts.chunks(8).map(|count| u64::from_ne_bytes(count.try_into().expect("8 bytes")));
        for (rank, count) in (0_u64..).zip(counts) {
            let place = |record: u64| ((record * u64::from(ranks) + rank) * 8) as usize;
            let found = |record| bytes.get(place(record)..place(record) + 8) == Some(&(record + 1).to_ne_bytes()[..]);
            let lost = (0..count).filter(|record| !found(*record)).count();
            assert!(
                count > 100 && lost == 0,
                "signal {how:?}: rank {rank} of {ranks} has lost {lost} of {count}: {ended}"
            );
        }
    }
    let _gone = [&file, &counts].map(std::fs::remove_file);
}

/// A rescue and a handover meet: whatever the other handle may write, stays.
#[test]
fn a_rescue_cuts_off_nothing_that_others_have_written() {
    let program = SUITE.compile("rescued", Language::C);
    let file = program.scratch("rescued-file");
    let _gone = std::fs::remove_file(&file);
    let ended = program.run(2, &[file.to_str().expect("a path of ours")], &[ALL_FILES, EXPECTED]);
    assert!(ended.stdout.contains("cuts") && ended.status != Some(0), "{ended}");
    let bytes = std::fs::read(&file).expect("it was written");
    assert!(bytes.starts_with(b"ten bytes."), "{ended}");
    assert!(bytes.ends_with(b"far away") || !ended.stdout.contains("written"), "{} bytes: {ended}", bytes.len());
    let _gone = std::fs::remove_file(&file);
}
