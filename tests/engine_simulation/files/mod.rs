//! Whole engines with shared files and segments.
//!
//! Teams of ranks open several files together. They get and put bytes of files and of segments, lock bytes, flush
//! files, shorten and extend them, and close them while others are in use. In some runs the files fail: reads and
//! writes with EIO, writes for lack of space, short reads and writes. Several models watch a run. The model of copies
//! has the newest bytes of every page, as for segments. The [`History`] of calls has the bytes a read may return, given
//! when it began. In files of atomic calls, [`Steps`] searches for a sequential order of the calls. An [`IoWatch`]
//! checks which rank does which I/O.
//!
//! More must hold than for segments alone. A call whose completion has no cause is done. Locks exclude each other.
//! After a flush that no rank refuses the file has all written bytes. A closed file leaves nothing behind.
//!
//! A failure prints the command that replays it. `FILE_SIM_SEEDS` sets how many seeds a run tries, `FILE_SIM_FIRST` the
//! first seed, `FILE_SIM_SEED` runs one.

mod aging;
mod calls;
mod closed;
mod crashes;
mod flush;
mod history;
mod io_watch;
mod locks;
mod regressions;
mod run;
mod spilled;
mod steps;
mod team;

pub use calls::Call;
pub use io_watch::{IoWatch, RankIo};

use crate::job::{Job, PAGE_BYTES};
use crate::seeds::Seeds;
use crate::seen::counters;
use history::History;
use std::collections::BTreeMap;
use std::sync::Arc;
use steps::Steps;
use team::{Errand, Member, Step};
use vgasnet_engine::FileState;
use vgasnet_engine::request::Part;
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::{Rank, Space, Stripes};
use vgasnet_storage::{MemoryFile, NamedFile, NamedOptions};

counters! {
    /// How often runs took the rarer paths about files.
    FileSeen {
        /// Parts failed with EIO.
        failed_io,
        /// Parts failed with ENOSPC.
        failed_space,
        /// Failed pieces of other ranks' requests.
        failed_served,
        /// Failed reads.
        failed_reads,
        /// Failed writes.
        failed_writes,
        /// Writes refused because an earlier write to the file had failed.
        refused,
        /// Parts carried out at another rank.
        shipped,
        /// Parts carried out in blocks.
        in_blocks,
        /// Pages overwritten whole without being read.
        overwritten,
        /// Drives that left parts waiting for fewer dirty pages.
        held,
        /// Writes to files while no rank flushed one: write-behind.
        behind,
        /// Flushes by one rank alone.
        flushes,
        /// Failed flushes by one rank alone.
        failed_flushes,
        /// Syncs failed, or refused because of an earlier failure.
        doubted,
        /// Simulated crashes after a successful sync.
        survived,
        /// Flushes while another pool had dirty pages of the file.
        elsewhere,
        /// Joint operations repeated after a failed write.
        repeated,
        /// Files closed with bytes that could not be written.
        lost,
        /// Files closed with all bytes written.
        closed,
        /// Successful syncs.
        synced,
        /// Successful syncs with unfinished writes.
        synced_during_writes,
        /// Calls begun during a sync.
        during_sync,
        /// Pages written back for a sync at the request of their homes.
        recalled,
        /// Files made shorter.
        cut,
        /// Files made longer.
        grown,
        /// Failed joint operations after which the file stayed open.
        failed_together,
        /// Files opened while another one was open.
        opened_together,
        /// Files opened again by another team.
        other_team,
        /// Messages in flight when the first rank closed a file.
        overtaken,
        /// Calls about several ranges.
        lists,
        /// Atomic calls.
        in_one_step,
        /// Sequential orders of atomic calls found.
        in_order,
        /// Lock requests not granted at once.
        waited,
        /// Locks granted to programs.
        locked,
        /// Answers about the size of a file.
        sizes,
    }
}

/// The files of a job.
#[derive(Default)]
pub struct SharedFiles {
    /// The files open at some rank.
    pub open: BTreeMap<Space, SharedFile>,
    pub seen: FileSeen,
    /// Files opened so far. No number is used twice.
    opened: u32,
}

/// A file opened jointly by the ranks of a team.
pub struct SharedFile {
    space: Space,
    memory: MemoryFile,
    /// The pages in use by operations.
    pages: u32,
    stripes: Stripes,
    named: Arc<NamedFile>,
    history: History,
    /// The calls of a file with atomic calls.
    steps: Option<Steps>,
    members: BTreeMap<usize, Member>,
    /// The joint operation in progress.
    errand: Option<Errand>,
    /// The file has its new size, and not all ranks know the size.
    is_cutting: bool,
    /// Bounds on its length: unfinished writes may make it longer.
    least_bytes: u64,
    most_bytes: u64,
    /// Faults are injected into the file.
    is_faulty: bool,
    /// Syncs of the file so far.
    syncs: u64,
    options: FileOptions,
}

/// How a file is used.
#[derive(Clone, Copy)]
pub struct FileOptions {
    /// Calls are atomic.
    pub is_atomic: bool,
    /// A failed joint operation is repeated until it succeeds.
    pub heals: bool,
    /// Faults end as soon as all ranks have come to a joint operation.
    pub heals_early: bool,
}

impl SharedFile {
    fn size_bytes(&self) -> usize {
        self.pages as usize * PAGE_BYTES
    }

    /// Ends all faults. Operations in flight may still fail.
    fn heal(&mut self) {
        self.memory.configure(|faults| faults.heal());
        self.memory.limit_space(usize::MAX);
    }

    /// Whether all ranks of the team have it open and know its size.
    fn is_open(&self) -> bool {
        !self.is_cutting && self.members.values().all(|member| member.step < Step::Closed)
    }
}

impl SharedFiles {
    pub fn has_block(&self, page: PageId, block: usize, bytes: &[u8]) -> bool {
        let blocks = PAGE_BYTES / vgasnet_storage::BLOCK_BYTES;
        let bytes = bytes.try_into().expect("a block");
        let memory = &self.open.get(&page.space).expect("the file is open").memory;
        memory.has_block(u64::from(page.index) * blocks as u64 + block as u64, bytes)
    }

    pub fn note_blocks(&mut self, part: &Part) {
        self.seen.in_blocks += u64::from(part.piece.page.space.segment().is_none());
    }

    pub fn note_shipped(&mut self, part: &Part) {
        self.seen.shipped += u64::from(part.piece.page.space.segment().is_none());
    }

    pub fn note_overwritten(&mut self, page: PageId) {
        self.seen.overwritten += u64::from(page.space.segment().is_none());
    }

    /// Whether any file was opened.
    pub fn were_used(&self) -> bool {
        self.opened > 0
    }

    fn get(&mut self, space: Space) -> &mut SharedFile {
        self.open.get_mut(&space).expect("the file is open")
    }
}

impl Job {
    /// The ranks of a team open a file and use its first pages. Returns its space.
    fn open_file(
        &mut self,
        memory: &MemoryFile,
        team: &[usize],
        stripes: Stripes,
        pages: u32,
        options: FileOptions,
    ) -> Space {
        let named_options = NamedOptions { read: true, write: true, ..NamedOptions::default() };
        let named = Arc::new(NamedFile::in_memory(memory, &named_options).expect("the options make sense"));
        let space = Space::of_file(self.files.opened);
        self.files.opened += 1;
        let (bytes, watch) = (memory.bytes(), IoWatch::default());
        let mut members = BTreeMap::new();
        for rank in team {
            let (node, state) = (&mut self.nodes[*rank], Arc::<FileState>::default());
            let its_pages = bytes.len().div_ceil(PAGE_BYTES) as u32;
            let io = RankIo { rank: Rank(*rank as u32), stripes: stripes.clone(), watch: watch.clone() };
            node.disk.expect_file(&named, io);
            node.engine.open_file(space, stripes.clone(), its_pages, Some(Arc::clone(&named)), Arc::clone(&state));
            members.insert(*rank, Member::new(bytes.len() as u64, state));
        }
        self.model.add_file(space, stripes.clone(), &bytes, pages);
        let newest = self.model.bytes(space);
        let (history, steps) = (History::new(newest.clone()), options.is_atomic.then(|| Steps::new(newest)));
        let size = bytes.len() as u64;
        let (memory, errand, is_cutting, is_faulty) = (memory.clone(), None, false, false);
        self.files.seen.opened_together += u64::from(!self.files.open.is_empty());
        let file = SharedFile {
            space,
            memory,
            pages,
            stripes,
            named,
            history,
            steps,
            members,
            errand,
            is_cutting,
            least_bytes: size,
            most_bytes: size,
            is_faulty,
            syncs: 0,
            options,
        };
        self.files.open.insert(space, file);
        space
    }

    /// The pages of the files open on all ranks of their teams.
    pub fn pages_of_files(&self) -> impl Iterator<Item = PageId> + use<> {
        let open: Vec<(Space, u32)> =
            self.files.open.values().filter(|file| file.is_open()).map(|file| (file.space, file.pages)).collect();
        open.into_iter().flat_map(|(space, pages)| (0..pages).map(move |index| PageId { space, index }))
    }

    /// Whether the page belongs to a file being resized, or closed by some rank.
    pub fn is_closing(&self, page: PageId) -> bool {
        page.space.segment().is_none() && !self.files.open.get(&page.space).is_some_and(SharedFile::is_open)
    }

    /// Whether the page belongs to a file being resized. Its bytes may be old or new.
    pub fn is_cutting(&self, page: PageId) -> bool {
        self.files.open.get(&page.space).is_some_and(|file| file.is_cutting)
    }
}

#[test]
fn random_jobs_with_shared_files_keep_every_invariant() {
    const SEEDS: Seeds = Seeds { variable: "FILE_SIM", filter: "shared_files_keep", default: run::SEEDS };
    if let Some((total, seeds)) = SEEDS.run(run::run) {
        total.assert_covers(seeds);
    }
}

#[test]
fn a_seed_with_shared_files_is_one_run() {
    for seed in [3, 4, 5] {
        assert_eq!(run::run(seed), run::run(seed));
    }
}
