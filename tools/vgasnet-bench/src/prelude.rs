//! The names that most benchmarks need.

pub use crate::baseline::{Copies, PageCopies, copy_seconds, median, quantile, seconds};
pub use crate::benchmark::Benchmark;
pub use crate::options::{CHECK_ALL, Judging, LARGE_AND_SMALL, Modes, MpiOptions, Setup, Switch, ranks, within};
pub use crate::plan::{BLOCK_BYTES, DATA_BYTES_DEFAULT, Data, FRAMES_MIN, Job, OUTSIDE_POOL_BYTES, Spec, in_all_modes};
pub use crate::rank::{Rank, block_buffer, disk_bytes, fail};
pub use crate::report::Bound::{AtLeast, AtMost};
pub use crate::report::{Bound, Figures, Kind, Report, Run};
pub use crate::rows::{Json, Row, name, words};
pub use clap::{Args, ValueEnum};
pub use serde::{Deserialize, Serialize};
pub use std::hint::black_box;
pub use std::path::{Path, PathBuf};
pub use std::time::{Duration, Instant};
pub use vgasnet_measuring::memory::Memory;
pub use vgasnet_measuring::progress;
pub use vgasnet_settings::{format_size, format_size_about, parse_size};
