//! Reads of all data by all ranks on this machine, beside a model of it.

use super::{number, page::Page};
use crate::Stop;
use crate::options::FiguresOptions;
use serde_json::Value;
use std::process::{Command, Stdio};
use vgasnet_sim::{Disk, Homes, Link, Machine, Node, Order, Pattern, Point, ProtocolKind};

const POOL_BYTES: u64 = 64 << 20;
const PAGE_BYTES: u64 = 4 << 20;

/// A benchmark with so many ranks, and what it and its model have.
pub struct Measured {
    order: Order,
    ranks: u64,
    measured: f64,
    modelled: f64,
    disk: f64,
    copy: f64,
}

/// Runs the benchmarks, each in a process of its own, and their models.
pub fn run(options: &FiguresOptions) -> Result<Vec<Measured>, Stop> {
    let data_bytes: u64 = if options.quick { 128 << 20 } else { 256 << 20 };
    let ranks = if options.quick { "1,2" } else { "1,2,4" };
    let stream = benchmark(options, "stream", None, data_bytes)?;
    let ways = stream["runs"][0]["ratios"].as_array().into_iter().flatten();
    let gets = ways.into_iter().find(|way| way["way"] == "gets").map(|way| &way["plain_bytes_per_second"]);
    let disk = gets.and_then(Value::as_f64).ok_or_else(|| Stop::failure("the results of stream lack plain reads"))?;
    let mut all = Vec::new();
    for (order, name) in [(Order::Sequential, "sequential"), (Order::Random, "random")] {
        let report = benchmark(options, name, Some(ranks), data_bytes)?;
        let runs =
            report["runs"].as_array().ok_or_else(|| Stop::failure(format!("{name}: its results have no runs")))?;
        for run in runs {
            all.push(compared(run, order, data_bytes, disk, options.seed)?);
        }
    }
    Ok(all)
}

fn benchmark(options: &FiguresOptions, name: &str, ranks: Option<&str>, data_bytes: u64) -> Result<Value, Stop> {
    let failed = |what: String| Stop::failure(format!("{name}: {what}"));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.args([name, "--repeat", "3", "--json", "-", "--seed"]).arg(options.seed.to_string());
    command.args(ranks.iter().flat_map(|ranks| ["-n", ranks]));
    command.args(["--pool".into(), POOL_BYTES.to_string(), "--size".into(), data_bytes.to_string()]);
    command.arg("--page").arg(PAGE_BYTES.to_string()).stderr(Stdio::null()).stdin(Stdio::null());
    if let Some(dir) = &options.storage_dir {
        command.arg("--storage-dir").arg(dir);
    }
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("ended with {}; run vgasnet-bench {name} to see why", output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// One run beside its model. Its memory is as fast as the run found it, and `disk` is its disk's, in bytes a second.
fn compared(run: &Value, order: Order, data_bytes: u64, disk: f64, seed: u64) -> Result<Measured, Stop> {
    let figure = |name: &str| {
        let missing = || Stop::failure(format!("the results of a benchmark lack {name}"));
        run[name].as_f64().ok_or_else(missing)
    };
    let (ranks, measured) = (figure("ranks")? as u64, figure("throughput_bytes_per_second")?);
    let copy = figure("memcpy_bytes_per_second")?;
    let machine = Machine {
        name: "this machine".into(),
        node: Node { ranks: ranks as u32, pool: POOL_BYTES, page: PAGE_BYTES, copy: copy as u64, message_us: 1.0 },
        // Ranks of one host need none.
        link: Link { latency_us: 1.0, bandwidth: copy as u64 },
        disk: Disk { latency_us: 100.0, read: disk as u64, write: disk as u64, depth: 64 },
    };
    let pattern = Pattern::All { order, len_bytes: PAGE_BYTES as usize, is_put: false, pieces_max: u64::MAX };
    let point = Point {
        ranks: ranks as u32,
        protocol: ProtocolKind::Ours,
        cooperative: true,
        tree: true,
        spares: true,
        notices_wait: true,
        holders_are_known: false,
        pattern,
        data_pools: data_bytes as f64 / POOL_BYTES as f64,
        homes: Homes::First,
        scale: 1,
        passes: 1,
        seed,
    };
    let outcome = point.run(&machine).map_err(Stop::failure)?[0];
    let modelled = outcome.megabytes_a_second_each * 1e6 * ranks as f64;
    Ok(Measured { order, ranks, measured, modelled, disk, copy })
}

/// A row for each run.
pub fn show(page: &mut Page, all: &[Measured]) {
    let row = |one: &Measured| {
        let order = if one.order == Order::Sequential { "in order" } else { "at random" };
        let mega = |rate: f64| number(rate / 1e6);
        vec![
            order.to_string(),
            one.ranks.to_string(),
            mega(one.measured),
            mega(one.modelled),
            format!("{:+.0} %", (one.modelled / one.measured - 1.0) * 100.0),
            mega(one.disk),
            mega(one.copy),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let heads = ["reads", "ranks", "measured, MB/s", "modelled", "off by", "plain reads of its disk", "memcpy"];
    page.table(&heads, &rows);
    page.paragraph(
        "Pools of 64 MiB, pages of 4 MiB, over shared memory. The model has the disk as plain reads at \
         their best depth found it just before (vgasnet-bench stream), and the copies as the same run did. It \
         does not have that ranks share processors: with more ranks than cores the measured rate is less.",
    );
}
