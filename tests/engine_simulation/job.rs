//! A job: its ranks, and the work of a rank's threads for the engine.

use crate::client::Operation;
use crate::disk::Disk;
use crate::files::SharedFiles;
use crate::mapper::Mapper;
use crate::model::Model;
use crate::node::node;
use crate::phases::Watch;
use crate::pins::Pinner;
use crate::seen::Seen;
use crate::shape::Shape;
use crate::touch::Thread;
use fastrand::Rng;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vgasnet_conduit::{Conduit, Rank, RegionSizes, Transfer, Urgency};
use vgasnet_engine::request::{Budget, Completion, Completions, Mailbox, Part, Waited};
use vgasnet_engine::{BlockCopies, Delivery, EndedRead, Engine, OverlaidBlocks, PageRead, Shipment, ThreadRead, Work};
use vgasnet_memory::{self as memory, AddressSpace, all_frames};
use vgasnet_protocol::coherence::{Cause, Event, FrameId, PageId};
use vgasnet_settings::UserError;
use vgasnet_sim_conduit::Hub;
use vgasnet_storage::{BLOCK_BYTES, Storage};

/// Four blocks.
pub const PAGE_BYTES: usize = 4 * BLOCK_BYTES;

/// Room of a rank for copies of bytes still to be written by puts.
pub const COPIES_BYTES: usize = 64 << 10;

/// One rank.
pub struct Node {
    pub engine: Engine,
    pub space: Arc<AddressSpace>,
    pub conduit: Arc<dyn Conduit>,
    pub completions: Completions,
    pub copies: Budget,
    pub disk: Disk,
    /// Unfinished work of this rank's threads.
    pub tasks: Vec<Task>,
    pub operations: Vec<Operation>,
    /// The mappings for loads and stores in the rank's own segment.
    pub mapper: Mapper,
    pub threads: Vec<Thread>,
    pub threads_started: u64,
    /// The thread with the turn to fetch pages.
    pub turn: Option<u64>,
    /// Requests of faulted threads.
    pub mailbox: Mailbox,
    pub pinners: Vec<Pinner>,
    pub watch: Watch,
    pub barrier: Phase,
    /// The barriers this rank has come to, and the ones it has passed.
    pub notified: u32,
    pub passed: u32,
    /// No thread drives the engine until there is a reason to.
    pub asleep: bool,
    pub notices_seen: u32,
}

/// The position of a rank's client between two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Away,
    Flushing,
    Notified,
}

/// Unfinished work of a thread.
pub enum Task {
    Copies {
        page: PageId,
        frame: FrameId,
        left: VecDeque<Part>,
        done: Vec<Part>,
    },
    /// Parts with their page unpinned.
    Finish(Vec<Part>),
    Clear {
        page: PageId,
        frame: FrameId,
    },
    Cleared(PageId),
    Fill {
        page: PageId,
        frame: FrameId,
        part: Part,
    },
    Filled(PageId, Part),
    Unmap {
        page: PageId,
        frame: FrameId,
    },
    Closed(PageId),
    UnmapUnused(Box<[(u32, FrameId)]>),
    GiveBack {
        index: u32,
    },
    Blocks(BlockCopies),
    /// The copies of a job on blocks are done, or have failed.
    EndBlocks {
        job: usize,
        part: Part,
        failed: Option<Cause>,
        is_copied: bool,
    },
    /// Failed parts of a file.
    Fail(Vec<Part>, Cause),
    LayOver {
        operation: usize,
        blocks: OverlaidBlocks,
    },
    EndLayOver {
        operation: usize,
    },
    Ship(Box<Shipment>),
    Deliver(Delivery),
    Put(Transfer),
    Get(Transfer),
    /// A read by the thread itself.
    Read(PageRead),
    EndRead(EndedRead),
}

impl Task {
    pub fn of_read(read: ThreadRead) -> Task {
        match read {
            ThreadRead::Own(read) => Task::Read(read),
            ThreadRead::Neighbour(_) => unreachable!("other processes cannot open files in memory"),
        }
    }
}

pub struct Job {
    pub shape: Shape,
    pub hub: Arc<Hub>,
    pub nodes: Vec<Node>,
    pub model: Model,
    pub seen: Seen,
    pub files: SharedFiles,
    /// The time of all ranks, in milliseconds.
    pub clock: Arc<AtomicU64>,
}

/// The time of one drive, in milliseconds.
const DRIVE_MS: u64 = 20;

impl Job {
    pub fn new(shape: Shape, random: &mut Rng) -> Job {
        Job::with_storage(shape, random, &|disk| Box::new(disk))
    }

    /// A job with wrapped disks: each engine gets `storage` of its disk.
    pub fn with_storage(shape: Shape, random: &mut Rng, storage: &dyn Fn(Disk) -> Box<dyn Storage>) -> Job {
        let hub = Hub::new(shape.network.clone());
        let sizes = shape.ranks.iter().map(|own| RegionSizes {
            pool_bytes: all_frames(own.frames, PAGE_BYTES) as usize * PAGE_BYTES,
            table_bytes: memory::table_bytes(*own, PAGE_BYTES),
        });
        hub.attach_all(&sizes.collect::<Vec<_>>());
        let mut nodes: Vec<Node> =
            (0..shape.ranks.len()).map(|rank| node(&shape, &hub, Rank(rank as u32), random.u64(..), storage)).collect();
        let clock = Arc::new(AtomicU64::new(0));
        for node in &mut nodes {
            let clock = Arc::clone(&clock);
            node.engine.set_clock(move || Duration::from_millis(clock.load(Ordering::Relaxed)));
        }
        let model = Model::new(shape.segments(), shape.ranks.len() as u32);
        Job { shape, hub, nodes, model, seen: Seen::default(), files: SharedFiles::default(), clock }
    }

    /// All pages of the job.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + use<> {
        let pages: Vec<u32> = self.shape.ranks.iter().map(|rank| rank.pages).collect();
        let of_segments = (0..pages.len())
            .flat_map(move |home| (0..pages[home]).map(move |index| PageId::of_segment(Rank(home as u32), index)));
        of_segments.chain(self.pages_of_files())
    }

    /// Drives the engine of `rank` once.
    pub fn drive(&mut self, rank: usize) -> Result<(), UserError> {
        self.clock.fetch_add(DRIVE_MS, Ordering::Relaxed);
        let node = &mut self.nodes[rank];
        let notices = node.space.own.table.unpin_notices();
        let worked = node.engine.drive()?;
        let (failed, forgotten) = (node.disk.failed(), node.engine.storage().forgotten());
        // The disk cannot tell failed read-ahead of files from other failed reads.
        let is_told = failed.len() as u64 == forgotten || self.files.were_used() && forgotten > failed.len() as u64;
        assert!(is_told, "the job was not told of an I/O error: {failed:?}");
        self.seen.held += u64::from(node.engine.pending().deferred > 0);
        self.seen.serving += u64::from(node.engine.frames_for_blocks() > 0);
        // As the helper does, which sleeps after a drive without work.
        node.asleep = !worked;
        node.notices_seen = notices;
        let _ = node.engine.take_news();
        Ok(())
    }

    /// Whether the threads of `rank` have a reason to drive its engine, if they sleep as the threads of
    /// [`vgasnet_engine::Driver`] do.
    pub fn is_awake(&self, rank: usize) -> bool {
        let node = &self.nodes[rank];
        !node.asleep
            || node.engine.is_held_up()
            || node.engine.pending().work > 0
            || node.engine.storage().storage().in_flight() > 0
            || node.space.own.table.unpin_notices() != node.notices_seen
            || self.hub.has_arrivals(Rank(rank as u32))
    }

    /// Wakes a thread of `rank` to drive the engine, after a call to the engine.
    pub fn rouse(&mut self, rank: usize) {
        self.nodes[rank].asleep = false;
    }

    /// Lets a thread of `rank` take a piece of work. Returns whether there was one.
    pub fn take(&mut self, rank: usize) -> bool {
        let node = &mut self.nodes[rank];
        let Some(work) = node.engine.take_work() else { return false };
        node.tasks.push(match work {
            Work::Copies { page, frame, parts } => Task::Copies { page, frame, left: parts.into(), done: Vec::new() },
            Work::Clear { page, frame } => Task::Clear { page, frame },
            Work::Fill { page, frame, part } => Task::Fill { page, frame, part: *part },
            Work::Unmap { page, frame } => Task::Unmap { page, frame },
            Work::UnmapUnused { pages } => Task::UnmapUnused(pages),
            Work::GiveBack { index } => Task::GiveBack { index },
            Work::Blocks(copies) => Task::Blocks(*copies),
            Work::LayOver { operation, blocks } => Task::LayOver { operation, blocks },
            Work::Ship(shipment) => Task::Ship(shipment),
            Work::Deliver(delivery) => Task::Deliver(*delivery),
            Work::Fail { parts, cause } => Task::Fail(parts, cause),
            Work::Put(transfer) => Task::Put(transfer),
            Work::Get(transfer) => Task::Get(transfer),
        });
        true
    }

    /// Does the next step of a task.
    pub fn go_on(&mut self, rank: usize, task: usize) {
        let task = self.nodes[rank].tasks.swap_remove(task);
        let next = self.step(rank, task);
        self.nodes[rank].tasks.extend(next);
        self.rouse(rank);
    }

    fn step(&mut self, rank: usize, task: Task) -> Option<Task> {
        let node = &mut self.nodes[rank];
        match task {
            Task::Copies { page, frame, mut left, mut done } => {
                let Some(part) = left.pop_front() else {
                    self.unpin(rank, page);
                    return Some(Task::Finish(done));
                };
                // SAFETY: the engine pinned the page for this part, and the part's memory belongs to an operation
                // waiting for it.
                unsafe { self.model.copy(&part.copy, &node.space.own, frame, &part.piece) };
                if let Some(access) = part.copy.mapped_access() {
                    node.view().map_and_pin(page.index, frame, access).expect("there is room for a mapping");
                }
                done.push(part);
                Some(Task::Copies { page, frame, left, done })
            }
            Task::Finish(parts) => {
                for part in parts {
                    match part.completion {
                        Completion::Fault(fault) => assert_eq!(node.mailbox.serve(fault), Waited::Asleep),
                        Completion::Counted(completion) => _ = node.completions.finish(completion),
                        Completion::Then(..) => unreachable!("the twin's clients keep no copies"),
                        Completion::Served(id) => node.engine.on_served(id),
                        Completion::Nobody => {}
                    }
                }
                None
            }
            Task::Put(transfer) => self.transfer(rank, transfer, true),
            Task::Get(transfer) => self.transfer(rank, transfer, false),
            Task::Read(read) => Some(self.read(read)),
            Task::EndRead(read) => {
                node.engine.end_read(read).expect("such reads do not fail");
                None
            }
            of_frame @ (Task::Clear { .. } | Task::Cleared(_) | Task::Fill { .. } | Task::Filled(..)) => {
                self.step_of_frame(rank, of_frame)
            }
            of_mapping @ (Task::Unmap { .. } | Task::Closed(_) | Task::UnmapUnused(_) | Task::GiveBack { .. }) => {
                self.step_of_mapping(rank, of_mapping)
            }
            of_bytes => self.step_of_bytes(rank, of_bytes),
        }
    }

    /// As [`Job::step`], for frames of pages that are not open yet.
    fn step_of_frame(&mut self, rank: usize, task: Task) -> Option<Task> {
        let node = &mut self.nodes[rank];
        match task {
            Task::Clear { page, frame } => {
                let memory = node.space.own.pool.frame(frame);
                // SAFETY: the frame is inside the pool, and reserved for an unopened page.
                unsafe { memory.write_bytes(0, PAGE_BYTES) };
                Some(Task::Cleared(page))
            }
            Task::Cleared(page) => {
                node.engine.complete(Event::Cleared(page));
                None
            }
            Task::Fill { page, frame, part } => {
                self.seen.overwritten += 1;
                self.files.note_overwritten(page);
                // SAFETY: the frame is reserved for an unopened page, and the part is as long as the page. Its memory
                // belongs to an operation waiting for it.
                unsafe { self.model.copy(&part.copy, &node.space.own, frame, &part.piece) };
                Some(Task::Filled(page, part))
            }
            Task::Filled(page, part) => {
                node.engine.complete(Event::Filled(page));
                Some(Task::Finish(vec![part]))
            }
            _ => unreachable!("no task of a frame"),
        }
    }

    /// As [`Job::step`], for mappings of the own segment.
    fn step_of_mapping(&mut self, rank: usize, task: Task) -> Option<Task> {
        let node = &mut self.nodes[rank];
        match task {
            Task::Unmap { page, frame } => {
                node.view().unmap(page, frame).expect("there is room to unmap");
                Some(Task::Closed(page))
            }
            Task::Closed(page) => {
                node.engine.complete(Event::Closed(page));
                None
            }
            Task::UnmapUnused(pages) => {
                node.view().unmap_unused(&pages);
                None
            }
            Task::GiveBack { index } => {
                self.seen.asked_back += u64::from(node.mapper.lent_at(index).is_some());
                node.view().give_back(index).expect("there is room to unmap");
                None
            }
            _ => unreachable!("no task of a mapping"),
        }
    }

    /// As [`Job::step`], for small operations at the rank with the page.
    fn step_of_bytes(&mut self, rank: usize, task: Task) -> Option<Task> {
        let node = &mut self.nodes[rank];
        match task {
            Task::Blocks(BlockCopies { job, part, failed: Some(cause), .. }) => {
                Some(Task::EndBlocks { job, part, failed: Some(cause), is_copied: false })
            }
            Task::Blocks(copies) => {
                let is_copied = copies.copy_into_segment();
                let BlockCopies { job, part, places, .. } = copies;
                self.seen.in_blocks += 1;
                self.files.note_blocks(&part);
                for place in &places {
                    // SAFETY: the block is left to the job, and the part's memory belongs to an operation waiting for
                    // it.
                    unsafe { part.copy.run_at(place.memory, place.start_bytes, place.len_bytes) };
                }
                // SAFETY: the part's memory is as long as its piece.
                unsafe { self.model.note(&part.copy, &part.piece) };
                Some(Task::EndBlocks { job, part, failed: None, is_copied })
            }
            Task::EndBlocks { job, part, failed, is_copied } => {
                node.engine.end_on_blocks(job, is_copied);
                if let Some(cause) = failed {
                    return Some(Task::Fail(vec![part], cause));
                }
                let Completion::Fault(fault) = part.completion else { return Some(Task::Finish(vec![part])) };
                assert_eq!(node.mailbox.release(fault), Waited::Asleep);
                None
            }
            Task::LayOver { operation, blocks } => {
                self.seen.laid_over += 1;
                blocks.run();
                Some(Task::EndLayOver { operation })
            }
            Task::EndLayOver { operation } => {
                node.engine.end_lay_over(operation);
                None
            }
            Task::Ship(shipment) => {
                let sent = node.conduit.send(shipment.to, &shipment.heads, &shipment.collect(), Urgency::Now);
                if sent.is_err() {
                    self.seen.put_back += 1;
                    node.engine.put_back(Work::Ship(shipment));
                }
                None
            }
            Task::Fail(parts, cause) => {
                parts.into_iter().for_each(|part| self.fail_part(rank, part, cause));
                None
            }
            Task::Deliver(Delivery { part, bytes }) => {
                self.seen.shipped += 1;
                self.files.note_shipped(&part);
                // SAFETY: the part's memory is as long as its piece.
                unsafe { part.copy.deliver(&bytes) };
                Some(Task::Finish(vec![part]))
            }
            _ => unreachable!("all other tasks are of pages"),
        }
    }

    fn read(&mut self, read: PageRead) -> Task {
        self.seen.read_by_threads += 1;
        Task::EndRead(read.run())
    }

    fn transfer(&mut self, rank: usize, transfer: Transfer, is_put: bool) -> Option<Task> {
        let node = &mut self.nodes[rank];
        let taken = if is_put { node.conduit.put(&transfer) } else { node.conduit.get(&transfer) };
        if taken.is_err() {
            self.seen.put_back += 1;
            node.engine.put_back(if is_put { Work::Put(transfer) } else { Work::Get(transfer) });
        }
        None
    }

    /// Undoes a pin of `page` in the pool of `rank`.
    pub fn unpin(&mut self, rank: usize, page: PageId) {
        let space = &self.nodes[rank].space;
        if space.own.table.unpin(space.own.table.find_pinned(page)) {
            self.seen.notices += 1;
            space.own.table.notify_unpinned();
        }
    }
}
