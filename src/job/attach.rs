//! Attaching: ranks agree on sizes, create their shared memory, reserve their segments and create their backing files.

use super::agreement::agree;
use super::slow::{tell, watched};
use super::{ATTACH, Failure, FailureClass, Job, Runtime, fail, ranks_on_host, say, segment_bytes};
use crate::am::{BadEntry, CLIENT_FIRST, Entry};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use vgasnet_conduit::{Conduit, ConduitError, Region, RegionSizes, SLOW, of_other_version};
use vgasnet_memory::{FRAMES_MIN, Reservation, Segment, Shape, all_frames, table_bytes, with_homes};
use vgasnet_protocol::{Rank, Spaces};
use vgasnet_settings::UserError;
use vgasnet_settings::{Config, format_size, format_size_about};
use vgasnet_storage::{self as storage, Storage};
use vgasnet_sys::observers::is_under_valgrind;

/// No pool has as many frames: together with the staging and block frames they are less than 2^32.
const FRAMES_MAX: u32 = 1 << 31;

/// Minimum alignment of segments: small pages then fill page tables like the pages of the pool.
const ALIGN_BYTES: usize = 2 << 20;

/// The segment with which a rank starts its runtime.
#[derive(Clone, Copy, Debug)]
pub(super) enum SegmentRequest {
    /// Of this size in bytes.
    Now(u64),
    /// Of a size given later.
    Later,
}

/// Rank 0 tells why the segment is for gets and puts alone, where it is.
fn tell_where_nothing_is_mapped_twice(conduit: &dyn Conduit) {
    if conduit.rank().0 != 0 {
        return;
    }
    if !conduit.capabilities().second_mapping {
        say(&format!(
            "rank 0: {ATTACH}: over {} segments cannot be loaded from and stored to directly; use gets and puts",
            conduit.name()
        ));
    }
    if is_under_valgrind() {
        say(&format!(
            "rank 0: {ATTACH}: valgrind maps no memory twice, so segments cannot be loaded from and stored to; use gets and \
             puts, or build with -fsanitize=address in place of valgrind"
        ));
    }
}

impl Job {
    /// Agrees with all ranks on sizes and starts the runtime, with these handlers registered.
    pub(super) fn start_runtime(&self, request: SegmentRequest, handlers: &mut [Entry]) -> Result<Runtime, Failure> {
        let conduit = &*self.conduit;
        let too_odd = |line: UserError| Failure::with_line(FailureClass::Resource, line);
        let page_bytes = self.config.page_bytes as usize;
        let shape = match request {
            SegmentRequest::Now(size_bytes) => self.check_segment(size_bytes),
            // Other processes may take space meanwhile: only addresses are reserved.
            SegmentRequest::Later => Ok(self.shape_of(self.room_for_segment())),
        };
        let shape = shape.map_err(|line| (FailureClass::Resource, line));
        let (shape, shapes) = agree(conduit, ATTACH, shape, |shape| *shape)?;
        // All ranks see the same shapes, so all fail if one does.
        check_told(&shapes, "the size of its memory", |_, shape| shape.frames < FRAMES_MAX).map_err(too_odd)?;
        let size_bytes = shape.pages as usize * page_bytes;
        let sizes = RegionSizes {
            pool_bytes: all_frames(shape.frames, page_bytes) as usize * page_bytes,
            table_bytes: table_bytes(shape, page_bytes),
        };
        conduit.attach(sizes).map_err(|error| not_attached(conduit.rank(), &error))?;
        tell_where_nothing_is_mapped_twice(conduit);
        let mapped = check_told(&shapes, "the size of its memory", |rank, shape| {
            is_mapped_whole(conduit, rank, shape, page_bytes)
        });
        let opened = mapped.and_then(|()| self.open_storage(self.backing_bytes(&shapes)?, request));
        let opened = opened.map_err(|line| (FailureClass::Resource, line));
        let largest = shapes.iter().map(|shape| shape.pages as usize * page_bytes).max().unwrap_or(0);
        let (storage, places) = agree(conduit, ATTACH, opened, |_| Reservation::free_places(largest))?;
        let places = places.iter().fold(u32::MAX, |all, places| all & places);
        let reserved = Reservation::new(size_bytes, places, page_bytes.max(ALIGN_BYTES)).map_err(|error| {
            let line = format!("cannot reserve {size_bytes} of addresses for the segment: {error}; see ulimit -v");
            (FailureClass::Resource, UserError::new(line))
        });
        let (_, segments) = agree(conduit, ATTACH, reserved, Reservation::segment)?;
        check_told(&segments, "the place of its segment", |rank, segment| {
            segment.is_of(shapes[rank.index()].pages, page_bytes)
        })
        .map_err(too_odd)?;
        let segments: Box<[Segment]> = segments.into();
        let started = Runtime::new(
            Arc::clone(&self.conduit),
            &self.config,
            segments,
            &shapes,
            storage,
            Arc::clone(&self.handlers),
            fail,
        );
        let started = started.map_err(|line| (FailureClass::Resource, line)).and_then(|runtime| {
            let registered = runtime.am().messages().handlers().register(handlers);
            registered.map(|()| runtime).map_err(|bad| (FailureClass::BadArgument, bad_table(bad)))
        });
        Ok(agree(conduit, ATTACH, started, |_| ())?.0)
    }

    /// Rounds the segment up to whole pages, and checks that this rank may have it. The size offered at init is always
    /// allowed, however much is free now: the storage refuses a size that does not fit.
    fn check_segment(&self, asked_bytes: u64) -> Result<Shape, UserError> {
        self.check_pool(asked_bytes)?;
        let page_bytes = self.config.page_bytes;
        let rounded_bytes = asked_bytes.checked_next_multiple_of(page_bytes);
        let most_bytes = match rounded_bytes {
            Some(size_bytes) if size_bytes <= self.max_local_bytes => self.max_local_bytes,
            _ => segment_bytes(&*self.conduit, &self.config, Config::max_segment_bytes)?.max(self.max_local_bytes),
        };
        let size_bytes = rounded_bytes.filter(|size_bytes| *size_bytes <= most_bytes);
        match size_bytes {
            Some(size_bytes) => Ok(self.shape_of(size_bytes)),
            None => Err(self.too_large(asked_bytes)?),
        }
    }

    /// Checks that the pool has room for all pages of one load or store in a segment of this size.
    pub(super) fn check_pool(&self, segment_bytes: u64) -> Result<(), UserError> {
        let Config { page_bytes, pool_bytes, .. } = self.config;
        let is_mapped = self.conduit.capabilities().second_mapping && !is_under_valgrind();
        let least_bytes = page_bytes * u64::from(FRAMES_MIN);
        if segment_bytes == 0 || !is_mapped || pool_bytes >= least_bytes {
            return Ok(());
        }
        let [pool, page, least] = [pool_bytes, page_bytes, least_bytes].map(format_size);
        Err(UserError::new(format!(
            "a pool of {pool} has fewer than {FRAMES_MIN} pages of {page}, which one load or store may need; set VGASNET_POOL_SIZE to \
             at least {least}, or lower VGASNET_PAGE_SIZE"
        )))
    }

    /// The shape of this rank for a segment of whole pages.
    fn shape_of(&self, size_bytes: u64) -> Shape {
        let page_bytes = self.config.page_bytes;
        Shape { pages: (size_bytes / page_bytes) as u32, frames: (self.config.pool_bytes / page_bytes) as u32 }
    }

    /// The error for a segment above the limit. Its number is the one told to the client at init.
    ///
    /// # Errors
    /// The storage directory cannot be used at all.
    pub(super) fn too_large(&self, asked_bytes: u64) -> Result<UserError, UserError> {
        let (page_bytes, most_bytes) = (self.config.page_bytes, self.max_local_bytes);
        let free_bytes = storage::free_bytes(&self.config.storage_dir)?;
        let ranks = ranks_on_host(&*self.conduit);
        let share_bytes = free_bytes / u64::from(ranks) / page_bytes * page_bytes;
        Ok(UserError::new(format!(
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

    /// Length of this rank's backing file, for ranks of these shapes.
    fn backing_bytes(&self, shapes: &[Shape]) -> Result<u64, UserError> {
        let rank = self.conduit.rank();
        let segments = segments_of(shapes, &self.config);
        let pages = segments.places_at_home(rank);
        if pages > u64::from(u32::MAX) {
            return Err(UserError::new(format!(
                "each backing file would have {pages} pages; at most {} are allowed, set VGASNET_PAGE_SIZE larger",
                u32::MAX
            )));
        }
        Ok(pages * self.config.page_bytes)
    }

    fn open_storage(&self, size_bytes: u64, request: SegmentRequest) -> Result<Box<dyn Storage>, UserError> {
        let rank = self.conduit.rank();
        let pool = self.conduit.pool(rank).expect("the own pool is mapped after attach");
        let buffers = [(pool.at(0), pool.len_bytes)];
        let is_first_of_host = (0..rank.0).all(|other| self.conduit.host_of(Rank(other)) != self.conduit.host_of(rank));
        let warn = move |line: &str| {
            if is_first_of_host {
                say(&format!("rank {rank}: {line}"));
            }
        };
        let reserved_bytes = if let SegmentRequest::Later = request { 0 } else { size_bytes };
        let created = |file: BorrowedFd<'_>| {
            self.conduit.entrust(file);
            if let (SegmentRequest::Later, Ok(file)) = (request, file.try_clone_to_owned()) {
                self.late_segment.note_file(file);
            }
        };
        let options = storage::Options {
            dir: &self.config.storage_dir,
            size_bytes,
            reserved_bytes,
            depth: storage::DEPTH_DEFAULT,
            buffers: &buffers,
            page_bytes: self.config.page_bytes as usize,
            spill_bytes: self.spill_bytes(reserved_bytes),
            fault: self.config.io_fault,
            warn: Arc::new(warn),
            tell: Arc::new(move |line: &str| say(&format!("rank {rank}: {line}"))),
            created: &created,
        };
        let what = format!("still reserves {} in {}", format_size(reserved_bytes), self.config.storage_dir.display());
        let opened = reserving(&what, || storage::open(&options));
        if size_bytes > 0 || self.config.spills {
            return opened;
        }
        // An empty file may lie anywhere: only shared files use this storage.
        let (dir, warn) = (Path::new("/dev/shm"), Arc::new(|_: &str| ()));
        opened.or_else(|error| storage::open(&storage::Options { dir, warn, ..options }).map_err(|_| error))
    }

    /// Maximum bytes of shared files spilled by this rank to the storage directory, besides a segment of this size.
    fn spill_bytes(&self, segment_bytes: u64) -> u64 {
        let page_bytes = self.config.page_bytes;
        let share_bytes = || {
            let free_bytes = storage::free_bytes(&self.config.storage_dir).unwrap_or(0);
            (free_bytes / u64::from(ranks_on_host(&*self.conduit))).saturating_sub(segment_bytes) / 2
        };
        match self.config.spills {
            true => self.config.spill_bytes.unwrap_or_else(share_bytes).max(page_bytes) / page_bytes * page_bytes,
            false => 0,
        }
    }
}

/// The segments of ranks of these shapes, with their homes.
pub(super) fn segments_of(shapes: &[Shape], config: &Config) -> Spaces {
    with_homes(shapes.iter().map(|shape| shape.pages), config.page_bytes, config.caching.cyclic_homes)
}

/// Takes space on the disk, and reports `what` if that takes long.
pub(super) fn reserving<T>(what: &str, take: impl FnOnce() -> T) -> T {
    let what = what.to_owned();
    let tell = move |_| {
        tell(ATTACH, &what, SLOW);
        true
    };
    watched(tell, take)
}

/// An error of a conduit's attach may name the rank it comes from, as the user's line does.
fn not_attached(own: Rank, error: &ConduitError) -> Failure {
    let text = error.to_string();
    let line = text.strip_prefix(&format!("rank {own}: ")).unwrap_or(&text);
    Failure::new(FailureClass::Resource, line)
}

/// Checks the values told by all ranks.
///
/// # Errors
/// The value of some rank is impossible.
fn check_told<T>(all: &[T], what: &str, may_be: impl Fn(Rank, &T) -> bool) -> Result<(), UserError> {
    match (0..).zip(all).find(|(rank, told)| !may_be(Rank(*rank), told)) {
        None => Ok(()),
        Some((rank, _)) => Err(UserError::new(of_other_version(rank as usize, what).to_string())),
    }
}

/// Whether the memory of a rank, if mapped here, has the size told by the rank.
fn is_mapped_whole(conduit: &dyn Conduit, rank: Rank, shape: &Shape, page_bytes: usize) -> bool {
    let is_whole = |region: Option<Region>, len_bytes| region.is_none_or(|region| region.len_bytes >= len_bytes);
    is_whole(conduit.pool(rank), all_frames(shape.frames, page_bytes) as usize * page_bytes)
        && is_whole(conduit.table(rank), table_bytes(*shape, page_bytes))
}

/// The error of a table of handlers.
pub fn bad_table(bad: BadEntry) -> UserError {
    let line = match bad {
        BadEntry::Reserved(at, index) => {
            format!(
                "entry {at} of the handler table has index {index}; indices are {CLIENT_FIRST} to 255, or 0 for any"
            )
        }
        BadEntry::Twice(at, index) => format!("entry {at} of the handler table has index {index} like another handler"),
        BadEntry::NoFunction(at) => format!("entry {at} of the handler table has a null function"),
        BadEntry::TooMany(entries) => {
            format!("with the handler table there are {entries} handlers; at most 128 are allowed")
        }
        BadEntry::Described(at, what) => format!("entry {at} of the handler table has {what}"),
    };
    UserError::new(line)
}
