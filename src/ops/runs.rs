//! Splits a transfer between two lists of regions into runs contiguous on both sides.

use super::Remote;

/// Contiguous bytes of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first address.
    pub address: usize,
    /// The length.
    pub len_bytes: usize,
}

/// Bytes contiguous on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Address on the caller's side.
    pub local: usize,
    /// Address on the other rank's side.
    pub remote: usize,
    /// The length, not 0.
    pub len_bytes: usize,
}

/// Pairs up the bytes of two sides, each in the order of its regions. Surplus bytes of the longer side are left out.
pub fn runs<L, R>(local: L, remote: R) -> Runs<L, R>
where
    L: Iterator<Item = Region>,
    R: Iterator<Item = Region>,
{
    Runs { local: Side::new(local), remote: Side::new(remote) }
}

impl Run {
    /// The other rank's side.
    pub(super) fn at(&self, rank: u32) -> Remote {
        Remote { rank, address: self.remote, len_bytes: self.len_bytes }
    }

    /// Whether `next` continues this run on both sides.
    #[inline(always)]
    pub(super) fn is_continued_by(&self, next: &Run) -> bool {
        let ends_at = |start: usize| start.wrapping_add(self.len_bytes);
        ends_at(self.local) == next.local && ends_at(self.remote) == next.remote
    }
}

/// The regions of a side without empty ones, cut at the region ends of the other side.
struct Side<I> {
    regions: I,
    remaining: Region,
}

impl<I: Iterator<Item = Region>> Side<I> {
    fn new(regions: I) -> Side<I> {
        Side { regions, remaining: Region { address: 0, len_bytes: 0 } }
    }

    #[inline(always)]
    fn remaining_bytes(&mut self) -> Option<usize> {
        while self.remaining.len_bytes == 0 {
            self.remaining = self.regions.next()?;
        }
        Some(self.remaining.len_bytes)
    }

    #[inline(always)]
    fn take(&mut self, len_bytes: usize) -> usize {
        let address = self.remaining.address;
        self.remaining =
            Region { address: address.wrapping_add(len_bytes), len_bytes: self.remaining.len_bytes - len_bytes };
        address
    }
}

/// The runs of two sides. Its parts are inlined into the loop that takes the runs: a call would take as long as a small
/// copy.
pub struct Runs<L, R> {
    local: Side<L>,
    remote: Side<R>,
}

impl<L: Iterator<Item = Region>, R: Iterator<Item = Region>> Iterator for Runs<L, R> {
    type Item = Run;

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        if self.local.remaining.len_bytes | self.remote.remaining.len_bytes == 0 {
            // Mostly the regions of both sides have the same lengths.
            let (local, remote) = (self.local.regions.next()?, self.remote.regions.next()?);
            if local.len_bytes == remote.len_bytes && local.len_bytes > 0 {
                return Some(Run { local: local.address, remote: remote.address, len_bytes: local.len_bytes });
            }
            (self.local.remaining, self.remote.remaining) = (local, remote);
        }
        let len_bytes = self.bytes_to_border()?;
        Some(Run { local: self.local.take(len_bytes), remote: self.remote.take(len_bytes), len_bytes })
    }
}

impl<L: Iterator<Item = Region>, R: Iterator<Item = Region>> Runs<L, R> {
    /// The bytes up to the nearer region end, if both sides have more.
    #[inline(never)]
    fn bytes_to_border(&mut self) -> Option<usize> {
        Some(self.local.remaining_bytes()?.min(self.remote.remaining_bytes()?))
    }
}

/// Regularly spaced regions of a side, on several levels.
#[derive(Clone, Debug)]
pub struct Strided<'a> {
    base: usize,
    len_bytes: usize,
    /// Distance of blocks on each level.
    strides: &'a [usize],
    /// Number of blocks on each level.
    counts: &'a [usize],
    /// Index of the next block on each level above the lowest; `None` at the end.
    at: Option<Box<[usize]>>,
    /// Distance of blocks on the lowest level, and their number before the next block above.
    step: usize,
    left: usize,
}

impl<'a> Strided<'a> {
    /// Regions of `len_bytes`; `counts[i]` blocks of level i, `strides[i]` bytes apart, make one of level i + 1.
    /// Strides wrap, so they may be negative.
    pub fn new(base: usize, len_bytes: usize, strides: &'a [usize], counts: &'a [usize]) -> Strided<'a> {
        let is_empty = len_bytes == 0 || counts.contains(&0);
        let at = (!is_empty).then(|| vec![0; counts.len().saturating_sub(1)].into_boxed_slice());
        let (step, left) =
            (strides.first().copied().unwrap_or(0), counts.first().map_or(0, |count| count.saturating_sub(1)));
        Strided { base, len_bytes, strides, counts, at, step, left }
    }

    /// Advances to the next block above the lowest level.
    #[cold]
    fn carry(&mut self) {
        let Some(at) = self.at.as_mut().filter(|at| !at.is_empty()) else {
            self.at = None;
            return;
        };
        self.left = self.counts[0] - 1;
        self.base = self.base.wrapping_sub(self.step.wrapping_mul(self.left));
        for (level, at) in at.iter_mut().enumerate() {
            *at += 1;
            self.base = self.base.wrapping_add(self.strides[level + 1]);
            if *at < self.counts[level + 1] {
                return;
            }
            self.base = self.base.wrapping_sub(self.strides[level + 1].wrapping_mul(*at));
            *at = 0;
        }
        self.at = None;
    }
}

impl Iterator for Strided<'_> {
    type Item = Region;

    #[inline(always)]
    fn next(&mut self) -> Option<Region> {
        self.at.as_ref()?;
        let region = Region { address: self.base, len_bytes: self.len_bytes };
        if self.left > 0 {
            self.left -= 1;
            self.base = self.base.wrapping_add(self.step);
        } else {
            self.carry();
        }
        Some(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(address: usize, len_bytes: usize) -> Region {
        Region { address, len_bytes }
    }

    fn pair(local: &[Region], remote: &[Region]) -> Vec<(usize, usize, usize)> {
        let runs = runs(local.iter().copied(), remote.iter().copied());
        runs.map(|run| (run.local, run.remote, run.len_bytes)).collect()
    }

    #[test]
    fn sides_are_cut_where_either_has_a_border() {
        let local = [region(100, 3), region(200, 5), region(300, 2)];
        let remote = [region(10, 4), region(50, 6)];
        assert_eq!(pair(&local, &remote), [(100, 10, 3), (200, 13, 1), (201, 50, 4), (300, 54, 2)]);
    }

    #[test]
    fn a_run_goes_on_where_both_sides_do() {
        let run = |local, remote, len_bytes| Run { local, remote, len_bytes };
        let next = [run(4, 104, 1), run(4, 105, 1), run(5, 104, 1), run(0, 100, 4)];
        assert_eq!(next.map(|next| run(0, 100, 4).is_continued_by(&next)), [true, false, false, false]);
        assert!(run(usize::MAX, 9, 1).is_continued_by(&run(0, 10, 1)), "the run is refused, but not here");
    }

    #[test]
    fn nothing_is_no_run() {
        assert_eq!(pair(&[], &[]), []);
        assert_eq!(pair(&[region(1, 0), region(0, 0)], &[]), []);
        let local = [region(7, 0), region(5, 2), region(0, 0), region(9, 1)];
        assert_eq!(pair(&local, &[region(0, 0), region(70, 3), region(1, 0)]), [(5, 70, 2), (9, 72, 1)]);
        assert_eq!(pair(&local, &[region(70, 1)]), [(5, 70, 1)]);
    }

    #[test]
    fn strides_count_like_nested_loops() {
        let counts = [2, 4, 2];
        let strides = [10, 100, 1000];
        let mut expected = Vec::new();
        for a in 0..2 {
            for b in 0..4 {
                for c in 0..2 {
                    expected.push(region(7 + c * 10 + b * 100 + a * 1000, 3));
                }
            }
        }
        assert_eq!(Strided::new(7, 3, &strides, &counts).collect::<Vec<_>>(), expected);
        assert_eq!(Strided::new(7, 5, &[], &[]).collect::<Vec<_>>(), [region(7, 5)]);
        for (len_bytes, counts) in [(0, [2, 2]), (2, [0, 2]), (2, [2, 0])] {
            assert_eq!(Strided::new(7, len_bytes, &strides[..2], &counts).count(), 0);
        }
    }

    #[test]
    fn strides_may_be_negative_and_in_any_order() {
        let back = |stride: usize| stride.wrapping_neg();
        let addresses = |base, strides: &[usize], counts: &[usize]| -> Vec<usize> {
            Strided::new(base, 1, strides, counts).map(|region| region.address).collect()
        };
        assert_eq!(addresses(100, &[back(10), 3], &[3, 2]), [100, 90, 80, 103, 93, 83]);
        assert_eq!(addresses(100, &[40, back(1)], &[2, 3]), [100, 140, 99, 139, 98, 138]);
        assert_eq!(addresses(100, &[back(1), back(7), back(20)], &[1, 2, 2]), [100, 93, 80, 73]);
        assert_eq!(addresses(100, &[0, 1], &[2, 2]), [100, 100, 101, 101]);
    }

    #[test]
    fn every_byte_goes_where_the_lists_say() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut left = random.usize(0..60);
            let total = left;
            let mut regions = |mut left: usize| {
                let mut all = Vec::new();
                while left > 0 || random.u8(0..3) > 0 {
                    let len_bytes = random.usize(0..=left.min(9));
                    // Often adjacent to the last one.
                    let after = all.last().map_or(0, |last: &Region| last.address + last.len_bytes);
                    all.push(region(if random.bool() { after } else { random.usize(0..1000) }, len_bytes));
                    left -= len_bytes;
                }
                all
            };
            let (local, remote) = (regions(left), regions(left));
            let bytes = |side: &[Region]| -> Vec<usize> {
                side.iter().flat_map(|region| region.address..region.address + region.len_bytes).collect()
            };
            let expected: Vec<_> = bytes(&local).into_iter().zip(bytes(&remote)).collect();
            let mut is = Vec::new();
            for run in runs(local.into_iter(), remote.into_iter()) {
                assert!(run.len_bytes > 0);
                is.extend((0..run.len_bytes).map(|at| (run.local + at, run.remote + at)));
                left -= run.len_bytes;
            }
            assert_eq!((is, left, expected.len()), (expected, 0, total), "seed {seed}");
        }
    }
}
