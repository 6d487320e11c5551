//! A segment attached after the runtime has started; messages, barriers and collectives work before. Addresses are
//! reserved at the start for the largest possible segment; disk space is taken once the size is known.

use super::attach::reserving;
use super::{ATTACH, Failure, FailureClass, Job, Runtime, say, segment_bytes};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_protocol::collectives::TEAM_ALL;
use vgasnet_settings::UserError;
use vgasnet_settings::{Config, format_size};
use vgasnet_storage as storage;

/// The state of the segment before it is attached.
#[derive(Debug, Default)]
pub(super) struct LateSegment {
    file: OnceLock<OwnedFd>,
    room_bytes: OnceLock<u64>,
    is_attached: AtomicBool,
}

/// Told by a rank that cannot have its segment. No segment has this size.
const REFUSED: u64 = u64::MAX;

impl LateSegment {
    /// Whether this rank has started without a segment, and has none yet.
    pub(super) fn is_awaited(&self) -> bool {
        self.room_bytes.get().is_some() && !self.is_attached.load(Ordering::Acquire)
    }

    /// Notes the backing file, the first one created.
    pub(super) fn note_file(&self, file: OwnedFd) {
        _ = self.file.set(file);
    }

    /// Notes how many bytes are reserved, in addresses and in the file.
    pub(super) fn note_room(&self, room_bytes: u64) {
        _ = self.room_bytes.set(room_bytes);
    }
}

impl Job {
    /// Maximum size of a later segment in bytes, as attach would allow it now.
    pub(super) fn room_for_segment(&self) -> u64 {
        let most_bytes = segment_bytes(&*self.conduit, &self.config, Config::max_segment_bytes).unwrap_or(0);
        let limit_bytes = storage::size_limit_bytes() / self.config.page_bytes * self.config.page_bytes;
        most_bytes.max(self.max_local_bytes).min(limit_bytes)
    }

    /// Gives this rank its segment, after its runtime has started without one. Collective: a rank with a refused size
    /// takes part, with the reason, since the others wait for it. Returns the sizes requested by all ranks, in order.
    ///
    /// # Errors
    /// Some rank lacks the space, or its size is invalid; then no rank has a segment. Or this rank already has its
    /// segment.
    pub fn attach_segment(&self, runtime: &Runtime, wanted: Result<u64, UserError>) -> Result<Vec<u64>, Failure> {
        if !self.late_segment.is_awaited() {
            return Err(Failure::new(FailureClass::NotInit, "this rank has attached already; call attach once"));
        }
        let makes_no_sense = wanted.is_err();
        let taken = wanted.and_then(|size_bytes| self.take_space(size_bytes).map(|()| size_bytes));
        let mine = *taken.as_ref().unwrap_or(&REFUSED);
        let told = runtime.coll().gather_all(TEAM_ALL, mine).map_err(|line| resource(Some(line)))?;
        if let Some(first) = told.iter().position(|told| *told == REFUSED) {
            let mine = taken.err().filter(|_| first == self.conduit.rank().index());
            let said = mine.map(|line| format!("rank {first}: gex_Segment_Attach: {line}"));
            if let Some(said) = &said {
                say(said);
            }
            // A failing rank may end the job, so it waits until the error has been reported.
            runtime.coll().gather_all(TEAM_ALL, 0_u8).map_err(|line| resource(Some(line)))?;
            let class = if makes_no_sense { FailureClass::BadArgument } else { FailureClass::Resource };
            return Err(Failure { class, line: None, said });
        }
        let page_bytes = self.config.page_bytes;
        runtime.space().segments.set_sizes(told.iter().map(|told| told.next_multiple_of(page_bytes) as usize));
        self.late_segment.is_attached.store(true, Ordering::Release);
        #[cfg(feature = "mpi")]
        super::mpi_buffers::offer_segment(runtime);
        Ok(told)
    }

    /// Takes space on the disk for a segment of this size.
    fn take_space(&self, size_bytes: u64) -> Result<(), UserError> {
        self.check_pool(size_bytes)?;
        let room_bytes = *self.late_segment.room_bytes.get().expect("it is awaited");
        let rounded_bytes = size_bytes.checked_next_multiple_of(self.config.page_bytes);
        let rounded_bytes = rounded_bytes.filter(|bytes| *bytes <= room_bytes);
        let Some(rounded_bytes) = rounded_bytes else { return Err(self.too_large(size_bytes)?) };
        if self.config.caching.cyclic_homes {
            // The files and places of its pages depend on the sizes of all segments, not yet known.
            return Ok(());
        }
        let Some(file) = self.late_segment.file.get() else {
            return Err(UserError::new("the system gives no second descriptor of the backing file; raise `ulimit -n`"));
        };
        let (rank, dir) = (self.conduit.rank(), &self.config.storage_dir);
        let what = format!("still reserves {} in {}", format_size(rounded_bytes), dir.display());
        let warn = |line: &str| say(&format!("rank {rank}: {ATTACH}: {line}"));
        reserving(&what, || storage::reserve_more(file.as_fd(), dir, rounded_bytes, warn))
    }

    /// Whether this rank has started without a segment, and has none yet.
    pub fn awaits_segment(&self) -> bool {
        self.late_segment.is_awaited()
    }
}

fn resource(line: Option<UserError>) -> Failure {
    Failure { class: FailureClass::Resource, line, said: None }
}
