//! Whole engines with shared files besides the segments.
//!
//! Teams of ranks open files together, several at once; they get and put bytes of them beside those of segments, lock them, flush them,
//! cut them and make them longer, and close them together while others are in use. In some runs the files fail: reads and writes with
//! EIO, writes for lack of space, reads and writes that are cut short. Some models look on. The one of copies knows the newest bytes of
//! every page, as for segments. The [`History`] of calls knows which bytes a read may return that was begun when it was. Where each call
//! is one step, [`Steps`] looks for an order of them all. An [`IoWatch`] sees who does which I/O.
//!
//! What must hold, besides what holds for segments: a call whose completion has no cause is done. Locks exclude each other. After a flush
//! that no rank refuses the file has what was written. After a file was closed nothing of it is left.
//!
//! A failure prints the command that replays it. `FILE_SIM_SEEDS` sets how many seeds a run tries, `FILE_SIM_FIRST` where it begins,
//! `FILE_SIM_SEED` runs one.

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
pub use io_watch::{IoUnderWay, IoWatch};

use crate::job::{Job, PAGE_BYTES};
use crate::seeds::Seeds;
use crate::seen::counters;
use history::History;
use std::collections::BTreeMap;
use std::sync::Arc;
use steps::Steps;
use team::{Errand, Member, Step};
use vgasnet::engine::FileState;
use vgasnet::request::Part;
use vgasnet::storage::{MemoryFile, NamedFile, NamedOptions};
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::{Rank, Space, Stripes};

counters! {
    /// How often the rarer paths about files were taken.
    FileSeen {
        /// Parts that failed, with EIO.
        failed_io,
        /// Parts that failed for lack of space.
        failed_space,
        /// Pieces of other ranks' requests that failed.
        failed_served,
        /// Reads that failed.
        failed_reads,
        /// Writes that failed.
        failed_writes,
        /// Writes that were refused because something before could not be written.
        refused,
        /// Parts that were carried out elsewhere.
        shipped,
        /// Parts in blocks.
        in_blocks,
        /// Pages that were overwritten whole without being read.
        overwritten,
        /// Drives after which parts waited until fewer pages were dirty.
        held,
        /// Writes to files while no rank flushed one.
        behind,
        /// Flushes by single ranks, without the others.
        flushes,
        /// Those of which a rank was told that something could not be written.
        failed_flushes,
        /// Syncs that have failed, or were refused for one before.
        doubted,
        /// Crashes after which something that a sync had promised was there.
        survived,
        /// Flushes while another pool had dirty pages of the file.
        elsewhere,
        /// What all do together and had to repeat, because something could not be written.
        repeated,
        /// Times that a file was closed though something could not be written.
        lost,
        /// Times that one was closed with all of it written.
        closed,
        /// Times that all was written and the file stayed open.
        synced,
        /// Those with writes under way that nobody had waited for.
        synced_beside,
        /// Calls that began while the file was synced.
        beside_sync,
        /// Homes that had pages written back for a sync.
        recalled,
        /// Times that a file was cut.
        cut,
        /// Times that one was made longer.
        grown,
        /// What all do together and failed, and the file stayed open.
        failed_together,
        /// Files that were opened while another one was open.
        beside,
        /// Files that were opened again by another team.
        other_team,
        /// Messages that were on their way when the first rank closed a file.
        overtaken,
        /// Calls about several places.
        lists,
        /// Calls that are one step each.
        in_one_step,
        /// Orders of such calls that were found.
        in_order,
        /// Requests for locks that had to wait.
        waited,
        /// Locks that programs had.
        locked,
        /// Answers about the size of a file.
        sizes,
    }
}

/// The files of a job.
#[derive(Default)]
pub struct SharedFiles {
    /// Those that some rank has open.
    pub open: BTreeMap<Space, SharedFile>,
    pub seen: FileSeen,
    /// How many were opened so far: no number comes again.
    opened: u32,
}

/// A file that the ranks of a team have open together.
pub struct SharedFile {
    space: Space,
    memory: MemoryFile,
    /// As many pages as operations use.
    pages: u32,
    stripes: Stripes,
    named: Arc<NamedFile>,
    history: History,
    /// The calls, where each is one step.
    steps: Option<Steps>,
    members: BTreeMap<usize, Member>,
    /// What all do together now.
    errand: Option<Errand>,
    /// It has its new size, and not all ranks know that.
    is_cutting: bool,
    /// How long it is at least, and at most: writes under way may make it longer.
    least_bytes: u64,
    most_bytes: u64,
    /// Something goes wrong with it.
    is_faulty: bool,
    /// How often it was synced.
    syncs: u64,
    manner: Manner,
}

/// How a file is used.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Each call is one step.
    pub is_atomic: bool,
    /// What all do together is repeated until it is done.
    pub heals: bool,
    /// Nothing fails any more as soon as all have come to do something together.
    pub heals_early: bool,
}

impl SharedFile {
    fn size_bytes(&self) -> usize {
        self.pages as usize * PAGE_BYTES
    }

    /// Nothing goes wrong with it any more. Operations under way may still fail.
    fn heal(&mut self) {
        self.memory.configure(|faults| faults.heal());
        self.memory.limit_space(usize::MAX);
    }

    /// Whether all ranks of the team have it open, and it has the size that they know.
    fn is_open(&self) -> bool {
        !self.is_cutting && self.members.values().all(|member| member.step < Step::Closed)
    }
}

impl SharedFiles {
    pub fn has_block(&self, page: PageId, block: usize, bytes: &[u8]) -> bool {
        let blocks = PAGE_BYTES / vgasnet::storage::BLOCK_BYTES;
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

    /// Whether any was opened.
    pub fn were_used(&self) -> bool {
        self.opened > 0
    }

    fn get(&mut self, space: Space) -> &mut SharedFile {
        self.open.get_mut(&space).expect("the file is open")
    }
}

impl Job {
    /// Ranks open a file together of which they use so many pages. Returns its space.
    fn open_file(
        &mut self,
        memory: &MemoryFile,
        team: &[usize],
        stripes: Stripes,
        pages: u32,
        manner: Manner,
    ) -> Space {
        let options = NamedOptions { read: true, write: true, ..NamedOptions::default() };
        let named = Arc::new(NamedFile::in_memory(memory, &options).expect("the options make sense"));
        let space = Space::of_file(self.files.opened);
        self.files.opened += 1;
        let (bytes, watch) = (memory.bytes(), IoWatch::default());
        let mut members = BTreeMap::new();
        for rank in team {
            let (node, state) = (&mut self.nodes[*rank], Arc::<FileState>::default());
            let its_pages = bytes.len().div_ceil(PAGE_BYTES) as u32;
            let io = IoUnderWay { rank: Rank(*rank as u32), stripes: stripes.clone(), watch: watch.clone() };
            node.disk.expect_file(&named, io);
            node.engine.open_file(space, stripes.clone(), its_pages, Some(Arc::clone(&named)), Arc::clone(&state));
            members.insert(*rank, Member::new(bytes.len() as u64, state));
        }
        self.model.add_file(space, stripes.clone(), &bytes, pages);
        let newest = self.model.bytes(space);
        let (history, steps) = (History::new(newest.clone()), manner.is_atomic.then(|| Steps::new(newest)));
        let size = bytes.len() as u64;
        let (memory, errand, is_cutting, is_faulty) = (memory.clone(), None, false, false);
        self.files.seen.beside += u64::from(!self.files.open.is_empty());
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
            manner,
        };
        self.files.open.insert(space, file);
        space
    }

    /// The pages of the files that are open on all ranks of their teams.
    pub fn pages_of_files(&self) -> impl Iterator<Item = PageId> + use<> {
        let open: Vec<(Space, u32)> =
            self.files.open.values().filter(|file| file.is_open()).map(|file| (file.space, file.pages)).collect();
        open.into_iter().flat_map(|(space, pages)| (0..pages).map(move |index| PageId { space, index }))
    }

    /// Whether the page is of a file that some rank has closed, or that is being cut.
    pub fn is_closing(&self, page: PageId) -> bool {
        page.space.segment().is_none() && !self.files.open.get(&page.space).is_some_and(SharedFile::is_open)
    }

    /// Whether the page is of a file that is being cut: its bytes may be the old ones, or the new.
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
