//! Starts ranks with GASNet's launchers, for the conduit of this build.

use std::path::Path;
use std::process::Command;

use vgasnet_launch::{Plan, Reach, host_timeout, say};
use vgasnet_settings::CONDUIT_VARIABLE;

use super::{Options, add_agent, mpi};

/// Whether GASNet's launcher for UDP forwards the output of the ranks.
const ROUTE_VARIABLE: &str = "GASNET_ROUTE_OUTPUT";

/// Runs the job. Returns the exit status.
pub fn run(options: &Options) -> i32 {
    let conduit = vgasnet_gasnet::conduit_name();
    match conduit.as_str() {
        "gasnet-smp" => {
            say("--conduit gasnet: this build is for gasnet-smp, which is for tests; use --conduit smp");
            2
        }
        "gasnet-mpi" => mpi::run(options, "gasnet", vgasnet_gasnet::MPIEXEC),
        "gasnet-udp" => supervised(options, &udp(options)),
        other => supervised(options, &by_script(options, other)),
    }
}

/// A GASNet launcher, without the agents' command.
struct Launcher {
    command: String,
    is_dispensable: bool,
    reach: Reach,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

fn udp(options: &Options) -> Launcher {
    let spawner = if options.hosts.is_empty() { "L" } else { "S" };
    let arguments = ["-np", &options.ranks.to_string(), "-spawn", spawner].map(str::to_owned).to_vec();
    let mut variables = servers(options);
    // The ranks' output bypasses the launcher, which may end before the ranks do.
    if vgasnet_conduit::environment::var_os(ROUTE_VARIABLE).is_none() {
        variables.push((ROUTE_VARIABLE, "0".to_owned()));
    }
    let reach = if options.hosts.is_empty() { Reach::Here } else { Reach::Hosts(options.hosts.clone()) };
    Launcher { command: of_gasnet("amudprun"), is_dispensable: true, reach, arguments, variables }
}

/// Each conduit for network cards has its own launcher, configured for the site.
fn by_script(options: &Options, conduit: &str) -> Launcher {
    let name = conduit.replace("gasnet-", "gasnetrun_");
    let mut arguments = vec!["-n".to_owned(), options.ranks.to_string()];
    if !options.hosts.is_empty() {
        arguments.extend(["-N".to_owned(), options.hosts.len().to_string()]);
    }
    if !options.env.is_empty() {
        let names: Vec<_> = options.env.iter().map(|name| name.to_string_lossy()).collect();
        arguments.extend(["-E".to_owned(), names.join(",")]);
    }
    // Without names the launcher finds hosts by itself.
    let reach = if options.hosts.is_empty() { Reach::Unknown } else { Reach::Hosts(options.hosts.clone()) };
    Launcher { command: of_gasnet(&name), is_dispensable: false, reach, arguments, variables: servers(options) }
}

fn servers(options: &Options) -> Vec<(&'static str, String)> {
    let servers = || ("GASNET_SSH_SERVERS", options.hosts.join(" "));
    if options.hosts.is_empty() { vec![] } else { vec![servers()] }
}

/// A launcher of this build's GASNet, or of another one in the path.
fn of_gasnet(name: &str) -> String {
    let installed = Path::new(vgasnet_gasnet::PROGRAMS).join(name);
    if installed.is_file() { installed.to_string_lossy().into_owned() } else { name.to_owned() }
}

fn supervised(options: &Options, launcher: &Launcher) -> i32 {
    let plan = || {
        let host_timeout = host_timeout().map_err(|why| (2, why))?;
        let mut command = Command::new(&launcher.command);
        command.args(&launcher.arguments).env(CONDUIT_VARIABLE, "gasnet");
        command.envs(launcher.variables.iter().map(|(name, value)| (*name, value)));
        add_agent(&mut command, options)?;
        Ok(Plan {
            ranks: options.ranks,
            reach: launcher.reach.clone(),
            launcher: command,
            is_dispensable: launcher.is_dispensable,
            host_timeout,
            is_noise: None,
        })
    };
    super::run(plan())
}
