//! Alternating rounds of all ways, and their targets.

use super::programs::{Order, Programs, Times};
use super::sequential::{Direct, Loops};
use super::{Case, Files, Pattern, Way};
use crate::Stop;
use crate::baseline::median;
use crate::report::Bound::AtLeast;
use crate::report::{Figures, Report};
use crate::rows::Row;
use serde_json::Value;
use vgasnet_measuring::progress;

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

/// One way of a case, by round.
struct WayTimes {
    way: Way,
    ends_with_sync: bool,
    written: Vec<f64>,
    read: Vec<f64>,
    /// Peak memory of its ranks.
    peak_bytes: Option<u64>,
}

impl WayTimes {
    fn new(way: Way, ends_with_sync: bool) -> WayTimes {
        WayTimes { way, ends_with_sync, written: Vec::new(), read: Vec::new(), peak_bytes: None }
    }

    fn add(&mut self, times: Times, peak_bytes: Option<u64>) {
        self.written.push(times.written_seconds);
        self.read.push(times.read_seconds);
        self.peak_bytes = self.peak_bytes.max(peak_bytes);
    }

    /// From open to close of all files.
    fn seconds(&self) -> Vec<f64> {
        self.written.iter().zip(&self.read).map(|(written, read)| written + read).collect()
    }

    fn row(&self) -> Row {
        let end = if self.ends_with_sync { "sync" } else { "close" };
        let row = Row::labelled(format!("{}, {end}", self.way.name()));
        row.keep("way", self.way)
            .keep("ends_with_sync", self.ends_with_sync)
            .median("seconds", &self.seconds())
            .median("written_seconds", &self.written)
            .median("read_seconds", &self.read)
            .keep_some("peak_bytes", self.peak_bytes)
    }
}

pub fn run(options: &Files) -> Result<Report, Stop> {
    let cases = Case::all(options).map_err(Stop::usage)?;
    let programs = Programs::new(options).map_err(Stop::failure)?;
    let mut not_run: Vec<String> = programs.mpi_not_run().into_iter().map(|why| format!("MPI-IO: {why}")).collect();
    let mut measuring = Measuring { options, programs: &programs, not_run: &mut not_run };
    let rows = cases.iter().map(|case| measuring.case(case)).collect::<Result<Vec<_>, _>>()?;
    let sequential = measuring.if_chosen(Pattern::Sequential, Measuring::sequential)?;
    let moves = measuring.if_chosen(Pattern::Rows, Measuring::rows)?;
    let row = Row::default().show("mpi", &options.mpicc).show("page_bytes", options.page);
    let row = row.show("pool_bytes", options.pool).keep("repeat", options.repeat).rows("cases", rows.clone());
    let row = sequential.iter().fold(row, |row, figures| row.row("sequential", figures.clone()));
    let row = moves.iter().fold(row, |row, figures| row.row("rows", figures.clone()));
    let mut figures = Figures::of(row).not_run(not_run);
    for (pattern, ranks, size, way, name, meaning, least) in WANTED {
        let is_same =
            |case: &Case| case.pattern == pattern && case.ranks == ranks && size.is_none_or(|size| case.size == size);
        let of_way = |row: &&Row| row.is("way", way.json()) && row.is("ends_with_sync", true);
        let same = cases.iter().zip(&rows).filter(|(case, _)| is_same(case)).flat_map(|(_, row)| row.list("rows"));
        let ratios = same.filter(of_way).map(|row| row.number("to_vgasnet"));
        figures = figures.target(name, meaning, ratios.min_by(f64::total_cmp), AtLeast, least);
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
        let mut all: Vec<WayTimes> = Vec::new();
        for end in ends {
            all.extend(ways.iter().map(|way| WayTimes::new(*way, *end)));
        }
        let mut checksum = String::new();
        let bar = progress::bar(true, case.pattern.name(), u64::from(self.options.repeat) * all.len() as u64);
        for _ in 0..self.options.repeat {
            for one in &mut all {
                // A separate cgroup per run, so no run finds file pages cached by another.
                let limit = self.programs.limit(case).map_err(|why| self.note(format!("no limit on memory: {why}")));
                let limit = limit.ok();
                let path = limit.as_ref().map(|limit| limit.path());
                let order = Order { limit: path, ..self.order(one.way, one.ends_with_sync) };
                let ran = self.programs.run(case, &order);
                let (times, sum) = ran.map_err(|why| failed(case, one.way, &why))?;
                one.add(times, limit.and_then(|limit| limit.peak_bytes()));
                if !checksum.is_empty() && checksum != sum {
                    return Err(failed(case, one.way, &format!("the checksum is {sum} and not {checksum}")));
                }
                checksum = sum;
                bar.inc(1);
            }
        }
        let rows = all.iter().map(|one| {
            let is_baseline =
                |other: &&WayTimes| other.way == Way::Vgasnet && other.ends_with_sync == one.ends_with_sync;
            let baseline = all.iter().find(is_baseline).map(|other| median(&other.seconds()));
            let speed = case.moved_bytes as f64 / median(&one.seconds());
            let row = one.row().show("bytes_per_second", speed).keep("vgasnet_seconds", baseline);
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
        let mut own = WayTimes::new(Way::Vgasnet, true);
        for _ in 0..self.options.repeat {
            loops.measure().map_err(|error| Stop::failure(format!("reading and writing plainly: {error}")))?;
            let ran = self.programs.run(&case, &order);
            let (times, _) = ran.map_err(|why| failed(&case, Way::Vgasnet, &why))?;
            own.add(times, None);
        }
        let best = |each: fn(&Direct) -> &Vec<f64>, own: &[f64]| {
            let depths = loops.passes.iter().map(|passes| median(each(passes)));
            depths.fold(f64::INFINITY, f64::min) / median(own)
        };
        let written = best(|passes| &passes.written_seconds_each, &own.written);
        let read = best(|passes| &passes.read_seconds_each, &own.read);
        let row = case.row().keep("page_bytes", order.page_bytes).row("vgasnet", own.row());
        let row = row.keep("is_direct", loops.is_direct());
        let row = row.rows("direct", loops.passes.iter().map(Direct::row).collect());
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
    Stop::failure(format!("{}, {} ranks, {}: {why}", case.pattern.name(), case.ranks, way.name()))
}
