//! Reports this machine's resources for vgasnet jobs, and obstacles.

mod disk;
mod job;
mod kernel;
mod machine;
mod report;

use clap::{CommandFactory, Parser};
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use vgasnet_manual::PageExtras;

const NAME: &str = "vgasnet-info";

/// Tells what this machine offers jobs of vgasnet, and what stands in their way
#[derive(Parser)]
#[command(name = NAME, version)]
struct Options {
    /// How many ranks on this machine the job would have, also as -np: 1 to 4096 [default: as many as processors]
    #[arg(short = 'n', value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=i64::from(vgasnet_smp::RANKS_MAX)))]
    ranks: Option<u32>,

    /// Directory of the backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    storage_dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Sections of the man page in addition to the options.
const SECTIONS: [(&str, &str); 2] = [
    (
        "DESCRIPTION",
        "Shows page sizes, limits, the directory of the backing files with its disk and the speed of that, whether io_uring may be used, \
         and what each rank of a job would get by default and by the variables that are set.\n\n\
         Lines that begin with ! say what stands in the way and what to do about it. The disk is measured for three seconds at most, \
         by a file of at most 256 MiB that is gone afterwards.",
    ),
    ("EXIT STATUS", "0, or 1 if such a job would not start. With 2 the options make no sense."),
];

fn main() -> ExitCode {
    if let Some(what) = vgasnet_manual::asked() {
        let see_also = &["vgasnet(7)", "vgasnetrun(1)", "vgasnet-bench(1)"];
        let extras = PageExtras { sections: &SECTIONS, see_also };
        if vgasnet_manual::print_page(NAME, &what) || vgasnet_manual::print(Options::command(), &what, extras) {
            return ExitCode::SUCCESS;
        }
    }
    let options = Options::parse_from(vgasnet_manual::with_np(&Options::command(), std::env::args_os()));
    let mut report = Report::new(vgasnet_conduit::page_bytes() as u64);
    machine::observe(&mut report);
    kernel::observe(&mut report);
    let ranks = options.ranks.unwrap_or_else(|| machine::processors().min(vgasnet_smp::RANKS_MAX));
    if let Some(config) = job::observe(&mut report, ranks, options.storage_dir) {
        disk::observe(&mut report, &config.storage_dir, config.page_bytes);
    }
    let told = if options.json { report.json() } else { report.text() };
    vgasnet_manual::write_out(NAME, told.as_bytes());
    if report.is_job_possible { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
