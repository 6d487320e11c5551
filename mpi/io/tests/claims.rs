//! Handles of one file that find each other only by their claims, and files that MPI makes.

mod suite;

use std::path::PathBuf;
use suite::{ALL_FILES, EXPECTED, SUITE};
use vgasnet_preloaded::{Ended, Language, Program};

/// A path for a file, and for the marks beside it (`waiting.inc`). All are removed when it is made and when it is
/// dropped.
struct Marked(PathBuf);

impl Marked {
    fn new(program: &Program, name: &str) -> Marked {
        let marked = Marked(program.scratch(name));
        marked.remove();
        marked
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a path of ours")
    }

    fn remove(&self) {
        for ending in ["", ".owned", ".written", ".closed"] {
            let _gone = std::fs::remove_file(format!("{}{ending}", self.text()));
        }
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        self.remove();
    }
}

#[test]
fn all_ranks_of_a_handle_wait_for_the_claim_of_a_file_that_was_absent() {
    let program = SUITE.compile("absent", Language::C);
    let tool = SUITE.shared("tool_held");
    for ranks in [2, 3, 4] {
        let file = Marked::new(&program, &format!("{ranks}"));
        program.run_before(&tool, ranks, &[file.text()], &[ALL_FILES, EXPECTED]).expect_done().expect_silence();
    }
}

/// Runs `apart.c` as two jobs, of which the second has these variables.
fn two_jobs(program: &Program, file: &Marked, ranks: u32, second: &str) -> Ended {
    // The first job caches the file. Its status counts unless the second job's is worse.
    let mpiexec = SUITE.mpi("mpiexec");
    let launcher = format!(
        "shift 2; {mpiexec} -n {ranks} env JOB=first \"$@\" & \
         {mpiexec} -n {ranks} env {second} \"$@\"; status=$?; wait $! && exit $status"
    );
    program.run_by(&["sh", "-c", &launcher, "launcher"], 1, &[file.text()], &[ALL_FILES, EXPECTED])
}

#[test]
fn a_job_without_vgasnet_has_its_files_handed_back_by_others() {
    let program = SUITE.compile("apart", Language::C);
    let mut parts = vec![("JOB=second VGASNET_PAGE_SIZE=3", "vgasnet does not start"), ("JOB=second", "")];
    if SUITE.is_of_others_than_openmpi() {
        parts.push(("JOB=session", ""));
    } else {
        SUITE.say_not_run("apart, session", "this MPI has no sessions");
    }
    for ranks in [1, 2] {
        for (second, line) in &parts {
            let file = Marked::new(&program, &format!("{ranks}"));
            let ended = two_jobs(&program, &file, ranks, second);
            ended.expect_done();
            assert!(ended.stderr.contains(line), "{second}: {ended}");
            let found = std::fs::read(file.text()).expect("the file of both jobs");
            assert_eq!(found.len(), (ranks as usize) * (1 << 20) + 8, "{second}, {ranks} ranks: {ended}");
            for rank in 0..ranks as usize {
                assert_eq!(&found[rank * 8..][..8], b"cached..", "{second}, {ranks} ranks: {ended}");
                assert_eq!(&found[(rank + 1) << 20..][..8], b"served..", "{second}, {ranks} ranks: {ended}");
            }
        }
    }
}

/// Open MPI locks the whole file around each access, on NFS by default.
#[test]
fn locks_of_the_whole_file_wait_for_no_claim() {
    let program = SUITE.compile("locked", Language::C);
    let whole = [("OMPI_MCA_io", "ompio"), ("OMPI_MCA_fs_ufs_lock_algorithm", "2")];
    let ways = if SUITE.is_of_others_than_openmpi() { vec![&[][..]] } else { vec![&[][..], &whole] };
    for ranks in [1, 2, 4] {
        for hint in ["enable", "disable"] {
            let file = Marked::new(&program, &format!("{hint}-{ranks}"));
            for variables in &ways {
                file.remove();
                program.run_without(ranks, &[file.text(), hint], variables).expect_done();
                file.remove();
                let variables = [&[ALL_FILES, EXPECTED], *variables].concat();
                program.run(ranks, &[file.text(), hint], &variables).expect_done().expect_silence();
            }
        }
    }
}

#[test]
fn a_lock_that_fails_leaves_the_file_to_mpi_with_a_line() {
    let program = SUITE.compile("unlocked", Language::C);
    let tool = SUITE.shared("tool_unlocked");
    let is_refused = "cannot be locked behind its end: ";
    for ranks in [1, 2, 4] {
        let file = Marked::new(&program, &format!("{ranks}"));
        let run = |part: &str, more: &[(&str, &str)]| {
            file.remove();
            let ended = program.run_before(&tool, ranks, &[file.text(), part], &[&[ALL_FILES], more].concat());
            ended.expect_done();
            ended
        };
        let [full, none] = [libc::ENOLCK, libc::EOPNOTSUPP].map(|errno| errno.to_string());
        let ended = run("open", &[("LOCKS_FAIL", &full)]);
        assert_eq!(ended.stderr.matches(is_refused).count(), 1, "{ended}");
        run("open", &[("LOCKS_FAIL", &none), EXPECTED]).expect_silence();
        let ended = run("atomic", &[]);
        assert!(ended.stderr.contains("cannot be locked for mode atomic"), "{ended}");
    }
}

#[test]
fn a_reader_that_keeps_a_file_from_being_cached_is_told_once() {
    let program = SUITE.compile("reader", Language::C);
    for ranks in [1, 2, 4] {
        let file = Marked::new(&program, &format!("{ranks}"));
        let ended = program.run(ranks, &[file.text()], &[ALL_FILES]);
        let line = "another process has a read lock on the bytes";
        assert_eq!(ended.expect_done().stderr.matches(line).count(), 1, "{ended}");
    }
}

#[test]
fn a_file_that_mpi_opens_on_some_ranks_only_keeps_nobody_waiting() {
    let program = SUITE.compile("partly", Language::C);
    let tool = SUITE.shared("tool_failing");
    for ranks in [2, 4] {
        let file = Marked::new(&program, &format!("{ranks}"));
        std::fs::write(file.text(), b"").expect("cargo's own directory");
        let ended = program.run_before(&tool, ranks, &[file.text()], &[ALL_FILES, ("FAILS", "1")]);
        assert!(std::fs::exists(format!("{}.written", file.text())).is_ok_and(|is| is), "{ended}");
        assert!(!ended.stderr.contains("waits for ranks of another communicator"), "{ended}");
    }
}

#[test]
fn the_first_sync_of_a_file_that_mpi_has_made_syncs_its_name() {
    let program = SUITE.compile("named", Language::C);
    let tool = SUITE.shared("tool_synced");
    for ranks in [1, 2, 4] {
        let file = Marked::new(&program, &format!("{ranks}"));
        program.run_before(&tool, ranks, &[file.text()], &[ALL_FILES, EXPECTED]).expect_done().expect_silence();
    }
}

#[test]
fn a_child_does_not_keep_a_file() {
    let program = SUITE.compile("forked", Language::C);
    let file = Marked::new(&program, "file");
    let run = |more: &[&str]| program.run(2, &[&[file.text()], more].concat(), &[ALL_FILES, EXPECTED]);
    let ended = run(&[]);
    assert!(!ended.expect_done().stderr.contains(": exit: "), "{ended}");
    // The child of a rank that was killed lives on for 20 s.
    let began = std::time::Instant::now();
    let ended = run(&["dies"]);
    assert!(ended.status != Some(0), "{ended}");
    run(&[]).expect_done();
    assert!(began.elapsed().as_secs() < 19, "nothing waits for the child");
}
