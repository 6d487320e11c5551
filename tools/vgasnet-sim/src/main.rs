//! `vgasnet-sim`: jobs on a model of a cluster.

use clap::{Args, Parser, Subcommand};
use std::io::{ErrorKind, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use vgasnet_settings::format_size;
use vgasnet_sim::{
    Hints, Homes, Machine, Order, Outcome, Pattern, Point, Progress, ProtocolKind, Spread, Table, paper, parts, scale,
    short, spreading, startup, twice,
};

#[derive(Parser)]
#[command(about, long_about = None)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// One job.
    Run(Run),
    /// The paper's Figures 4 to 7, compared with the paper's numbers.
    Paper(Paper),
    /// The gain of each part of the library's protocol that the paper's protocol lacks, alone and together. Also the
    /// latency of a put that overwrites a page with many holders, and the gain of round-robin homes and idle pools.
    Parts(Parts),
    /// The same work for more and more nodes.
    Scale(Scale),
    /// The costs of init and attach, and the memory a rank keeps for the others.
    Startup(Startup),
}

#[derive(Args)]
struct Common {
    /// The machine file.
    machine: PathBuf,
    /// Factor by which pools and data are smaller than the machine's.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    /// The protocol.
    #[arg(long, value_enum, default_value = "ours")]
    protocol: ProtocolKind,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Run {
    #[command(flatten)]
    common: Common,
    /// Number of ranks.
    #[arg(short = 'n', long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    ranks: u32,
    /// The order of accesses.
    #[arg(long, value_enum, default_value = "sequential")]
    order: Order,
    /// All data, in pools of one rank: whole pages, and at least one per rank with data.
    #[arg(long, default_value_t = 2.0, allow_negative_numbers = true)]
    data: f64,
    /// Bytes per access; a page by default.
    #[arg(long)]
    bytes: Option<usize>,
    /// Puts instead of gets.
    #[arg(long)]
    put: bool,
    /// Maximum number of accesses per rank; by default enough for all data.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true, value_parser = clap::value_parser!(u64).range(1..))]
    pieces: u64,
    /// Instead of accesses to all data: this many rounds in which all ranks put single bytes to one page.
    #[arg(long, value_name = "ROUNDS", conflicts_with_all = ACCESSES,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    false_sharing: Option<u32>,
    /// Instead of accesses to all data: one page, read by all in the first pass and overwritten by the last rank in the
    /// second.
    #[arg(long, conflicts_with = "false_sharing", conflicts_with_all = ACCESSES)]
    rewrite: bool,
    #[command(flatten)]
    protocol_parts: ProtocolParts,
    /// Only this many ranks access the data, starting with the second; the pools of the others are idle. All by
    /// default.
    #[arg(long, conflicts_with_all = ["false_sharing", "rewrite"])]
    readers: Option<u32>,
    #[command(flatten)]
    hints: HintOptions,
    /// The place of the data.
    #[arg(long, value_enum, default_value = "first")]
    homes: Homes,
    /// Number of passes. The pools are empty before the first.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    passes: u32,
}

/// Options for accesses to all data.
const ACCESSES: [&str; 4] = ["order", "bytes", "put", "pieces"];

/// Parts of the protocol that a run has or lacks.
#[derive(Args)]
struct ProtocolParts {
    /// Ranks do not use each other's pools.
    #[arg(long)]
    uncooperative: bool,
    /// A holder serves all readers of a page at once, and a home tells all holders itself to drop it.
    #[arg(long)]
    no_tree: bool,
    /// Eviction does not consider copies on other ranks.
    #[arg(long)]
    no_spare: bool,
    /// A home keeps a copy of a page read from its disk for another rank.
    #[arg(long)]
    home_keeps: bool,
    /// Homes do not know the ranks of each node.
    #[arg(long)]
    unknown_hosts: bool,
    /// Homes learn of each clean eviction at once, and each message is sent separately.
    #[arg(long)]
    notices_at_once: bool,
    /// Pages leaving their last pool go to pools with room, as with VGASNET_IDLE_POOLS=1.
    #[arg(long)]
    idle_pools: bool,
}

impl ProtocolParts {
    fn spread(&self) -> Spread {
        match (self.no_tree, self.unknown_hosts) {
            (true, _) => Spread::AtOnce,
            (false, true) => Spread::Tree,
            (false, false) => Spread::TreeOfNodes,
        }
    }
}

#[derive(Args)]
struct HintOptions {
    /// Read requests that reach their homes in no time.
    #[arg(long, value_enum, default_value_t, num_args = 0..=1, default_missing_value = "all", require_equals = true)]
    known_holders: Hints,
}

#[derive(Args)]
struct Paper {
    #[command(flatten)]
    common: Common,
    /// Only 1 and 32 ranks.
    #[arg(long)]
    ends: bool,
}

#[derive(Args)]
struct Parts {
    /// The machine file.
    machine: PathBuf,
    /// Factor by which pools and data are smaller than the machine's.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print tables in Markdown.
    #[arg(long)]
    markdown: bool,
}

#[derive(Args)]
struct Scale {
    /// The machine file. A node is one rank with the pools of all its ranks, except in one pattern.
    machine: PathBuf,
    /// Numbers of nodes, ascending.
    #[arg(short = 'n', long, value_delimiter = ',', default_value = "32,128,512",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    nodes: Vec<u32>,
    /// Only patterns with this text in their name.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
    /// Factor by which pools and data are smaller than the machine's.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    hints: HintOptions,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Print Markdown tables by number of nodes: the remaining fraction of the throughput, messages and bounces per
    /// page, and the time to spread a page requested by all ranks.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Args)]
struct Startup {
    /// The machine file.
    machine: PathBuf,
    /// Numbers of hosts.
    #[arg(long, value_delimiter = ',', default_value = "32,1024,4096", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    hosts: Vec<u32>,
    /// Ranks on each host; the machine's number by default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks_a_host: Option<u32>,
    /// The network for exchanges between hosts.
    #[arg(long, value_enum, default_value = "mpi")]
    network: startup::Network,
    /// Also print each step, for the last number of hosts.
    #[arg(long)]
    steps: bool,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let ran = match Options::parse().command {
        Command::Run(options) => run(&options),
        Command::Paper(options) => figures(&options),
        Command::Parts(options) => compared(&options),
        Command::Scale(options) => scaled(&options),
        Command::Startup(options) => started(&options),
    };
    match ran.and_then(|text| say(text.trim_end())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("vgasnet-sim: {line}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the text. A closed pipe is no error.
fn say(text: &str) -> Result<(), String> {
    let mut out = stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}

fn run(options: &Run) -> Result<String, String> {
    let Common { scale, protocol, seed, json, .. } = options.common;
    let machine = Machine::read(&options.common.machine)?;
    let page_bytes = machine.node.page as usize;
    let len_bytes = options.bytes.unwrap_or(page_bytes);
    if len_bytes == 0 || page_bytes % len_bytes != 0 {
        return Err(format!("--bytes is {len_bytes}; give a divisor of the page of {page_bytes} bytes"));
    }
    if !(options.data > 0.0 && options.data < 1e6) {
        return Err(format!("--data is {}; give more than 0 pools and less than 1,000,000", options.data));
    }
    let pattern = match options.false_sharing {
        _ if options.rewrite => Pattern::Rewrite,
        Some(rounds) => Pattern::FalseSharing { rounds, puts: paper::PUTS },
        None => Pattern::All { order: options.order, len_bytes, is_put: options.put, pieces_max: options.pieces },
    };
    let point = Point {
        ranks: options.ranks,
        protocol,
        cooperative: !options.protocol_parts.uncooperative,
        spread: options.protocol_parts.spread(),
        spares: !options.protocol_parts.no_spare,
        notices_wait: !options.protocol_parts.notices_at_once,
        guests: options.protocol_parts.idle_pools,
        readers: options.readers,
        hints: options.hints.known_holders,
        home_keeps: options.protocol_parts.home_keeps,
        pattern,
        data_pools: options.data,
        homes: options.homes,
        scale,
        passes: options.passes,
        seed,
    };
    let progress = Progress::new("jobs", 1);
    let outcomes = point.run(&machine)?;
    drop(progress);
    if json {
        return Ok(serde_json::json!({
            "machine": machine.name,
            "point": point,
            "pages_a_pool": machine.frames_at(point.scale),
            "data_bytes": point.data_bytes(&machine),
            "passes": outcomes,
        })
        .to_string());
    }
    Ok(format!("{}\n{}", line_of(&machine, &point), table_of(&outcomes)))
}

/// One line about the job.
fn line_of(machine: &Machine, point: &Point) -> String {
    let (frames, page_bytes) = (machine.frames_at(point.scale), machine.node.page);
    let pages = point.data_bytes(machine) / page_bytes;
    format!(
        "{}: {} ranks on {} nodes, pools of {frames} pages of {}, data of {pages} pages ({} pools), scale {}, seed {}",
        machine.name,
        point.ranks,
        point.ranks.div_ceil(machine.node.ranks),
        format_size(page_bytes),
        short(pages as f64 / frames as f64),
        point.scale,
        point.seed,
    )
}

fn table_of(outcomes: &[Outcome]) -> Table {
    let heads = [
        "pass",
        "seconds",
        "MB/s a rank",
        "hits",
        "misses",
        "us a miss",
        "messages a miss",
        "messages a page",
        "notices",
        "bounces",
        "transfers",
        "reads",
        "writes",
    ];
    let mut table = Table::new(&heads);
    for (pass, outcome) in outcomes.iter().enumerate() {
        table.row(vec![
            pass.to_string(),
            format!("{:.6}", outcome.seconds),
            format!("{:.1}", outcome.megabytes_a_second_each),
            outcome.hits.to_string(),
            outcome.misses.to_string(),
            format!("{:.1}", outcome.miss_us),
            format!("{:.2}", outcome.messages_a_miss),
            outcome.messages_a_page.map_or_else(|| "-".into(), |messages| format!("{messages:.2}")),
            outcome.notices.to_string(),
            outcome.bounces.to_string(),
            outcome.transfers.to_string(),
            outcome.disk_reads.to_string(),
            outcome.disk_writes.to_string(),
        ]);
    }
    table
}

fn figures(options: &Paper) -> Result<String, String> {
    let Common { scale, protocol, seed, json, .. } = options.common;
    let machine = Machine::read(&options.common.machine)?;
    let figures = paper::run(&machine, paper::Choice { protocol, scale, seed, ends_only: options.ends })?;
    if json {
        return serde_json::to_string(&figures).map_err(|error| error.to_string());
    }
    Ok(format!("{}{}", figures.tables(), figures.claims_table()))
}

fn compared(options: &Parts) -> Result<String, String> {
    let Parts { scale, seed, .. } = *options;
    let machine = Machine::read(&options.machine)?;
    let compared = parts::run(&machine, scale, seed)?;
    let tables = [parts::table(&compared), parts::overwriting_table(&machine)?];
    let twice = twice::tables(&machine, twice::Choice { scale, seed })?;
    let text = |table: Table| if options.markdown { table.markdown().join("\n") + "\n" } else { table.to_string() };
    Ok(tables.into_iter().chain(twice).map(text).collect::<Vec<_>>().join("\n"))
}

fn scaled(options: &Scale) -> Result<String, String> {
    let Scale { machine, nodes, only, scale, seed, hints, json, markdown } = options;
    let choice = scale::Choice { scale: *scale, seed: *seed, hints: hints.known_holders, ranks_max: scale::RANKS_MAX };
    if nodes.is_empty() || !nodes.is_sorted() {
        return Err("--nodes are numbers from 1 on, ascending".into());
    }
    let all = scale::run_only(only, &Machine::read(machine)?, nodes, choice)?;
    if *json {
        serde_json::to_string(&all).map_err(|error| error.to_string())
    } else if *markdown {
        let spreading = spreading::table(&Machine::read(&options.machine)?)?;
        let tables = [scale::parts_table(&all), scale::messages_table(&all), spreading];
        Ok(tables.map(|table| table.markdown().join("\n")).join("\n\n"))
    } else {
        Ok(scale::table(&all).to_string())
    }
}

fn started(options: &Startup) -> Result<String, String> {
    let machine = Machine::read(&options.machine)?;
    let ranks_a_host = options.ranks_a_host.unwrap_or(machine.node.ranks);
    let ranks_max = u64::from(vgasnet_conduit::RANKS_MAX);
    if let Some(hosts) = options.hosts.iter().find(|hosts| u64::from(**hosts) * u64::from(ranks_a_host) > ranks_max) {
        return Err(format!("--hosts {hosts} of {ranks_a_host} ranks are more than {ranks_max} ranks; give fewer"));
    }
    let job =
        |hosts: &u32| startup::StartingJob { hosts: *hosts, ranks_a_host, network: options.network }.start(&machine);
    let all: Vec<_> = options.hosts.iter().map(job).collect();
    if options.json {
        return serde_json::to_string(&all).map_err(|error| error.to_string());
    }
    let steps = all.last().filter(|_| options.steps).map(|last| format!("\n{}", startup::steps_table(last)));
    Ok(format!("{}{}", startup::table(&all), steps.unwrap_or_default()))
}
