//! A page out of a peer's pool over MPI, as a ratio to what MPI itself reaches with as many bytes between the same two
//! ranks in the same run. `cargo bench --features mpi --bench pages [-- --json]`; `MPICC` names the MPI.
//!
//! `benches/pages.c` is what the ranks run. Ranks of one host use each other's pages where they are; these share no memory, so
//! that everything goes through MPI, over what it chooses between two processes of one host and then over TCP, as it would between
//! hosts. MPI's own operations use as much memory as the pages. An MPI that has no windows there is compared by `MPI_Send` alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE_BYTES: usize = 4 << 20;
const PAGES: usize = 16;

/// What the page is compared with.
const RAW: [&str; 3] = ["mpi_put", "mpi_get", "mpi_send"];
const PAGE: &str = "page_of_a_peer";

/// Vgasnet shares no memory.
const APART: (&str, &str) = ("VGASNET_PEER_MEMORY", "0");

/// Confines MPI to TCP, for the implementations that read these.
const TCP: [(&str, &str); 5] = [
    APART,
    ("UCX_TLS", "tcp,self"),
    ("OMPI_MCA_pml", "ob1"),
    ("OMPI_MCA_btl", "tcp,self"),
    ("OMPI_MCA_osc", "pt2pt,rdma"),
];

type Samples = BTreeMap<String, Vec<f64>>;

/// The program, linked with the library that was built for this bench.
fn build() -> PathBuf {
    let bench = std::env::current_exe().expect("this program has a path");
    let dir = bench.parent().expect("a program is in a directory");
    let (source, program) = (Path::new(env!("CARGO_MANIFEST_DIR")), dir.join("pages-of-a-peer"));
    let mut command = Command::new(vgasnet_mpi::MPICC);
    command.args(["-O2", "-I"]).arg(source.join("include")).arg(source.join("benches/pages.c")).arg("-o").arg(&program);
    command.arg("-L").arg(dir).arg("-lvgasnet").arg(format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display()));
    let status = command.status().expect("MPI's compiler");
    assert!(status.success(), "{command:?}: {status}");
    program
}

fn measure(program: &Path, variables: &[(&str, &str)]) -> Samples {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vgasnetrun"));
    command.args(["--conduit", "mpi", "-n", "2"]).arg(program).arg(PAGES.to_string());
    command.envs(variables.iter().copied());
    command.env("VGASNET_PAGE_SIZE", PAGE_BYTES.to_string());
    command.env("VGASNET_POOL_SIZE", (2 * PAGES * PAGE_BYTES).to_string());
    // Of Open MPI, for containers.
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

/// A table on stderr, so that JSON may go to stdout.
fn table(network: &str, samples: &Samples) -> serde_json::Value {
    eprintln!("{network}\n  {:24} {:>8} {:>12} {:>12} {:>8}", "", "samples", "median us", "least us", "GB/s");
    let mut medians = BTreeMap::new();
    for (name, values) in samples {
        let (middle, least) = (median(values), values.iter().copied().fold(f64::INFINITY, f64::min));
        let rate = PAGE_BYTES as f64 / middle / 1e3;
        eprintln!("  {name:24} {:>8} {middle:>12.1} {least:>12.1} {rate:>8.2}", values.len());
        medians.insert(name.clone(), middle);
    }
    let ratios: BTreeMap<&str, f64> =
        RAW.iter().filter_map(|raw| Some((*raw, medians.get(*raw)? / medians[PAGE]))).collect();
    for (raw, ratio) in &ratios {
        eprintln!("  {PAGE} reaches {ratio:.2} x {raw}");
    }
    serde_json::json!({ "network": network, "page_bytes": PAGE_BYTES, "median_us": medians, "ratios": ratios })
}

fn main() {
    let is_json = std::env::args().any(|argument| argument == "--json");
    let program = build();
    let networks = [("one host, no memory shared by vgasnet", &[APART][..]), ("tcp", &TCP)];
    let runs: Vec<_> =
        networks.into_iter().map(|(network, variables)| table(network, &measure(&program, variables))).collect();
    if is_json {
        println!("{}", serde_json::to_string_pretty(&runs).expect("plain data"));
    }
}
