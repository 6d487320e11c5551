//! Every rank reads the data of rank 0, all at once: in order, or at random.

use crate::Stop;
use crate::disk::{Buffers, PlainFile};
use crate::input::{self, Checked, Data, Input};
use crate::prelude::*;
use std::os::fd::AsRawFd;
use std::rc::Rc;

#[derive(Args, Clone, Serialize, Deserialize)]
struct Reads {
    #[command(flatten)]
    modes: Modes,

    #[command(flatten)]
    setup: Setup,

    /// Data on rank 0 [default: 1G, with --input the size of the file]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,

    /// Put this file into the segment, and compare every byte read with it
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    input: Option<PathBuf>,

    /// With --cooperative both: exit with status 1 if cooperative caching is slower than its absence
    #[arg(long)]
    check: bool,

    /// Change the byte at this offset of the segment after filling, to test the comparison
    #[arg(long, value_name = "OFFSET", hide = true, requires = "input")]
    damage: Option<u64>,

    /// The descriptor of the input's checksums in the ranks
    #[arg(skip)]
    sums_fd: Option<i32>,
}

/// Every rank reads all data of rank 0 from start to end, all ranks at once, in blocking gets of 4 MiB
#[derive(Args, Clone, Serialize, Deserialize)]
pub struct Sequential {
    #[command(flatten)]
    reads: Reads,
}

impl Benchmark for Sequential {
    const NAME: &'static str = "sequential";
    const KIND: Kind = Kind::JobsWithoutTargets;

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        self.reads.plan(|reads| Sequential { reads })
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        self.reads.measure(rank, spec, false)
    }
}

/// Every rank reads the same amount in gets of 4 MiB at random multiples of 4 MiB
#[derive(Args, Clone, Serialize, Deserialize)]
pub struct Random {
    #[command(flatten)]
    reads: Reads,
}

impl Benchmark for Random {
    const NAME: &'static str = "random";
    const KIND: Kind = Kind::JobsWithoutTargets;

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        self.reads.plan(|reads| Random { reads })
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        self.reads.measure(rank, spec, true)
    }
}

impl Reads {
    fn plan<B: Benchmark>(&self, benchmark: impl FnOnce(Reads) -> B) -> Result<Vec<Job>, Stop> {
        let (mut options, mut data_bytes, mut file) = (self.clone(), self.size.unwrap_or(DATA_BYTES_DEFAULT), None);
        if let Some(path) = &self.input {
            let refused = |error| Stop::usage(format!("--input {}: {error}", path.display()));
            let path = path.canonicalize().map_err(refused)?;
            let (sums, size_bytes) = input::checksums(&path)?;
            (data_bytes, options.sums_fd, options.input) = (size_bytes, Some(sums.as_raw_fd()), Some(path));
            file = Some(Rc::new(sums));
        }
        if data_bytes == 0 {
            return Err(Stop::usage(
                "there is no data to read; give --size at least 1, or --input a file that is not empty",
            ));
        }
        if self.damage.is_some_and(|offset| offset >= data_bytes) {
            return Err(Stop::usage(format!("--damage is beyond the {data_bytes} bytes of data")));
        }
        if self.check && self.modes.cooperative != Switch::Both {
            return Err(Stop::usage("--check compares cooperative caching with its absence; give --cooperative both"));
        }
        let jobs = in_all_modes(&benchmark(options), &self.modes, &self.setup)?;
        let with_data = |job: Job| Job { file: file.clone().map(|file| file as _), ..job.with_data(data_bytes, 1) };
        Ok(jobs.into_iter().map(with_data).collect())
    }

    fn measure(&self, rank: &Rank, spec: &Spec, is_random: bool) -> Figures {
        let input = self.input.as_deref().zip(self.sums_fd).map(|(path, sums_fd)| Input { path, sums_fd });
        let data = Data::open(spec.seed, input);
        let fill_seconds = fill(rank, spec, &data, self.damage);
        let buffers = Buffers::SmallPages;
        let mut plain = rank.is_first().then(|| PlainFile::new(rank.storage_dir(), spec.data_bytes, buffers));
        let mut buffer = block_buffer();
        let mut checked = Checked::default();
        let row = Row::default().show("size_bytes", spec.data_bytes).keep("get_bytes", BLOCK_BYTES);
        let mut row = row.keep("input", &self.input).keep("fill_seconds", fill_seconds);
        let (mut bytes_read, mut bytes_from_disk) = (0, 0);
        let bar = progress::bar(rank.is_first(), "reading", u64::from(spec.repeat) * spec.blocks());
        for round in 0..spec.repeat {
            if let Some(plain) = &mut plain {
                row.add("plain_seconds", plain.read());
                row.add("copy_4_mib_seconds", copy_seconds(&mut buffer));
            }
            rank.empty_pool();
            bytes_read = 0;
            let [before, _] = disk_bytes();
            let time = rank.time(|| {
                bytes_read =
                    read(rank, blocks(rank, spec, is_random, round), spec, &data, &mut buffer, &mut checked, || {
                        bar.inc(1)
                    });
            });
            bytes_from_disk = disk_bytes()[0] - before;
            row.add("time_seconds", time.as_secs_f64());
        }
        drop(bar);
        let all = rank.gather([bytes_read, checked.bytes, checked.seconds.to_bits(), bytes_from_disk]);
        let Some(plain) = plain else { return Figures::default() };
        let sum = |word: usize| all.iter().map(|told| told[word]).sum::<u64>();
        let slowest = all.iter().map(|told| f64::from_bits(told[2])).fold(0.0, f64::max);
        let checksum_seconds = slowest / f64::from(spec.repeat);
        let [time, plain_time, copy_time] =
            ["time_seconds", "plain_seconds", "copy_4_mib_seconds"].map(|name| row.number(name));
        let row = row
            .hide(&["plain_seconds", "copy_4_mib_seconds"])
            .show("throughput_bytes_per_second", sum(0) as f64 / time)
            .show("plain_read_bytes_per_second", plain.size_bytes() as f64 / plain_time)
            .ratio("throughput_to_plain", "throughput_bytes_per_second", "plain_read_bytes_per_second")
            .show("memcpy_bytes_per_second", BLOCK_BYTES as f64 / copy_time)
            .ratio("throughput_to_memcpy", "throughput_bytes_per_second", "memcpy_bytes_per_second")
            .show("disk_read_bytes_all_ranks", sum(3))
            .keep("bytes_read_all_ranks", sum(0))
            .keep("plain_bytes", plain.size_bytes())
            .keep("plain_is_direct", plain.is_direct)
            .keep("checked_bytes", sum(1))
            .keep("checksum_seconds", checksum_seconds);
        let compared = format!(
            "-n {}: {} bytes compared with the file, all the same; checksums took {checksum_seconds:.3} s of the time",
            rank.ranks,
            sum(1)
        );
        let figures = Figures::of(row);
        if self.input.is_some() { figures.remark(compared) } else { figures }
    }
}

/// Gets these blocks and checks them. Returns their bytes.
pub fn read(
    rank: &Rank,
    blocks: impl Iterator<Item = u64>,
    spec: &Spec,
    data: &Data<'_>,
    buffer: &mut [u8],
    checked: &mut Checked,
    mut step: impl FnMut(),
) -> u64 {
    let mut bytes_read = 0;
    for block in blocks {
        let bytes = &mut buffer[..spec.block_bytes(block)];
        rank.get(0, block * BLOCK_BYTES, bytes);
        data.check(block, bytes, checked);
        bytes_read += bytes.len() as u64;
        step();
    }
    bytes_read
}

/// Puts the data into rank 0's segment. Returns seconds.
pub fn fill(rank: &Rank, spec: &Spec, data: &Data<'_>, damage: Option<u64>) -> f64 {
    let bar = progress::bar(rank.is_first(), "filling", spec.blocks() / u64::from(rank.ranks));
    let time = rank.time(|| data.fill(rank, spec, || bar.inc(1)));
    drop(bar);
    if let Some(offset) = damage.filter(|_| rank.is_first()) {
        let mut byte = [0];
        rank.get(0, offset, &mut byte);
        rank.put(0, offset, &[!byte[0]]);
    }
    rank.barrier();
    time.as_secs_f64()
}

/// The blocks read by this rank in `round`: all in order, or the same number at random.
pub fn blocks(rank: &Rank, spec: &Spec, is_random: bool, round: u32) -> Box<dyn Iterator<Item = u64>> {
    let count = spec.blocks();
    if !is_random {
        return Box::new(0..count);
    }
    let own = u64::from(rank.me) << 32 | u64::from(round);
    let mut random = fastrand::Rng::with_seed(spec.seed.rotate_left(17) ^ own.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    Box::new((0..count).map(move |_| random.u64(0..count)))
}
