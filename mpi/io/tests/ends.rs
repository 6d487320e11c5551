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
    let ways = ["pipe", "_Exit", "quick_exit"].map(|how| (how.to_owned(), &[2][..]));
    let often = ["error", "_exit", "in-handler"].map(|how| (how.to_owned(), &[1, 2, 4][..]));
    for (how, all_ranks) in often.into_iter().chain(ways).chain(signals) {
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
        }
    }
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
