//! The supervisor refuses an agent of another version, with one line.
//!
//! The test runs itself as the supervisor, which in turn runs it as the agent.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::Command;
use std::time::Duration;

use vgasnet_launch::{LAUNCHER_VARIABLE, Plan, Reach, supervise};

/// The role of a run of this test.
const ROLE: &str = "OTHER_VERSION_ROLE";

fn again(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", "agents_of_another_version_are_refused", "--nocapture"]).env(ROLE, role);
    command
}

/// Sends the hello of another version: it contains the cookie among other fields.
fn say_hello() {
    let address = std::env::var(LAUNCHER_VARIABLE).expect("the supervisor sets it");
    let mut fields = address.split('@');
    let cookie = u128::from_str_radix(fields.next().expect("a cookie"), 16).expect("hexadecimal digits");
    let name = SocketAddr::from_abstract_name(fields.next().expect("a name")).expect("a name");
    let mut stream = UnixStream::connect_addr(&name).expect("the supervisor listens");
    let layout = [&[1, 7, 7][..], &cookie.to_ne_bytes(), &[0]].concat();
    let hello = [&(layout.len() as u16 + 1).to_le_bytes()[..], &[layout.len() as u8], &layout].concat();
    stream.write_all(&hello).expect("somebody listens");
    let mut answer = Vec::new();
    // The supervisor may close the stream before it has read all.
    let _ = stream.read_to_end(&mut answer);
}

#[test]
fn agents_of_another_version_are_refused() {
    match std::env::var(ROLE).as_deref() {
        Ok("agent") => say_hello(),
        Ok(_) => {
            let (launcher, host_timeout) = (again("agent"), Duration::from_secs(20));
            let (reach, is_dispensable, is_noise) = (Reach::Here, true, None);
            let status = supervise(Plan { ranks: 2, reach, launcher, is_dispensable, host_timeout, is_noise });
            std::process::exit(status);
        }
        Err(_) => {
            let ended = again("supervisor").output().expect("this program can be run");
            let stderr = String::from_utf8_lossy(&ended.stderr);
            let lines: Vec<_> = stderr.lines().filter(|line| line.starts_with("vgasnetrun: ")).collect();
            let [line] = lines[..] else { panic!("one line: {stderr}") };
            assert!(line.starts_with("vgasnetrun: the agent on "), "{line}");
            assert!(
                line.ends_with(" is of another version of vgasnetrun; install the same one on all hosts"),
                "{line}"
            );
            assert_eq!(ended.status.code(), Some(1), "{stderr}");
        }
    }
}
