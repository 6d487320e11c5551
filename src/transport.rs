//! Which conduit this process runs on, and its start.

use crate::config::{Conduit as Kind, environment, wanted_transport};
use std::sync::Arc;
use vgasnet_conduit::{Conduit, ConduitError};
use vgasnet_smp::SmpConduit;

/// Starts the conduit that `VGASNET_CONDUIT` names, else the one that whoever launched this process is for.
///
/// # Errors
/// The conduit cannot start.
pub fn start() -> Result<Arc<dyn Conduit>, ConduitError> {
    let wanted = wanted_transport(environment());
    match wanted.conduit.unwrap_or_else(launched_for) {
        Kind::Smp => Ok(Arc::new(SmpConduit::start()?)),
        #[cfg(feature = "mpi")]
        Kind::Mpi => {
            let network = vgasnet_mpi::MpiNetwork::start()?;
            Ok(Arc::new(vgasnet_cluster::ClusterConduit::start(network, wanted.peer_memory)?))
        }
    }
}

#[cfg(not(feature = "mpi"))]
fn launched_for() -> Kind {
    Kind::Smp
}

/// A program that was started by an MPI launcher, or that uses MPI already, is a rank of that job.
#[cfg(feature = "mpi")]
fn launched_for() -> Kind {
    // Of MPICH and what comes of it, Slurm's and other launchers that speak PMI or PMIx, and Open MPI.
    const SIGNS: [&str; 3] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"];
    let is_set = |name| std::env::var_os(name).is_some();
    let by_mpi = SIGNS.into_iter().any(is_set) || vgasnet_mpi::is_initialised();
    if by_mpi && !is_set(vgasnet_smp::JOB_VARIABLE) { Kind::Mpi } else { Kind::Smp }
}
