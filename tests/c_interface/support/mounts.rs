//! File systems of tests: mounted for one thread and its children.

use super::run::{conduit, fresh_dir, say_not_run};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::statvfs;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Runs `body` with a directory on a file system mounted by `make`. Only this thread and its children see it.
pub fn on_own_disk(test: &str, make: impl FnOnce(&Path) -> Result<(), String> + Send, body: impl FnOnce(&Path) + Send) {
    if conduit() != "smp" {
        return say_not_run(test, "it is about the ranks of one machine");
    }
    on_own_disk_over_any(test, make, body);
}

/// As [`on_own_disk`], over any conduit.
pub fn on_own_disk_over_any(
    test: &str,
    make: impl FnOnce(&Path) -> Result<(), String> + Send,
    body: impl FnOnce(&Path) + Send,
) {
    let dir = fresh_dir();
    let on_disk = || {
        let none: Option<&str> = None;
        let apart = unshare(CloneFlags::CLONE_NEWNS)
            .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none));
        match apart.map_err(|error| error.to_string()).and_then(|()| make(&dir)) {
            Ok(()) => {
                body(&dir);
                // Writes in flight when a rank was killed may keep the mount busy.
                umount2(&dir, MntFlags::MNT_DETACH).expect("a mount of ours");
            }
            Err(why) => say_not_run(test, &format!("this user cannot mount: {}", why.trim().replace('\n', " "))),
        }
    };
    std::thread::scope(|scope| scope.spawn(on_disk).join()).expect("the test passes");
    fs::remove_dir(&dir).expect("an empty directory of ours");
}

pub fn tmpfs(options: &str) -> impl FnOnce(&Path) -> Result<(), String> {
    move |dir| {
        let mounted = mount(Some("none"), dir, Some("tmpfs"), MsFlags::empty(), Some(options));
        mounted.map_err(|error| error.to_string())
    }
}

/// An ext2, which cannot reserve space, or an ext4, in a file.
pub fn ext(kind: &'static str, size_bytes: u64) -> impl FnOnce(&Path) -> Result<(), String> {
    move |dir| {
        let mut make = Command::new("mke2fs");
        make.args(["-q", "-F", "-t", kind]);
        in_image(dir, size_bytes, make)
    }
}

/// A btrfs in a file, with a quota for all users including root.
pub fn btrfs(size_bytes: u64, quota_bytes: u64) -> impl FnOnce(&Path) -> Result<(), String> {
    move |dir| {
        let mut make = Command::new("mkfs.btrfs");
        make.arg("-q");
        in_image(dir, size_bytes, make)?;
        let quota = quota_bytes.to_string();
        let done = [&["quota", "enable"][..], &["qgroup", "limit", &quota]]
            .into_iter()
            .try_for_each(|args| do_step(Command::new("btrfs").args(args).arg(dir)));
        done.inspect_err(|_| umount2(dir, MntFlags::MNT_DETACH).expect("a mount of ours"))
    }
}

/// Mounts the file system made by `make` in a file, which is its last argument.
fn in_image(dir: &Path, size_bytes: u64, mut make: Command) -> Result<(), String> {
    let image = dir.with_extension("image");
    File::create(&image).and_then(|file| file.set_len(size_bytes)).expect("room for an image");
    let mut mounting = Command::new("mount");
    let done = do_step(make.arg(&image)).and_then(|()| do_step(mounting.args(["-o", "loop"]).arg(&image).arg(dir)));
    // The mount keeps the file.
    fs::remove_file(&image).expect("an image of ours");
    done
}

fn do_step(step: &mut Command) -> Result<(), String> {
    match step.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("{step:?}: {error}")),
    }
}

pub fn free_bytes(dir: &Path) -> u64 {
    let stat = statvfs(dir).expect("a file system");
    stat.blocks_available() as u64 * stat.fragment_size() as u64
}
