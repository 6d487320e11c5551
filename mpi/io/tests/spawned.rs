//! Files that a job shares with the processes it spawns. Each side loads the library or not.

mod suite;

use suite::{ALL_FILES, EXPECTED, SUITE};
use vgasnet_preloaded::Language;

/// All parts of `spawned.c`.
const PARTS: [&str; 4] = ["alone", "meanwhile", "merged", "self"];

#[test]
fn a_job_and_its_children_lose_nothing_of_each_other() {
    let program = SUITE.compile("spawned", Language::C);
    let (library, file) = (format!("LD_PRELOAD={}", SUITE.library().display()), program.scratch("file"));
    let (with, without) = ([&*library, "VGASNET_MPI_FILES=*"], ["-u", "LD_PRELOAD"]);
    for part in PARTS {
        for (job_has_it, children) in [(true, without), (true, with), (false, with), (false, without)] {
            let _gone = std::fs::remove_file(&file);
            let arguments = [&[file.to_str().expect("a path of ours"), part, "env"], &children[..]].concat();
            let ended = if job_has_it {
                program.run(2, &arguments, &[ALL_FILES, EXPECTED])
            } else {
                program.run_without(2, &arguments, &[])
            };
            if ended.stdout.contains("cannot spawn") {
                return SUITE.say_not_run("spawned", "MPI_Comm_spawn fails, with the library and without");
            }
            ended.expect_done();
            let lines = ended.stderr.matches("MPI_Comm_spawn: processes of another MPI_COMM_WORLD").count();
            assert_eq!(lines, usize::from(job_has_it), "{part}: {ended}");
        }
    }
    let _gone = std::fs::remove_file(&file);
}
