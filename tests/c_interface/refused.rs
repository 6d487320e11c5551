//! Jobs in a container with a seccomp profile that permits only listed calls (`tests/container/`) and refuses io_uring:
//! they run without it.

use crate::install::client;
use crate::support::compile::{Language, Linking, program};
use crate::support::run::{conduit, fresh_dir, say_not_run, succeed};
use crate::support::tools::tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The status of the program when it cannot install its filter.
const NO_FILTER: i32 = 3;

/// The program that installs the filter, compiled once.
fn filter() -> &'static Path {
    static FILTER: OnceLock<PathBuf> = OnceLock::new();
    FILTER.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused");
        let mut command = Command::new("cc");
        command.args(["-std=c99", "-Wall", "-Wextra", "-Werror"]).arg(client("container/refused.c"));
        succeed(command.arg("-o").arg(&program));
        program
    })
}

/// Runs a command below the filter. Returns its status and output, or `None` with a line if the kernel takes no filter.
fn refused(arguments: &[&str], storage: &Path) -> Option<(Option<i32>, String, String)> {
    // The other tests' way to run commands removes the line checked here.
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=10", "120"])
        .arg(filter())
        .args(arguments)
        .env("VGASNET_STORAGE_DIR", storage)
        .env("VGASNET_PAGE_SIZE", "64K");
    for (name, value) in
        [("CHECK_POOL_BYTES", "6291456"), ("CHECK_PAGE_BYTES", "65536"), ("CHECK_RANKS", "2"), ("CHECK_SEED", "2017")]
    {
        command.env(name, value);
    }
    let output = command.env("VGASNET_POOL_SIZE", "6M").stdin(Stdio::null()).output().expect("a program");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let status = output.status.code();
    if status == Some(NO_FILTER) {
        say_not_run("jobs under a seccomp filter", stderr.trim());
        return None;
    }
    Some((status, stdout, stderr))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Calls outside the profile are refused: calls for other purposes, and unassigned numbers.
#[test]
fn calls_that_are_not_listed_are_refused() {
    let source = "#define _GNU_SOURCE\n#include <errno.h>\n#include <sched.h>\n#include <sys/socket.h>\n#include <sys/syscall.h>\n\
        #include <unistd.h>\n\
        static int refuses(long got, int error) { return got == -1 && errno == error; }\n\
        int main(void) {\n\
            if (!refuses(syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0), EPERM)) return 1;\n\
            if (!refuses(syscall(999), EPERM) || !refuses(syscall(435, 0, 0), ENOSYS)) return 2;\n\
            if (!refuses(socket(AF_VSOCK, SOCK_STREAM, 0), EPERM) || socket(AF_UNIX, SOCK_STREAM, 0) < 0) return 3;\n\
            if (!refuses(syscall(SYS_clone, CLONE_NEWUSER, 0, 0, 0, 0), EPERM)) return 4;\n\
            if (!refuses(syscall(SYS_personality, 0x40000), EPERM) || syscall(SYS_personality, 0xffffffff) < 0) return 5;\n\
            return 0;\n\
        }\n";
    let (storage, dir) = (fresh_dir(), fresh_dir());
    let [file, tried] = ["tried.c", "tried"].map(|name| dir.join(name));
    std::fs::write(&file, source).expect("a file of ours");
    succeed(Command::new("cc").args(["-Wall", "-Werror"]).arg(&file).arg("-o").arg(&tried));
    let ended = refused(&[path(&tried)], &storage);
    std::fs::remove_dir_all(&dir).expect("a directory of ours");
    if let Some((status, stdout, stderr)) = ended {
        assert_eq!(status, Some(0), "{stdout}{stderr}");
    }
    std::fs::remove_dir(&storage).expect("nothing stays behind");
}

#[test]
fn a_job_runs_without_what_a_container_refuses() {
    if conduit() != "smp" {
        return say_not_run("jobs under a seccomp filter", "this is about the ranks of one machine");
    }
    let (storage, launcher) = (fresh_dir(), tool("vgasnetrun"));
    for name in ["values", "loads_stores", "files"] {
        let program = program(name, Language::C99, Linking::Shared);
        let Some((status, stdout, stderr)) = refused(&[path(&launcher), "-n", "2", path(&program)], &storage) else {
            return;
        };
        assert_eq!(status, Some(0), "{name}: {stdout}{stderr}");
        // The job warns once that it runs without io_uring, and names the remedy.
        let lines: Vec<_> = stderr.lines().filter(|line| line.contains("io_uring")).collect();
        assert!(lines.len() == 1 && lines[0].contains("seccomp profile"), "{name}: {stderr}");
    }
    std::fs::remove_dir(&storage).expect("nothing stays behind");
}

#[test]
fn the_main_job_runs_without_what_a_container_refuses() {
    if conduit() != "smp" {
        return say_not_run("the main job under a seccomp filter", "this is about the ranks of one machine");
    }
    let (storage, bench, input) = (fresh_dir(), tool("vgasnet-bench"), fresh_dir().join("input"));
    let bytes: Vec<u8> = (0..32_u32 << 18).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    std::fs::write(&input, bytes).expect("a file of ours");
    let job = [
        path(&bench),
        "sequential",
        "-n",
        "4",
        "--pool",
        "8M",
        "--page",
        "1M",
        "--repeat",
        "1",
        "--cooperative",
        "both",
        "--input",
        path(&input),
    ];
    let ended = refused(&job, &storage);
    std::fs::remove_dir_all(input.parent().expect("a directory")).expect("a directory of ours");
    let Some((status, stdout, stderr)) = ended else { return };
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    std::fs::remove_dir(&storage).expect("nothing stays behind");
}

#[test]
fn what_a_container_refuses_is_told() {
    let (storage, info) = (fresh_dir(), tool("vgasnet-info"));
    let Some((status, stdout, stderr)) = refused(&[path(&info), "-n", "2", "--json"], &storage) else { return };
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    let told: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    for (key, value) in [("seccomp_filter", true), ("io_uring", false), ("reads_of_other_processes", true)] {
        assert_eq!(told["kernel"][key], value, "{stdout}");
    }
    let advice = told["advice"].as_array().expect("lines").iter().filter_map(|line| line.as_str());
    assert!(advice.clone().any(|line| line.contains("io_uring") && line.contains("seccomp=PROFILE")), "{stdout}");
    std::fs::remove_dir(&storage).expect("nothing stays behind");
}
