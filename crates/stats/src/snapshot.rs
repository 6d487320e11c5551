//! The counts up to a point in time, of one rank or of all, and their encoding for other ranks.

use super::histogram::{BUCKETS, Times};
use super::rows::{Kind, ROW_COUNT, ROWS, Row, TIMED_COUNT};

/// The numbers of all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// By row; 0 for timed rows.
    pub values: [u64; ROW_COUNT],
    /// The timed rows.
    pub times: [Times; TIMED_COUNT],
}

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot { values: [0; ROW_COUNT], times: std::array::from_fn(|_| Times::default()) }
    }
}

impl Snapshot {
    /// A row's number: of events, if it is timed.
    pub fn get(&self, row: Row) -> u64 {
        self.times_of(row).map_or(self.values[row as usize], Times::count)
    }

    /// Sets a row known without counting.
    pub fn set(&mut self, row: Row, value: u64) {
        self.values[row as usize] = value;
    }

    /// The times of a row, if it is timed.
    pub fn times_of(&self, row: Row) -> Option<&Times> {
        row.declared().kind.is_timed().then(|| &self.times[row.timed_index()])
    }

    /// The sum of a timed row's times, in nanoseconds.
    pub fn sum_ns(&self, row: Row) -> u64 {
        self.times_of(row).map_or(0, |times| times.sum_ns)
    }

    /// The number shown for a rank.
    pub fn shown(&self, row: Row) -> u64 {
        if row.declared().kind == Kind::Wait { self.sum_ns(row) } else { self.get(row) }
    }

    /// The counts of all ranks together.
    pub fn sum(ranks: &[Snapshot]) -> Snapshot {
        let mut sum = Snapshot::default();
        for rank in ranks {
            for declared in ROWS {
                let (to, value) = (&mut sum.values[declared.row as usize], rank.values[declared.row as usize]);
                *to = match declared.kind {
                    Kind::SettingBytes | Kind::SpanNs => value.max(*to),
                    _ => to.wrapping_add(value),
                };
            }
            sum.times.iter_mut().zip(&rank.times).for_each(|(to, from)| to.merge(from));
        }
        sum
    }

    /// The snapshot as bytes for another rank: the rows in order, then for each timed row its sum, its maximum and the
    /// buckets in use. Numbers have seven bits to a byte, the lowest first.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.values.iter().for_each(|value| put(&mut bytes, *value));
        for Times { buckets, sum_ns, max_ns } in &self.times {
            put(&mut bytes, *sum_ns);
            put(&mut bytes, *max_ns);
            put(&mut bytes, buckets.iter().filter(|count| **count > 0).count() as u64);
            for (bucket, count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
                bytes.push(bucket as u8);
                put(&mut bytes, *count);
            }
        }
        bytes
    }

    /// Reads the bytes of [`Snapshot::encode`]; `None` for anything else.
    pub fn decode(mut bytes: &[u8]) -> Option<Snapshot> {
        let mut snapshot = Snapshot::default();
        for value in &mut snapshot.values {
            *value = take(&mut bytes)?;
        }
        for times in &mut snapshot.times {
            (times.sum_ns, times.max_ns) = (take(&mut bytes)?, take(&mut bytes)?);
            let used = take(&mut bytes)?;
            if used > BUCKETS as u64 {
                return None;
            }
            for _ in 0..used {
                let (bucket, tail) = bytes.split_first()?;
                bytes = tail;
                *times.buckets.get_mut(usize::from(*bucket))? = take(&mut bytes)?;
            }
        }
        bytes.is_empty().then_some(snapshot)
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = bytes.split_first()?;
        *bytes = tail;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(seed: u64) -> Snapshot {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut snapshot = Snapshot::default();
        snapshot.values.iter_mut().for_each(|value| *value = random.u64(..) >> random.u32(0..64));
        for times in &mut snapshot.times {
            (0..random.usize(0..9)).for_each(|_| times.buckets[random.usize(0..BUCKETS)] = random.u64(1..1000));
            (times.sum_ns, times.max_ns) = (random.u64(..) >> 20, random.u64(..) >> 30);
        }
        snapshot
    }

    #[test]
    fn snapshots_survive_encoding_and_their_parts_are_refused() {
        for seed in 0..20 {
            let (snapshot, bytes) = (some(seed), some(seed).encode());
            assert_eq!(Snapshot::decode(&bytes).as_ref(), Some(&snapshot));
            assert!((0..bytes.len()).all(|end| Snapshot::decode(&bytes[..end]).is_none()));
        }
    }

    #[test]
    fn ranks_add_up_but_settings_and_spans() {
        let mut ranks = [some(1), some(2)];
        for (rank, ns) in ranks.iter_mut().zip([5, 3]) {
            rank.set(Row::HitGets, ns);
            rank.set(Row::Elapsed, ns);
            rank.set(Row::PageSize, 4096);
        }
        let sum = Snapshot::sum(&ranks);
        assert_eq!([Row::HitGets, Row::Elapsed, Row::PageSize].map(|row| sum.get(row)), [8, 5, 4096]);
        assert_eq!(sum.get(Row::WaitPage), ranks[0].get(Row::WaitPage) + ranks[1].get(Row::WaitPage));
    }
}
