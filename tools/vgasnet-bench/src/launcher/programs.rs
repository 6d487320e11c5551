//! `lcc` and `barnes-hut`: examples, with alternating rounds of all ways.

use crate::options::{BarnesHutOptions, LccOptions, ProgramOptions};
use crate::programs::examples::{Examples, Said};
use crate::report::{Output, ProgramReport, Verdict, Way, WayRow};
use crate::targets::{Target, judge_barnes_hut, judge_lcc};
use crate::{Stop, plot};
use vgasnet_measuring::progress;

/// An example, and its measurement.
struct Program<'a> {
    options: &'a ProgramOptions,
    name: &'static str,
    args: Vec<String>,
    /// Additional arguments if gets are cached by vgasnet.
    cached_args: Vec<String>,
    /// The mode of the preloaded MPI library for caching gets, chosen to be correct for the program.
    mpi_mode: &'static str,
    ways: &'static [Way],
    judge: fn(&[WayRow]) -> Vec<Target>,
}

pub fn lcc(options: &LccOptions) -> Result<u8, Stop> {
    let (scale, seed) = (options.scale.to_string(), options.program.seed.to_string());
    let program = Program {
        options: &options.program,
        name: "lcc",
        args: ["--scale", &scale, "--seed", &seed].map(str::to_owned).into(),
        cached_args: options.weighted.then(|| "--weighted".to_owned()).into_iter().collect(),
        mpi_mode: "always",
        ways: &[Way::Uncached, Way::PageCache, Way::Cached, Way::Both, Way::Mpi, Way::MpiCached],
        judge: judge_lcc,
    };
    program.measure()
}

pub fn barnes_hut(options: &BarnesHutOptions) -> Result<u8, Stop> {
    let [bodies, steps] = [options.bodies, options.steps].map(|number| number.to_string());
    let seed = options.program.seed.to_string();
    let mut args: Vec<String> = ["--bodies", &bodies, "--steps", &steps, "--seed", &seed].map(str::to_owned).into();
    args.extend(options.uniform.then(|| "--uniform".to_owned()));
    let program = Program {
        options: &options.program,
        name: "barnes_hut",
        args,
        cached_args: Vec::new(),
        mpi_mode: "phase",
        ways: &[Way::Uncached, Way::DirectMapped, Way::PageCache, Way::Cached, Way::Both, Way::Mpi, Way::MpiCached],
        judge: judge_barnes_hut,
    };
    program.measure()
}

impl Program<'_> {
    fn measure(&self) -> Result<u8, Stop> {
        let options = self.options;
        if let Some(part) = options.parts.iter().find(|part| !(0.001..=100.0).contains(*part)) {
            return Err(Stop::usage(format!("--parts {part}: give parts from 0.001 to 100")));
        }
        let output = Output::open(&options.json, &options.judging.plot)?;
        let examples = Examples::new(options, self.name, &self.args).map_err(Stop::failure)?;
        let remote_bytes = examples.remote_bytes();
        let mut rows = self.rows(&examples);
        let bar = progress::bar(true, self.name, u64::from(options.repeat) * rows.len() as u64);
        for _ in 0..options.repeat {
            for row in &mut rows {
                let said = examples.run(row.way, row.memory_bytes, &self.cached_args, self.mpi_mode);
                let said = said.map_err(|why| Stop::failure(format!("{}, {}: {why}", self.name, row.way.name())))?;
                self.check(&examples, &said)?;
                row.add(&said);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        rows.iter_mut().for_each(WayRow::end);
        let not_run: Vec<String> = examples.mpi_not_run().into_iter().collect();
        let verdict = Verdict::new((self.judge)(&rows), not_run.is_empty());
        let report = ProgramReport {
            program: self.name,
            args: &self.args,
            ranks: options.ranks,
            mpi_ranks: options.mpi_ranks,
            page_bytes: options.page,
            two_hosts: options.two_hosts,
            repeat: options.repeat,
            remote_bytes,
            rows,
            not_run,
            verdict,
        };
        output.show(&report, &report.table(), || plot::programs(&report))?;
        Ok(report.verdict.status(options.judging.check))
    }

    /// The measurements: each way once, or with each amount of memory.
    fn rows(&self, examples: &Examples<'_>) -> Vec<WayRow> {
        let mut rows = Vec::new();
        for &way in self.ways.iter().filter(|way| examples.has(**way)) {
            if !way.has_memory() {
                rows.push(WayRow::new(way, None, 0));
                continue;
            }
            for &part in &self.options.parts {
                // Whole pages, so all ways have the same memory.
                let pages = (part * examples.remote_bytes() as f64 / self.options.page as f64).round() as u64;
                let bytes = pages.max(1) * self.options.page;
                rows.push(WayRow::new(way, Some(part), bytes.max(way.memory_bytes_min())));
            }
        }
        rows
    }

    /// Checks that all ways find the same result.
    fn check(&self, examples: &Examples<'_>, said: &Said) -> Result<(), Stop> {
        if said.checksum == examples.checksum() {
            return Ok(());
        }
        Err(Stop::failure(format!(
            "{} found {} and {} with other memory",
            self.name,
            said.checksum,
            examples.checksum()
        )))
    }
}
