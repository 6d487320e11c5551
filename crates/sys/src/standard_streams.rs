//! The descriptors 0, 1 and 2, if the program was started without them.

/// Opens `/dev/null` for each closed standard stream. Otherwise the next file or socket opened by the library would
/// become this stream, and the program would print into it.
pub fn open_closed() {
    loop {
        // SAFETY: the path is a terminated string. The kernel gives the lowest free number.
        let opened = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        if opened > libc::STDERR_FILENO {
            // SAFETY: this function has just opened it, and nobody else knows of it.
            unsafe { libc::close(opened) };
        }
        if !(libc::STDIN_FILENO..=libc::STDERR_FILENO).contains(&opened) {
            return;
        }
    }
}
