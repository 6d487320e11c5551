//! The barrier of MPICH's launcher, hydra, in its own protocol (PMI-1). Ranks may wait in it without any progress of
//! MPI.

use std::io::{self, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use vgasnet_conduit::environment;
use vgasnet_conduit::launchers::HYDRA_SOCKET_VARIABLE;

/// Set by hydra on all hosts, but not by other launchers with a PMI.
const HYDRA_RANKS_VARIABLE: &str = "MPI_LOCALNRANKS";

/// Time-out for the other ranks.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum bytes of hydra's answer.
const LINE_BYTES_MAX: usize = 1024;

/// The connection of this rank to hydra, shared with MPI.
pub(crate) struct Hydra(ManuallyDrop<UnixStream>);

impl Hydra {
    /// The connection, if hydra is the launcher. MPI has started, and uses PMI-1.
    pub(crate) fn of_this_rank() -> Option<Hydra> {
        environment::var_os(HYDRA_RANKS_VARIABLE)?;
        let socket = environment::var(HYDRA_SOCKET_VARIABLE)?.parse().ok()?;
        // SAFETY: MPI keeps this socket open until it ends, and it is not closed here. As a stream it is only read and
        // written.
        Some(Hydra(ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(socket) })))
    }

    /// Enters the barrier, and waits for all ranks of the job. `meanwhile` is called repeatedly; no other thread calls
    /// MPI.
    ///
    /// # Errors
    /// A rank does not arrive in time, or hydra's answer is unexpected.
    pub(crate) fn barrier(&self, meanwhile: impl FnMut()) -> io::Result<()> {
        barrier_at(&self.0, PATIENCE, meanwhile)
    }
}

fn barrier_at(mut hydra: &UnixStream, patience: Duration, meanwhile: impl FnMut()) -> io::Result<()> {
    hydra.write_all(b"cmd=barrier_in\n")?;
    let answered = read_line(hydra, Instant::now() + patience, meanwhile);
    // MPI continues to use the socket.
    hydra.set_read_timeout(None)?;
    let is_open = answered?.starts_with(b"cmd=barrier_out");
    if is_open { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
}

/// Reads to the end of a line, and no further.
fn read_line(mut hydra: &UnixStream, end: Instant, mut meanwhile: impl FnMut()) -> io::Result<Vec<u8>> {
    const BETWEEN: Duration = Duration::from_millis(1);
    let (mut line, mut byte) = (Vec::new(), [0]);
    hydra.set_read_timeout(Some(BETWEEN))?;
    while byte != *b"\n" {
        match hydra.read(&mut byte) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if line.len() == LINE_BYTES_MAX => return Err(ErrorKind::InvalidData.into()),
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => meanwhile(),
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A rank's result for an answer of hydra, and the bytes left for MPI.
    fn answered(answer: &[u8], patience: Duration) -> (Result<(), ErrorKind>, Vec<u8>) {
        let (rank, mut hydra) = UnixStream::pair().expect("sockets");
        hydra.write_all(answer).expect("it is short");
        let found = barrier_at(&rank, patience, || ()).map_err(|error| error.kind());
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
    fn a_rank_goes_on_when_hydra_says_so_and_leaves_later_bytes_to_mpi() {
        let (found, left) = answered(b"cmd=barrier_out\ncmd=finalize_ack\n", LONG);
        assert_eq!((found, &left[..]), (Ok(()), &b"cmd=finalize_ack\n"[..]));
    }

    #[test]
    fn something_else_is_done_until_hydra_answers() {
        let (rank, mut hydra) = UnixStream::pair().expect("sockets");
        let mut times = 0;
        let opened = barrier_at(&rank, LONG, || {
            times += 1;
            if times == 3 {
                hydra.write_all(b"cmd=barrier_out\n").expect("the rank is there");
            }
        });
        assert!(opened.is_ok() && times == 3, "{opened:?} after {times}");
    }

    #[test]
    fn other_answers_and_none_are_told() {
        assert_eq!(answered(b"cmd=unknown\n", LONG).0, Err(ErrorKind::InvalidData));
        assert_eq!(answered(&[b' '; 2 * LINE_BYTES_MAX], LONG).0, Err(ErrorKind::InvalidData));
        let silent = answered(b"", Duration::from_millis(20)).0;
        assert!(matches!(silent, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{silent:?}");
        let (rank, hydra) = UnixStream::pair().expect("sockets");
        drop(hydra);
        assert!(barrier_at(&rank, LONG, || ()).is_err());
    }
}
