//! A folder for one test, and runs of the bench in it.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

pub const BENCH: &str = env!("CARGO_BIN_EXE_vgasnet-bench");

/// A folder of one test. The bench must leave its storage directory empty.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}"));
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(dir.join("storage")).unwrap();
        Folder(dir)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Runs the bench with its backing files in this folder.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BENCH);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("VGASNET_") {
                command.env_remove(name);
            }
        }
        command.args(args).args(["--storage-dir", &self.path("storage")]);
        command
    }

    /// Runs the bench, which must succeed. Returns the results, and the text of the plot.
    pub fn drawn(&self, args: &[&str]) -> (Value, String) {
        let plot = self.path("plot.svg");
        let results = self.results(&[args, &["--plot", &plot]].concat());
        (results, fs::read_to_string(plot).unwrap())
    }

    /// Runs the bench, which must succeed. Returns the results from stdout.
    pub fn results(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json", "-"]].concat());
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        let results = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(fs::read_dir(self.0.join("storage")).unwrap().count(), 0, "files are left");
        results
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs single-threaded work in a place without cgroups, or prints that it was not run.
pub fn without_cgroups(work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let none: Option<&str> = None;
            // This thread's own mounts, which disappear with the thread.
            let hidden = unshare(CloneFlags::CLONE_NEWNS)
                .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
                .and_then(|()| mount(Some("none"), "/sys/fs/cgroup", Some("tmpfs"), MsFlags::MS_RDONLY, none));
            match hidden {
                Ok(()) => work(),
                Err(error) => say_not_run(&format!("this user cannot mount: {error}")),
            }
        });
    });
}

/// Bypasses the test harness, which hides the output of passing tests.
pub fn say_not_run(why: &str) {
    std::io::stderr().write_all(format!("NOT RUN: bench: {why}\n").as_bytes()).unwrap();
}

pub fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} in {value}"))
}

/// The rows of a list.
pub fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().unwrap_or_else(|| panic!("{field} in {value}"))
}

/// Checks a ratio of two values of a row.
pub fn check_ratio(row: &Value, ratio: &str, value: &str, baseline: &str) {
    let expected = number(row, value) / number(row, baseline);
    assert!(expected > 0.0 && (expected / number(row, ratio) - 1.0).abs() < 1e-9, "{ratio} of {row}");
}
