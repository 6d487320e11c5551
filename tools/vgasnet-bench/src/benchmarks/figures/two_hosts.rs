//! Jobs of this program over MPI between two hosts: network namespaces of this machine.

use crate::plan::{Job, Spec};
use crate::programs::mpi::{FILES, Mpi};
use crate::programs::{Folder, own_dir, said, two_hosts};
use crate::report::Figures;
use std::fs::File;
use std::path::PathBuf;
use vgasnet_hosts::Hosts;
use vgasnet_settings::format_size;

/// Two hosts, and the programs that start jobs there.
pub struct TwoHosts {
    hosts: Hosts,
    mpi: Mpi,
    vgasnetrun: PathBuf,
    program: PathBuf,
    folder: Folder,
}

impl TwoHosts {
    /// Creates the hosts.
    ///
    /// # Errors
    /// The reason for failure, on one line.
    pub fn new(mpicc: &str) -> Result<TwoHosts, String> {
        if !cfg!(feature = "mpi") {
            return Err("this vgasnet-bench has no MPI; build it with --features mpi".into());
        }
        let mpi = Mpi::with(mpicc, &FILES, None)?;
        let vgasnetrun = own_dir()?.join("vgasnetrun");
        if !vgasnetrun.is_file() {
            return Err("vgasnetrun is not beside this program; build it".into());
        }
        let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
        let folder = Folder::new()?;
        let hosts = Hosts::new(&format!("figures-{}", std::process::id()), folder.path())?;
        Ok(TwoHosts { hosts, mpi, vgasnetrun, program, folder })
    }

    /// Runs a job to its end, with half of the ranks on each host. Returns rank 0's figures.
    ///
    /// # Errors
    /// The reason for failure, on one line.
    pub fn run(&self, job: &Job) -> Result<Figures, String> {
        let report = self.folder.path().join("report");
        File::create(&report).map_err(|error| format!("{}: {error}", report.display()))?;
        let spec = Spec { report: report.clone(), ..job.spec.clone() };
        let mut command = two_hosts(&self.hosts, &self.mpi, &self.vgasnetrun);
        command.env("VGASNET_MAX_SEGSIZE", format_size(job.segment_bytes_max()));
        command.envs(job.vars.iter().map(|(name, value)| (name, value)));
        said(command.args(["-n", &job.ranks.to_string()]).arg(&self.program).arg("rank").arg(spec.to_text()?))?;
        let text = std::fs::read_to_string(&report).map_err(|error| format!("{}: {error}", report.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("the report of rank 0: {error}"))
    }
}
