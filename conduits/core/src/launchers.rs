//! The environment variables that launchers set for the processes that they start.

/// The variables with the rank of a process under an MPI launcher: of MPICH and its kin, of PMIx, of Open MPI.
pub const MPI_RANK_VARIABLES: [&str; 3] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"];

/// The number of a process among the tasks of a step of Slurm's.
pub const SLURM_RANK_VARIABLE: &str = "SLURM_PROCID";

/// How many tasks that step has.
pub const SLURM_RANKS_VARIABLE: &str = "SLURM_STEP_NUM_TASKS";

/// The PMI that Slurm has been asked for.
pub const SLURM_PMI_VARIABLE: &str = "SLURM_MPI_TYPE";

/// How many ranks a user asks GASNet's smp conduit to start.
pub const PSHM_NODES_VARIABLE: &str = "GASNET_PSHM_NODES";

/// Set by the launchers of GASNet, and by users who ask GASNet to launch. One of them makes a process a rank over GASNet.
pub const GASNET_VARIABLES: [&str; 5] =
    ["GASNET_SPAWN_CONTROL", PSHM_NODES_VARIABLE, "GASNET_SPAWNFN", "AMUDP_SLAVE_ARGS", "AMUDP_SPAWNFN"];

/// The socket by which MPICH's launcher, hydra, hears from a process.
pub const HYDRA_SOCKET_VARIABLE: &str = "PMI_FD";

/// The range of vgasnet's host time-out: for how many seconds another host may be silent before it is lost.
pub const HOST_TIMEOUT_S: std::ops::RangeInclusive<u64> = 5..=3600;

/// Whether Slurm has started several tasks of this program, of which this process is one, be it the first.
pub fn are_many_tasks(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable(SLURM_RANKS_VARIABLE).and_then(|tasks| tasks.parse::<u32>().ok()) > Some(1)
}
