//! The conformance suite on this conduit. The ranks run `examples/conformance_rank.rs`, started by the MPI this crate
//! was built for.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vgasnet_conduit::conformance::example;

/// Far more than a run takes.
const TIME_LIMIT: Duration = Duration::from_secs(120);

fn run_ranks(ranks: u32, hosts: &str) {
    run_ranks_with(ranks, &[hosts], &[]);
}

fn run_ranks_with(ranks: u32, args: &[&str], variables: &[(&str, &str)]) {
    let mut command = Command::new(vgasnet_mpi::MPIEXEC);
    // For Open MPI: tests in containers run as root, and with more ranks than processors.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command.args(["-n", &ranks.to_string()]).arg(example("conformance_rank")).args(args).stdin(Stdio::null());
    command.envs(variables.iter().copied());
    let mut launcher = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", vgasnet_mpi::MPIEXEC));
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = launcher.try_wait().expect("our child") {
            break status;
        }
        if begin.elapsed() > TIME_LIMIT {
            launcher.kill().expect("our child");
            launcher.wait().expect("our child");
            panic!("{ranks} ranks, {args:?}: not through after {TIME_LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{ranks} ranks, {args:?}: {status}");
}

#[test]
fn neighbours_share_memory() {
    [1, 2, 4].into_iter().for_each(|ranks| run_ranks(ranks, "share"));
}

#[test]
fn everything_over_mpi() {
    [1, 2, 3].into_iter().for_each(|ranks| run_ranks(ranks, "apart"));
}

/// As on several hosts, where ranks ask each other in `MPI_Finalize`, by sockets, whether all bytes have arrived.
#[test]
fn a_rank_that_gets_little_time_ends_with_the_others() {
    let by_sockets = [("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "tcp,self"), ("UCX_NET_DEVICES", "lo")];
    (0..5).for_each(|_| run_ranks_with(3, &["apart", "late"], &by_sockets));
}
