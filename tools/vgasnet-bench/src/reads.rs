//! Every rank reads the data of rank 0, all at once: in order, or at random.

use crate::baseline::copy_seconds;
use crate::disk::{Buffers, PlainFile};
use crate::input::{Checked, Data};
use crate::plan::{BLOCK_BYTES, Spec, Workload};
use crate::rank::{Rank, block_buffer, disk_bytes};
use serde::{Deserialize, Serialize};
use vgasnet_measuring::progress;

/// Measurements of rank 0 by round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    /// The time of all ranks to put the data into the segment. Some of it was still in their pools at the end.
    pub fill_seconds: f64,
    pub time_seconds_each: Vec<f64>,
    pub bytes_read_all_ranks: u64,
    /// Bytes read from the disk in the last round.
    pub disk_read_bytes_all_ranks: u64,
    pub plain_seconds_each: Vec<f64>,
    pub plain_bytes: u64,
    pub plain_is_direct: bool,
    pub copy_4_mib_seconds_each: Vec<f64>,
    /// Sum over all ranks and rounds.
    pub checked_bytes: u64,
    /// The time of the slowest rank for checksums, per round.
    pub checksum_seconds: f64,
}

pub fn run(rank: &Rank, spec: &Spec) -> Option<Found> {
    let data = Data::open(spec);
    let fill_seconds = fill(rank, spec, &data);
    let mut plain = rank.is_first().then(|| PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::SmallPages));
    let mut buffer = block_buffer();
    let mut checked = Checked::default();
    let (mut times, mut plain_times, mut copy_times) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes_read, mut bytes_from_disk) = (0, 0);
    let bar = progress::bar(rank.is_first(), "reading", u64::from(spec.repeat) * spec.blocks());
    for round in 0..spec.repeat {
        if let Some(plain) = &mut plain {
            plain_times.push(plain.read());
            copy_times.push(copy_seconds(&mut buffer));
        }
        rank.empty_pool();
        bytes_read = 0;
        let [before, _] = disk_bytes();
        let time = rank.time(|| {
            for block in blocks(rank, spec, spec.workload == Workload::Random, round) {
                let bytes = &mut buffer[..spec.block_bytes(block)];
                rank.get(0, block * BLOCK_BYTES, bytes);
                data.check(block, bytes, &mut checked);
                bytes_read += bytes.len() as u64;
                bar.inc(1);
            }
        });
        bytes_from_disk = disk_bytes()[0] - before;
        times.push(time.as_secs_f64());
    }
    drop(bar);
    let all = rank.gather([bytes_read, checked.bytes, checked.seconds.to_bits(), bytes_from_disk]);
    let plain = plain?;
    let slowest = all.iter().map(|told| f64::from_bits(told[2])).fold(0.0, f64::max);
    Some(Found {
        fill_seconds,
        time_seconds_each: times,
        bytes_read_all_ranks: all.iter().map(|told| told[0]).sum(),
        disk_read_bytes_all_ranks: all.iter().map(|told| told[3]).sum(),
        plain_seconds_each: plain_times,
        plain_bytes: plain.size_bytes(),
        plain_is_direct: plain.is_direct,
        copy_4_mib_seconds_each: copy_times,
        checked_bytes: all.iter().map(|told| told[1]).sum(),
        checksum_seconds: slowest / f64::from(spec.repeat),
    })
}

/// Puts the data into rank 0's segment. Returns seconds.
pub fn fill(rank: &Rank, spec: &Spec, data: &Data) -> f64 {
    let bar = progress::bar(rank.is_first(), "filling", spec.blocks() / u64::from(rank.ranks));
    let time = rank.time(|| data.fill(rank, spec, || bar.inc(1)));
    drop(bar);
    if let Some(offset) = spec.damage_offset.filter(|_| rank.is_first()) {
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
