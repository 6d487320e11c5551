//! `gasnet-ex`: the program over both libraries, with alternating rounds.

use crate::baseline::median;
use crate::gasnet_ex::{Programs, Times};
use crate::options::GasnetExOptions;
use crate::report::{GasnetExReport, OperationRow, Output, Verdict};
use crate::targets::judge_gasnet_ex;
use crate::{Stop, plot};
use vgasnet_measuring::progress;
use vgasnet_settings::format_size;

/// Bytes filled at a time by the program.
const SPREAD_UNIT_BYTES: u64 = 64 << 10;

pub fn run(options: &GasnetExOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.json, &options.judging.plot)?;
    let most = options.pool / 2 / SPREAD_UNIT_BYTES * SPREAD_UNIT_BYTES;
    if !(SPREAD_UNIT_BYTES..=most).contains(&options.spread) || options.spread % SPREAD_UNIT_BYTES != 0 {
        let [unit, most] = [SPREAD_UNIT_BYTES, most].map(format_size);
        let spread = format_size(options.spread);
        return Err(Stop::usage(format!("--spread {spread}: give a multiple of {unit} up to half a pool, {most}")));
    }
    let programs = Programs::new(options).map_err(Stop::failure)?;
    let mut rows = Vec::new();
    for ranks in &options.ranks {
        rows.extend(measure(options, &programs, *ranks)?);
    }
    let not_run: Vec<String> = programs.other_not_run().map(str::to_owned).into_iter().collect();
    let verdict = Verdict::new(judge_gasnet_ex(&rows), not_run.is_empty());
    let report = GasnetExReport {
        benchmark: "gasnet-ex",
        other: options.other.as_deref(),
        network: options.network,
        spread_bytes: options.spread,
        pool_bytes: options.pool,
        repeat: options.repeat,
        rows,
        not_run,
        verdict,
    };
    output.show(&report, &report.table(), || plot::gasnet_ex(&report))?;
    Ok(report.verdict.status(options.judging.check))
}

fn measure(options: &GasnetExOptions, programs: &Programs<'_>, ranks: u32) -> Result<Vec<OperationRow>, Stop> {
    let failed = |whose: &str, why: String| Stop::failure(format!("gasnet-ex, {ranks} ranks, {whose}: {why}"));
    let bar = progress::bar(true, "gasnet-ex", u64::from(options.repeat));
    let mut rows: Vec<OperationRow> = Vec::new();
    for _ in 0..options.repeat {
        let ours = programs.run_ours(ranks).map_err(|why| failed("vgasnet", why))?;
        let other = match programs.other_not_run() {
            Some(_) => Times::new(),
            None => programs.run_other(ranks).map_err(|why| failed("the other", why))?,
        };
        for (at, (name, times)) in ours.iter().enumerate() {
            if rows.len() == at {
                rows.push(OperationRow::new(name, ranks));
            }
            rows[at].add(median(times), other.get(name).map(|times| median(times)));
        }
        bar.inc(1);
    }
    Ok(rows)
}
