//! The program over MPI.

use std::path::Path;
use std::process::Command;

pub const CONDUIT: &str = "mpi";
pub const SOURCE: &str = "mpi.c";

/// Variables that restrict various MPIs to TCP.
const TCP: [(&str, &str); 4] =
    [("UCX_TLS", "tcp,self"), ("OMPI_MCA_pml", "ob1"), ("OMPI_MCA_btl", "tcp,self"), ("OMPI_MCA_osc", "pt2pt,rdma")];

/// The networks between two ranks, and the variables for choosing them.
pub fn networks() -> Vec<(String, &'static [(&'static str, &'static str)])> {
    vec![("one host, no memory shared by vgasnet".to_owned(), &[]), ("tcp".to_owned(), &TCP)]
}

pub fn compiler() -> Command {
    Command::new(vgasnet_mpi::MPICC)
}

pub fn link(command: &mut Command, dir: &Path) {
    command.arg("-L").arg(dir).arg("-lvgasnet").arg(format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display()));
}
