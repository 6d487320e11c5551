//! The job as this process sees it: init, attach, exit.
//!
//! Start-up is collective. What one rank finds wrong is told to all, so that all of them fail, after the lowest such rank has
//! reported it.

use crate::am::{BadEntry, CLIENT_FIRST, Entry};
use crate::config::{Config, Machine, environment, format_size, format_size_about};
use crate::error::UserError;
use crate::runtime::{Runtime, STAGING_FRAMES, Shape, table_bytes};
use crate::segment::Reservation;
use crate::space::Segment;
use crate::storage::{self, MemoryStorage, Storage};
use crate::transport::{self, Arguments};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use vgasnet_conduit::{Conduit, ConduitError, EXCHANGE_BYTES_MAX, RegionSizes};

/// The calls that agree on something, as C names them.
const INIT: &str = "vgasnet_init";
const ATTACH: &str = "vgasnet_attach";

/// How long a rank that exits with status 0 waits for the others to do the same.
const LEAVE_GRACE: Duration = Duration::from_secs(2);

/// Why a call failed, as GASNet-1 classifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Called too early, or once too often.
    NotInit,
    /// The machine lacks something.
    Resource,
    /// An argument or a variable makes no sense.
    BadArgument,
}

/// A call failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The class.
    pub kind: Kind,
    /// What to tell the user; `None` if that is done.
    pub line: Option<UserError>,
}

impl Failure {
    fn new(kind: Kind, line: impl Into<String>) -> Failure {
        Failure { kind, line: Some(UserError::new(line)) }
    }
}

/// A process between init and the end.
pub struct Job {
    conduit: Arc<dyn Conduit>,
    config: Config,
    /// The largest segments at init: of this rank, and the least of all ranks.
    max_local_bytes: u64,
    max_global_bytes: u64,
    attaching: AtomicBool,
}

static JOB: OnceLock<Job> = OnceLock::new();
static INITIALISING: AtomicBool = AtomicBool::new(false);
/// Set once, by attach, and never freed.
static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(std::ptr::null_mut());

/// The runtime, after attach.
#[inline]
pub fn runtime() -> Option<&'static Runtime> {
    // SAFETY: the pointer is null or comes from a leaked box that is complete before it is stored here.
    unsafe { RUNTIME.load(Ordering::Acquire).as_ref() }
}

/// The job, after init.
pub fn job() -> Option<&'static Job> {
    JOB.get()
}

/// Where a rank runs. Ranks with the same host share a machine, ranks with the same supernode have each other's memory
/// mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The machine.
    pub host: u32,
    /// The ranks of the machine that are neighbours.
    pub supernode: u32,
}

/// Starts this rank.
///
/// # Errors
/// The conduit cannot start, the environment makes no sense, or init was called before.
pub fn init() -> Result<&'static Job, Failure> {
    init_with(None, Arguments::of_process())
}

/// As [`init`], for a program that wants no larger segment than `limit_bytes` unless its user does, and lets the conduit see
/// its arguments.
///
/// # Errors
/// As [`init`].
pub fn init_with(limit_bytes: Option<u64>, arguments: Arguments) -> Result<&'static Job, Failure> {
    if INITIALISING.swap(true, Ordering::SeqCst) {
        return Err(Failure::new(Kind::NotInit, "the job is initialised already; call init once"));
    }
    // Conduits change it.
    let variables: Vec<_> = environment().collect();
    let conduit =
        transport::start(&variables, arguments).map_err(|error| Failure::new(Kind::Resource, error.to_string()))?;
    conduit.call_before_end(leave);
    let config = Config::from_env(variables.into_iter(), ranks_on_host(&*conduit), &Machine::observe());
    let config = config.map(|config| config.or_segment_limit(limit_bytes)).map_err(|line| (Kind::BadArgument, line));
    let mut max_local_bytes = 0;
    let (config, all) = agree(&*conduit, INIT, config, |config| {
        // A storage directory that does not answer is reported when a segment is asked for.
        max_local_bytes = max_segment_bytes(&*conduit, config).unwrap_or(0);
        [config.page_bytes.to_le_bytes(), max_local_bytes.to_le_bytes()].concat()
    })?;
    let same = match all.iter().position(|theirs| u64_at(theirs, 0) != u64_at(&all[0], 0)) {
        None => Ok(()),
        Some(rank) => Err((
            Kind::BadArgument,
            UserError::new(format!(
                "VGASNET_PAGE_SIZE differs between rank 0 and rank {rank}; give all ranks the same"
            )),
        )),
    };
    agree(&*conduit, INIT, same, |()| Vec::new())?;
    let max_global_bytes = all.iter().map(|theirs| u64_at(theirs, 8)).min().unwrap_or(0);
    let attaching = AtomicBool::new(false);
    Ok(JOB.get_or_init(|| Job { conduit, config, max_local_bytes, max_global_bytes, attaching }))
}

/// Gives this rank a segment of `size_bytes` bytes, rounded up to whole pages; 0 for none. Collective.
///
/// # Errors
/// There is not that much space, or attach was called before.
pub fn attach(size_bytes: u64) -> Result<&'static Runtime, Failure> {
    attach_with(size_bytes, &mut [])
}

/// As [`attach`], and registers handlers of Active Messages. Entries without an index get one.
///
/// # Errors
/// As [`attach`], or the table makes no sense.
pub fn attach_with(size_bytes: u64, handlers: &mut [Entry]) -> Result<&'static Runtime, Failure> {
    let job =
        job().ok_or_else(|| Failure::new(Kind::NotInit, "the job is not initialised; call vgasnet_init first"))?;
    if job.attaching.swap(true, Ordering::SeqCst) {
        return Err(Failure::new(Kind::NotInit, "this rank has attached already; call attach once"));
    }
    let runtime = Box::leak(Box::new(job.start_runtime(size_bytes, handlers)?));
    RUNTIME.store(runtime, Ordering::Release);
    Ok(runtime)
}

/// Ends the job with `status`: at once if that is not 0, else when every rank's program is over or some time has passed.
pub fn exit(status: i32) -> ! {
    // SAFETY: a null pointer asks for all of the client's output streams; the call has no other condition.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    let Some(job) = job() else { std::process::exit(status) };
    if status == 0 {
        if let Some(runtime) = runtime() {
            let late = Instant::now() + LEAVE_GRACE;
            std::thread::spawn(move || {
                std::thread::sleep(LEAVE_GRACE);
                runtime.progress().kick();
            });
            if runtime.leave(&|| Instant::now() >= late) {
                job.conduit.close();
            }
        }
    }
    job.conduit.exit(status)
}

/// The program ends by returning from main or by calling the C library's exit: a good end waits for the other ranks,
/// which may still need this rank's pages.
pub fn on_process_exit(status: i32) {
    if status == 0 {
        leave();
    }
}

/// Waits for all ranks' programs to be over, and ends the transport.
fn leave() {
    if let Some(runtime) = runtime() {
        runtime.leave(&|| false);
    }
    if let Some(job) = job() {
        job.conduit.close();
    }
}

/// Prints `vgasnet: rank R: CALL: LINE` on stderr.
pub fn report(call: &str, line: &UserError) {
    match job() {
        Some(job) => say(&format!("rank {}: {call}: {line}", job.conduit.rank())),
        None => say(&format!("{call}: {line}")),
    }
}

fn say(text: &str) {
    // One write, so that lines of several ranks do not mix. Where stderr is closed there is nobody to tell.
    std::io::stderr().write_all(format!("vgasnet: {text}\n").as_bytes()).ok();
}

/// Reports an error and ends the job with status 1.
pub fn fail(call: &str, line: &UserError) -> ! {
    report(call, line);
    match job() {
        Some(job) => job.conduit.exit(1),
        None => std::process::exit(1),
    }
}

impl Job {
    /// The conduit.
    pub fn conduit(&self) -> &Arc<dyn Conduit> {
        &self.conduit
    }

    /// What the user configured.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where the ranks run, in order.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let shares_memory = self.conduit.capabilities().peer_memory && self.config.peer_memory;
        (0..self.conduit.ranks()).map(move |rank| {
            let host = self.conduit.host_of(vgasnet_conduit::Rank(rank));
            Place { host, supernode: if shares_memory { host } else { rank } }
        })
    }

    /// The largest segment that this rank could attach at init, in bytes; a multiple of the page size, 0 if there is none.
    pub fn max_local_segment_bytes(&self) -> u64 {
        self.max_local_bytes
    }

    /// The least of all ranks' largest segments, in bytes.
    pub fn max_global_segment_bytes(&self) -> u64 {
        self.max_global_bytes
    }

    fn start_runtime(&self, size_bytes: u64, handlers: &mut [Entry]) -> Result<Runtime, Failure> {
        let conduit = &*self.conduit;
        let own = self.check_segment(size_bytes).map_err(|line| (Kind::Resource, line));
        let (own, all) =
            agree(conduit, ATTACH, own, |own: &Own| [own.pages.to_le_bytes(), own.frames.to_le_bytes()].concat())?;
        let shapes: Vec<Shape> =
            all.iter().map(|bytes| Shape { pages: u32_at(bytes, 0), frames: u32_at(bytes, 4) }).collect();
        let page_bytes = self.config.page_bytes as usize;
        let shape = shapes[conduit.rank().index()];
        let sizes = RegionSizes {
            pool_bytes: (shape.frames + STAGING_FRAMES) as usize * page_bytes,
            table_bytes: table_bytes(&shapes, shape),
        };
        conduit.attach(sizes).map_err(|error| Failure::new(Kind::Resource, error.to_string()))?;
        if !conduit.capabilities().second_mapping && conduit.rank().0 == 0 {
            say(&format!(
                "rank 0: {ATTACH}: over {} segments cannot be loaded from and stored to directly; use gets and puts",
                conduit.name()
            ));
        }
        let opened = self.open_storage(own.size_bytes).map_err(|line| (Kind::Resource, line));
        let largest = shapes.iter().map(|shape| shape.pages as usize * page_bytes).max().unwrap_or(0);
        let free = |_: &_| Reservation::free_places(largest).to_le_bytes().to_vec();
        let (storage, places) = agree(conduit, ATTACH, opened, free)?;
        let places = places.iter().fold(u32::MAX, |all, bytes| all & u32_at(bytes, 0));
        let reserved = Reservation::new(own.size_bytes as usize, places, page_bytes).map_err(|error| {
            let line =
                format!("cannot reserve {} of addresses for the segment: {error}; see ulimit -v", own.size_bytes);
            (Kind::Resource, UserError::new(line))
        });
        let (_, segments) = agree(conduit, ATTACH, reserved, |reserved: &Reservation| {
            let segment = reserved.segment();
            [segment.base.to_le_bytes(), segment.size_bytes.to_le_bytes()].concat()
        })?;
        let segment =
            |bytes: &Vec<u8>| Segment { base: u64_at(bytes, 0) as usize, size_bytes: u64_at(bytes, 8) as usize };
        let segments = segments.iter().map(segment).collect();
        let started = Runtime::new(Arc::clone(&self.conduit), &self.config, segments, &shapes, storage, |line| {
            fail("engine", line)
        });
        let started = started.map_err(|line| (Kind::Resource, line)).and_then(|runtime| {
            let registered = runtime.messages().handlers().register(handlers);
            registered.map(|()| runtime).map_err(|bad| (Kind::BadArgument, bad_table(bad)))
        });
        Ok(agree(conduit, ATTACH, started, |_| Vec::new())?.0)
    }

    /// Checks the size that is asked for and makes it whole pages.
    fn check_segment(&self, asked_bytes: u64) -> Result<Own, UserError> {
        let page_bytes = self.config.page_bytes;
        let most_bytes = if asked_bytes > 0 { max_segment_bytes(&*self.conduit, &self.config)? } else { 0 };
        let size_bytes = asked_bytes.checked_next_multiple_of(page_bytes).filter(|size| *size <= most_bytes);
        let frames = (self.config.pool_bytes / page_bytes) as u32;
        if let Some(size_bytes) = size_bytes {
            return Ok(Own { size_bytes, pages: (size_bytes / page_bytes) as u32, frames });
        }
        let free_bytes = storage::free_bytes(&self.config.storage_dir)?;
        let ranks = ranks_on_host(&*self.conduit);
        let share_bytes = free_bytes / u64::from(ranks) / page_bytes * page_bytes;
        Err(UserError::new(format!(
            "a segment of {} ({asked_bytes} bytes) was asked for and at most {} ({most_bytes} bytes) is offered: {} has {} \
             free for {ranks} ranks; attach a smaller segment, set VGASNET_MAX_SEGSIZE to up to {}, or set \
             VGASNET_STORAGE_DIR to a directory with more space",
            format_size_about(asked_bytes),
            format_size_about(most_bytes),
            self.config.storage_dir.display(),
            format_size_about(free_bytes),
            format_size(share_bytes),
        )))
    }

    fn open_storage(&self, size_bytes: u64) -> Result<Box<dyn Storage>, UserError> {
        if size_bytes == 0 {
            return Ok(Box::new(MemoryStorage::new(0, 1, 0)));
        }
        let rank = self.conduit.rank();
        let pool = self.conduit.pool(rank).expect("the own pool is mapped after attach");
        let buffers = [(pool.at(0), pool.len_bytes)];
        let is_first_of_host =
            (0..rank.0).all(|other| self.conduit.host_of(vgasnet_conduit::Rank(other)) != self.conduit.host_of(rank));
        let warn = move |line: &str| {
            if is_first_of_host {
                say(&format!("rank {rank}: {line}"));
            }
        };
        let options = storage::Options {
            dir: &self.config.storage_dir,
            size_bytes,
            depth: storage::DEPTH_DEFAULT,
            buffers: &buffers,
            page_bytes: self.config.page_bytes as usize,
            fault: self.config.io_fault,
            warn: Arc::new(warn),
        };
        storage::open(&options)
    }
}

fn bad_table(bad: BadEntry) -> UserError {
    let line = match bad {
        BadEntry::Reserved(at, index) => {
            format!(
                "entry {at} of the handler table has index {index}; indices are {CLIENT_FIRST} to 255, or 0 for any"
            )
        }
        BadEntry::Twice(at, index) => format!("entry {at} of the handler table has index {index} like another one"),
        BadEntry::NoFunction(at) => format!("entry {at} of the handler table has a null function"),
        BadEntry::TooMany(entries) => format!("the handler table has {entries} entries; at most 128 are allowed"),
    };
    UserError::new(line)
}

/// What this rank brings into the job.
struct Own {
    size_bytes: u64,
    pages: u32,
    frames: u32,
}

/// The largest segment that a rank can be offered now, in bytes.
fn max_segment_bytes(conduit: &dyn Conduit, config: &Config) -> Result<u64, UserError> {
    let free_bytes = storage::free_bytes(&config.storage_dir)?;
    let offered_bytes = config.max_segment_bytes(free_bytes, ranks_on_host(conduit));
    // A page's index has 32 bits.
    Ok(offered_bytes.min(u64::from(u32::MAX) * config.page_bytes))
}

/// How many ranks run on this rank's host.
pub fn ranks_on_host(conduit: &dyn Conduit) -> u32 {
    let here = conduit.host_of(conduit.rank());
    (0..conduit.ranks()).filter(|rank| conduit.host_of(vgasnet_conduit::Rank(*rank)) == here).count() as u32
}

/// Tells all ranks how this one fares. If all fare well, they get what each has to tell; else all of them fail when the
/// lowest that fares badly has reported it.
fn agree<T>(
    conduit: &dyn Conduit,
    call: &str,
    mine: Result<T, (Kind, UserError)>,
    tell: impl FnOnce(&T) -> Vec<u8>,
) -> Result<(T, Vec<Vec<u8>>), Failure> {
    let broken = |error: ConduitError| Failure::new(Kind::Resource, error.to_string());
    let (told, mine) = match mine {
        Ok(mine) => ([vec![0], tell(&mine)].concat(), Ok(mine)),
        Err((kind, line)) => (vec![if kind == Kind::BadArgument { 1 } else { 2 }], Err(line)),
    };
    assert!(told.len() <= EXCHANGE_BYTES_MAX);
    let all = conduit.exchange(&told).map_err(broken)?;
    let Some(bad) = all.iter().position(|told| told.first() != Some(&0)) else {
        let mine = mine.expect("this rank told that it fares well");
        return Ok((mine, all.into_iter().map(|told| told[1..].to_vec()).collect()));
    };
    if let Err(line) = mine.map(drop) {
        if bad == conduit.rank().index() {
            say(&format!("rank {bad}: {call}: {line}"));
        }
    }
    // A rank that fails may end the job; it waits until the reason is told.
    conduit.exchange(&[]).map_err(broken)?;
    let kind = if all[bad].first() == Some(&1) { Kind::BadArgument } else { Kind::Resource };
    Err(Failure { kind, line: None })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
