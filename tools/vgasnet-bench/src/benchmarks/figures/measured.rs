//! Reads of all data by all ranks of this machine, over shared memory and over MPI between two hosts, compared with the
//! model.

use super::FiguresOptions;
use super::lines::{Chart, Line};
use super::page::Page;
use super::two_hosts::TwoHosts;
use crate::baseline::{PageCopies, median};
use crate::benchmark::{Benchmark, parsed};
use crate::benchmarks::messages::Messages;
use crate::benchmarks::reads::{Random, Sequential};
use crate::disk::{Buffers, PlainFile, blocks};
use crate::plan::Job;
use crate::programs::said;
use serde_json::Value;
use std::ffi::OsString;
use std::process::Command;
use vgasnet_sim::{Disk, HANDLINGS, LOCAL_US, Link, Machine, Node, Order, Point, Table, short};

const POOL_BYTES: u64 = 64 << 20;
const PAGE_BYTES: u64 = 4 << 20;

/// Successive copies of a page by each thread.
const COPIES: usize = 64;

/// Round trips of messages per round.
const ROUND_TRIPS: u32 = 1000;

/// Largest acceptable error of the model.
const ERROR_MAX: f64 = 1.0 / 3.0;

/// Measured parameters of this machine.
#[derive(Clone, Debug)]
struct Parameters {
    /// Plain reads and writes at their best depth, in bytes a second, and the additional latency of a single read of a
    /// page.
    read: f64,
    write: f64,
    latency_us: f64,
    /// Copies of uncached pages by one thread, and by all processors together.
    copy: f64,
    copy_all: f64,
    message_us: f64,
    /// Cost of a message to a sleeping receiver.
    waking_us: f64,
    link: Link,
}

/// A benchmark with a number of ranks: the measured and the modelled throughput, in bytes a second.
struct Run {
    order: Order,
    ranks: u32,
    measured: f64,
    /// Read throughput of the disk just after the run.
    read: f64,
    modelled: f64,
    /// A change that brings the model nearer, if its error is too large.
    because: Option<String>,
}

/// The benchmarks over one network.
struct Place {
    name: &'static str,
    nodes: u32,
    parameters: Parameters,
    runs: Vec<Run>,
}

/// The benchmarks over all networks, and the reason for omitted ones.
pub struct Results {
    places: Vec<Place>,
    not_run: Option<String>,
    data_bytes: u64,
    /// Load of the machine before and after: processes running or waiting for a disk.
    loads: [f64; 2],
}

/// Runs the benchmarks, each in separate processes, and their models.
pub fn run(options: &FiguresOptions) -> Result<Results, String> {
    let data_bytes = data_bytes(options);
    let before = load();
    let parameters = parameters(options, data_bytes)?;
    let mut probe = Probe::new(options)?;
    let mut here = Place { name: "shared memory", nodes: 1, parameters: parameters.clone(), runs: Vec::new() };
    let all = if options.quick { &[1, 2][..] } else { &[1, 2, 4] };
    for (order, name) in ORDERS {
        for ranks in all {
            let report = benchmark(options, name, &["-n", &ranks.to_string(), "--size", &data_bytes.to_string()])?;
            let measured = number(&report["runs"][0], "throughput_bytes_per_second")?;
            (here.parameters.read, here.parameters.latency_us) = probe.disk()?;
            here.add(order, *ranks, measured, data_bytes, options.seed)?;
        }
    }
    let mut results = Results { places: vec![here], not_run: None, data_bytes, loads: [before; 2] };
    match TwoHosts::new(&options.mpicc).and_then(|hosts| two_hosts(options, &hosts, parameters, &mut probe)) {
        Ok(place) => results.places.push(place),
        Err(why) => {
            eprintln!("NOT RUN: figures over MPI between two hosts: {why}");
            results.not_run = Some(why);
        }
    }
    results.loads[1] = load();
    Ok(results)
}

/// The load average of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

const ORDERS: [(Order, &str); 2] = [(Order::Sequential, "sequential"), (Order::Random, "random")];

/// Options of a benchmark, on all networks.
fn arguments(options: &FiguresOptions, more: &[&str]) -> Vec<OsString> {
    let (seed, pool, page) = (options.seed.to_string(), POOL_BYTES.to_string(), PAGE_BYTES.to_string());
    let common = ["--repeat", "3", "--seed", &seed, "--pool", &pool, "--page", &page];
    let mut all: Vec<OsString> = common.iter().chain(more).map(OsString::from).collect();
    if let Some(dir) = &options.storage_dir {
        all.extend(["--storage-dir".into(), dir.into()]);
    }
    all
}

/// Runs another benchmark of this program. Returns its results.
fn benchmark(options: &FiguresOptions, name: &str, more: &[&str]) -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let mut command = Command::new(program);
    command.args([name, "--json", "-"]).args(arguments(options, more));
    let text = said(&mut command).map_err(|line| format!("{name}: {line}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
}

/// The first job of another benchmark.
fn job<B: Benchmark>(options: &FiguresOptions, more: &[&str]) -> Result<Job, String> {
    let jobs = parsed::<B>(arguments(options, more))?.plan().map_err(|stop| stop.line)?;
    jobs.into_iter().next().ok_or_else(|| format!("{} has no job", B::NAME))
}

fn number(results: &Value, name: &str) -> Result<f64, String> {
    results[name].as_f64().ok_or_else(|| format!("the results of a benchmark lack {name}"))
}

/// The parameters of the model for this machine.
fn parameters(options: &FiguresOptions, data_bytes: u64) -> Result<Parameters, String> {
    let stream = benchmark(options, "stream", &["--size", &data_bytes.to_string()])?;
    let ways = stream["runs"][0]["ratios"].as_array().ok_or("the results of stream lack ratios")?;
    let plain = |name: &str| {
        let way = ways.iter().find(|way| way["way"] == name);
        number(way.unwrap_or(&Value::Null), "plain_bytes_per_second")
    };
    let messages = benchmark(options, "messages", &["--messages", &ROUND_TRIPS.to_string()])?;
    let messages = &messages["runs"][0];
    // With other load, a round trip mostly measures waits for a processor. A stream does not.
    let messages_a_second = number(&messages["streams"][0], "messages_per_second")?;
    let message_us = 1e6 / messages_a_second;
    let waking_us = number(messages, "eventfd_round_trip_us")? / 2.0 / HANDLINGS + message_us;
    let copy = copying(1);
    Ok(Parameters {
        // Measured again for each run.
        read: plain("gets")?,
        latency_us: 0.0,
        write: plain("puts")?,
        copy,
        copy_all: copying(processors()).max(copy),
        message_us,
        waking_us,
        // Ranks of one host need no link.
        link: Link { latency_us: LOCAL_US, bandwidth: copy as u64 },
    })
}

/// A file for a plain read just after each run, since the speed of a disk varies over time.
struct Probe {
    file: PlainFile,
}

/// Rounds of a plain read.
const ROUNDS: u32 = 3;

impl Probe {
    fn new(options: &FiguresOptions) -> Result<Probe, String> {
        let job = job::<Sequential>(options, &[])?;
        let size_bytes = COPIES as u64 * PAGE_BYTES;
        Ok(Probe { file: PlainFile::new(&job.config.storage_dir, size_bytes, Buffers::LargePages) })
    }

    /// Bytes a second with many reads in flight, and the additional latency of a single read in microseconds.
    fn disk(&mut self) -> Result<(f64, f64), String> {
        let mut page_seconds = |depth| {
            let round = |_| self.file.at_depth(depth, blocks(false, 0, COPIES as u64 * PAGE_BYTES));
            let rounds = (0..ROUNDS).map(round).collect::<Result<Vec<f64>, _>>();
            rounds.map(|rounds| median(&rounds) / COPIES as f64).map_err(|error| format!("reading plainly: {error}"))
        };
        let (many, alone) = (page_seconds(PlainFile::IN_FLIGHT_MAX)?, page_seconds(1)?);
        Ok((PAGE_BYTES as f64 / many, (alone - many).max(0.0) * 1e6))
    }
}

fn data_bytes(options: &FiguresOptions) -> u64 {
    if options.quick { 128 << 20 } else { 256 << 20 }
}

/// The minimum over several rounds. The others have been disturbed.
fn least(rounds: impl Iterator<Item = f64>) -> f64 {
    rounds.fold(f64::INFINITY, f64::min)
}

/// The number of processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes a second copied by this number of threads together.
fn copying(threads: usize) -> f64 {
    let copy = || {
        let mut copies = PageCopies::new(PAGE_BYTES as usize);
        // The first copies cause page faults.
        (0..2 * COPIES).map(|_| copies.run()).skip(COPIES).collect::<Vec<f64>>()
    };
    let all: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(copy)).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    all.iter().map(|seconds| PAGE_BYTES as f64 / median(seconds)).sum()
}

/// The same benchmarks over MPI. The parameters of the link come from messages there.
fn two_hosts(
    options: &FiguresOptions,
    hosts: &TwoHosts,
    found: Parameters,
    probe: &mut Probe,
) -> Result<Place, String> {
    let found_here = hosts.run(&job::<Messages>(options, &["--messages", &ROUND_TRIPS.to_string()])?)?.row;
    let round_trip_us = least(found_here.numbers("short_round_trip_us_each").into_iter());
    let latency_us = (round_trip_us / 2.0 - HANDLINGS * found.message_us).max(0.0);
    // A get costs two round trips of messages and the transfer of the page.
    let get_us = median(&found_here.numbers("page_get_us_each"));
    let page_us = (get_us - 2.0 * round_trip_us).max(get_us / 4.0);
    let link = Link { latency_us, bandwidth: (PAGE_BYTES as f64 / page_us * 1e6) as u64 };
    let parameters = Parameters { link, ..found };
    let mut place = Place { name: "MPI, two hosts", nodes: 2, parameters, runs: Vec::new() };
    let all = if options.quick { &[2][..] } else { &[2, 4] };
    let data_bytes = data_bytes(options);
    for (order, _) in ORDERS {
        for ranks in all {
            let (ranks_text, size) = (ranks.to_string(), data_bytes.to_string());
            let more = ["-n", &ranks_text, "--size", &size];
            let job = match order {
                Order::Sequential => job::<Sequential>(options, &more)?,
                Order::Random => job::<Random>(options, &more)?,
            };
            let throughput = hosts.run(&job)?.row.number("throughput_bytes_per_second");
            (place.parameters.read, place.parameters.latency_us) = probe.disk()?;
            place.add(order, *ranks, throughput, data_bytes, options.seed)?;
        }
    }
    Ok(place)
}

impl Parameters {
    /// The machine with this number of ranks and nodes. All of them share this machine's processors and disk.
    fn machine(&self, ranks: u32, nodes: u32) -> Machine {
        let copy = self.copy.min(self.copy_all / f64::from(ranks));
        let (ranks, message_us) = (ranks.div_ceil(nodes), self.message_us);
        Machine {
            name: "this machine".into(),
            node: Node { ranks, pool: POOL_BYTES, page: PAGE_BYTES, copy: copy as u64, message_us },
            link: self.link.clone(),
            disk: Disk { latency_us: self.latency_us, read: self.read as u64, write: self.write as u64, depth: 64 },
        }
    }
}

impl Place {
    fn add(&mut self, order: Order, ranks: u32, measured: f64, data_bytes: u64, seed: u64) -> Result<(), String> {
        let reads = Point::reads(ranks, order, data_bytes as f64 / POOL_BYTES as f64, PAGE_BYTES as usize);
        let point = Point { scale: 1, seed, ..reads };
        let rate = |machine: &Machine| -> Result<f64, String> {
            Ok(point.run(machine)?[0].megabytes_a_second_each * 1e6 * f64::from(ranks))
        };
        let machine = self.parameters.machine(ranks, self.nodes);
        let mut run =
            Run { order, ranks, measured, read: self.parameters.read, modelled: rate(&machine)?, because: None };
        if run.error(run.modelled).abs() > ERROR_MAX {
            let mut nearest: Option<(f64, String)> = None;
            for (what, machine) in self.variants(&machine) {
                let rate = rate(&machine)?;
                if nearest.as_ref().is_none_or(|(other, _)| run.error(rate).abs() < run.error(*other).abs()) {
                    nearest = Some((rate, what));
                }
            }
            run.because = nearest.map(|(rate, what)| {
                let (megabytes, ratio) = (short(rate / 1e6), short(1.0 + run.error(rate)));
                format!("of the variants tried, {what} comes nearest: {megabytes} MB/s, {ratio} of the measured")
            });
        }
        self.runs.push(run);
        Ok(())
    }

    /// Machines that may explain an error of the model.
    fn variants(&self, machine: &Machine) -> Vec<(String, Machine)> {
        let with = |change: &dyn Fn(&mut Machine)| {
            let mut other = machine.clone();
            change(&mut other);
            other
        };
        let Parameters { waking_us, read, latency_us, .. } = self.parameters;
        let alone = PAGE_BYTES as f64 / (PAGE_BYTES as f64 / read + latency_us / 1e6);
        let waking = format!("ranks that sleep until a message comes ({waking_us:.1} us each)");
        vec![
            (waking, with(&|other| other.node.message_us = waking_us)),
            (
                "a disk that is no faster with many reads in flight".into(),
                with(&|other| other.disk.read = alone as u64),
            ),
            ("a disk half as fast".into(), with(&|other| other.disk.read /= 2)),
            ("a disk twice as fast".into(), with(&|other| other.disk.read *= 2)),
            ("copies half as fast".into(), with(&|other| other.node.copy /= 2)),
            ("a link half as fast".into(), with(&|other| other.link.bandwidth /= 2)),
            ("a link twice as fast".into(), with(&|other| other.link.bandwidth *= 2)),
        ]
    }
}

impl Run {
    fn error(&self, modelled: f64) -> f64 {
        modelled / self.measured - 1.0
    }

    fn name(&self) -> &'static str {
        if self.order == Order::Sequential { "in order" } else { "at random" }
    }
}

impl Results {
    /// The machines of the model, without parameters specific to a run.
    pub fn machines(&self) -> impl Iterator<Item = (&'static str, Machine)> {
        self.places.iter().map(move |place| (place.name, place.parameters.machine(place.nodes, place.nodes)))
    }
}

/// Rows of the table of targets.
pub fn targets(results: &Results) -> Vec<(String, String, String, bool)> {
    let mut rows = Vec::new();
    for place in &results.places {
        let worst = place
            .runs
            .iter()
            .map(|run| run.error(run.modelled))
            .fold(0.0, |worst: f64, error| if error.abs() > worst.abs() { error } else { worst });
        let figure = format!("{:+.0} %", worst * 100.0);
        let what = format!("this machine over {}: the model is off by, worst row", place.name);
        rows.push((what, "at most a third".into(), figure, worst.abs() <= ERROR_MAX));
    }
    rows
}

/// Adds the section.
pub fn show(page: &mut Page, results: &Results) {
    page.section("this-machine");
    for order in [Order::Sequential, Order::Random] {
        page.chart(chart(results, order));
    }
    let mut table = Table::new(&[
        "network",
        "reads",
        "ranks",
        "measured, MB/s",
        "modelled, MB/s",
        "modelled / measured",
        "disk, measured, MB/s",
    ]);
    let mega = |rate: f64| short(rate / 1e6);
    let runs = || results.places.iter().flat_map(|place| place.runs.iter().map(move |run| (place, run)));
    for (place, run) in runs() {
        let cells = [place.name, run.name()].map(str::to_owned).into_iter();
        let ratio = short(run.modelled / run.measured);
        let rates = [mega(run.measured), mega(run.modelled), ratio, mega(run.read)];
        table.row(cells.chain([run.ranks.to_string()]).chain(rates).collect());
    }
    page.sim_table("Measured and modelled", &table);
    let reason = |(place, run): (&Place, &Run)| {
        Some(format!("{}, {}, {} ranks: {}", place.name, run.name(), run.ranks, run.because.as_ref()?))
    };
    page.list("Model and measurement differ by more than a third", runs().filter_map(reason));
    if let Some(why) = &results.not_run {
        page.note(format!("NOT RUN: over MPI between two hosts: {why}"));
    }
    let parameters = &results.places[0].parameters;
    page.note(format!(
        "Pools of 64 MiB, pages of 4 MiB, data of {} pools. One thread copies {} MB/s, all processors together {}. The load of the machine \
         was {:.1} before and {:.1} after.",
        results.data_bytes as f64 / POOL_BYTES as f64,
        mega(parameters.copy),
        mega(parameters.copy_all),
        results.loads[0],
        results.loads[1],
    ));
}

/// Measured and modelled throughput by ranks.
fn chart(results: &Results, order: Order) -> Chart {
    let mut lines = Vec::new();
    for place in &results.places {
        let line = |what: &str, rate: fn(&Run) -> f64| {
            let runs = place.runs.iter().filter(|run| run.order == order);
            let points = runs.map(|run| (f64::from(run.ranks), rate(run) / 1e9));
            Line::new(format!("{}, {what}", place.name), points.collect())
        };
        lines.extend([line("measured", |run| run.measured), line("modelled", |run| run.modelled)]);
    }
    let title = format!(
        "All data of one rank, read by all, {}",
        if order == Order::Sequential { "in order" } else { "at random" }
    );
    Chart { title, x: "ranks", y: "GB/s, all ranks together", lines, ..Chart::default() }
}
