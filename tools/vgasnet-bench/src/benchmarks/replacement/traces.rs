//! Traces of page accesses, as made by programs. A burst of uses of a page counts as one access.

use fastrand::Rng;

/// A sequence of accesses.
pub struct Trace {
    pub name: &'static str,
    pub pages: Vec<u32>,
    /// Number of distinct pages.
    pub distinct: u32,
    /// Hits are counted from this access on.
    pub first: usize,
}

impl Trace {
    fn new(name: &'static str, pages: Vec<u32>, first: usize) -> Trace {
        let distinct = pages.iter().copied().collect::<std::collections::HashSet<_>>().len() as u32;
        Trace { name, pages, distinct, first }
    }
}

/// All traces, of about `pages` pages each. The random ones are generated from `seed`.
pub fn all(pages: u32, seed: u64) -> Vec<Trace> {
    vec![
        cycle(pages),
        zipf(pages, seed),
        hot_and_scan(pages, seed),
        triad(pages),
        sort(pages),
        stencil(pages),
        blocks(pages, seed),
    ]
}

/// The pages in order, repeatedly.
pub fn cycle(pages: u32) -> Trace {
    const ROUNDS: u32 = 8;
    let all = (0..ROUNDS).flat_map(|_| 0..pages).collect();
    Trace::new("loop", all, 2 * pages as usize)
}

/// Each page with a probability proportional to 1 / rank^0.99.
pub fn zipf(pages: u32, seed: u64) -> Trace {
    const EXPONENT: f64 = 0.99;
    let mut random = Rng::with_seed(seed);
    let mut order: Vec<u32> = (0..pages).collect();
    random.shuffle(&mut order);
    let mut sums = Vec::with_capacity(order.len());
    let total = (1..=pages).fold(0.0, |sum, rank| {
        let sum = sum + f64::from(rank).powf(-EXPONENT);
        sums.push(sum);
        sum
    });
    // Many accesses per page: a short trace would consist mostly of first uses, which no policy hits.
    let draws = 80 * pages as usize;
    let mut draw = || {
        let wanted = random.f64() * total;
        order[sums.partition_point(|sum| *sum < wanted).min(order.len() - 1)]
    };
    let all = (0..draws).map(|_| draw()).collect();
    Trace::new("zipf", all, draws / 4)
}

/// Half of the accesses go to a random tenth of the pages. The other half reads the rest in order.
pub fn hot_and_scan(pages: u32, seed: u64) -> Trace {
    let mut random = Rng::with_seed(seed ^ 1);
    let hot = (pages / 10).max(1);
    let scan = (0..4).flat_map(|_| hot..pages);
    let all: Vec<u32> = scan.flat_map(|page| [page, random.u32(0..hot)]).collect();
    let first = all.len() / 4;
    Trace::new("hot and scan", all, first)
}

/// `a = b + s * c`, ten times: three adjacent arrays.
pub fn triad(pages: u32) -> Trace {
    let third = pages / 3;
    let round = (0..third).flat_map(|page| [third + page, 2 * third + page, page]);
    let all = (0..10).flat_map(|_| round.clone()).collect();
    Trace::new("triad", all, 2 * 3 * third as usize)
}

/// A merge sort of runs: each pass reads two runs and writes a third, from one array to the other and back.
pub fn sort(pages: u32) -> Trace {
    let half = pages / 2;
    let (mut all, mut run, mut from, mut to) = (Vec::new(), 1, 0, half);
    while run < half {
        for start in (0..half).step_by(2 * run as usize) {
            let middle = (start + run).min(half);
            let end = (start + 2 * run).min(half);
            for at in start..end {
                let step = at - start;
                let source = if step % 2 == 0 { start + step / 2 } else { middle + step / 2 };
                all.extend([from + source.min(end - 1), to + at]);
            }
        }
        (run, from, to) = (2 * run, to, from);
    }
    let first = all.len() / 10;
    Trace::new("sort", all, first)
}

/// Sweeps of a five-point stencil over a grid with 16 pages per row: one page of each neighbouring row, and one
/// written.
pub fn stencil(pages: u32) -> Trace {
    const ROW: u32 = 16;
    let half = pages / 2 / ROW * ROW;
    let mut all = Vec::new();
    for sweep in 0..6 {
        let (from, to) = if sweep % 2 == 0 { (0, half) } else { (half, 0) };
        for page in ROW..half - ROW {
            all.extend([from + page - ROW, from + page, from + page + ROW, to + page]);
        }
    }
    let first = all.len() / 3;
    Trace::new("stencil", all, first)
}

/// Blocks of 16 pages, each from start to end, in a new random order each round.
pub fn blocks(pages: u32, seed: u64) -> Trace {
    const BLOCK: u32 = 16;
    let mut random = Rng::with_seed(seed ^ 2);
    let mut order: Vec<u32> = (0..pages / BLOCK).collect();
    let mut all = Vec::new();
    for _ in 0..8 {
        random.shuffle(&mut order);
        all.extend(order.iter().flat_map(|block| block * BLOCK..(block + 1) * BLOCK));
    }
    let first = all.len() / 4;
    Trace::new("blocks", all, first)
}
