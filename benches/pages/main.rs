//! The cost of a page from a peer's pool over MPI or GASNet, as a ratio to the network's own operations on the same
//! number of bytes between the same two ranks in the same run. The commands are `cargo bench --features mpi --bench
//! pages [-- --json]`, with the MPI named by `MPICC`, or `--features gasnet`, with the GASNet named by `GASNET_PC`.
//!
//! The ranks run `mpi.c` or `gasnet.c`. Unlike other ranks of one host they share no memory, so every page crosses the
//! network. MPI is measured twice: over its own choice for two processes of one host, and over TCP as between hosts.
//! MPI's own operations use as much memory as the pages. If an MPI has no windows over TCP, only `MPI_Send` is
//! compared.

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
