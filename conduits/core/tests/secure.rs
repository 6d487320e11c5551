//! A program with more rights than its user ignores the variables of the library.
//!
//! The test runs a copy of itself that is setgid as another user. Only root can do so.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use vgasnet_conduit::environment;

/// The role of the copy.
const ROLE: &str = "SECURE_ROLE";

/// A user and a group; neither needs a name.
const OTHER: u32 = 64_202;
const GROUP: u32 = 64_203;

#[test]
fn a_program_with_more_rights_ignores_the_variables() {
    if std::env::var_os(ROLE).is_some() {
        let names = ["VGASNET_STATS_FILE", "GASNET_MAX_SEGSIZE", "VGASNET_POOL_SIZE"];
        let seen = names.iter().filter(|name| environment::var_os(name).is_some()).count();
        let listed = environment::vars_os().filter(|(name, _)| names.iter().any(|ours| name == ours)).count();
        let others = environment::vars_os().filter(|(name, _)| name == ROLE).count();
        return println!("seen {seen} listed {listed} others {others}");
    }
    if !nix::unistd::geteuid().is_root() {
        return println!("NOT RUN: variables in a setgid program: only root can make one");
    }
    let dir = std::env::temp_dir().join(format!("vgasnet-secure-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a directory");
    let copy = dir.join("program");
    std::fs::copy(std::env::current_exe().expect("a path"), &copy).expect("a file");
    nix::unistd::chown(&copy, None, Some(GROUP.into())).expect("root may");
    let run = |mode| {
        for (path, mode) in [(&dir, 0o755), (&copy, mode)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("root may");
        }
        let mut command = Command::new(&copy);
        command.args(["--exact", "a_program_with_more_rights_ignores_the_variables", "--nocapture"]).env(ROLE, "copy");
        command.env("VGASNET_STATS_FILE", "/tmp/stats").env("GASNET_MAX_SEGSIZE", "1M").env("VGASNET_POOL_SIZE", "1M");
        let ended = command.uid(OTHER).gid(OTHER).current_dir("/").output().expect("it can be run");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(ended.stdout), text(ended.stderr))
    };
    let (plain, with_rights) = (run(0o755), run(0o2755));
    std::fs::remove_dir_all(&dir).expect("a directory of ours");
    assert!(plain.0.contains("seen 3 listed 3 others 1") && !plain.1.contains("vgasnet:"), "{plain:?}");
    if with_rights.0.contains("seen 3") && is_without_rights() {
        return println!("NOT RUN: variables in a setgid program: the directory of temporary files is mounted nosuid");
    }
    assert!(with_rights.0.contains("seen 0 listed 0 others 1"), "{with_rights:?}");
    let lines = with_rights.1.matches("all other variables of vgasnet and GASNet are ignored").count();
    assert_eq!(lines, 1, "{with_rights:?}");
}

/// Whether programs in the directory of temporary files get no rights from their files.
fn is_without_rights() -> bool {
    let found = nix::sys::statvfs::statvfs(&std::env::temp_dir());
    found.is_ok_and(|found| found.flags().contains(nix::sys::statvfs::FsFlags::ST_NOSUID))
}
