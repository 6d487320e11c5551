//! Data of the page of figures: the paper's figures, in the model of a cluster and partly on this machine.
//!
//! The model is `vgasnet-sim`. This machine is measured by benchmarks of this program in separate processes, and the
//! model uses the results as parameters.

mod lines;
mod machines;
mod measured;
mod model;
mod page;
mod papers;
mod targets;
mod two_hosts;

use crate::benchmark::Entry;
use crate::prelude::*;
use crate::{Stop, launch};
use clap::{ArgMatches, FromArgMatches};
use page::Page;
use std::io::Write;
use vgasnet_conduit::whole_file;
use vgasnet_sim::paper::{self, Choice, Figures};
use vgasnet_sim::parts::{self, Compared};
use vgasnet_sim::scale::{self, Scaled};
use vgasnet_sim::startup::{self, StartUp};
use vgasnet_sim::{Hints, Machine, ProtocolKind, Table, twice};

/// Factor by which pools and data of the paper's machine are scaled down.
const SCALE: u64 = 64;

/// Factors for the machine of today, and for the variant with larger pools.
const SCALE_TODAY: u64 = 512;
const SCALE_LARGER: u64 = 64;

/// Maximum number of nodes for larger pools and for a quick page.
const NODES_LARGER_MAX: u32 = 128;

/// Maximum number of ranks in a job of a quick page.
const RANKS_QUICK: u32 = 2048;

/// Numbers of hosts in the model of startup.
const HOSTS: [u32; 3] = [32, 1024, 4096];

/// The paper's figures in a model of its machine, and this machine compared with its model: data of the page of
/// figures
#[derive(Args)]
struct FiguresOptions {
    /// Write the data to this file, as JSON; docs/site/figures.py draws them
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Fewer points, in under two minutes
    #[arg(long)]
    quick: bool,

    /// Numbers of nodes of the machine of today, ascending; with --quick up to 128
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "32,128,512,4096",
          value_parser = within(1..=1 << 20))]
    nodes: Vec<u32>,

    /// The C compiler of the MPI this program was built with; its launcher has the same name with mpiexec for mpicc
    #[arg(long, value_name = "COMMAND", default_value = "mpicc")]
    mpicc: String,

    /// Directory of the backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    storage_dir: Option<PathBuf>,

    /// Seed of the data and of random places
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// The subcommand has no results of its own, only the page.
pub const ENTRY: Entry = Entry {
    name: "figures",
    arguments: FiguresOptions::augment_args,
    run,
    rank: |_| Err(Stop::usage("figures have no ranks of their own")),
};

/// The contents of the page.
struct Results {
    papers: Figures,
    ours: Figures,
    parts: Vec<Compared>,
    overwriting: Table,
    /// As [`twice::tables`]; in a quick page only the first.
    twice: Vec<Table>,
    scaled: Vec<Scaled>,
    larger: Vec<Scaled>,
    known: Vec<Scaled>,
    startups: Vec<StartUp>,
    measured: measured::Results,
}

/// Measures, runs the model and writes the page. Returns the exit status.
fn run(matches: &ArgMatches) -> Result<u8, Stop> {
    launch::refuse_ranks()?;
    let options = &FiguresOptions::from_arg_matches(matches).map_err(Stop::usage)?;
    if !options.nodes.is_sorted() {
        return Err(Stop::usage("--nodes are to be ascending: each is compared with the first"));
    }
    let unwritable = |error: std::io::Error| Stop::usage(format!("--out {}: {error}", options.out.display()));
    // An unwritable file is reported before any long work.
    whole_file::try_path(&options.out).map_err(unwritable)?;
    let results = results(options).map_err(Stop::failure)?;
    let page = page(&results, options).map_err(Stop::failure)?;
    whole_file::replace(&options.out, |file| file.write_all(page.as_bytes())).map_err(unwritable)?;
    print!("{}", targets::table(&results));
    println!("{}", options.out.display());
    Ok(0)
}

fn results(options: &FiguresOptions) -> Result<Results, String> {
    // The measurements come first: other load would disturb them.
    let measured = measured::run(options)?;
    let (papers_machine, today) = (Machine::paper(), Machine::today());
    let figures = |protocol| {
        let choice = Choice { protocol, scale: SCALE, seed: options.seed, ends_only: options.quick };
        paper::run(&papers_machine, choice)
    };
    let small: Vec<u32> = options.nodes.iter().copied().filter(|nodes| *nodes <= NODES_LARGER_MAX).collect();
    let nodes = if options.quick { &small } else { &options.nodes };
    let ranks_max = if options.quick { RANKS_QUICK } else { scale::RANKS_MAX };
    let choice = scale::Choice { scale: SCALE_TODAY, seed: options.seed, hints: Hints::None, ranks_max };
    let larger = scale::Choice { scale: SCALE_LARGER, ranks_max: 0, ..choice };
    let known = scale::Choice { hints: Hints::All, ranks_max: 0, ..choice };
    let mut startups = Vec::new();
    for network in [startup::Network::Mpi, startup::Network::Gasnet] {
        let job = |hosts| startup::StartingJob { hosts, ranks_a_host: today.node.ranks, network };
        startups.extend(HOSTS.map(|hosts| job(hosts).start(&today)));
    }
    Ok(Results {
        papers: figures(ProtocolKind::Paper)?,
        ours: figures(ProtocolKind::Ours)?,
        parts: parts::run(&papers_machine, SCALE, options.seed)?,
        overwriting: parts::overwriting_table(&papers_machine)?,
        twice: read_twice(&papers_machine, options)?,
        scaled: scale::run(&today, nodes, choice)?,
        larger: scale::run(&today, &small, larger)?,
        known: scale::run(&today, &nodes[..1.min(nodes.len())], known)?,
        startups,
        measured,
    })
}

fn read_twice(machine: &Machine, options: &FiguresOptions) -> Result<Vec<Table>, String> {
    let choice = twice::Choice { scale: SCALE, seed: options.seed };
    if options.quick {
        return Ok(vec![twice::homes::table(machine, choice)?]);
    }
    twice::tables(machine, choice).map(Vec::from)
}

fn page(results: &Results, options: &FiguresOptions) -> Result<String, String> {
    let mut page = Page::default();
    let quick = if options.quick { " --quick" } else { "" };
    let nodes: Vec<String> = options.nodes.iter().map(ToString::to_string).collect();
    let command = format!(
        "vgasnet-bench figures --out {}{quick} --nodes {} --seed {}",
        file_name(&options.out),
        nodes.join(","),
        options.seed
    );
    page.made("date", machines::date());
    page.made("command", command);
    page.made("machine", machines::this_machine());
    page.section("parameters");
    machines::show(&mut page, &results.measured);
    papers::show(&mut page, results);
    model::show(&mut page, results);
    measured::show(&mut page, &results.measured);
    page.end()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
