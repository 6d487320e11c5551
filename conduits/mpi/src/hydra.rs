//! The barrier of MPICH's launcher, hydra, in its own protocol (PMI-1): ranks wait there without any progress of MPI.

use std::io::{self, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use vgasnet_conduit::launchers::HYDRA_SOCKET_VARIABLE;

/// What hydra sets besides, and other launchers with a PMI do not.
const HYDRA_CONTROL_VARIABLE: &str = "HYDI_CONTROL_FD";

/// How long the other ranks may take to come.
const PATIENCE: Duration = Duration::from_secs(2);

/// What hydra says is short.
const LINE_BYTES_MAX: usize = 1024;

/// Waits until all ranks of the job are here. Returns whether they are; `false` at once where the launcher is another one.
///
/// Nobody calls MPI meanwhile, which has started and talks PMI-1.
pub(crate) fn barrier() -> bool {
    if std::env::var_os(HYDRA_CONTROL_VARIABLE).is_none() {
        return false;
    }
    let Some(socket) = std::env::var(HYDRA_SOCKET_VARIABLE).ok().and_then(|number| number.parse().ok()) else {
        return false;
    };
    // SAFETY: MPI has this socket open until it ends, and is not closed here. As a stream it is read and written only.
    let hydra = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(socket) });
    barrier_at(&hydra, PATIENCE).is_ok()
}

fn barrier_at(mut hydra: &UnixStream, patience: Duration) -> io::Result<()> {
    hydra.write_all(b"cmd=barrier_in\n")?;
    let answered = read_line(hydra, Instant::now() + patience);
    // MPI goes on with the socket.
    hydra.set_read_timeout(None)?;
    let is_open = answered?.starts_with(b"cmd=barrier_out");
    if is_open { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
}

/// Reads to the end of a line, and no further.
fn read_line(mut hydra: &UnixStream, end: Instant) -> io::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while byte != *b"\n" {
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        hydra.set_read_timeout(Some(left.ok_or(ErrorKind::TimedOut)?))?;
        match hydra.read(&mut byte) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if line.len() == LINE_BYTES_MAX => return Err(ErrorKind::InvalidData.into()),
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// What a rank finds if hydra answers so, and what of that is left for MPI.
    fn answered(answer: &[u8], patience: Duration) -> (Result<(), ErrorKind>, Vec<u8>) {
        let (rank, mut hydra) = UnixStream::pair().expect("sockets");
        hydra.write_all(answer).expect("it is short");
        let found = barrier_at(&rank, patience).map_err(|error| error.kind());
        let mut said = [0; 15];
        hydra.read_exact(&mut said).expect("the rank has said it");
        assert_eq!(&said, b"cmd=barrier_in\n");
        drop(hydra);
        let mut left = Vec::new();
        assert_eq!(rank.read_timeout().expect("a socket"), None, "MPI waits for as long as it likes");
        (&rank).read_to_end(&mut left).expect("hydra is gone");
        (found, left)
    }

    #[test]
    fn a_rank_goes_on_when_hydra_says_so_and_leaves_the_rest_to_mpi() {
        let (found, left) = answered(b"cmd=barrier_out\ncmd=finalize_ack\n", LONG);
        assert_eq!((found, &left[..]), (Ok(()), &b"cmd=finalize_ack\n"[..]));
    }

    #[test]
    fn other_answers_and_none_are_told() {
        assert_eq!(answered(b"cmd=unknown\n", LONG).0, Err(ErrorKind::InvalidData));
        assert_eq!(answered(&[b' '; 2 * LINE_BYTES_MAX], LONG).0, Err(ErrorKind::InvalidData));
        let silent = answered(b"", Duration::from_millis(20)).0;
        assert!(matches!(silent, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{silent:?}");
        let (rank, hydra) = UnixStream::pair().expect("sockets");
        drop(hydra);
        assert!(barrier_at(&rank, LONG).is_err());
    }
}
