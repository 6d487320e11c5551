//! Labelled output: every line is prefixed with its rank and written whole.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Longer lines are broken, to bound memory.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Bytes read from a pipe before the next pipe's turn.
const TURN_BYTES_MAX: usize = 64 << 10;

/// The launcher's stream a pipe is copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

impl Stream {
    fn write(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Out => write_patiently(&mut io::stdout().lock(), bytes),
            Stream::Err => write_patiently(&mut io::stderr().lock(), bytes),
        }
    }
}

/// Writes all bytes, even if other users of the stream made it nonblocking, as ssh and some programs do with pipes and
/// terminals.
fn write_patiently(to: &mut (impl Write + AsFd), mut bytes: &[u8]) -> io::Result<()> {
    loop {
        let step = if bytes.is_empty() { to.flush().map(|()| 0) } else { to.write(bytes) };
        match step {
            Ok(0) if bytes.is_empty() => return Ok(()),
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Whatever the result, the next attempt tells.
                let _ = poll(&mut [PollFd::new(to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
            }
            Err(error) => return Err(error),
        }
    }
}

/// One rank's stdout or stderr, forwarded to the launcher's.
pub(crate) struct LabelledPipe {
    label: String,
    stream: Stream,
    /// None when the rank has closed it, or the launcher's stream is gone.
    pipe: Option<OwnedFd>,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    /// The error that lost lines, unless their reader is gone.
    refusal: Option<io::Error>,
}

impl LabelledPipe {
    pub(crate) fn new(rank: u32, pipe: OwnedFd, stream: Stream) -> Self {
        // Affects this end only: the rank's end is another open file. If it fails, a read may block until the rank
        // writes.
        let _ = fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        LabelledPipe { label: format!("[{rank}] "), stream, pipe: Some(pipe), partial: Vec::new(), refusal: None }
    }

    /// Readable when there are bytes to copy; none after the end.
    pub(crate) fn open_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Copies the bytes in the pipe, up to a bound.
    pub(crate) fn forward(&mut self) {
        let mut buffer = [0; 16 << 10];
        let mut turn_bytes = 0;
        while let Some(pipe) = &self.pipe {
            match nix::unistd::read(pipe, &mut buffer) {
                Ok(0) => self.close(),
                Ok(count) => {
                    self.take(&buffer[..count]);
                    turn_bytes += count;
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                Err(_) => self.close(),
            }
            if turn_bytes >= TURN_BYTES_MAX {
                return;
            }
        }
    }

    /// The reason lines of the rank were lost, if any; reported once.
    pub(crate) fn refusal(&mut self) -> Option<String> {
        let error = self.refusal.take()?;
        let stream = if self.stream == Stream::Out { "output" } else { "error" };
        Some(format!("standard {stream}: {error}; lines of {}are lost", self.label))
    }

    /// Copies the remaining bytes when all ranks have ended, and an unfinished last line.
    pub(crate) fn finish(&mut self) {
        // A pipe holds more than one turn; a process left behind could write for ever.
        for _ in 0..16 {
            self.forward();
        }
        self.close();
    }

    fn close(&mut self) {
        self.pipe = None;
        if !self.partial.is_empty() {
            let last = std::mem::take(&mut self.partial);
            self.write_lines(&last);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let whole_bytes = match self.partial.iter().rposition(|&byte| byte == b'\n') {
            Some(newline) => newline + 1,
            None if self.partial.len() >= LINE_BYTES_MAX => self.partial.len(),
            None => return,
        };
        let tail = self.partial.split_off(whole_bytes);
        let whole = std::mem::replace(&mut self.partial, tail);
        self.write_lines(&whole);
    }

    /// Writes labelled lines at once, ending the last one with a newline if it has none.
    fn write_lines(&mut self, lines: &[u8]) {
        let labelled = label_lines(&self.label, lines);
        if let Err(error) = self.stream.write(&labelled) {
            // The rank must notice, as if it wrote there itself.
            self.pipe = None;
            self.partial.clear();
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.refusal = Some(error);
            }
        }
    }
}

fn label_lines(label: &str, lines: &[u8]) -> Vec<u8> {
    let mut labelled = Vec::with_capacity(lines.len() + 64);
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        labelled.extend_from_slice(label.as_bytes());
        labelled.extend_from_slice(line);
    }
    if !labelled.ends_with(b"\n") {
        labelled.push(b'\n');
    }
    labelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_label_and_an_end() {
        assert_eq!(label_lines("[3] ", b"a\n\nb\n"), b"[3] a\n[3] \n[3] b\n");
        assert_eq!(label_lines("[3] ", b"no end"), b"[3] no end\n");
    }
}
