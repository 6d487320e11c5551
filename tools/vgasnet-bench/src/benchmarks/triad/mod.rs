//! a = b + s * c over three arrays in the rank's own segment, by loads and stores. Arrays that fit the pool are
//! compared with the allocator's memory, larger ones with the disk.
//!
//! Throughputs count each array once, as if a store did not read first.

mod arrays;
mod in_pool;
mod mapped;
mod out_of_core;

use crate::Stop;
use crate::prelude::*;
use arrays::{ARRAYS, Arrays};

/// a = b + s * c over arrays in a rank's own segment, by loads and stores, in the pool and larger than it
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct Triad {
    #[command(flatten)]
    setup: Setup,

    /// Size of each of the three arrays, in whole pages; several sizes, as in 64M,1G, are measured one after another.
    /// Arrays that fit the pool are compared with malloc, larger ones with the disk [default: a quarter of the pool,
    /// and four pools]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    size: Vec<u64>,

    #[command(flatten)]
    judging: Judging,
}

impl Benchmark for Triad {
    const NAME: &'static str = "triad";

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let job = Job::new(self, 1, &self.setup)?.with_frames(ARRAYS)?;
        let (page_bytes, pool_bytes) = (job.config.page_bytes, job.config.pool_bytes);
        let sizes = match &*self.size {
            [] => vec![pool_bytes / 4 / page_bytes * page_bytes, 4 * pool_bytes],
            sizes => sizes.to_vec(),
        };
        let sized = |size: u64| {
            let data_bytes = size.checked_next_multiple_of(page_bytes).and_then(|size| size.checked_mul(ARRAYS));
            let data_bytes = data_bytes.filter(|data_bytes| (1..=i64::MAX as u64 / 2).contains(data_bytes));
            let data_bytes = data_bytes.ok_or_else(|| {
                Stop::usage(format!("--size {size}: three such arrays are not possible; give 1 to {}", i64::MAX / 8))
            })?;
            let mapped_processes = u32::from(data_bytes > pool_bytes);
            let job = job.clone().with_data(data_bytes, 2 * u64::from(mapped_processes));
            Ok(Job { mapped_processes, ..job })
        };
        sizes.into_iter().map(sized).collect()
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let array_bytes = spec.data_bytes / ARRAYS;
        // SAFETY: the segment starts with the data, page-aligned. The job has one rank, which uses the data only here.
        let mut arrays = unsafe { Arrays::new(rank.own_segment(), array_bytes, spec.seed) };
        if spec.data_bytes <= rank.pool_bytes {
            in_pool::run(&mut arrays, array_bytes, spec)
        } else {
            out_of_core::run(rank, &mut arrays, array_bytes, spec)
        }
    }

    fn serve(&self, spec: &Spec) {
        mapped::serve(spec);
    }

    fn compare(&self, job: &Job, figures: Figures, _before: &[Run], peak_bytes: Option<u64>) -> Figures {
        let row = figures
            .row
            .amend("mapped", |row| row.show("limit_bytes", job.rank_memory_bytes()).show("peak_bytes", peak_bytes));
        let label = format!("arrays of {}", format_size(job.spec.data_bytes / ARRAYS));
        Figures { row: row.relabelled(label), ..figures }
    }
}

/// A value that differs from turn to turn, so the result of an earlier turn is wrong.
fn scalar(turn: u32) -> f64 {
    f64::from(turn % 13 + 1)
}
