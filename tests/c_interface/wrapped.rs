//! Ranks started for the launcher by other commands: scripts, closed streams, few descriptors, another user.

use crate::support::compile::{Language, Linking, build, program, source_dir};
use crate::support::run::{Ended, Setup, conduit, finish, fresh_dir, place_executable, run, run_with, say_not_run};
use crate::support::tools::{tool, with_default_signals};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SETUP: Setup = Setup { ranks: 3, page_bytes: 65536, pool_pages: 5, peer_memory: true, cooperative: true };

/// The program with an argument for its way to live and end.
fn ways(linking: Linking) -> PathBuf {
    build(&source_dir().join("tests/cluster/ways.c"), Language::C99, linking)
}

/// Runs a shell script as each rank, with the program as its first argument.
fn run_script(script: &str, setup: Setup) -> Ended {
    let program = ways(Linking::Shared);
    run(Path::new("sh"), &["-c", script, "rank", program.to_str().expect("a path in UTF-8")], setup)
}

#[test]
fn a_rank_in_a_script_has_its_grace() {
    let ended = run_script("\"$1\" told; exit $?", SETUP);
    assert_eq!(ended.stdout, "told to quit\n".repeat(2), "{ended}");
    ended.expect(134);
}

#[test]
fn closed_streams_stay_apart_from_the_librarys_files() {
    run_script("exec \"$1\" mute <&- >&- 2>&-", SETUP).expect(0);
    run_script("exec \"$1\" mute <&- >/dev/null 2>&-", SETUP).expect(0);
}

/// Runs a program as the user does, without the settings of [`run`]. Returns status, output and errors.
fn run_bare(command: &mut Command) -> (Option<i32>, String, String) {
    let storage = fresh_dir();
    command.env("VGASNET_CONDUIT", "smp").env("VGASNET_STORAGE_DIR", &storage);
    command.env("VGASNET_POOL_SIZE", "1M").env("VGASNET_PAGE_SIZE", "64K").env("CHECK_PAGE_BYTES", "65536");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = finish(with_default_signals(command).spawn().expect("a program that is there"));
    std::fs::remove_dir(&storage).expect("an empty directory of ours");
    ended
}

/// Also for position-independent programs: clients send the addresses of functions to each other.
#[test]
fn code_and_data_have_the_same_addresses_unless_that_is_not_wanted() {
    let program = program("addresses", Language::C99, Linking::Shared);
    let run = |options: &[&str]| run_bare(Command::new(tool("vgasnetrun")).args(options).arg(&program));
    // SAFETY: the call takes a number. It asks for the current value and changes nothing.
    if unsafe { libc::personality(0xffff_ffff) } < 0 {
        return say_not_run("the same addresses in all ranks", "personality(2) is refused here");
    }
    assert_eq!(run(&["-n", "3"]), (Some(0), "same\n".into(), String::new()));
    let is_random =
        std::fs::read_to_string("/proc/sys/kernel/randomize_va_space").is_ok_and(|level| level.trim() != "0");
    if is_random {
        assert_eq!(run(&["-n", "3", "--aslr"]), (Some(0), "different\n".into(), String::new()));
    }
}

#[test]
fn ranks_that_nobody_starts_are_refused() {
    let program = program("addresses", Language::C99, Linking::Shared);
    let (status, _, said) = run_bare(Command::new(&program).env("GASNET_PSHM_NODES", "4"));
    let line = "vgasnet: vgasnet_init: GASNET_PSHM_NODES=4, but a program that starts by itself is one rank";
    assert!(status.is_some_and(|status| status != 0) && said.starts_with(line), "{status:?} {said}");
    assert_eq!(run_bare(Command::new(&program).env("GASNET_PSHM_NODES", "1")).0, Some(0));
}

/// With any number of descriptors, the job runs or ends with one line of the launcher.
#[test]
fn too_few_descriptors_are_a_line() {
    let program = ways(Linking::Shared);
    let (mut ran, mut refused) = (0, 0);
    for limit in 8..48 {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "limited"]).arg(tool("vgasnetrun")).args(["-n", &SETUP.ranks.to_string()]);
        // The launcher opens one more for each rank within a script.
        command.args(["sh", "-c", "\"$1\" copies; exit $?", "rank"]).arg(&program);
        let (status, _, said) = run_bare(&mut command);
        match status {
            Some(0) => ran += 1,
            status => {
                println!("{limit} descriptors: status {status:?}: {said}");
                let lines = said.lines().filter(|line| line.starts_with("vgasnetrun: ")).count();
                assert!(status.is_some() && lines == 1 && !said.contains("panicked"), "{limit}: {status:?} {said}");
                refused += 1;
            }
        }
    }
    assert!(ran > 0 && refused > 0, "{ran} ran, {refused} were refused");
}

/// Shared memory counts as files. A file beyond the limit would end its maker by SIGXFSZ.
#[test]
fn too_small_a_limit_on_files_is_a_line() {
    let program = ways(Linking::Shared);
    for (limit_blocks, line) in
        [(8, "vgasnetrun: making shared memory"), (2000, "vgasnet: rank 0: vgasnet_attach: shared memory of ")]
    {
        let script = format!("ulimit -f {limit_blocks}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "limited"]).arg(tool("vgasnetrun")).args(["-n", "1"]).arg(&program).arg("copies");
        let (status, _, said) = run_bare(&mut command);
        assert_eq!(status, Some(1), "{limit_blocks}: {said}");
        assert!(said.lines().any(|its| its.starts_with(line) && its.ends_with("; raise `ulimit -f`")), "{said}");
    }
}

/// Otherwise `mpiexec -n 4` would silently be four jobs of one rank.
#[test]
#[cfg(not(any(feature = "mpi", feature = "gasnet")))]
fn a_launcher_of_mpi_starts_no_ranks_without_mpi() {
    let program = ways(Linking::Shared);
    // The launcher's variables: `run_bare` names the conduit.
    let launched = |name: &str, rank: &str| {
        let script = format!("unset VGASNET_CONDUIT; {name}={rank} exec \"$@\"");
        run_bare(Command::new("sh").args(["-c", &script, "launched"]).arg(&program).arg("copies"))
    };
    for name in ["PMI_RANK", "OMPI_COMM_WORLD_RANK"] {
        let (status, _, said) = launched(name, "1");
        let names_it = |line: &str| line.starts_with("vgasnet: ") && line.contains("install vgasnet --with mpi");
        assert!(status.is_some_and(|status| status != 0) && said.lines().any(names_it), "{status:?} {said}");
        assert_eq!(launched(name, "0").0, Some(0));
    }
}

/// Pools are mapped whole.
#[test]
fn too_small_an_address_space_is_a_line() {
    let program = ways(Linking::Shared);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -v 400000; VGASNET_POOL_SIZE=512M exec \"$@\"", "limited"])
        .arg(tool("vgasnetrun"))
        .args(["-n", "1"]);
    let (status, _, said) = run_bare(command.arg(&program).arg("copies"));
    let names_it =
        |line: &str| line.starts_with("vgasnet: rank 0: vgasnet_attach: ") && line.contains("raise `ulimit -v`");
    assert!(status == Some(1) && said.lines().any(names_it), "{status:?} {said}");
}

#[test]
fn root_may_start_ranks_as_another_user() {
    if conduit() != "smp" {
        return say_not_run("ranks of another user", "launchers of MPI and GASNet refuse them");
    }
    const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let may_change = Command::new(NOBODY[0]).args(&NOBODY[1..]).arg("true").output();
    if !may_change.is_ok_and(|output| output.status.success()) {
        return say_not_run(
            "root_may_start_ranks_as_another_user",
            "this user may not become another one, or has no setpriv",
        );
    }
    // A directory that all users may read and write.
    let dir = std::env::temp_dir().join(format!("vgasnet-test-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a new directory");
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).expect("a directory of ours");
    let program = dir.join("ways");
    place_executable(&program, &std::fs::read(ways(Linking::Static)).expect("a file"));
    let mut args = NOBODY[1..].to_vec();
    args.extend([program.to_str().expect("a path in UTF-8"), "copies"]);
    let storage = dir.to_str().expect("a path in UTF-8");
    let ended = run_with(Path::new(NOBODY[0]), &args, SETUP, &[("VGASNET_STORAGE_DIR", storage)]);
    let left = std::fs::read_dir(&dir).expect("a directory").count();
    std::fs::remove_dir_all(&dir).expect("a directory of ours");
    ended.expect(0);
    assert_eq!(left, 1, "the program alone");
}
