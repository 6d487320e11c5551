//! Handles of some ranks, for files that more ranks have cached.

mod suite;

use suite::{ALL_FILES, EXPECTED, SUITE};
use vgasnet_preloaded::Language;

/// As by plain MPI, which runs the same programs.
#[test]
fn some_ranks_do_what_plain_mpi_lets_them_do() {
    let program = SUITE.compile("some", Language::C);
    for part in ["cut", "atomic", "view", "pointer"] {
        for ranks in [1, 2, 4] {
            let file = program.scratch(&format!("some-{part}-{ranks}"));
            let arguments = [part, file.to_str().expect("a path of ours")];
            let plain = program.run_without(ranks, &arguments, &[]);
            plain.expect_done();
            let ended = program.run(ranks, &arguments, &[ALL_FILES, EXPECTED]);
            ended.expect_done().expect_silence();
            assert_eq!(ended.stdout, plain.stdout, "{ended}");
            let _gone = std::fs::remove_file(file);
        }
    }
}

#[test]
fn a_sync_of_some_ranks_that_has_failed_is_not_forgotten() {
    let program = SUITE.compile("alone", Language::C);
    for ranks in [1, 2, 4] {
        let file = program.scratch(&format!("alone-{ranks}"));
        let ended = program.run(ranks, &[file.to_str().expect("a path of ours")], &[ALL_FILES, EXPECTED]);
        ended.expect_done();
        assert!(ended.stderr.contains("cannot reach the disk"), "{ended}");
        let _gone = std::fs::remove_file(file);
    }
}
