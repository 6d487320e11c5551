//! Alternating rounds of all ways, and their targets.

use super::programs::{Order, Programs, Times};
use super::sequential::Loops;
use super::{Case, Files, Pattern, Way};
use crate::Stop;
use crate::prelude::*;
use serde_json::Value;

/// Pages in the pool of a rank that writes rows.
const POOL_PAGES_OF_ROWS: u64 = 16;

/// A pattern, the number of ranks, the size if it matters, the way to compare with, the name, the meaning and the
/// minimum ratio.
type Wanted = (Pattern, u32, Option<u64>, Way, &'static str, &'static str, f64);

/// Runs that end with the close have no targets.
const WANTED: [Wanted; 8] = {
    use Pattern::{BtioFull, BtioSimple, Flash, SlidingWindow};
    use Way::{Locks, MpiIo, MpiIoAtomic};
    [
        (SlidingWindow, 2, None, Locks, "sliding_2_locks_to_vgasnet", "sliding window, 2 ranks, fcntl locks", 5.0),
        (SlidingWindow, 4, None, Locks, "sliding_4_locks_to_vgasnet", "the same, 4 ranks", 5.0),
        (
            SlidingWindow,
            2,
            None,
            MpiIoAtomic,
            "sliding_2_atomic_to_vgasnet",
            "sliding window, 2 ranks, atomic MPI-IO",
            3.0,
        ),
        (SlidingWindow, 4, None, MpiIoAtomic, "sliding_4_atomic_to_vgasnet", "the same, 4 ranks", 3.0),
        (BtioFull, 4, None, MpiIo, "btio_full_mpi_to_vgasnet", "BT-IO full, 4 ranks, MPI-IO", 1.3),
        (BtioSimple, 4, None, MpiIo, "btio_simple_mpi_to_vgasnet", "BT-IO simple, 4 ranks, MPI-IO", 10.0),
        (Flash, 4, Some(8), MpiIo, "flash_8_mpi_to_vgasnet", "FLASH 8, 4 ranks, MPI-IO", 2.0),
        (Flash, 4, Some(16), MpiIo, "flash_16_mpi_to_vgasnet", "FLASH 16, 4 ranks, MPI-IO", 1.3),
    ]
};

/// The row of a way: seconds from open to close of all files.
fn row_of(way: Way, ends_with_sync: bool) -> Row {
    let end = if ends_with_sync { "sync" } else { "close" };
    Row::labelled(format!("{}, {end}", way.name())).keep("way", way).keep("ends_with_sync", ends_with_sync)
}

fn add(row: &mut Row, times: Times) {
    row.add("seconds", times.written_seconds + times.read_seconds);
    row.add("written_seconds", times.written_seconds);
    row.add("read_seconds", times.read_seconds);
}

pub fn run(options: &Files) -> Result<Report, Stop> {
    let cases = Case::all(options).map_err(Stop::usage)?;
    let programs = Programs::new(options).map_err(Stop::failure)?;
    let mut not_run: Vec<String> = programs.by_mpi.not_run().into_iter().map(|why| format!("MPI-IO: {why}")).collect();
    let mut measuring = Measuring { options, programs: &programs, not_run: &mut not_run };
    let rows = cases.iter().map(|case| measuring.case(case)).collect::<Result<Vec<_>, _>>()?;
    let sequential = measuring.if_chosen(Pattern::Sequential, Measuring::sequential)?;
    let moves = measuring.if_chosen(Pattern::Rows, Measuring::rows)?;
    let row = Row::default().show("mpi", &options.by_mpi.mpicc).show("page_bytes", options.page);
    let row = row.show("pool_bytes", options.pool).keep("repeat", options.repeat).rows("cases", rows.clone());
    let row = sequential.iter().fold(row, |row, figures| row.row("sequential", figures.clone()));
    let row = moves.iter().fold(row, |row, figures| row.row("rows", figures.clone()));
    let mut figures = Figures::of(row).not_run(not_run);
    for (pattern, ranks, size, way, target, meaning, least) in WANTED {
        let is_same =
            |case: &Case| case.pattern == pattern && case.ranks == ranks && size.is_none_or(|size| case.size == size);
        let of_way = |row: &&Row| row.is("way", name(way)) && row.is("ends_with_sync", true);
        let same = cases.iter().zip(&rows).filter(|(case, _)| is_same(case)).flat_map(|(_, row)| row.list("rows"));
        let ratios = same.filter(of_way).map(|row| row.number("to_vgasnet"));
        figures = figures.target(target, meaning, ratios.min_by(f64::total_cmp), AtLeast, least);
    }
    let worse = sequential.map(|row| row.number("written_to_vgasnet").min(row.number("read_to_vgasnet")));
    let moves = moves.map(|row| row.number("fewer_moves"));
    let figures = figures.target("sequential_to_direct", "one rank in order to O_DIRECT", worse, AtLeast, 0.9).target(
        "fewer_moves",
        "page moves without shipping to those with",
        moves,
        AtLeast,
        20.0,
    );
    Ok(Report::of_figures("files", figures))
}

struct Measuring<'a> {
    options: &'a Files,
    programs: &'a Programs<'a>,
    /// Requested measurements that were not possible.
    not_run: &'a mut Vec<String>,
}

impl Measuring<'_> {
    fn if_chosen<T>(&mut self, pattern: Pattern, measure: fn(&mut Self) -> Result<T, Stop>) -> Result<Option<T>, Stop> {
        self.options.patterns.contains(&pattern).then(|| measure(self)).transpose()
    }

    fn order(&self, way: Way, ends_with_sync: bool) -> Order<'static> {
        let (page_bytes, pool_bytes) = (self.options.page, self.options.pool);
        Order { way, ends_with_sync, page_bytes, pool_bytes, vars: &[], limit: None }
    }

    /// Alternates rounds of all ways, each with the same memory.
    fn case(&mut self, case: &Case) -> Result<Row, Stop> {
        let ends: &[bool] = if self.options.only_sync { &[true] } else { &[true, false] };
        let ways = self.programs.ways(case);
        // A way, its end, its row, and the peak memory of its ranks.
        let mut all: Vec<(Way, bool, Row, Option<u64>)> = Vec::new();
        for end in ends {
            all.extend(ways.iter().map(|way| (*way, *end, row_of(*way, *end), None)));
        }
        let mut checksum = String::new();
        let bar = progress::bar(true, "files", u64::from(self.options.repeat) * all.len() as u64);
        for _ in 0..self.options.repeat {
            for (way, ends_with_sync, row, peak_bytes) in &mut all {
                // A separate cgroup per run, so no run finds file pages cached by another.
                let limit = self.programs.limit(case).map_err(|why| self.note(format!("no limit on memory: {why}")));
                let limit = limit.ok();
                let path = limit.as_ref().map(|limit| limit.path());
                let order = Order { limit: path, ..self.order(*way, *ends_with_sync) };
                let ran = self.programs.run(case, &order);
                let (times, sum) = ran.map_err(|why| failed(case, *way, &why))?;
                add(row, times);
                *peak_bytes = (*peak_bytes).max(limit.and_then(|limit| limit.peak_bytes()));
                if !checksum.is_empty() && checksum != sum {
                    return Err(failed(case, *way, &format!("the checksum is {sum} and not {checksum}")));
                }
                checksum = sum;
                bar.inc(1);
            }
        }
        let rows = all.iter().map(|(_, end, row, peak_bytes)| {
            let baseline = all.iter().find(|(way, other, ..)| *way == Way::Vgasnet && other == end);
            let speed = case.moved_bytes as f64 / row.number("seconds");
            let row = row.clone().keep_some("peak_bytes", *peak_bytes).show("bytes_per_second", speed);
            let row = row.keep("vgasnet_seconds", baseline.map(|(_, _, row, _)| row.number("seconds")));
            row.ratio("to_vgasnet", "seconds", "vgasnet_seconds")
        });
        let row = case.row().show("memory_bytes", self.programs.limit_bytes(case)).keep("checksum", checksum);
        Ok(row.rows("rows", rows.collect()))
    }

    /// Records a reason, once.
    fn note(&mut self, why: String) {
        if !self.not_run.contains(&why) {
            self.not_run.push(why);
        }
    }

    /// One rank with a file of several pools, compared with `O_DIRECT` at its best depth.
    fn sequential(&mut self) -> Result<Row, Stop> {
        let case = Case::sequential(self.options);
        let mut loops = Loops::new(self.programs.dir(), case.size);
        let order = self.order(Way::Vgasnet, true);
        let mut own = row_of(Way::Vgasnet, true);
        for _ in 0..self.options.repeat {
            loops.measure().map_err(|error| Stop::failure(format!("reading and writing plainly: {error}")))?;
            let ran = self.programs.run(&case, &order);
            let (times, _) = ran.map_err(|why| failed(&case, Way::Vgasnet, &why))?;
            add(&mut own, times);
        }
        let best = |name: &str| {
            loops.passes.iter().map(|row| row.number(name)).fold(f64::INFINITY, f64::min) / own.number(name)
        };
        let [written, read] = ["written_seconds", "read_seconds"].map(best);
        let row = case.row().keep("page_bytes", order.page_bytes).row("vgasnet", own);
        let row = row.keep("is_direct", loops.is_direct());
        let row = row.rows("direct", loops.passes);
        Ok(row.show("written_to_vgasnet", written).show("read_to_vgasnet", read))
    }

    /// Rows of many ranks: counts the moved pages. Less than one moved page counts as one.
    fn rows(&mut self) -> Result<Row, Stop> {
        let case = Case::rows();
        let [shipped, moved] = ["1", "0"].map(|ship| self.pages_moved(&case, ship));
        let (shipped, moved) = (shipped?, moved?);
        let row = case.row().keep("page_bytes", self.options.page).show("pages_moved", shipped);
        Ok(row.show("pages_moved_without_shipping", moved).show("fewer_moves", moved / shipped.max(1.0)))
    }

    /// The number of pages sent between ranks.
    fn pages_moved(&self, case: &Case, ship: &str) -> Result<f64, Stop> {
        let file = self.programs.dir().join("stats");
        let name = file.display().to_string();
        // With shared memory ranks would access a page in place, and none would move.
        let vars = [("VGASNET_SHIP", ship), ("VGASNET_PEER_MEMORY", "0"), ("VGASNET_STATS_FILE", &name)];
        let pool_bytes = POOL_PAGES_OF_ROWS * self.options.page;
        let order = Order { vars: &vars, pool_bytes, ..self.order(Way::Vgasnet, true) };
        self.programs.run(case, &order).map_err(|why| failed(case, Way::Vgasnet, &why))?;
        let text = std::fs::read_to_string(&file).map_err(|error| Stop::failure(format!("{name}: {error}")))?;
        let stats: Value = serde_json::from_str(&text).map_err(|error| Stop::failure(format!("{name}: {error}")))?;
        let rows = ["page_in_neighbour_bytes", "page_in_other_host_bytes"].map(|row| stats["all"][row].as_f64());
        let bytes: Option<f64> = rows.into_iter().sum();
        let bytes = bytes.ok_or_else(|| Stop::failure(format!("{name}: it has no bytes of pages")))?;
        Ok(bytes / self.options.page as f64)
    }
}

fn failed(case: &Case, way: Way, why: &str) -> Stop {
    Stop::failure(format!("{}, {} ranks, {}: {why}", name(case.pattern), case.ranks, way.name()))
}
