//! Seeded traces of programs' gets.

use fastrand::Rng;
use vgasnet_protocol::get_cache::{UNIT_BYTES, units_of};

/// Gets of one rank, each of a whole object.
pub struct Trace {
    pub name: &'static str,
    /// By object, its bytes.
    pub sizes: Vec<u32>,
    pub gets: Vec<u32>,
}

impl Trace {
    /// Total bytes of all requested objects.
    pub fn bytes(&self) -> u64 {
        let mut is_used = vec![false; self.sizes.len()];
        self.gets.iter().for_each(|object| is_used[*object as usize] = true);
        let units = |bytes: u32| u64::from(units_of(bytes) * UNIT_BYTES);
        self.sizes.iter().zip(is_used).filter(|(_, is_used)| *is_used).map(|(bytes, _)| units(*bytes)).sum()
    }
}

/// All traces.
pub fn all(seed: u64) -> Vec<Trace> {
    vec![lcc(seed), barnes_hut(seed), mixed_normal(seed), zipf(seed), twice(), cyclic_scan(), scan()]
}

const RANKS: u32 = 4;

/// The local clustering coefficient: rank 0 of 4 gets the adjacency list of each neighbour of its vertices. The graph
/// is R-MAT, with Graph500's parameters and 16 edges a vertex.
pub fn lcc(seed: u64) -> Trace {
    const SCALE: u32 = 13;
    let mut random = Rng::with_seed(seed);
    let mut names: Vec<u32> = (0..1 << SCALE).collect();
    random.shuffle(&mut names);
    let mut lists = vec![Vec::new(); 1 << SCALE];
    for _ in 0..16 << SCALE {
        let (from, to) = rmat_edge(&mut random, SCALE);
        let (from, to) = (names[from], names[to]);
        lists[from as usize].push(to);
        lists[to as usize].push(from);
    }
    for (vertex, list) in lists.iter_mut().enumerate() {
        list.sort_unstable();
        list.dedup();
        list.retain(|other| *other != vertex as u32);
    }
    let own = (1 << SCALE) / RANKS;
    let gets = lists[..own as usize].iter().flatten().copied().filter(|vertex| *vertex >= own).collect();
    Trace { name: "lcc", sizes: lists.iter().map(|list| 4 * list.len() as u32).collect(), gets }
}

fn rmat_edge(random: &mut Rng, scale: u32) -> (usize, usize) {
    let (mut from, mut to) = (0, 0);
    for _ in 0..scale {
        let (down, right) = match random.f64() {
            part if part < 0.57 => (0, 0),
            part if part < 0.76 => (0, 1),
            part if part < 0.95 => (1, 0),
            _ => (1, 1),
        };
        (from, to) = (2 * from + down, 2 * to + right);
    }
    (from, to)
}

/// A cell of an octree.
struct Cell {
    middle: [f64; 3],
    half: f64,
    children: Vec<u32>,
    bodies: Vec<[f64; 3]>,
}

const LEAF_BODIES: usize = 8;

/// Barnes and Hut's tree walk, with an opening angle of 0.5: for each of its bodies rank 0 of 4 gets the visited cells,
/// none of them its own.
pub fn barnes_hut(seed: u64) -> Trace {
    const BODIES: usize = 3000;
    let mut random = Rng::with_seed(seed);
    let mut bodies: Vec<[f64; 3]> = (0..BODIES).map(|_| plummer(&mut random)).collect();
    let mut cells = vec![Cell { middle: [0.0; 3], half: 8.0, children: Vec::new(), bodies: bodies.clone() }];
    let mut at = 0;
    while at < cells.len() {
        split(&mut cells, at);
        at += 1;
    }
    // Bodies of a rank are close together in space.
    bodies.sort_by_key(morton);
    let mut gets = Vec::new();
    bodies[..BODIES / RANKS as usize / 2].iter().for_each(|body| walk(&cells, 0, body, &mut gets));
    Trace {
        name: "barnes-hut",
        sizes: cells.iter().map(|cell| 96 + 32 * cell.bodies.len().min(LEAF_BODIES) as u32).collect(),
        gets,
    }
}

fn plummer(random: &mut Rng) -> [f64; 3] {
    let radius = 1.0 / (random.f64().max(1e-3).powf(-2.0 / 3.0) - 1.0).sqrt().max(0.2);
    let height = 2.0 * random.f64() - 1.0;
    let angle = std::f64::consts::TAU * random.f64();
    let flat = (1.0 - height * height).sqrt();
    [radius * flat * angle.cos(), radius * flat * angle.sin(), radius * height]
}

fn octant(middle: &[f64; 3], body: &[f64; 3]) -> usize {
    (0..3).map(|axis| usize::from(body[axis] > middle[axis]) << axis).sum()
}

fn split(cells: &mut Vec<Cell>, at: usize) {
    if cells[at].bodies.len() <= LEAF_BODIES || cells[at].half < 1e-3 {
        return;
    }
    let (middle, half) = (cells[at].middle, cells[at].half / 2.0);
    let mut parts: [Vec<[f64; 3]>; 8] = Default::default();
    std::mem::take(&mut cells[at].bodies).into_iter().for_each(|body| parts[octant(&middle, &body)].push(body));
    for (part, bodies) in parts.into_iter().enumerate().filter(|(_, bodies)| !bodies.is_empty()) {
        let middle = [0, 1, 2].map(|axis| middle[axis] + if part >> axis & 1 == 1 { half } else { -half });
        let child = cells.len() as u32;
        cells[at].children.push(child);
        cells.push(Cell { middle, half, children: Vec::new(), bodies });
    }
}

fn morton(body: &[f64; 3]) -> u64 {
    let whole = body.map(|at| ((at + 8.0) * 64.0) as u64);
    (0..10).map(|bit| (0..3).map(|axis| (whole[axis] >> bit & 1) << (3 * bit + axis)).sum::<u64>()).sum()
}

fn walk(cells: &[Cell], at: u32, body: &[f64; 3], gets: &mut Vec<u32>) {
    gets.push(at);
    let cell = &cells[at as usize];
    let distance = (0..3).map(|axis| (body[axis] - cell.middle[axis]).powi(2)).sum::<f64>().sqrt();
    if 2.0 * cell.half > 0.5 * distance {
        cell.children.iter().for_each(|child| walk(cells, *child, body, gets));
    }
}

/// 1,000 objects of 2^i bytes, i from 0 to 16, normally distributed uses: the paper's micro-benchmark.
pub fn mixed_normal(seed: u64) -> Trace {
    let mut random = Rng::with_seed(seed);
    let sizes: Vec<u32> = (0..1000).map(|_| 1 << random.u32(0..=16)).collect();
    let normal = |random: &mut Rng| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    let draws = (0..).map(|_| 500.0 + 250.0 * normal(&mut random));
    let gets = draws.filter(|at| (0.0..1000.0).contains(at)).map(|at| at as u32).take(100_000).collect();
    Trace { name: "mixed normal", sizes, gets }
}

/// Objects of many sizes, with a small set used most often.
pub fn zipf(seed: u64) -> Trace {
    const OBJECTS: usize = 20_000;
    let mut random = Rng::with_seed(seed);
    let sizes = (0..OBJECTS).map(|_| (1 << random.u32(3..=12)) + random.u32(0..64)).collect();
    let mut sums = Vec::with_capacity(OBJECTS);
    let mut sum = 0.0;
    for rank in 1..=OBJECTS {
        sum += (rank as f64).powf(-0.9);
        sums.push(sum);
    }
    let gets = (0..150_000).map(|_| sums.partition_point(|part| *part < random.f64() * sum) as u32);
    Trace { name: "zipf", sizes, gets: gets.map(|object| object.min(OBJECTS as u32 - 1)).collect() }
}

/// Everything in order, repeatedly.
pub fn cyclic_scan() -> Trace {
    Trace { name: "cyclic scan", sizes: vec![512; 8000], gets: (0..80_000).map(|at| at % 8000).collect() }
}

/// Everything in order, each twice in a row.
pub fn twice() -> Trace {
    Trace { name: "twice", sizes: vec![512; 30_000], gets: (0..60_000).map(|at| at / 2).collect() }
}

/// Everything in order, once.
pub fn scan() -> Trace {
    Trace { name: "scan", sizes: vec![512; 50_000], gets: (0..50_000).collect() }
}
