//! A page from a peer's pool over MPI or GASNet, as a ratio to the network's own operations on as many bytes between the same
//! two ranks in the same run. `cargo bench --features mpi --bench pages [-- --json]`, where `MPICC` names the MPI, or
//! `--features gasnet`, where `GASNET_PC` names the GASNet.
//!
//! The ranks run `mpi.c` or `gasnet.c`. They share no memory, unlike other ranks of one host, so that every page goes by the
//! network. MPI is measured twice: over its choice for two processes of one host, and over TCP, as between hosts. MPI's own
//! operations use as much memory as the pages. An MPI without windows over TCP is compared by `MPI_Send` alone.

#[cfg(any(feature = "mpi", feature = "gasnet"))]
#[cfg_attr(feature = "gasnet", path = "over_gasnet.rs")]
#[cfg_attr(not(feature = "gasnet"), path = "over_mpi.rs")]
mod network;

#[cfg(any(feature = "mpi", feature = "gasnet"))]
mod report;

#[cfg(any(feature = "mpi", feature = "gasnet"))]
fn main() {
    report::run();
}

#[cfg(not(any(feature = "mpi", feature = "gasnet")))]
fn main() {
    eprintln!("pages: there is no network to measure; add --features mpi or --features gasnet");
}
