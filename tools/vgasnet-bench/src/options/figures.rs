//! Options of `figures`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Clone)]
pub struct FiguresOptions {
    /// Write the data to this file, as JSON; docs/site/figures.py draws them
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// Fewer points, in under two minutes
    #[arg(long)]
    pub quick: bool,

    /// Numbers of nodes of the machine of today, ascending; with --quick up to 128
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "32,128,512,4096",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub nodes: Vec<u32>,

    /// The C compiler of the MPI this program was built with; its launcher has the same name with mpiexec for mpicc
    #[arg(long, value_name = "COMMAND", default_value = "mpicc")]
    pub mpicc: String,

    /// Directory of the backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub storage_dir: Option<PathBuf>,

    /// Seed of the data and of random places
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
