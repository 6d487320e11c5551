//! Runs the program and prints its results.

#[path = "../../tests/tools/mod.rs"]
mod tools;

use crate::network;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE_BYTES: usize = 4 << 20;
const PAGES: usize = 16;

/// A page not fetched ahead.
const PAGE: &str = "page_of_a_peer";

/// Disables shared memory between ranks of one host, so pages move over the network.
const APART: (&str, &str) = ("VGASNET_PEER_MEMORY", "0");

type Samples = BTreeMap<String, Vec<f64>>;

/// Builds the program, linked with the library built for this bench.
fn build() -> PathBuf {
    let bench = std::env::current_exe().expect("this program has a path");
    let dir = bench.parent().expect("a program is in a directory");
    let (root, program) = (Path::new(env!("CARGO_MANIFEST_DIR")), dir.join("pages-of-a-peer"));
    let mut command = network::compiler();
    command.args(["-O2", "-I"]).arg(root.join("include")).arg(root.join("benches/pages").join(network::SOURCE));
    command.arg("-o").arg(&program);
    network::link(&mut command, dir);
    let status = command.status().expect("the compiler");
    assert!(status.success(), "{command:?}: {status}");
    program
}

fn measure(program: &Path, variables: &[(&str, &str)]) -> Samples {
    let mut command = Command::new(tools::tool("vgasnetrun"));
    command.args(["--conduit", network::CONDUIT, "-n", "2"]).arg(program).arg(PAGES.to_string());
    command.envs(variables.iter().copied()).envs([APART]);
    command.env("VGASNET_PAGE_SIZE", PAGE_BYTES.to_string());
    command.env("VGASNET_POOL_SIZE", (2 * PAGES * PAGE_BYTES).to_string());
    // For Open MPI in containers.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("vgasnetrun");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    let mut samples = Samples::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (name, value) = line.split_once(' ').expect("a name and a value");
        samples.entry(name.to_owned()).or_default().push(value.parse().expect("a number"));
    }
    samples
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a table on stderr; stdout is for JSON.
fn table(network: &str, samples: &Samples) -> serde_json::Value {
    eprintln!("{network}\n  {:24} {:>8} {:>12} {:>12} {:>8}", "", "samples", "median us", "least us", "GB/s");
    let mut medians = BTreeMap::new();
    for (name, values) in samples {
        let (middle, least) = (median(values), values.iter().copied().fold(f64::INFINITY, f64::min));
        let rate = PAGE_BYTES as f64 / middle / 1e3;
        eprintln!("  {name:24} {:>8} {middle:>12.1} {least:>12.1} {rate:>8.2}", values.len());
        medians.insert(name.clone(), middle);
    }
    let raw = medians.iter().filter(|(name, _)| !name.starts_with(PAGE));
    let ratios: BTreeMap<&str, f64> = raw.map(|(name, raw)| (name.as_str(), raw / medians[PAGE])).collect();
    for (raw, ratio) in &ratios {
        eprintln!("  {PAGE} reaches {ratio:.2} x {raw}");
    }
    serde_json::json!({ "network": network, "page_bytes": PAGE_BYTES, "median_us": medians, "ratios": ratios })
}

/// Measures over each network and reports.
pub fn run() {
    let is_json = std::env::args().any(|argument| argument == "--json");
    let program = build();
    let runs = network::networks().into_iter();
    let runs: Vec<_> = runs.map(|(name, variables)| table(&name, &measure(&program, variables))).collect();
    if is_json {
        println!("{}", serde_json::to_string_pretty(&runs).expect("plain data"));
    }
}
