//! The statistics of the job: brought together when all ranks are through, and those of a rank while it runs.

use super::termination::{handler_of, set_handler};
use super::{ATTACH, Job, job, report, runtime, say, threads, whole_file};
use crate::error::UserError;
use crate::settings::Config;
use crate::stats::{self, Snapshot, json, table};
use crate::sys::{futex, keep_errno};
use std::ffi::c_int;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vgasnet_conduit::{Conduit, ConduitError, EXCHANGE_BYTES_MAX, of_other_version};

/// A rank wishes for the table.
const TABLE: u64 = 1;

/// A rank wishes for the file.
const FILE: u64 = 2;

/// What the settings of a rank wish for, in bits: each rank takes part if any wishes.
pub(super) fn wish(config: &Config) -> u64 {
    (u64::from(config.stats) * TABLE) | (u64::from(config.stats_file.is_some()) * FILE)
}

/// How often the table of this rank was asked for, by a signal.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// What was counted is shown, or is being shown.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

impl Job {
    /// Counts from now on, if a rank wishes. Called before the rank serves others.
    pub(super) fn turn_on_statistics(&self) {
        if self.statistics == 0 {
            return;
        }
        self.try_file();
        stats::turn_on(self.config.page_bytes, self.config.pool_bytes);
        // Without a thread for it, the signal keeps its default.
        if handler_of(libc::SIGUSR2) == Some(libc::SIG_DFL) && threads::start("vgasnet-stats", answer_signals).is_ok() {
            let handler: extern "C" fn(c_int) = on_signal;
            set_handler(libc::SIGUSR2, handler as usize);
        }
    }

    /// Brings the statistics of all ranks together and shows them. Every rank calls it, when all are through: what they
    /// have served each other is counted by then.
    pub(super) fn show_statistics(&self) {
        let Some(own) = own_statistics().filter(|_| !IS_SHOWN.swap(true, Ordering::AcqRel)) else { return };
        let shown = gather(&*self.conduit, &own).map_err(|error| UserError::new(error.to_string()));
        let shown = shown.and_then(|ranks| if self.conduit.rank().0 == 0 { self.show(&ranks) } else { Ok(()) });
        if let Err(line) = shown {
            report("statistics", &line);
        }
    }

    fn show(&self, ranks: &[Snapshot]) -> Result<(), UserError> {
        if self.statistics & TABLE != 0 {
            let s = if ranks.len() == 1 { "" } else { "s" };
            print(&format!("statistics of {} rank{s} over {}", ranks.len(), self.conduit.name()), 0, ranks);
        }
        let Some(path) = &self.config.stats_file else { return Ok(()) };
        whole_file::replace(path, |file| file.write_all(json(ranks).as_bytes()))
            .map_err(|error| cannot_write(path, &error))
    }

    /// Says early that the file cannot be written.
    fn try_file(&self) {
        let path = self.config.stats_file.as_ref().filter(|_| self.conduit.rank().0 == 0);
        let tried = path.map_or(Ok(()), |path| whole_file::try_path(path).map_err(|error| cannot_write(path, &error)));
        if let Err(line) = tried {
            say(&format!("rank 0: {ATTACH}: warning: {line}"));
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> UserError {
    let path = path.display();
    UserError::new(format!("cannot write {path}: {error}; set VGASNET_STATS_FILE to a file that can be written"))
}

/// What this rank has counted so far; `None` while statistics are off.
pub fn own_statistics() -> Option<Snapshot> {
    if let Some(runtime) = runtime().filter(|_| stats::is_on()) {
        runtime.driver().engine().count_used();
    }
    stats::snapshot()
}

/// Prints what this rank has counted so far, which is why there is no more.
pub(super) fn show_own(why: &str) {
    let Some((job, own)) = job().zip(own_statistics()) else { return };
    print(&format!("statistics of rank {} so far: {why}", job.conduit.rank()), job.conduit.rank().0, &[own]);
}

fn print(title: &str, first: u32, ranks: &[Snapshot]) {
    say(table(title, first, ranks).trim_end());
}

/// What all ranks have counted, in order. Collective.
///
/// # Errors
/// The exchange fails, or a rank tells what no rank of this version does.
fn gather(conduit: &dyn Conduit, own: &Snapshot) -> Result<Vec<Snapshot>, ConduitError> {
    const WHAT: &str = "its statistics";
    let bytes = own.encode();
    let lengths = conduit.exchange(&(bytes.len() as u32).to_ne_bytes())?;
    let length = |(rank, told): (usize, &Vec<u8>)| {
        let told = told.as_slice().try_into().map_err(|_| of_other_version(rank, WHAT));
        told.map(|told| u32::from_ne_bytes(told) as usize)
    };
    let lengths = lengths.iter().enumerate().map(length).collect::<Result<Vec<_>, _>>()?;
    let mut all = vec![Vec::new(); lengths.len()];
    let rounds = lengths.iter().max().map_or(0, |most| most.div_ceil(EXCHANGE_BYTES_MAX));
    for round in 0..rounds {
        let start = (round * EXCHANGE_BYTES_MAX).min(bytes.len());
        let end = (start + EXCHANGE_BYTES_MAX).min(bytes.len());
        let parts = conduit.exchange(&bytes[start..end])?;
        if conduit.rank().0 == 0 {
            all.iter_mut().zip(parts).for_each(|(whole, part)| whole.extend(part));
        }
    }
    if conduit.rank().0 != 0 {
        return Ok(Vec::new());
    }
    let decode = |(rank, bytes): (usize, &Vec<u8>)| Snapshot::decode(bytes).ok_or_else(|| of_other_version(rank, WHAT));
    all.iter().enumerate().map(decode).collect()
}

/// Runs at any moment in any thread. Waking is async-signal-safe.
extern "C" fn on_signal(_: c_int) {
    keep_errno(|| {
        ASKED.fetch_add(1, Ordering::SeqCst);
        futex::wake_one(&ASKED);
    });
}

/// The body of the thread that prints the table when it is asked for, until the process ends.
fn answer_signals() {
    let mut answered = 0;
    loop {
        let asked = ASKED.load(Ordering::SeqCst);
        if asked == answered {
            futex::wait_for(&ASKED, asked, None);
        } else {
            answered = asked;
            show_own("it still runs");
        }
    }
}
