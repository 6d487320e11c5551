//! A rank running the conformance suite; `tests/conformance.rs` has an MPI launcher start it. Arguments: whether the
//! ranks share the memory of hosts (`share`) or not (`apart`); and `late`, to run no suite and starve one rank of
//! processor time at its end.

use std::time::Duration;

use vgasnet_conduit::Conduit;
use vgasnet_hybrid::HybridConduit;
use vgasnet_mpi::MpiNetwork;

fn main() {
    let share_hosts = std::env::args().nth(1).as_deref() == Some("share");
    let network = MpiNetwork::start().expect("MPI");
    let conduit = HybridConduit::start(network, share_hosts).expect("start");
    let is_late = std::env::args().nth(2).as_deref() == Some("late");
    if is_late {
        if conduit.rank().0 == 1 {
            get_little_time();
        }
    } else if let Err(what) = vgasnet_conduit::conformance::run(&conduit) {
        eprintln!("{what}");
        conduit.exit(1);
    }
    conduit.close();
    conduit.exit(0)
}

/// From now on this thread runs for some milliseconds at a time and then stops for longer, as on a busy machine.
fn get_little_time() {
    extern "C" fn stop(_signal: libc::c_int) {
        std::thread::sleep(Duration::from_millis(40));
        ring();
    }
    // SAFETY: the handler makes async-signal-safe calls only.
    unsafe { libc::signal(libc::SIGALRM, stop as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    ring();
}

fn ring() {
    const AT: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 3000 };
    const ONCE: libc::itimerval =
        libc::itimerval { it_value: AT, it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 } };
    // SAFETY: the kernel reads the timer, and writes nothing.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &ONCE, std::ptr::null_mut()) };
}
