//! Initial signal dispositions of processes.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the program take these signals by default, or ignore them. Under nohup and cron, and in the background of a
/// shell, programs ignore some signals, and so do their children.
pub fn with_disposition<'a>(
    command: &'a mut Command,
    signals: &[i32],
    disposition: libc::sighandler_t,
) -> &'a mut Command {
    let signals = signals.to_vec();
    // SAFETY: between fork and exec only system calls are made, and neither disposition is a handler.
    unsafe {
        command.pre_exec(move || {
            for signal in &signals {
                libc::signal(*signal, disposition);
            }
            Ok(())
        })
    }
}

/// Makes the program take the signals of a terminal by default.
pub fn with_default_signals(command: &mut Command) -> &mut Command {
    with_disposition(command, &[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT], libc::SIG_DFL)
}
