//! The latency of a miss during read-ahead of a large range, compared with a miss on an idle disk.

use crate::Stop;
use crate::prelude::*;
use vgasnet::ops::Advice;

/// Misses in one measurement.
const MISSES: u64 = 32;

/// Room in a pool in addition to twice the read-ahead.
const POOL_ROOM_BYTES: u64 = 64 << 20;

/// A pause before each miss, so that the disk is busy with other reads by then.
const PAUSE: Duration = Duration::from_millis(3);

/// Latency of a miss during read-ahead of a large range
#[derive(Args, Serialize, Deserialize)]
pub struct Ahead {
    #[command(flatten)]
    setup: Setup,

    /// Data read or written in order, or read ahead [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

impl Benchmark for Ahead {
    const NAME: &'static str = "ahead";

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let job = |setup: Setup| {
            // A hint fetches at most half a pool.
            let size = self.size.unwrap_or(DATA_BYTES_DEFAULT);
            let pool = size.checked_mul(2).and_then(|pool| pool.checked_add(POOL_ROOM_BYTES));
            let job = Job::new(self, 1, &Setup { pool: setup.pool.or(pool), ..setup })?.with_pages(size, 0)?;
            let data_bytes = job.spec.data_bytes.saturating_add(unrelated_bytes(job.config.page_bytes));
            Ok(job.with_data(data_bytes, 0))
        };
        self.setup.in_pages(LARGE_AND_SMALL).into_iter().map(job).collect()
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let ahead_bytes = spec.data_bytes - unrelated_bytes(rank.page_bytes as u64);
        let (mut idle, mut disturbed) = (Vec::new(), Vec::new());
        let buffer = block_buffer();
        for block in 0..spec.blocks() {
            rank.put(0, block * BLOCK_BYTES, &buffer[..spec.block_bytes(block)]);
        }
        let bar = progress::bar(true, "misses", u64::from(spec.repeat));
        let mut random = fastrand::Rng::with_seed(spec.seed);
        let pending = || rank.runtime.driver().engine().pending().ahead;
        for _ in 0..spec.repeat {
            // No two adjacent pages: they would look like a stream.
            let mut pages: Vec<u64> = (0..MISSES).map(|page| 2 * page).collect();
            rank.write_back();
            advise(rank, 0, spec.data_bytes, Advice::DontNeed);
            random.shuffle(&mut pages);
            idle.extend(pages.iter().map(|page| miss_us(rank, ahead_bytes, *page)));
            advise(rank, 0, spec.data_bytes, Advice::DontNeed);
            advise(rank, 0, ahead_bytes, Advice::WillNeed);
            random.shuffle(&mut pages);
            for page in pages {
                let us = miss_us(rank, ahead_bytes, page);
                // Read-ahead was in flight both before and after the miss.
                if pending() == 0 {
                    break;
                }
                disturbed.push(us);
            }
            rank.runtime.driver().wait_until(&|| pending() == 0);
            bar.inc(1);
        }
        if disturbed.is_empty() {
            fail("all was read ahead before the first miss; give a larger --size");
        }
        let row = Row::default().keep("ahead_bytes", ahead_bytes).median("idle_us", &idle);
        let row = row.median("beside_us", &disturbed).show("beside_p90_us", quantile(&disturbed, 0.9));
        let row = row.ratio("beside_to_idle", "beside_us", "idle_us");
        let ratio = row.number("beside_to_idle");
        let meaning = "miss beside read-ahead to one on an idle disk";
        Figures::of(row).target("miss_beside_read_ahead_to_idle", meaning, ratio, Bound::AtMost, 3.0)
    }
}

/// Bytes of the unrelated pages. Each is missed at most once a round.
fn unrelated_bytes(page_bytes: u64) -> u64 {
    2 * MISSES * page_bytes
}

fn miss_us(rank: &Rank, start_bytes: u64, page: u64) -> f64 {
    std::thread::sleep(PAUSE);
    let start = Instant::now();
    rank.get(0, start_bytes + page * rank.page_bytes as u64, black_box(&mut [0]));
    start.elapsed().as_secs_f64() * 1e6
}

fn advise(rank: &Rank, offset: u64, len_bytes: u64, advice: Advice) {
    let address = rank.own_segment().addr() + offset as usize;
    let advised = rank.runtime.ops().advise(address, len_bytes as usize, advice);
    advised.unwrap_or_else(|error| fail(error.to_string()));
}
