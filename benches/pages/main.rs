//! A page out of a peer's pool over MPI or GASNet, as a ratio to what that itself reaches with as many bytes between the same two
//! ranks in the same run. `cargo bench --features mpi --bench pages [-- --json]`, where `MPICC` names the MPI, or
//! `--features gasnet`, where `GASNET_PC` names the GASNet.
//!
//! `mpi.c` and `gasnet.c` are what the ranks run. Ranks of one host use each other's pages where they are; these share no memory, so
//! that everything goes by the network: MPI over what it chooses between two processes of one host and then over TCP, as it would
//! between hosts. Its own operations use as much memory as the pages. An MPI that has no windows there is compared by `MPI_Send`
//! alone.

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
