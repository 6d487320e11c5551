//! The job as this process sees it: init, attach, exit.
//!
//! Start-up is collective. A call that fails on some ranks fails on all, after the lowest failing rank has reported its
//! error.

mod agreement;
mod attach;
mod end;
mod late_segment;
#[cfg(feature = "mpi")]
mod mpi_buffers;
mod runtime;
mod slow;
mod statistics;
mod termination;
mod threads;
mod transport;

pub use crate::fault::{Unread, read_for_debugger};
pub use attach::bad_table;
pub use end::{exit, note_exit_handler, on_process_exit};
pub use runtime::Runtime;
pub(crate) use statistics::own_statistics;
pub use statistics::protocol_messages_sent;
pub use termination::watch as watch_signals;
pub use transport::{Arguments, attach_gasnet};

use crate::am::{Entry, Handlers};
use agreement::agree;
use attach::SegmentRequest;
use late_segment::LateSegment;
use vgasnet_settings::UserError;
use vgasnet_settings::{Config, HOMES_VARIABLE, Machine, environment};
use vgasnet_storage as storage;
use vgasnet_sys::children::{WipedInChildren, Zeros};
use vgasnet_sys::{CancellationGuard, heap, signal_changes, standard_streams, tell_of_exceptions};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use vgasnet_conduit::{Conduit, ConduitError};
use vgasnet_protocol::Rank;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The calls in which ranks agree, by their names in C.
const INIT: &str = "vgasnet_init";
const ATTACH: &str = "vgasnet_attach";

/// Why a call failed, as GASNet-1 classifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// Called too early, or once too often.
    NotInit,
    /// The machine lacks a resource.
    Resource,
    /// An argument or a variable is invalid.
    BadArgument,
}

/// The failure of a call.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The class.
    pub class: FailureClass,
    /// The line for the user; `None` if a rank has reported it.
    pub line: Option<UserError>,
    /// The line reported by this rank, without its prefix `vgasnet: `.
    pub said: Option<String>,
}

impl Failure {
    fn new(class: FailureClass, line: impl Into<String>) -> Failure {
        Failure::with_line(class, UserError::new(line))
    }

    /// A failure not yet reported.
    pub fn with_line(class: FailureClass, line: UserError) -> Failure {
        Failure { class, line: Some(line), said: None }
    }
}

/// The values told by each rank to the others at init.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Offer {
    page_bytes: u64,
    max_local_bytes: u64,
    /// [`statistics::requested_outputs`].
    statistics: u64,
    /// 1 if this rank shares its memory.
    peer_memory: u64,
    /// 1 if homes are cyclic.
    cyclic_homes: u64,
}

/// A process between init and the end.
pub struct Job {
    conduit: Arc<dyn Conduit>,
    config: Config,
    /// The largest segment offered to this rank at init.
    max_local_bytes: u64,
    /// The least of these over all ranks.
    max_global_bytes: u64,
    /// [`statistics::requested_outputs`] of all ranks together.
    statistics: u64,
    /// The handlers of Active Messages; some may be registered before attach.
    handlers: Arc<Handlers>,
    attaching: AtomicBool,
    late_segment: LateSegment,
}

/// The state that makes this process a rank. Init and attach each set a pointer once, and it is never freed.
struct OfRank {
    job: AtomicPtr<Job>,
    runtime: AtomicPtr<Runtime>,
}

// SAFETY: zeros are null pointers.
unsafe impl Zeros for OfRank {}

static OF_RANK: WipedInChildren<OfRank> = WipedInChildren::new(OfRank {
    job: AtomicPtr::new(std::ptr::null_mut()),
    runtime: AtomicPtr::new(std::ptr::null_mut()),
});

extern "C" fn forget_rank() {
    OF_RANK.job.store(std::ptr::null_mut(), Ordering::Relaxed);
    OF_RANK.runtime.store(std::ptr::null_mut(), Ordering::Relaxed);
}

static INITIALISING: AtomicBool = AtomicBool::new(false);

/// The rank of this process, or of the process from which it was forked.
static RANK: AtomicU32 = AtomicU32::new(NO_RANK);
const NO_RANK: u32 = u32::MAX;

/// The runtime, after attach.
#[inline]
pub fn runtime() -> Option<&'static Runtime> {
    // SAFETY: the pointer is null, or to a leaked box that was complete before it was stored.
    unsafe { OF_RANK.runtime.load(Ordering::Acquire).as_ref() }
}

/// The job, after init.
pub fn job() -> Option<&'static Job> {
    // SAFETY: the pointer is null, or to a leaked box that was complete before it was stored.
    unsafe { OF_RANK.job.load(Ordering::Acquire).as_ref() }
}

/// Why this process may not call the library, if it was forked from a rank.
#[cold]
pub fn refusal_in_child() -> Option<UserError> {
    let rank = RANK.load(Ordering::Acquire);
    (rank != NO_RANK && job().is_none()).then(|| {
        UserError::new(format!(
            "this process was forked from rank {rank}, and only the rank itself may call the library; have the rank do \
             it, or execute another program in the child"
        ))
    })
}

/// The place of a rank.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankLocation {
    /// The host: equal for ranks on the same one.
    pub host: u32,
    /// Equal for neighbours, which have each other's memory mapped.
    pub supernode: u32,
}

/// Starts this rank.
///
/// # Errors
/// The conduit cannot start, the environment is invalid, or init was called before.
pub fn init() -> Result<&'static Job, Failure> {
    init_with(None, Arguments::of_process())
}

/// As [`init`], with the program's arguments for the conduit and with a limit on the segment. The user's own limit
/// overrides it.
///
/// # Errors
/// As [`init`].
pub fn init_with(limit_bytes: Option<u64>, arguments: Arguments) -> Result<&'static Job, Failure> {
    init_over(|variables| transport::start(variables, arguments), environment, limit_bytes)
}

/// As [`init_with`], over the conduit made from these variables by `start`: models of a job start ranks this way.
///
/// # Errors
/// As [`init`].
pub fn init_over<V: Iterator<Item = (String, String)>>(
    start: impl FnOnce(&[(String, String)]) -> Result<Arc<dyn Conduit>, ConduitError>,
    variables: impl FnOnce() -> V,
    limit_bytes: Option<u64>,
) -> Result<&'static Job, Failure> {
    if let Some(line) = refusal_in_child() {
        return Err(Failure::with_line(FailureClass::NotInit, line));
    }
    if INITIALISING.swap(true, Ordering::SeqCst) {
        return Err(Failure::new(FailureClass::NotInit, "the job is initialised already; call init once"));
    }
    let _uncancelled = CancellationGuard::new();
    heap::survive_forks();
    signal_changes::survive_forks();
    standard_streams::open_closed();
    // Taken before the conduit starts, since it may change the environment.
    let variables: Vec<_> = variables().collect();
    let conduit = start(&variables).map_err(|error| Failure::new(FailureClass::Resource, error.to_string()))?;
    conduit.call_before_end(end::leave);
    tell_of_exceptions(end::tell_of_exception);
    slow::note_rank(conduit.rank());
    conduit.call_when_slow(slow::tell_of_exchange);
    let config = Config::from_env(variables.into_iter(), ranks_on_host(&*conduit), &Machine::observe());
    let config =
        config.map(|config| config.or_segment_limit(limit_bytes)).map_err(|line| (FailureClass::BadArgument, line));
    let mut max_local_bytes = 0;
    let (mut config, all) = agree(&*conduit, INIT, config, |config| {
        // Attach reports an unusable storage directory.
        max_local_bytes = segment_bytes(&*conduit, config, Config::offered_segment_bytes).unwrap_or(0);
        let peer_memory = u64::from(config.caching.peer_memory);
        let (statistics, cyclic_homes) =
            (statistics::requested_outputs(config), u64::from(config.caching.cyclic_homes));
        Offer { page_bytes: config.page_bytes, max_local_bytes, statistics, peer_memory, cyclic_homes }
    })?;
    // Barriers and other parts of a host use shared memory on all of its ranks, or on none.
    config.caching.peer_memory = all.iter().all(|theirs| theirs.peer_memory != 0);
    let same = check_same("VGASNET_PAGE_SIZE", &all, |theirs| theirs.page_bytes)
        .and_then(|()| check_same(HOMES_VARIABLE, &all, |theirs| theirs.cyclic_homes));
    agree(&*conduit, INIT, same.map_err(|line| (FailureClass::BadArgument, line)), |()| ())?;
    warn_of_unknown(&*conduit, &config.unknown);
    let max_global_bytes = all.iter().map(|theirs| theirs.max_local_bytes).min().unwrap_or(0);
    let statistics = all.iter().fold(0, |all, theirs| all | theirs.statistics);
    let attaching = AtomicBool::new(false);
    let rank = conduit.rank().0;
    let (handlers, late_segment) = (Arc::default(), LateSegment::default());
    let job = Job { conduit, config, max_local_bytes, max_global_bytes, statistics, handlers, attaching, late_segment };
    let job = Box::leak(Box::new(job));
    OF_RANK.wipe(forget_rank);
    OF_RANK.job.store(job, Ordering::Release);
    RANK.store(rank, Ordering::Release);
    Ok(job)
}

/// Refuses a setting that differs between ranks.
fn check_same(name: &str, all: &[Offer], value: impl Fn(&Offer) -> u64) -> Result<(), UserError> {
    match all.iter().position(|theirs| value(theirs) != value(&all[0])) {
        None => Ok(()),
        Some(rank) => {
            let line = format!("{name} differs between rank 0 and rank {rank}; give all ranks the same");
            Err(UserError::new(line))
        }
    }
}

/// The first rank warns for all: as a rule they have the same variables.
fn warn_of_unknown(conduit: &dyn Conduit, unknown: &[String]) {
    if conduit.rank().0 == 0 && !unknown.is_empty() {
        let names = unknown.join(", ");
        say(&format!(
            "rank 0: {INIT}: warning: no variables of vgasnet, without effect: {names}; see vgasnetrun --help"
        ));
    }
}

/// Gives this rank a segment of `size_bytes` bytes, rounded up to whole pages; 0 for none. Collective.
///
/// # Errors
/// The space is lacking, or attach was called before.
pub fn attach(size_bytes: u64) -> Result<&'static Runtime, Failure> {
    attach_with(size_bytes, &mut [])
}

/// As [`attach`], and registers handlers of Active Messages. Entries without an index get one.
///
/// # Errors
/// As [`attach`], or the table is invalid.
pub fn attach_with(size_bytes: u64, handlers: &mut [Entry]) -> Result<&'static Runtime, Failure> {
    start_runtime(SegmentRequest::Now(size_bytes), handlers)
}

/// Starts the runtime without a segment; [`Job::attach_segment`] adds it later. Collective.
///
/// # Errors
/// As [`attach`].
pub fn start_without_segment() -> Result<&'static Runtime, Failure> {
    start_runtime(SegmentRequest::Later, &mut [])
}

fn start_runtime(request: SegmentRequest, handlers: &mut [Entry]) -> Result<&'static Runtime, Failure> {
    let job = job()
        .ok_or_else(|| Failure::new(FailureClass::NotInit, "the job is not initialised; call vgasnet_init first"))?;
    if job.attaching.swap(true, Ordering::SeqCst) {
        return Err(Failure::new(FailureClass::NotInit, "this rank has attached already; call attach once"));
    }
    let _uncancelled = CancellationGuard::new();
    job.turn_on_statistics();
    let runtime = Box::leak(Box::new(job.start_runtime(request, handlers)?));
    if let SegmentRequest::Later = request {
        job.late_segment.note_room(runtime.space().own_segment().size_bytes as u64);
        let segments = &runtime.space().segments;
        segments.set_sizes((0..segments.ranks()).map(|_| 0));
    }
    OF_RANK.runtime.store(runtime, Ordering::Release);
    #[cfg(feature = "mpi")]
    mpi_buffers::offer_segment(runtime);
    Ok(runtime)
}

/// Prints `vgasnet: rank R: CALL: LINE` on stderr.
pub fn report(call: &str, line: &UserError) {
    say(&line_of(call, line));
}

/// A line about a call, with this rank.
pub fn line_of(call: &str, line: &UserError) -> String {
    match job() {
        Some(job) => format!("rank {}: {call}: {line}", job.conduit.rank()),
        None => format!("{call}: {line}"),
    }
}

/// Shows a line to the user.
pub fn say(text: &str) {
    vgasnet_conduit::say(&format!("vgasnet: {text}"));
}

/// Reports an error and ends the job with status 1.
pub fn fail(call: &str, line: &UserError) -> ! {
    report(call, line);
    match job() {
        Some(job) => job.conduit.exit(1),
        None => exit_without_job(1),
    }
}

/// Ends a process that is no rank. A child runs no exit handlers of its rank.
fn exit_without_job(status: i32) -> ! {
    if refusal_in_child().is_some() {
        // SAFETY: the call takes a number, and does not return.
        unsafe { libc::_exit(status) }
    }
    std::process::exit(status)
}

impl Job {
    /// The conduit.
    pub fn conduit(&self) -> &Arc<dyn Conduit> {
        &self.conduit
    }

    /// The user's settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The handlers of Active Messages.
    pub fn handlers(&self) -> &Handlers {
        &self.handlers
    }

    /// The places of all ranks, in order.
    pub fn places(&self) -> impl Iterator<Item = RankLocation> {
        let shares_memory = self.conduit.capabilities().peer_memory && self.config.caching.peer_memory;
        (0..self.conduit.ranks()).map(move |rank| {
            let host = self.conduit.host_of(Rank(rank));
            RankLocation { host, supernode: if shares_memory { host } else { rank } }
        })
    }

    /// The largest segment offered to this rank at init, in bytes: a multiple of the page size, 0 if not even one page
    /// fits. Attach takes it as long as the space is there.
    pub fn max_local_segment_bytes(&self) -> u64 {
        self.max_local_bytes
    }

    /// The least of all ranks' largest segments, in bytes.
    pub fn max_global_segment_bytes(&self) -> u64 {
        self.max_global_bytes
    }
}

/// The largest segment of a rank, in bytes, by a rule for the free space and the number of ranks on this host.
fn segment_bytes(
    conduit: &dyn Conduit,
    config: &Config,
    rule: impl FnOnce(&Config, u64, u32) -> u64,
) -> Result<u64, UserError> {
    let free_bytes = storage::free_bytes(&config.storage_dir)?;
    // Page indices have 32 bits.
    Ok(rule(config, free_bytes, ranks_on_host(conduit)).min(u64::from(u32::MAX) * config.page_bytes))
}

/// Number of ranks on this rank's host.
pub fn ranks_on_host(conduit: &dyn Conduit) -> u32 {
    let here = conduit.host_of(conduit.rank());
    (0..conduit.ranks()).filter(|rank| conduit.host_of(Rank(*rank)) == here).count() as u32
}
