//! Choosing the conduit of this process, and starting it.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use vgasnet_conduit::{Conduit, ConduitError, RANKS_MAX, environment, launchers};
use vgasnet_settings::{self as settings, wanted_transport};
use vgasnet_smp::SmpConduit;
use vgasnet_sys::let_descendants_read;

/// The program's arguments, in which GASNet's launchers may hide data.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "gasnet"), expect(dead_code, reason = "only GASNet looks at arguments"))]
pub struct Arguments {
    count: *mut c_int,
    values: *mut *mut *mut c_char,
}

impl Arguments {
    /// The process's arguments, if the program does not pass its own.
    pub fn of_process() -> Arguments {
        Arguments { count: std::ptr::null_mut(), values: std::ptr::null_mut() }
    }

    /// The program's own arguments; the conduit may remove some. Null pointers for none.
    ///
    /// # Safety
    /// Both are null, or like the arguments of `main`: `count` strings and a null pointer, all valid until the process
    /// ends. Nothing else uses the two places while the conduit starts.
    pub unsafe fn of_program(count: *mut c_int, values: *mut *mut *mut c_char) -> Arguments {
        Arguments { count, values }
    }

    #[cfg(feature = "gasnet")]
    fn for_gasnet(self) -> vgasnet_gasnet::Arguments {
        if self.count.is_null() || self.values.is_null() {
            return vgasnet_gasnet::Arguments::of_process();
        }
        // SAFETY: pointers that are not null came through `of_program`, and its caller guarantees this.
        unsafe { vgasnet_gasnet::Arguments::of_program(self.count, self.values) }
    }
}

/// Starts the conduit named by `VGASNET_CONDUIT` in these environment variables, else the one of this process's
/// launcher.
///
/// # Errors
/// The conduit cannot start.
#[cfg_attr(not(feature = "gasnet"), expect(unused_variables, reason = "only GASNet looks at arguments"))]
pub fn start(variables: &[(String, String)], arguments: Arguments) -> Result<Arc<dyn Conduit>, ConduitError> {
    let wanted = wanted_transport(variables);
    let conduit: Arc<dyn Conduit> = match wanted.conduit.unwrap_or_else(launched_for) {
        settings::Conduit::Smp => {
            let conduit = SmpConduit::start()?;
            if let Some(launcher) = conduit.launcher_process() {
                let_descendants_read(launcher);
            }
            Arc::new(conduit)
        }
        #[cfg(not(feature = "mpi"))]
        settings::Conduit::Mpi => return Err(not_built("mpi")),
        #[cfg(not(feature = "gasnet"))]
        settings::Conduit::Gasnet => return Err(not_built("gasnet")),
        #[cfg(feature = "mpi")]
        settings::Conduit::Mpi => {
            let network = vgasnet_mpi::MpiNetwork::start()?;
            Arc::new(vgasnet_hybrid::HybridConduit::start(network, wanted.peer_memory)?)
        }
        #[cfg(feature = "gasnet")]
        settings::Conduit::Gasnet => {
            let arguments = arguments.for_gasnet();
            let network = vgasnet_gasnet::GasnetNetwork::start(&arguments)?;
            Arc::new(vgasnet_hybrid::HybridConduit::start(network, wanted.peer_memory)?)
        }
    };
    if let Some(ranks) = ranks_in_vain(environment::var, &*conduit) {
        return Err(ConduitError(format!(
            "GASNET_PSHM_NODES={ranks}, but a program that starts by itself is one rank: start it by vgasnetrun -n {ranks}, or \
             unset the variable"
        )));
    }
    let is_alone = conduit.ranks() == 1 && wanted.conduit != Some(settings::Conduit::Smp);
    if is_alone && is_later_task(environment::var) {
        return Err(ConduitError(
            "Slurm has started several tasks of this program, and each is a job of its own; name the PMI of your MPI (srun \
             --mpi=pmix, say; srun --mpi=list) or start the program with vgasnetrun; if that is meant, set VGASNET_CONDUIT=smp"
                .to_owned(),
        ));
    }
    if is_alone && is_later_process_of_mpi(environment::var) {
        return Err(ConduitError(
            "a launcher of MPI has started this process beside others, and each is a job of its own: the launcher, the program \
             and vgasnet are not of one MPI; use the mpiexec of the program's MPI, install vgasnet --with mpi for it \
             (docs/reference/clusters.md), or start the program with vgasnetrun -n; for one job a process set VGASNET_CONDUIT=smp"
                .to_owned(),
        ));
    }
    Ok(conduit)
}

/// The user names a conduit that this library was built without.
#[cfg(not(all(feature = "mpi", feature = "gasnet")))]
fn not_built(conduit: &str) -> ConduitError {
    let allowed = match (cfg!(feature = "mpi"), cfg!(feature = "gasnet")) {
        (true, _) => "smp or mpi",
        (_, true) => "smp or gasnet",
        _ => "smp",
    };
    ConduitError(format!("VGASNET_CONDUIT={conduit}: this vgasnet was built without it; allowed: {allowed}"))
}

/// Number of ranks requested by a user of GASNet's smp conduit, if no launcher has started them.
fn ranks_in_vain(variable: impl Fn(&str) -> Option<String>, conduit: &dyn Conduit) -> Option<u32> {
    let is_started = variable(vgasnet_smp::JOB_VARIABLE).is_some() || conduit.name() != "smp";
    let ranks = variable(launchers::PSHM_NODES_VARIABLE).filter(|_| !is_started)?;
    ranks.parse().ok().filter(|ranks| *ranks > 1)
}

/// Whether this is a later one of several tasks started by Slurm. The first one reports nothing.
fn is_later_task(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_by_slurm = variable(vgasnet_smp::JOB_VARIABLE).is_none();
    let task = variable(launchers::SLURM_RANK_VARIABLE).and_then(|task| task.parse::<u32>().ok());
    is_by_slurm && task > Some(0) && launchers::are_many_tasks(variable)
}

/// Whether this is a later one of several processes started by a launcher of MPI.
fn is_later_process_of_mpi(variable: impl Fn(&str) -> Option<String>) -> bool {
    let number = |name: &str| variable(name).and_then(|number| number.parse::<u32>().ok());
    // The largest numbers of PMIx do not stand for ranks.
    let is_later = |name| number(name).is_some_and(|rank| (1..RANKS_MAX).contains(&rank));
    let is_one = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"].into_iter().any(|name| number(name) == Some(1));
    variable(vgasnet_smp::JOB_VARIABLE).is_none() && !is_one && launchers::MPI_RANK_VARIABLES.into_iter().any(is_later)
}

/// Attaches GASNet before the start, both for vgasnet and for a program with its own calls of GASNet. Collective.
///
/// # Errors
/// This vgasnet was built without GASNet, or GASNet refuses.
///
/// # Safety
/// `table` has `count` entries of `gasnet_handlerentry_t`.
#[cfg_attr(not(feature = "gasnet"), expect(unused_variables, reason = "only GASNet looks at them"))]
pub unsafe fn attach_gasnet(
    table: *mut c_void,
    count: c_int,
    segment_bytes: usize,
    min_heap_offset: usize,
) -> Result<(), ConduitError> {
    #[cfg(feature = "gasnet")]
    // SAFETY: the caller of this function guarantees `count` entries in `table`.
    return unsafe { vgasnet_gasnet::attach_both(table, count, segment_bytes, min_heap_offset) };
    #[cfg(not(feature = "gasnet"))]
    Err(ConduitError("this vgasnet was built without GASNet; build it with --features gasnet".to_owned()))
}

/// The conduit to use without a setting.
fn launched_for() -> settings::Conduit {
    let is_set = |name: &str| environment::var_os(name).is_some();
    if is_set(vgasnet_smp::JOB_VARIABLE) {
        return settings::Conduit::Smp;
    }
    #[cfg(feature = "gasnet")]
    if vgasnet_gasnet::is_attached() || launchers::GASNET_VARIABLES.into_iter().any(is_set) {
        return settings::Conduit::Gasnet;
    }
    // A program already using MPI is a rank of an MPI job, too.
    #[cfg(feature = "mpi")]
    if launchers::MPI_RANK_VARIABLES.into_iter().any(is_set) || vgasnet_mpi::is_initialised() {
        return settings::Conduit::Mpi;
    }
    settings::Conduit::Smp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_tasks_of_slurms_are_found() {
        let is_one = |variables: &[(&str, &str)]| {
            let value = |name: &str| Some(variables.iter().find(|(its, _)| *its == name)?.1.to_owned());
            is_later_task(value)
        };
        let [tasks, first, second] = [("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "0"), ("SLURM_PROCID", "1")];
        assert!(is_one(&[tasks, second]));
        assert!(!is_one(&[tasks, first]));
        assert!(!is_one(&[("SLURM_STEP_NUM_TASKS", "1"), first]));
        // The variables of a batch script, and a job of vgasnetrun below a task.
        assert!(!is_one(&[second]));
        assert!(!is_one(&[tasks, second, (vgasnet_smp::JOB_VARIABLE, "0")]));
        assert!(!is_one(&[]));
    }

    #[test]
    fn lone_processes_of_mpis_are_found() {
        let is_one = |variables: &[(&str, &str)]| {
            is_later_process_of_mpi(|name| Some(variables.iter().find(|(its, _)| *its == name)?.1.to_owned()))
        };
        assert!(is_one(&[("PMI_RANK", "1")]) && is_one(&[("OMPI_COMM_WORLD_RANK", "3")]));
        assert!(!is_one(&[("PMI_RANK", "0")]) && !is_one(&[]));
        assert!(!is_one(&[("PMIX_RANK", "1"), (vgasnet_smp::JOB_VARIABLE, "0")]));
        assert!(!is_one(&[("PMIX_RANK", "4294967294")]) && is_one(&[("PMIX_RANK", "1"), ("PMI_SIZE", "2")]));
        assert!(!is_one(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "1")]));
    }
}
