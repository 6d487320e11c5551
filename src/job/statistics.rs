//! The statistics of the job, gathered when all ranks are through, and of a rank while it runs.

use super::termination::{handler_of, set_handler};
use super::{ATTACH, Job, job, report, runtime, say, threads};
use crate::ops::CopyStats;
use std::ffi::c_int;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;
use vgasnet_conduit::{ConduitError, of_other_version, whole_file};
use vgasnet_protocol::Rank;
use vgasnet_settings::Config;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row, Snapshot, json, table};
use vgasnet_sys::{futex, keep_errno};

/// A rank requests the table.
const TABLE: u64 = 1;

/// A rank requests the file.
const FILE: u64 = 2;

/// The outputs requested by the settings of a rank, in bits. If any rank requests one, all ranks take part.
pub(super) fn requested_outputs(config: &Config) -> u64 {
    (u64::from(config.stats) * TABLE) | (u64::from(config.stats_file.is_some()) * FILE)
}

/// Number of signals received that ask for this rank's table.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Whether the counts are shown already, or being shown.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

impl Job {
    /// Starts counting if a rank requests it. Called before this rank serves others.
    pub(super) fn turn_on_statistics(&self) {
        if self.statistics == 0 {
            return answer_without_statistics();
        }
        self.try_file();
        stats::turn_on(self.config.page_bytes, self.config.pool_bytes);
        // Without a thread to answer it, the signal keeps its default.
        if handler_of(libc::SIGUSR2) == Some(libc::SIG_DFL) && threads::start("vgasnet-stats", answer_signals).is_ok() {
            let handler: extern "C" fn(c_int) = on_signal;
            set_handler(libc::SIGUSR2, handler as usize);
        }
    }

    /// Shows the counts of all ranks, at rank 0. Every rank calls it when all are through: by then all work for each
    /// other is counted. A rank other than 0 also calls it when it leaves earlier.
    pub(super) fn show_statistics(&self) {
        if stats::is_on() {
            self.show_all();
        }
    }

    /// Out of line: a snapshot takes much of a small stack.
    #[inline(never)]
    fn show_all(&self) {
        let Some(own) = own_statistics().filter(|_| !IS_SHOWN.swap(true, Ordering::AcqRel)) else { return };
        let Some(runtime) = runtime() else { return };
        if self.conduit.rank().0 != 0 {
            return runtime.driver().send_closing_report(&own.encode());
        }
        let gathered = gather(self.conduit.ranks(), own, runtime.driver().receive_closing_reports());
        let gathered = gathered.map_err(|error| UserError::new(error.to_string()));
        if let Err(line) = gathered.and_then(|(ranks, lacking)| self.show(&ranks, &lacking)) {
            report("statistics", &line);
        }
    }

    /// Shows the statistics of all ranks except the `lacking` ones.
    fn show(&self, ranks: &[Snapshot], lacking: &[u32]) -> Result<(), UserError> {
        if self.statistics & TABLE != 0 {
            let s = if ranks.len() == 1 { "" } else { "s" };
            let but = if lacking.is_empty() { String::new() } else { format!("; not counted: {}", join(lacking)) };
            print(&format!("statistics of {} rank{s} over {}{but}", ranks.len(), self.conduit.name()), 0, ranks);
        }
        let Some(path) = &self.config.stats_file else { return Ok(()) };
        whole_file::replace(path, |file| file.write_all(json(ranks, lacking).as_bytes()))
            .map_err(|error| cannot_write(path, &error))
    }

    /// Warns early if the file cannot be written.
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

/// This rank's counts so far; `None` while statistics are off.
pub fn own_statistics() -> Option<Snapshot> {
    let Some(runtime) = runtime().filter(|_| stats::is_on()) else { return stats::snapshot() };
    runtime.driver().engine().count_used();
    let mut snapshot = stats::snapshot()?;
    set_copies(&mut snapshot, &runtime.ops().readonly().stats());
    Some(snapshot)
}

/// Sets the rows counted by the caches of copies.
fn set_copies(snapshot: &mut Snapshot, copies: &CopyStats) {
    let rows = [
        (Row::CopyGets, copies.gets),
        (Row::CopyHits, copies.hits),
        (Row::CopyPartial, copies.partial),
        (Row::CopyJoined, copies.joined),
        (Row::CopyDirect, copies.direct),
        (Row::CopyConflicting, copies.conflicting),
        (Row::CopyCapacity, copies.capacity),
        (Row::CopyFailing, copies.failing),
        (Row::CopyDormant, copies.dormant),
        (Row::CopyBytesHit, copies.bytes_hit),
        (Row::CopyBytesFetched, copies.bytes_fetched),
        (Row::CopyBytesUsed, copies.bytes_used),
        (Row::CopyBytesMax, copies.bytes_max),
    ];
    rows.into_iter().for_each(|(row, value)| snapshot.set(row, value));
}

/// Number of protocol messages sent to other ranks so far; `None` while statistics are off.
pub fn protocol_messages_sent() -> Option<u64> {
    own_statistics().map(|own| own.get(Row::ProtocolSent))
}

/// Prints this rank's counts so far, with the reason why there are no more.
pub(super) fn show_own(why: &str) {
    let Some((job, own)) = job().zip(own_statistics()) else { return };
    print(&format!("statistics of rank {} so far: {why}", job.conduit.rank()), job.conduit.rank().0, &[own]);
}

fn print(title: &str, first: u32, ranks: &[Snapshot]) {
    say(table(title, first, ranks).trim_end());
}

/// The counts of all ranks, in order, and the ranks without a report, with zeros in their place.
///
/// # Errors
/// A report is not from a rank of this version.
fn gather(ranks: u32, own: Snapshot, told: Vec<(Rank, Vec<u8>)>) -> Result<(Vec<Snapshot>, Vec<u32>), ConduitError> {
    let mut all = vec![None; ranks as usize];
    all[0] = Some(own);
    for (rank, bytes) in told {
        let decoded = Snapshot::decode(&bytes).ok_or_else(|| of_other_version(rank.index(), "its statistics"))?;
        all[rank.index()] = Some(decoded);
    }
    let lacking = (0..).zip(&all).filter(|(_, known)| known.is_none()).map(|(rank, _)| rank).collect();
    Ok((all.into_iter().map(Option::unwrap_or_default).collect(), lacking))
}

fn join(ranks: &[u32]) -> String {
    let s = if ranks.len() == 1 { "" } else { "s" };
    format!("rank{s} {}", ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}

/// Runs at any time in any thread. Waking is async-signal-safe.
extern "C" fn on_signal(_: c_int) {
    keep_errno(|| {
        ASKED.fetch_add(1, Ordering::SeqCst);
        futex::wake_one(&ASKED);
    });
}

/// The start of this rank's attach.
static ATTACHED: OnceLock<Instant> = OnceLock::new();

/// Keeps a signal that asks for statistics from ending the job while they are off.
fn answer_without_statistics() {
    ATTACHED.get_or_init(Instant::now);
    if handler_of(libc::SIGUSR2) == Some(libc::SIG_DFL) {
        let handler: extern "C" fn(c_int) = on_signal_without_statistics;
        set_handler(libc::SIGUSR2, handler as usize);
    }
}

/// Runs at any time in any thread, so it makes only async-signal-safe calls, and composes the line in its own frame.
extern "C" fn on_signal_without_statistics(_: c_int) {
    keep_errno(|| {
        let Some((job, since)) = job().zip(ATTACHED.get()) else { return };
        let mut bytes = [0_u8; 256];
        let room = bytes.len();
        let mut unused = &mut bytes[..];
        // The line fits.
        let _ = writeln!(
            unused,
            "vgasnet: rank {} of {} still runs, {} s after vgasnet_attach; pool {} KiB, pages of {} KiB; statistics are off: set \
             VGASNET_STATS=1",
            job.conduit.rank(),
            job.conduit.ranks(),
            since.elapsed().as_secs(),
            job.config.pool_bytes >> 10,
            job.config.page_bytes >> 10
        );
        let len = room - unused.len();
        // SAFETY: `len` bytes of the frame have been written.
        unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), len) };
    });
}

/// The body of the thread that prints the table on each signal, until the process ends.
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

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_stats::Row;

    #[test]
    fn a_rank_that_said_nothing_is_named_and_counts_nothing() {
        let counted = |gets| {
            let mut snapshot = Snapshot::default();
            snapshot.set(Row::HitGets, gets);
            snapshot
        };
        let (ranks, lacking) = gather(4, counted(3), vec![(Rank(2), counted(5).encode())]).expect("a snapshot");
        assert_eq!(ranks.iter().map(|rank| rank.get(Row::HitGets)).collect::<Vec<_>>(), [3, 0, 5, 0]);
        assert_eq!((lacking.as_slice(), &*join(&lacking), &*join(&[7])), (&[1, 3][..], "ranks 1, 3", "rank 7"));
        assert!(gather(2, counted(3), vec![(Rank(1), vec![1])]).is_err());
    }
}
