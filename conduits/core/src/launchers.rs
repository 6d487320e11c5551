//! Environment variables set by launchers for the processes they start.

/// The rank of a process under an MPI launcher: MPICH and derivatives, PMIx, Open MPI.
pub const MPI_RANK_VARIABLES: [&str; 3] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"];

/// The number of a process among the tasks of a Slurm step.
pub const SLURM_RANK_VARIABLE: &str = "SLURM_PROCID";

/// The number of tasks in the step.
pub const SLURM_RANKS_VARIABLE: &str = "SLURM_STEP_NUM_TASKS";

/// The PMI requested from Slurm.
pub const SLURM_PMI_VARIABLE: &str = "SLURM_MPI_TYPE";

/// The number of ranks requested from GASNet's smp conduit.
pub const PSHM_NODES_VARIABLE: &str = "GASNET_PSHM_NODES";

/// Set by the launchers of GASNet, and by users requesting a launch by GASNet. Any of them makes a process a rank over
/// GASNet.
pub const GASNET_VARIABLES: [&str; 5] =
    ["GASNET_SPAWN_CONTROL", PSHM_NODES_VARIABLE, "GASNET_SPAWNFN", "AMUDP_SLAVE_ARGS", "AMUDP_SPAWNFN"];

/// The socket of a process to MPICH's launcher, hydra.
pub const HYDRA_SOCKET_VARIABLE: &str = "PMI_FD";

/// The range of vgasnet's host time-out, in seconds of silence after which another host counts as lost.
pub const HOST_TIMEOUT_S: std::ops::RangeInclusive<u64> = 5..=3600;

/// Whether Slurm has started several tasks of this program, including this process.
pub fn are_many_tasks(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable(SLURM_RANKS_VARIABLE).and_then(|tasks| tasks.parse::<u32>().ok()) > Some(1)
}
