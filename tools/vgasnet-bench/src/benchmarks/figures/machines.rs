//! The parameters of the machines.

use super::measured;
use super::page::Page;
use vgasnet_settings::format_size;
use vgasnet_sim::{Machine, short};

/// A parameter: its name in a machine file, its meaning and its value.
type Parameter = (&'static str, &'static str, fn(&Machine) -> String);

const PARAMETERS: [Parameter; 11] = [
    ("node.ranks", "ranks of a node", |machine| machine.node.ranks.to_string()),
    ("node.pool", "pool of a rank", |machine| format_size(machine.node.pool)),
    ("node.page", "page", |machine| format_size(machine.node.page)),
    ("node.copy", "copies by a thread, MB/s", |machine| megabytes(machine.node.copy)),
    ("node.message_us", "handling a message, us", |machine| short(machine.node.message_us)),
    ("link.latency_us", "latency of the link, us", |machine| short(machine.link.latency_us)),
    ("link.bandwidth", "bandwidth of the link, each way, MB/s", |machine| megabytes(machine.link.bandwidth)),
    ("disk.latency_us", "latency of the disk, us", |machine| short(machine.disk.latency_us)),
    ("disk.read", "reads of the disk, MB/s", |machine| megabytes(machine.disk.read)),
    ("disk.write", "writes of the disk, MB/s", |machine| megabytes(machine.disk.write)),
    ("disk.depth", "operations of a rank in flight", |machine| machine.disk.depth.to_string()),
];

fn megabytes(rate: u64) -> String {
    short(rate as f64 / 1e6)
}

/// Adds the table.
pub fn show(page: &mut Page, results: &measured::Results) {
    let mut machines = vec![("the paper's".to_owned(), Machine::paper()), ("of today".to_owned(), Machine::today())];
    machines.extend(results.machines().map(|(name, machine)| (format!("this one, {name}"), machine)));
    let names = machines.iter().map(|(name, _)| name.as_str());
    let heads: Vec<&str> = ["in a machine file", ""].into_iter().chain(names).collect();
    let row = |(name, what, value): &Parameter| {
        let values = machines.iter().map(|(_, machine)| value(machine));
        [(*name).to_owned(), (*what).to_owned()].into_iter().chain(values).collect()
    };
    page.table("Parameters of the machines", &heads, PARAMETERS.iter().map(row).collect());
}

/// The current date, or an empty text.
pub fn date() -> String {
    crate::programs::said(std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// This machine's processors, memory and kernel.
pub fn this_machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".into());
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{} processors ({processor}), {memory} of memory, Linux {}", measured::processors(), kernel.trim())
}
