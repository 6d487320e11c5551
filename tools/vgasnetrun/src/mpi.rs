//! Starts ranks with the launcher of this build's MPI.

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::process::Command;

use vgasnet_conduit::environment;
use vgasnet_conduit::launchers::{SLURM_PMI_VARIABLE, are_many_tasks};
use vgasnet_launch::{IsNoise, LAUNCHER_VARIABLE, Plan, Reach, host_timeout};
use vgasnet_settings::CONDUIT_VARIABLE;

use super::{Options, Refusal, add_agent};

/// The variable for a launcher, with options, to use instead of the MPI's own.
const MPIEXEC_VARIABLE: &str = "VGASNET_MPIEXEC";

/// The options of `mpiexec` differ between launchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// MPICH and relatives.
    Hydra,
    OpenMpi,
    /// Slurm's `srun`.
    Slurm,
}

/// Runs the job over this conduit of MPI ranks. Returns the exit status.
pub fn run(options: &Options, conduit: &str, default_launcher: &str) -> i32 {
    super::run(plan(options, conduit, default_launcher))
}

fn plan(options: &Options, conduit: &str, default_launcher: &str) -> Result<Plan, Refusal> {
    let host_timeout = host_timeout().map_err(|why| (2, why))?;
    let launcher = environment::var(MPIEXEC_VARIABLE).unwrap_or_else(|| default_launcher.to_owned());
    let mut words = launcher.split_whitespace();
    let launcher = words.next().unwrap_or(default_launcher);
    let words: Vec<_> = words.collect();
    let dialect = dialect_of(launcher)?;
    if are_many_tasks(|name| std::env::var(name).ok()) {
        let advice = "start it once, in salloc or sbatch, or by VGASNET_MPIEXEC=srun vgasnetrun";
        return Err((2, format!("Slurm has started vgasnetrun several times; {advice}")));
    }
    let mut command = Command::new(launcher);
    command.env(CONDUIT_VARIABLE, conduit).env_remove(MPIEXEC_VARIABLE);
    command.args(&words).args(arguments(dialect, options));
    let is_pmi_named =
        words.iter().any(|word| word.starts_with("--mpi")) || std::env::var_os(SLURM_PMI_VARIABLE).is_some();
    if dialect == Dialect::Slurm && !is_pmi_named {
        command.arg(format!("--mpi={}", pmi_of(default_launcher)?));
    }
    if dialect == Dialect::OpenMpi {
        let names = std::env::vars_os().map(|(name, _)| name);
        let own = [CONDUIT_VARIABLE, LAUNCHER_VARIABLE].map(OsString::from);
        command.args(
            names
                .filter(|name| is_for_ranks(name) || options.env.contains(name))
                .chain(own)
                .flat_map(|name| ["-x".into(), name]),
        );
    }
    add_agent(&mut command, options)?;
    let is_noise = (dialect == Dialect::OpenMpi).then_some(is_noise_of_open_mpi as IsNoise);
    let is_named_launcher = environment::var_os(MPIEXEC_VARIABLE).is_some();
    let reach = reach(&options.hosts, is_named_launcher || dialect == Dialect::Slurm || may_know_hosts());
    Ok(Plan { ranks: options.ranks, reach, launcher: command, is_dispensable: false, host_timeout, is_noise })
}

/// The hosts of a job. Without named hosts, the launcher may know some.
fn reach(named: &[String], may_know_hosts: bool) -> Reach {
    match named {
        [] if may_know_hosts => Reach::Unknown,
        [] => Reach::Here,
        hosts => Reach::Hosts(hosts.to_vec()),
    }
}

/// Prefixes of the variables that tell launchers of batch systems, MPICH and Open MPI the hosts.
const HOSTS_VARIABLES: [&str; 12] = [
    "SLURM_",
    "PBS_",
    "LSB_",
    "LSF_",
    "PE_HOSTFILE",
    "SGE_",
    "COBALT_",
    "LOADL_",
    "FLUX_",
    "HYDRA_",
    "OMPI_MCA_",
    "PRTE_MCA_",
];

/// Open MPI's default host list, in Debian and relatives.
const HOSTS_FILE_OF_OPEN_MPI: &str = "/etc/openmpi/openmpi-default-hostfile";

/// Whether launchers may find hosts by themselves.
fn may_know_hosts() -> bool {
    let mut names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let is_set = names.any(|name| HOSTS_VARIABLES.iter().any(|beginning| name.starts_with(beginning)));
    is_set || std::fs::read_to_string(HOSTS_FILE_OF_OPEN_MPI).is_ok_and(|text| names_hosts(&text))
}

/// Whether a host list has any entries besides comments.
fn names_hosts(list: &str) -> bool {
    list.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
}

fn dialect_of(launcher: &str) -> Result<Dialect, Refusal> {
    match Command::new(launcher).arg("--version").output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
            let dialects = [("hydra", Dialect::Hydra), ("slurm", Dialect::Slurm)];
            let found = dialects.into_iter().find(|(word, _)| text.contains(word));
            Ok(found.map_or(Dialect::OpenMpi, |(_, dialect)| dialect))
        }
        Err(error) => {
            let advice = format!("install it or set {MPIEXEC_VARIABLE}");
            Err((127, format!("cannot run {launcher}, the launcher of MPI: {error}; {advice}")))
        }
    }
}

/// The PMI between Slurm and the processes of an MPI with this launcher.
fn pmi_of(own_launcher: &str) -> Result<&'static str, Refusal> {
    Ok(if dialect_of(own_launcher)? == Dialect::Hydra { "pmi2" } else { "pmix" })
}

/// Whether ranks on other hosts need this variable. Launchers other than Open MPI's pass on all variables.
fn is_for_ranks(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_set_anyway = name == CONDUIT_VARIABLE || name == LAUNCHER_VARIABLE || name == MPIEXEC_VARIABLE;
    !is_set_anyway && (name.starts_with("VGASNET_") || name.starts_with("GASNET_") || name == "LD_LIBRARY_PATH")
}

/// Leaves the end of the job to the agents. Ranks are not bound to processors, because they have helper threads and
/// other jobs may run at the same time.
const OPEN_MPI_SETTINGS: [&str; 8] = [
    "--mca",
    "orte_allowed_exit_without_sync",
    "1",
    "--mca",
    "orte_abort_on_non_zero_status",
    "0",
    "--bind-to",
    "none",
];

/// Open MPI starts a helper process per host. It warns if the helper has already changed its own process group and
/// executed ssh before Open MPI changes the group, which happens in every tenth job on a loaded machine. The warning is
/// harmless.
fn is_noise_of_open_mpi(line: &str) -> bool {
    line.starts_with('[') && line.contains("] plm:rsh: Warning: setpgid(") && line.contains(" failed in parent ")
}

/// Leaves the end of the job to the agents, gives rank 0 the standard input, and shares the processors of an enclosing
/// step.
const SLURM_SETTINGS: [&str; 6] =
    ["--kill-on-bad-exit=0", "--wait=0", "--export=ALL", "--input=0", "--overlap", "--quiet"];

/// The launcher's options. A process may end without telling MPI.
fn arguments(dialect: Dialect, options: &Options) -> Vec<String> {
    let mut arguments = match dialect {
        Dialect::Hydra => vec!["-disable-auto-cleanup".to_owned()],
        Dialect::OpenMpi => OPEN_MPI_SETTINGS.map(str::to_owned).to_vec(),
        Dialect::Slurm => SLURM_SETTINGS.map(str::to_owned).to_vec(),
    };
    arguments.extend(["-n".to_owned(), options.ranks.to_string()]);
    if options.label_output {
        arguments.push(if dialect == Dialect::OpenMpi { "--tag-output" } else { "-l" }.to_owned());
    }
    if !options.hosts.is_empty() {
        let per_host = options.ranks.div_ceil(options.hosts.len() as u32);
        arguments.extend(match dialect {
            Dialect::Hydra => {
                vec!["-hosts".to_owned(), options.hosts.join(","), "-ppn".to_owned(), per_host.to_string()]
            }
            Dialect::OpenMpi => open_mpi_hosts(&options.hosts, per_host),
            Dialect::Slurm => slurm_hosts(&options.hosts, options.ranks, per_host),
        });
    }
    arguments
}

/// A host for every rank.
fn slurm_hosts(hosts: &[String], ranks: u32, per_host: u32) -> Vec<String> {
    let places = hosts.iter().flat_map(|host| std::iter::repeat_n(host.as_str(), per_host as usize));
    let places: Vec<_> = places.take(ranks as usize).collect();
    vec!["--distribution=arbitrary".to_owned(), format!("--nodelist={}", places.join(","))]
}

fn open_mpi_hosts(hosts: &[String], per_host: u32) -> Vec<String> {
    let slots: Vec<_> = hosts.iter().map(|host| format!("{host}:{per_host}")).collect();
    let mut arguments = vec!["--map-by".to_owned(), "slot".to_owned(), "--host".to_owned(), slots.join(",")];
    if hosts.iter().any(|host| host.parse::<IpAddr>().is_ok()) {
        // Open MPI cuts names at the first dot, as if a domain followed.
        arguments.extend(["--mca", "orte_keep_fqdn_hostnames", "1"].map(str::to_owned));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn words(dialect: Dialect, line: &str) -> String {
        let options = Options::parse_from(line.split_whitespace());
        arguments(dialect, &options).join(" ")
    }

    #[test]
    fn each_launcher_gets_its_own_options() {
        let line = "vgasnetrun -n 5 -l --conduit mpi --hosts a,b program";
        assert_eq!(words(Dialect::Hydra, line), "-disable-auto-cleanup -n 5 -l -hosts a,b -ppn 3");
        let open = words(Dialect::OpenMpi, line);
        assert!(open.ends_with("-n 5 --tag-output --map-by slot --host a:3,b:3"), "{open}");
        let slurm = words(Dialect::Slurm, line);
        assert!(slurm.ends_with("-n 5 -l --distribution=arbitrary --nodelist=a,a,a,b,b"), "{slurm}");
        assert_eq!(words(Dialect::Hydra, "vgasnetrun program -n 3"), "-disable-auto-cleanup -n 1");
    }

    #[test]
    fn hosts_are_here_unless_somebody_names_others() {
        assert_eq!(reach(&[], false), Reach::Here);
        assert_eq!(reach(&[], true), Reach::Unknown);
        let hosts = ["a".to_owned(), "b".to_owned()];
        assert_eq!(reach(&hosts, true), Reach::Hosts(hosts.to_vec()));
        assert!(!names_hosts("# node1\n\n  # node2\n") && names_hosts("# list\nnode1 slots=2\n"));
    }

    #[test]
    fn a_line_of_open_mpi_is_noise_and_no_other() {
        let warning =
            "[node:27588] plm:rsh: Warning: setpgid(27588,27588) failed in parent with errno=Permission denied(13)\n";
        assert!(is_noise_of_open_mpi(warning));
        for line in
            ["[node:1] plm:rsh: Error: setpgid(0,0) failed in child with errno=x(1)\n", "vgasnet: rank 0: x\n", "\n"]
        {
            assert!(!is_noise_of_open_mpi(line), "{line}");
        }
    }

    #[test]
    fn ranks_get_their_variables() {
        for (name, is_theirs) in [
            ("VGASNET_PAGE_SIZE", true),
            ("GASNET_VERBOSEENV", true),
            ("LD_LIBRARY_PATH", true),
            ("VGASNET_MPIEXEC", false),
            ("HOME", false),
        ] {
            assert_eq!(is_for_ranks(OsStr::new(name)), is_theirs, "{name}");
        }
    }
}
