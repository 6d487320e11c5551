//! A message to MPICH's launcher, hydra, in its own protocol (PMI-1).
#![allow(unsafe_code, reason = "a descriptor that is known by its number")]

use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use vgasnet_conduit::launchers::HYDRA_SOCKET_VARIABLE;

/// How long hydra may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells hydra, for a rank that has ended, that MPI was finalised there, and waits for the answer. Of a rank that ends without this,
/// hydra complains on stdout, and hydra's own exit status then means nothing. The supervisor judges how the rank has ended.
pub(crate) fn say_finalized() {
    let starter = std::fs::read_to_string(format!("/proc/{}/comm", nix::unistd::getppid()));
    if !starter.is_ok_and(|name| name.starts_with("hydra_pmi")) {
        return;
    }
    let Some(socket) = std::env::var(HYDRA_SOCKET_VARIABLE).ok().and_then(|number| number.parse().ok()) else { return };
    // SAFETY: hydra has made this socket for the process, which uses it nowhere else. As a stream it is read and written only.
    let mut hydra = unsafe { UnixStream::from_raw_fd(socket) };
    // All of this fails where the rank has said so itself: hydra has closed the other end.
    let said = hydra.set_nonblocking(false).and_then(|()| hydra.set_read_timeout(Some(PATIENCE)));
    if said.and_then(|()| hydra.write_all(b"cmd=finalize\n")).is_err() {
        return;
    }
    let (mut heard, mut part) = (Vec::new(), [0; 1024]);
    while !heard.windows(b"finalize_ack".len()).any(|word| word == b"finalize_ack") {
        match hydra.read(&mut part) {
            Ok(count) if count > 0 => heard.extend_from_slice(&part[..count]),
            _ => return,
        }
    }
}
