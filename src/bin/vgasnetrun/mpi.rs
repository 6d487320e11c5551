//! Starts ranks by the launcher of the MPI that this build is for.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::Options;

/// Names another launcher than that of the MPI at hand.
const LAUNCHER_VARIABLE: &str = "VGASNET_MPIEXEC";

/// The options of `mpiexec` differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// MPICH and what comes of it.
    Hydra,
    OpenMpi,
}

/// Becomes the launcher. Returns a status if there is none.
pub fn run(options: &Options) -> i32 {
    let launcher = std::env::var(LAUNCHER_VARIABLE).unwrap_or_else(|_| vgasnet_mpi::MPIEXEC.to_owned());
    let dialect = match Command::new(&launcher).arg("--version").output() {
        Ok(output) if String::from_utf8_lossy(&output.stdout).to_lowercase().contains("hydra") => Dialect::Hydra,
        Ok(_) => Dialect::OpenMpi,
        Err(error) => {
            eprintln!(
                "vgasnetrun: cannot run {launcher}, the launcher of MPI: {error}; install it or set {LAUNCHER_VARIABLE}"
            );
            return 127;
        }
    };
    let mut command = Command::new(&launcher);
    command.args(arguments(dialect, options)).env("VGASNET_CONDUIT", "mpi").env_remove(LAUNCHER_VARIABLE);
    let error = command.args(&options.program).exec();
    eprintln!("vgasnetrun: cannot run {launcher}: {error}");
    126
}

fn arguments(dialect: Dialect, options: &Options) -> Vec<String> {
    let mut arguments = vec!["-n".to_owned(), options.ranks.to_string()];
    if options.label_output {
        arguments.push(if dialect == Dialect::Hydra { "-l" } else { "--tag-output" }.to_owned());
    }
    if !options.hosts.is_empty() {
        let per_host = options.ranks.div_ceil(options.hosts.len() as u32);
        let hosts: Vec<String> = options.hosts.iter().map(|host| format!("{host}:{per_host}")).collect();
        arguments.extend([if dialect == Dialect::Hydra { "-hosts" } else { "--host" }.to_owned(), hosts.join(",")]);
    }
    arguments
}
