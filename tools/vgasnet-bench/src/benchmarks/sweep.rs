//! Every rank reads the data of rank 0, with less or more data than the pools hold. Messages are counted.

use super::reads::{blocks, fill, read};
use crate::Stop;
use crate::input::{Checked, Data};
use crate::prelude::*;
use std::rc::Rc;
use vgasnet::job;

/// The pool and page size if neither an option nor the environment sets them: many small pages, so that one message too
/// many shows.
const POOL_BYTES_DEFAULT: u64 = 64 << 20;
const PAGE_BYTES_DEFAULT: u64 = 256 << 10;

/// Sizes of the data, in halves of a pool.
const POOL_HALVES: [u64; 6] = [1, 2, 3, 4, 6, 8];

const POOL: &str = "DRAM cache of each rank [default: VGASNET_POOL_SIZE, else 64M]";
const PAGE: &str = "Page size [default: VGASNET_PAGE_SIZE, else 256K]";

/// Every rank reads all data of rank 0, in order and at random, from half a pool to four, with and without
/// cooperative caching: time, and messages per page
#[derive(Args, Clone, Serialize, Deserialize)]
#[command(mut_arg("pool", |pool| pool.help(POOL)), mut_arg("page", |page| page.help(PAGE)))]
pub struct Sweep {
    #[command(flatten)]
    setup: Setup,

    /// Number of ranks, also as -np; several numbers are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "1,2,4", value_delimiter = ',', value_parser = ranks())]
    ranks: Vec<u32>,

    /// Data on rank 0; several sizes, as in 64M,1G, are measured one after another [default: 1/2, 1, 3/2, 2, 3 and 4
    /// pools]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    size: Vec<u64>,

    /// Whether ranks of one host use each other's frames directly; off is the same as on different hosts
    #[arg(long, value_enum, default_value_t = Switch::Off)]
    peer_memory: Switch,

    #[command(flatten)]
    judging: Judging,

    /// The order of the reads in a job
    #[arg(skip)]
    is_random: bool,
}

impl Benchmark for Sweep {
    const NAME: &'static str = "sweep";

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let counting = Rc::new(Counting::new(self.setup.stats)?);
        let setup = self.setup.with_page(PAGE_BYTES_DEFAULT).with_pool(POOL_BYTES_DEFAULT);
        let mut jobs = Vec::new();
        let ranks = self.ranks.iter();
        for (&ranks, &peer_memory) in ranks.flat_map(|n| self.peer_memory.values().iter().map(move |on| (n, on))) {
            for is_random in [false, true] {
                let options = Sweep { is_random, ..self.clone() };
                let pool_bytes = Job::new(&options, ranks, &setup)?.config.pool_bytes;
                let steps = POOL_HALVES.map(|halves| (pool_bytes / 2).saturating_mul(halves));
                for &size in if self.size.is_empty() { &steps[..] } else { &self.size } {
                    for cooperative in [true, false] {
                        let job = Job::in_modes(&options, ranks, cooperative, peer_memory, &setup)?;
                        let mut job = Job { file: Some(counting.clone()), ..job.with_pages(size, 0)? };
                        job.vars.extend(counting.variable());
                        jobs.push(job);
                    }
                }
            }
        }
        Ok(jobs)
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let data = Data::open(spec.seed, None);
        fill(rank, spec, &data, None);
        let (mut buffer, mut checked) = (block_buffer(), Checked::default());
        let (mut times, mut messages, mut read_bytes, mut disk_read_bytes) = (Vec::new(), Vec::new(), 0, 0);
        let bar = progress::bar(rank.is_first(), "reading", u64::from(spec.repeat));
        for round in 0..spec.repeat {
            rank.empty_pool();
            rank.barrier();
            let (sent, [on_disk, _], mut own_bytes) = (messages_sent(), disk_bytes(), 0);
            let blocks = blocks(rank, spec, self.is_random, round);
            let time = rank.time(|| own_bytes = read(rank, blocks, spec, &data, &mut buffer, &mut checked, || ()));
            let all = rank.gather([messages_sent() - sent, own_bytes, disk_bytes()[0] - on_disk, 0]);
            let sum = |word: usize| all.iter().map(|told| told[word]).sum::<u64>();
            times.push(time.as_secs_f64());
            messages.push(sum(0));
            (read_bytes, disk_read_bytes) = (sum(1), sum(2));
            bar.inc(1);
        }
        let order = if self.is_random { "random" } else { "sequential" };
        let pages = read_bytes as f64 / rank.page_bytes as f64;
        let messages_max = messages.iter().copied().max().unwrap_or(0);
        let row = Row::labelled(format!("{order}, {}", format_size(spec.data_bytes)))
            .keep("size_bytes", spec.data_bytes)
            .show("size_to_pool", spec.data_bytes as f64 / rank.pool_bytes as f64)
            .keep("is_random", self.is_random)
            .median("time_seconds", &times);
        let throughput = read_bytes as f64 / row.number("time_seconds");
        // A single rank sends no messages.
        let judged = (rank.ranks > 1).then_some(messages_max as f64 / pages);
        let row = row
            .show("throughput_bytes_per_second", throughput)
            .show("messages_a_page", messages_max as f64 / pages)
            .keep("messages_each_all_ranks", messages)
            .keep("bytes_read_all_ranks", read_bytes)
            .show("disk_read_bytes_all_ranks", disk_read_bytes);
        // A request, an order to a holder, the answer and its end; twice as many if a holder has given the page up.
        Figures::of(row).target("messages_a_page", "messages a page", judged, Bound::AtMost, 8.0)
    }

    /// Next to each job without cooperative caching stands the throughput of the same job with it.
    fn compare(&self, job: &Job, mut figures: Figures, before: &[Run], _peak_bytes: Option<u64>) -> Figures {
        if let Some(with) = before.last().filter(|_| !job.config.caching.cooperative) {
            let throughput = with.figures.row.number("throughput_bytes_per_second");
            let row = figures.row.keep("cooperative_bytes_per_second", throughput);
            let (with, without) = ("cooperative_bytes_per_second", "throughput_bytes_per_second");
            figures.row = row.ratio("cooperative_to_this", with, without);
        }
        figures
    }
}

/// Makes the ranks count. Their statistics go to a temporary file, unless they are shown anyway.
struct Counting {
    file: Option<PathBuf>,
}

impl Counting {
    fn new(are_shown: bool) -> Result<Counting, Stop> {
        if are_shown {
            return Ok(Counting { file: None });
        }
        let path = std::env::temp_dir().join(format!("vgasnet-bench-statistics-{}", std::process::id()));
        // The name can be guessed, so a file placed there by another user must not be opened.
        std::fs::File::create_new(&path).map_err(|error| Stop::failure(format!("{}: {error}", path.display())))?;
        Ok(Counting { file: Some(path) })
    }

    /// The ranks' environment variable for this.
    fn variable(&self) -> Option<(&'static str, String)> {
        self.file.as_ref().map(|path| ("VGASNET_STATS_FILE", path.display().to_string()))
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // If the file is gone, somebody else has removed it.
        self.file.iter().for_each(|path| std::fs::remove_file(path).unwrap_or_default());
    }
}

fn messages_sent() -> u64 {
    job::protocol_messages_sent().expect("the launcher has had this rank count")
}
