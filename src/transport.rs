//! Which conduit this process runs on, and its start.

use crate::config::{Conduit as Kind, wanted_transport};
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use vgasnet_conduit::{Conduit, ConduitError};
use vgasnet_smp::SmpConduit;

/// The program's arguments, in which GASNet's launchers may hide something.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "gasnet"), expect(dead_code, reason = "only GASNet looks at arguments"))]
pub struct Arguments {
    count: *mut c_int,
    values: *mut *mut *mut c_char,
}

impl Arguments {
    /// The process's, where the program does not show its own.
    pub fn of_process() -> Arguments {
        Arguments { count: std::ptr::null_mut(), values: std::ptr::null_mut() }
    }

    /// The program's own, of which the conduit may take some out; null pointers for none.
    ///
    /// # Safety
    /// Both are null, or `main`'s or like them: `count` strings and a null pointer, all of which stay until the process ends, and
    /// nobody else uses the two places while the conduit starts.
    pub unsafe fn of_program(count: *mut c_int, values: *mut *mut *mut c_char) -> Arguments {
        Arguments { count, values }
    }

    #[cfg(feature = "gasnet")]
    fn for_gasnet(self) -> vgasnet_gasnet::Arguments {
        if self.count.is_null() || self.values.is_null() {
            return vgasnet_gasnet::Arguments::of_process();
        }
        // SAFETY: whoever made `self` of what is not null has promised this.
        unsafe { vgasnet_gasnet::Arguments::of_program(self.count, self.values) }
    }
}

/// Starts the conduit that `VGASNET_CONDUIT` among these environment variables names, else the one that whoever launched this process is for.
///
/// # Errors
/// The conduit cannot start.
#[cfg_attr(not(feature = "gasnet"), expect(unused_variables, reason = "only GASNet looks at arguments"))]
pub fn start(variables: &[(String, String)], arguments: Arguments) -> Result<Arc<dyn Conduit>, ConduitError> {
    let wanted = wanted_transport(variables);
    match wanted.conduit.unwrap_or_else(launched_for) {
        Kind::Smp => Ok(Arc::new(SmpConduit::start()?)),
        #[cfg(feature = "mpi")]
        Kind::Mpi => {
            let network = vgasnet_mpi::MpiNetwork::start()?;
            Ok(Arc::new(vgasnet_cluster::ClusterConduit::start(network, wanted.peer_memory)?))
        }
        #[cfg(feature = "gasnet")]
        Kind::Gasnet => {
            let arguments = arguments.for_gasnet();
            let network = keeping_fault_handlers(|| vgasnet_gasnet::GasnetNetwork::start(&arguments, None))?;
            Ok(Arc::new(vgasnet_cluster::ClusterConduit::start(network, wanted.peer_memory)?))
        }
    }
}

/// Does something that may set handlers for faults, and puts back those that were there: the client's.
#[cfg(feature = "gasnet")]
fn keeping_fault_handlers<T>(what: impl FnOnce() -> T) -> T {
    const FAULTS: [c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT];
    let before = FAULTS.map(|signal| {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: the call changes nothing, and fills `action` when it succeeds, which is checked.
        unsafe { (libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
    });
    let done = what();
    for (signal, action) in FAULTS.into_iter().zip(before) {
        // SAFETY: the action is one that was in force for this signal.
        action.map(|action| unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) });
    }
    done
}

/// What to run on where nobody says.
fn launched_for() -> Kind {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if is_set(vgasnet_smp::JOB_VARIABLE) {
        return Kind::Smp;
    }
    #[cfg(feature = "gasnet")]
    if vgasnet_gasnet::LAUNCHED.into_iter().any(is_set) {
        return Kind::Gasnet;
    }
    // A program that was started by an MPI launcher (of MPICH and what comes of it, of Slurm or others that speak PMI or PMIx, of
    // Open MPI), or that uses MPI already, is a rank of that job.
    #[cfg(feature = "mpi")]
    if ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"].into_iter().any(is_set) || vgasnet_mpi::is_initialised() {
        return Kind::Mpi;
    }
    Kind::Smp
}
