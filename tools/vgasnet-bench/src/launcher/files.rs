//! `files`: access patterns on shared files, with alternating rounds of all ways.

use crate::files::programs::{Order, Programs};
use crate::files::sequential::Loops;
use crate::files::{Case, Pattern, Way};
use crate::options::FilesOptions;
use crate::report::{CaseFigures, FileRow, FilesReport, Output, RowFigures, SequentialFigures, Verdict};
use crate::targets::judge_files;
use crate::{Stop, plot};
use serde_json::Value;
use vgasnet_measuring::progress;

/// Pages in the pool of a rank that writes rows.
const POOL_PAGES_OF_ROWS: u64 = 16;

pub fn run(options: &FilesOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.json, &options.judging.plot)?;
    let cases = Case::all(options).map_err(Stop::usage)?;
    let programs = Programs::new(options).map_err(Stop::failure)?;
    let mut not_run: Vec<String> = programs.mpi_not_run().into_iter().map(|why| format!("MPI-IO: {why}")).collect();
    let mut measuring = Measuring { options, programs: &programs, not_run: &mut not_run };
    let cases = cases.into_iter().map(|case| measuring.case(case)).collect::<Result<Vec<_>, _>>()?;
    let sequential = measuring.if_chosen(Pattern::Sequential, Measuring::sequential)?;
    let rows = measuring.if_chosen(Pattern::Rows, Measuring::rows)?;
    let targets = judge_files(&cases, sequential.as_ref(), rows.as_ref());
    let verdict = Verdict::new(targets, not_run.is_empty());
    let report = FilesReport {
        benchmark: "files",
        mpi: &options.mpicc,
        page_bytes: options.page,
        pool_bytes: options.pool,
        repeat: options.repeat,
        cases,
        sequential,
        rows,
        not_run,
        verdict,
    };
    output.show(&report, &report.table(), || plot::files(&report))?;
    Ok(report.verdict.status(options.judging.check))
}

struct Measuring<'a> {
    options: &'a FilesOptions,
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
    fn case(&mut self, case: Case) -> Result<CaseFigures, Stop> {
        let ends: &[bool] = if self.options.only_sync { &[true] } else { &[true, false] };
        let ways = self.programs.ways(&case);
        let mut rows: Vec<FileRow> =
            ends.iter().flat_map(|end| ways.iter().map(|way| FileRow::new(*way, *end))).collect();
        let mut checksum = String::new();
        let bar = progress::bar(true, case.pattern.name(), u64::from(self.options.repeat) * rows.len() as u64);
        for _ in 0..self.options.repeat {
            for row in &mut rows {
                // A separate cgroup per run, so no run finds file pages cached by another.
                let limit = self.programs.limit(&case).map_err(|why| self.note(format!("no limit on memory: {why}")));
                let limit = limit.ok();
                let path = limit.as_ref().map(|limit| limit.path());
                let order = Order { limit: path, ..self.order(row.way, row.ends_with_sync) };
                let ran = self.programs.run(&case, &order);
                let (times, sum) = ran.map_err(|why| failed(&case, row.way, &why))?;
                row.add(times, limit.and_then(|limit| limit.peak_bytes()));
                if !checksum.is_empty() && checksum != sum {
                    return Err(failed(&case, row.way, &format!("the checksum is {sum} and not {checksum}")));
                }
                checksum = sum;
                bar.inc(1);
            }
        }
        let limit_bytes = self.programs.limit_bytes(&case);
        Ok(CaseFigures::new(case, limit_bytes, checksum, rows))
    }

    /// Records a reason, once.
    fn note(&mut self, why: String) {
        if !self.not_run.contains(&why) {
            self.not_run.push(why);
        }
    }

    /// One rank with a file of several pools, compared with `O_DIRECT`.
    fn sequential(&mut self) -> Result<SequentialFigures, Stop> {
        let case = Case::sequential(self.options);
        let mut loops = Loops::new(self.programs.dir(), case.size);
        let order = self.order(Way::Vgasnet, true);
        let mut row = FileRow::new(Way::Vgasnet, true);
        for _ in 0..self.options.repeat {
            loops.measure().map_err(|error| Stop::failure(format!("reading and writing plainly: {error}")))?;
            let ran = self.programs.run(&case, &order);
            let (times, _) = ran.map_err(|why| failed(&case, Way::Vgasnet, &why))?;
            row.add(times, None);
        }
        Ok(SequentialFigures::new(case, order.page_bytes, row, loops.is_direct(), loops.passes))
    }

    /// Rows of many ranks: counts the moved pages.
    fn rows(&mut self) -> Result<RowFigures, Stop> {
        let case = Case::rows();
        let [shipped, moved] = ["1", "0"].map(|ship| self.pages_moved(&case, ship));
        Ok(RowFigures::new(case, self.options.page, shipped?, moved?))
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
