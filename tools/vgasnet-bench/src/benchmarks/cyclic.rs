//! A cyclic scan over twice the pool, by gets and by loads: the fraction of pages not read from the disk in each round.

use crate::Stop;
use crate::prelude::*;

/// Rounds before the first that counts. They fill the pool and show the scan to the replacement policy.
const ROUNDS_BEFORE: u32 = 2;

/// Size of the scan, in pools.
const SEGMENT_POOLS: u64 = 2;

/// The size of a get.
const GET_BYTES: usize = 64 << 10;

/// Pools and pages.
const SIZES_BYTES: [(u64, u64); 6] = [
    (8 << 20, 64 << 10),
    (32 << 20, 64 << 10),
    (128 << 20, 64 << 10),
    (64 << 20, 4 << 20),
    (128 << 20, 4 << 20),
    (256 << 20, 4 << 20),
];

const IDLE_POOLS: &str = "VGASNET_IDLE_POOLS";

/// A cyclic scan over twice the pool, by gets and by loads: the fraction of pages not read from the disk in a round
#[derive(Args, Serialize, Deserialize)]
pub struct Loop {
    #[command(flatten)]
    setup: Setup,

    /// Number of additional idle ranks. Unless set, VGASNET_IDLE_POOLS is 1, so their pools keep pages evicted by the
    /// first rank
    #[arg(long, value_name = "RANKS", default_value_t = 0, value_parser = within(0..=63))]
    idle: u32,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

impl Benchmark for Loop {
    const NAME: &'static str = "loop";

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let is_chosen = self.setup.pool.is_some() || self.setup.page.is_some();
        let sized = |(pool, page)| Setup { pool: Some(pool), page: Some(page), ..self.setup.clone() };
        let setups = if is_chosen { vec![self.setup.clone()] } else { SIZES_BYTES.map(sized).into() };
        let job = |setup: Setup| {
            let mut job = Job::new(self, 1 + self.idle, &setup)?.with_frames(FRAMES_MIN)?;
            if self.idle > 0 && std::env::var_os(IDLE_POOLS).is_none() {
                job.vars.push((IDLE_POOLS, "1".into()));
            }
            let data_bytes = SEGMENT_POOLS * job.config.pool_bytes;
            Ok(job.with_data(data_bytes, 1))
        };
        setups.into_iter().map(job).collect()
    }

    /// Rank 0 scans; the others are idle.
    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        if !rank.is_first() {
            return Figures::default();
        }
        rank.fill(0, spec.data_bytes, |_, page| page.fill(1));
        rank.write_back();
        let mut buffer = vec![0; GET_BYTES];
        let gets = rounds(rank, spec, || {
            for offset in (0..spec.data_bytes).step_by(GET_BYTES) {
                rank.get(0, offset, &mut buffer);
            }
        });
        // SAFETY: the segment starts with the data, and the data is no longer written.
        let loads = rounds(rank, spec, || unsafe { load(rank.own_segment(), spec.data_bytes as usize) });
        let least = |rounds: &Row| rounds.numbers("kept_each").into_iter().fold(1.0, f64::min);
        let kept = [least(&gets), least(&loads)];
        Figures::of(Row::default().row("gets", gets).row("loads", loads))
            .target("gets_kept_min", "pages not read from the disk, by gets", kept[0], Bound::AtLeast, 0.4)
            .target("loads_kept_min", "pages not read from the disk, by loads", kept[1], Bound::AtLeast, 0.4)
    }
}

/// One way of reading: the fraction of pages not read from the disk, and the time, by round.
fn rounds(rank: &Rank, spec: &Spec, mut scan: impl FnMut()) -> Row {
    let (mut kept, mut seconds_each) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS_BEFORE + spec.repeat {
        let ([read_before, _], start) = (disk_bytes(), Instant::now());
        scan();
        let seconds = start.elapsed().as_secs_f64();
        let read_bytes = disk_bytes()[0] - read_before;
        // With other ranks, all pages may be in the other pools.
        if round == 0 && read_bytes == 0 && rank.ranks == 1 {
            fail("the kernel does not count what this process reads from the disk; use a --storage-dir on a disk");
        }
        if round >= ROUNDS_BEFORE {
            kept.push(1.0 - read_bytes as f64 / spec.data_bytes as f64);
            seconds_each.push(seconds);
        }
    }
    Row::default().show("kept_each", kept).median("seconds", &seconds_each)
}

/// Loads one word per cache line.
///
/// # Safety
/// `start` is valid for reading `len_bytes`, and the bytes are not written meanwhile.
pub unsafe fn load(start: *const u8, len_bytes: usize) {
    const LINE_BYTES: usize = 64;
    for offset in (0..len_bytes).step_by(LINE_BYTES) {
        // SAFETY: the word lies in the range and is aligned.
        unsafe { start.add(offset).cast::<u64>().read_volatile() };
    }
}
