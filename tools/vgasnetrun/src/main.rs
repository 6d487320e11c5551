//! Starts the ranks of a vgasnet job.

#[cfg(feature = "gasnet")]
mod gasnet;
#[cfg(any(feature = "mpi", feature = "gasnet"))]
mod mpi;

use std::ffi::OsString;
#[cfg(any(feature = "mpi", feature = "gasnet"))]
use std::process::Command;

use clap::{CommandFactory, Parser};
use vgasnet_launch::{Launch, say};
#[cfg(any(feature = "mpi", feature = "gasnet"))]
use vgasnet_launch::{Plan, supervise};
use vgasnet_manual::PageExtras;
use vgasnet_settings::{CONDUIT_VARIABLE, Config};

/// Runs a program as a job of several ranks
#[derive(Parser)]
#[command(
    name = "vgasnetrun",
    version,
    override_usage = "vgasnetrun [-n RANKS] [-l] [--aslr] [--conduit CONDUIT] [--hosts A,B...] [--env A,B...] PROGRAM [ARGUMENT]...",
    after_help = after_help()
)]
struct Options {
    /// How many ranks, also as -np: 1 to 4096 on this machine, to 1048576 on several hosts
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(vgasnet_conduit::RANKS_MAX)))]
    ranks: u32,

    /// Begin every line of output with the rank that wrote it
    #[arg(short = 'l')]
    label_output: bool,

    /// Let the system place each rank's code and data at random; by default, addresses are the same on all ranks over
    /// smp
    #[arg(long)]
    aslr: bool,

    /// The transport of the ranks; default: VGASNET_CONDUIT, else smp, this machine only
    #[arg(long, value_name = "CONDUIT", value_parser = conduits())]
    conduit: Option<String>,

    /// The hosts to run on, for conduits between hosts; default: the hosts of the launcher or the batch system
    #[arg(long, value_name = "A,B...", value_delimiter = ',')]
    hosts: Vec<String>,

    /// More variables for ranks on other hosts, besides vgasnet's and GASNet's; most launchers pass on all of them
    #[arg(long, value_name = "A,B...", value_delimiter = ',')]
    env: Vec<OsString>,

    /// Be the agent of a rank, for a vgasnetrun on this or another host
    #[cfg(any(feature = "mpi", feature = "gasnet"))]
    #[arg(long, hide = true)]
    agent: bool,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, value_hint = clap::ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

/// The behaviour of jobs.
const JOBS: &str = "Signals are forwarded to the ranks; stdin goes to rank 0. When a rank fails, the others are ended, and the exit \
                    status is that rank's, 128 + n when signal n killed it.";

/// The end of `--help`: the behaviour of jobs, and the table of environment variables.
fn after_help() -> String {
    format!("{JOBS}\n\n{}", Config::help().trim_end())
}

/// Prints a text about this program if the command line asks for one. Returns whether it did.
fn is_about_this_program() -> bool {
    let extras = PageExtras {
        sections: &[
            ("JOBS", JOBS),
            (
                "ENVIRONMENT",
                "Ranks get all variables of this program's environment. vgasnet(7) lists those of vgasnet.",
            ),
        ],
        see_also: &["vgasnet(7)", "vgasnet(3)", "vgasnet-info(1)", "vgasnet-bench(1)"],
    };
    vgasnet_manual::asked().is_some_and(|what| vgasnet_manual::print(Options::command(), &what, extras))
}

/// The conduits in this build.
fn conduits() -> clap::builder::PossibleValuesParser {
    let all: &[&'static str] = &[
        "smp",
        #[cfg(feature = "mpi")]
        "mpi",
        #[cfg(feature = "gasnet")]
        "gasnet",
    ];
    all.into()
}

fn main() {
    if is_about_this_program() {
        return;
    }
    let mut options = Options::parse_from(vgasnet_manual::with_np(&Options::command(), std::env::args_os()));
    #[cfg(any(feature = "mpi", feature = "gasnet"))]
    if options.agent {
        std::process::exit(vgasnet_launch::run_agent(&options.program));
    }
    if options.conduit.is_none() {
        options.conduit = vgasnet_conduit::environment::var(CONDUIT_VARIABLE);
    }
    let status = match options.conduit.as_deref() {
        #[cfg(feature = "mpi")]
        Some("mpi") => mpi::run(&options, "mpi", vgasnet_mpi::MPIEXEC),
        #[cfg(feature = "gasnet")]
        Some("gasnet") => gasnet::run(&options),
        // If the variable has an invalid value, the ranks report it.
        _ => run_here(&options),
    };
    std::process::exit(status);
}

/// The exit status and the reason of a job that cannot start.
#[cfg(any(feature = "mpi", feature = "gasnet"))]
type Refusal = (i32, String);

/// Adds the command of an agent to the launcher's command line.
#[cfg(any(feature = "mpi", feature = "gasnet"))]
fn add_agent(launcher: &mut Command, options: &Options) -> Result<(), Refusal> {
    let agent = std::env::current_exe().map_err(|error| (1, format!("the path of vgasnetrun: {error}")))?;
    launcher.arg(agent).args(["--agent", "--"]).args(&options.program);
    Ok(())
}

/// Runs the job on several hosts. Returns the exit status.
#[cfg(any(feature = "mpi", feature = "gasnet"))]
fn run(plan: Result<Plan, Refusal>) -> i32 {
    plan.map_or_else(
        |(status, why)| {
            say(&why);
            status
        },
        supervise,
    )
}

/// Runs the job on this machine.
fn run_here(options: &Options) -> i32 {
    let (ranks, most) = (options.ranks, vgasnet_smp::RANKS_MAX);
    if ranks > most {
        let line = format!(
            "-n is {ranks}; one machine has 1 to {most} ranks: name a --conduit that reaches several hosts, or fewer"
        );
        Options::command().error(clap::error::ErrorKind::ValueValidation, line).exit();
    }
    if !options.hosts.is_empty() {
        say("--hosts: the conduit smp reaches this machine only; leave it out or name another --conduit");
        return 2;
    }
    let (program, args) = options.program.split_first().expect("clap requires a program");
    let job = Launch::new(options.ranks, program).args(args).label_output(options.label_output);
    job.randomize_addresses(options.aslr).run().status
}
