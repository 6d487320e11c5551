//! A message to MPICH's launcher, hydra, in its own protocol (PMI-1).
#![allow(unsafe_code, reason = "a descriptor that is known by its number")]

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use vgasnet_conduit::environment;
use vgasnet_conduit::launchers::HYDRA_SOCKET_VARIABLE;
use vgasnet_protocol::RankState;

/// Time-out of hydra's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time hydra gets to open a barrier all ranks have entered. The wait is in vain if a rank has not.
const BARRIER_PATIENCE: Duration = Duration::from_secs(1);

/// Maximum bytes of hydra's answer.
const HEARD_BYTES_MAX: usize = 16 << 10;

/// Tells hydra, for a rank that has ended in this state, that MPI was finalised there, and waits for the answer.
/// Without it, hydra complains on stdout and its own exit status is meaningless. The supervisor judges how the rank
/// ended.
pub(crate) fn say_finalized(state: RankState) {
    let starter = std::fs::read_to_string(format!("/proc/{}/comm", nix::unistd::getppid()));
    if !starter.is_ok_and(|name| name.starts_with("hydra_pmi")) {
        return;
    }
    let Some(socket) = environment::var(HYDRA_SOCKET_VARIABLE).and_then(|number| number.parse().ok()) else { return };
    // SAFETY: hydra made this socket for this process, which uses it nowhere else. As a stream it is only read and
    // written.
    let mut hydra = unsafe { UnixStream::from_raw_fd(socket) };
    // Fails if the rank did so itself: hydra has closed the other end.
    let _ = finalize(&mut hydra, state == RankState::Exiting(0));
}

/// `may_be_in_barrier`: the rank's program was over, and it ended inside `MPI_Finalize` if hydra still listens.
/// `MPI_Finalize` has a barrier, and hydra breaks when it opens a barrier for a finalised rank, so it gets time to open
/// it first.
fn finalize(hydra: &mut UnixStream, may_be_in_barrier: bool) -> io::Result<()> {
    hydra.set_nonblocking(false)?;
    if may_be_in_barrier {
        hydra.set_read_timeout(Some(BARRIER_PATIENCE))?;
        match hear(hydra, b"barrier_out") {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    hydra.set_read_timeout(Some(PATIENCE))?;
    hydra.write_all(b"cmd=finalize\n")?;
    hear(hydra, b"finalize_ack")
}

/// Reads until this word arrives.
fn hear(hydra: &mut impl Read, word: &[u8]) -> io::Result<()> {
    let (mut heard, mut part) = (Vec::new(), [0; 1024]);
    while !heard.windows(word.len()).any(|its| its == word) {
        match hydra.read(&mut part)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ if heard.len() > HEARD_BYTES_MAX => return Err(ErrorKind::InvalidData.into()),
            count => heard.extend_from_slice(&part[..count]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a finalize; returns hydra's end of the connection too.
    fn begin(may_be_in_barrier: bool) -> (std::thread::JoinHandle<io::Result<()>>, UnixStream) {
        let (mut agent, hydra) = UnixStream::pair().expect("sockets");
        (std::thread::spawn(move || finalize(&mut agent, may_be_in_barrier)), hydra)
    }

    #[test]
    fn a_barrier_is_opened_before_a_rank_has_finalized() {
        let (said, mut hydra) = begin(true);
        hydra.set_read_timeout(Some(BARRIER_PATIENCE / 4)).expect("a socket");
        assert_eq!(hydra.read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
        hydra.set_read_timeout(Some(BARRIER_PATIENCE / 2)).expect("a socket");
        hydra.write_all(b"cmd=barrier_out\n").expect("somebody listens");
        hear(&mut hydra, b"cmd=finalize\n").expect("it is said at once");
        hydra.write_all(b"cmd=finalize_ack\n").expect("somebody listens");
        said.join().expect("no panic").expect("hydra has answered");
    }

    #[test]
    fn a_rank_has_finalized_if_no_barrier_is_opened_or_it_can_be_in_none() {
        for may_be_in_barrier in [true, false] {
            let (said, mut hydra) = begin(may_be_in_barrier);
            let patience = if may_be_in_barrier { 2 * BARRIER_PATIENCE } else { BARRIER_PATIENCE / 2 };
            hydra.set_read_timeout(Some(patience)).expect("a socket");
            hear(&mut hydra, b"cmd=finalize\n").expect("it is said in the end");
            hydra.write_all(b"cmd=finalize_ack\n").expect("somebody listens");
            said.join().expect("no panic").expect("hydra has answered");
        }
    }

    /// The word is found within any other bytes, and nothing else is.
    #[test]
    fn hydra_may_say_anything() {
        vgasnet_fuzzing::run("-p vgasnet-launch --lib hydra_may_say", 100_000, |random| {
            let mut said = vgasnet_fuzzing::bytes(random, 40);
            if random.bool() {
                said.extend_from_slice(b"cmd=finalize_ack\n");
            }
            if random.bool() {
                vgasnet_fuzzing::mutate(random, &mut said);
            }
            if random.u8(..) == 0 {
                said.resize(2 * HEARD_BYTES_MAX, b' ');
            }
            let is_said = said.windows(12).any(|word| word == b"finalize_ack");
            assert_eq!(hear(&mut &said[..], b"finalize_ack").is_ok(), is_said);
            1
        });
    }

    #[test]
    fn nobody_speaks_for_a_rank_that_has_finalized() {
        let (said, hydra) = begin(true);
        drop(hydra);
        assert!(said.join().expect("no panic").is_err());
    }
}
