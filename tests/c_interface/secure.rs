//! A setuid program in C: the library reads no variable of its user.

use crate::support::gasnet::{Compiler, Mode, ex_program};
use crate::support::run::{fresh_dir, place_executable, say_not_run};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A user and a group. They need no name.
const OTHER: u32 = 64_204;
const GROUP: u32 = 64_205;

const WHAT: &str = "variables in a setgid program in C";

/// Runs the program as the other user. Returns its status, output and stderr, and whether it has written statistics.
fn run(program: &Path, dir: &Path) -> (Option<i32>, String, String, bool) {
    let statistics = dir.join("statistics");
    let mut command = Command::new(program);
    command.env("VGASNET_STATS_FILE", &statistics).env("VGASNET_STATS", "1").env("OF_NOBODY", "1");
    command.env("GASNET_OF_USER", "7").env("GASNET_OF_USER_ANSWER", "yes");
    let ended = command.uid(OTHER).gid(OTHER).current_dir(dir).output().expect("it can be run");
    let [stdout, stderr] = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let has_written = std::fs::remove_file(&statistics).is_ok();
    (ended.status.code(), stdout, stderr, has_written)
}

#[test]
fn a_program_with_more_rights_takes_no_variable_from_its_user() {
    // SAFETY: the call takes no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return say_not_run(WHAT, "only root can make one");
    }
    let dir = fresh_dir();
    let copy = dir.join("program");
    let program = ex_program("ex_secure", Compiler::GccC99, Mode::Seq, &[]);
    place_executable(&copy, &std::fs::read(program).expect("a file"));
    let with_mode = |mode| {
        std::os::unix::fs::chown(&copy, None, Some(GROUP)).expect("root may");
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(mode)).expect("root may");
        run(&copy, &dir)
    };
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).expect("root may");
    let (plain, with_rights) = (with_mode(0o755), with_mode(0o2755));
    std::fs::remove_dir_all(&dir).expect("a directory of ours");
    assert!(plain.0 == Some(0) && plain.1 == "secure 0\n" && plain.3, "{plain:?}");
    if with_rights.1 == "secure 0\n" {
        return say_not_run(WHAT, "the directory of temporary files is mounted nosuid");
    }
    assert!(with_rights.0 == Some(0) && with_rights.1 == "secure 1\n" && !with_rights.3, "{with_rights:?}");
    let lines = with_rights.2.matches("all other variables of vgasnet and GASNet are ignored").count();
    assert_eq!(lines, 1, "{with_rights:?}");
}
