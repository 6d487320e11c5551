//! A rank: its engine, driven by one thread, and a client thread.

use crate::conduit::{Memory, VirtualConduit};
use crate::disk::VirtualDisk;
use crate::job::Ways;
use crate::program::{Asked, Program, Step};
use crate::world::{Happening, Nanos, World};
use std::sync::Arc;
use vgasnet_conduit::{Conduit, Rank, Urgency};
use vgasnet_engine::request::{Completion, CompletionId, Completions, Copy, Part};
use vgasnet_engine::{self as engine, Engine, Received, Receiver, StorageServer, Work};
use vgasnet_memory::{self as memory, AddressSpace, Piece, Segment, Segments, Shape, block_frames, staging_frames};
use vgasnet_protocol::barrier::Name;
use vgasnet_protocol::coherence::{Event, FrameId, PageId};
use vgasnet_protocol::streams::ends_step;
use vgasnet_protocol::{Hosts, Limits, RankSizes, Space};
use vgasnet_storage::BLOCK_BYTES;

/// Cost of an access besides its copy: a call that involves no other rank.
pub const CALL_NANOS: Nanos = 50;

/// A receiver for Active Messages. No rank sends any.
struct Deaf;

impl Receiver for Deaf {
    fn on_message(&self, _from: Rank, _bytes: &[u8]) -> Result<Received, &'static str> {
        Err("an Active Message, which nobody here sends")
    }
}

/// The event awaited by the client.
enum Awaited {
    Nothing,
    /// An operation, and its start time.
    Operation(CompletionId, Nanos),
    /// Write-back of the client's pages, before a barrier.
    Flush,
    Barrier,
}

/// One rank of a job.
pub struct VirtualRank {
    world: Arc<World>,
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    engine: Engine,
    completions: Completions,
    step: u32,
    /// The client's memory: the largest amount ever shipped.
    scratch: Box<[u8]>,
    awaited: Awaited,
    is_cooperative: bool,
    writes_whole_pages: bool,
    program: Option<Program>,
    /// The end time of the program.
    pub ended: Nanos,
    /// Accesses to a usable page, other accesses, and the waiting time of the latter.
    pub hits: u64,
    pub misses: u64,
    pub waited: Nanos,
}

/// State common to all ranks of a job.
pub struct Common {
    pub world: Arc<World>,
    pub memories: Arc<[Memory]>,
    pub shapes: Vec<Shape>,
    pub hosts: Hosts,
    pub ways: Ways,
    pub segments: Vec<Segment>,
}

impl VirtualRank {
    pub fn new(common: &Common, rank: Rank) -> VirtualRank {
        let Common { world, memories, shapes, hosts, ways, segments } = common;
        let Ways { options, as_in_paper, is_ours, home_keeps, cyclic_homes, .. } = *ways;
        let page_bytes = world.machine().node.page as usize;
        let conduit: Arc<dyn Conduit> =
            Arc::new(VirtualConduit { world: Arc::clone(world), rank, memories: Arc::clone(memories) });
        let tables = memory::memories(&*conduit, shapes, page_bytes, true);
        let space = Arc::new(AddressSpace::new(rank, Segments::new(segments.iter().copied()), tables).with_view(None));
        let own = shapes[rank.index()];
        let first_of_blocks = own.frames + staging_frames(page_bytes);
        let staging = (own.frames..first_of_blocks).map(FrameId).collect();
        let slots = block_frames(own.frames, page_bytes) as usize * (page_bytes / BLOCK_BYTES);
        let disk = Box::new(VirtualDisk::new(Arc::clone(world), rank));
        let homes = memory::with_homes(shapes.iter().map(|shape| shape.pages), page_bytes as u64, cyclic_homes);
        let server = StorageServer::new(Arc::clone(&space), disk, staging, (FrameId(first_of_blocks), slots));
        let server = server.with_homes(homes.clone());
        let sizes = shapes.iter().map(|shape| RankSizes { pages: shape.pages, frames: shape.frames });
        let limits = Limits::new(rank, sizes).with_homes(homes);
        let protocol = engine::protocol(limits, hosts.clone(), options.cooperative, page_bytes);
        let protocol = if home_keeps { protocol.keeping_at_home() } else { protocol };
        let protocol = if as_in_paper.readers_at_once { protocol.telling_itself(usize::MAX) } else { protocol };
        let protocol = protocol.following_paper(as_in_paper);
        let engine = Engine::new(Arc::clone(&conduit), Arc::clone(&space), protocol, server, Arc::new(Deaf), options);
        VirtualRank {
            step: engine.stream_step(),
            world: Arc::clone(world),
            conduit,
            space,
            engine,
            completions: Completions::default(),
            scratch: vec![0; 64 << 10].into(),
            awaited: Awaited::Nothing,
            is_cooperative: options.cooperative,
            writes_whole_pages: !is_ours,
            program: None,
            ended: 0,
            hits: 0,
            misses: 0,
            waited: 0,
        }
    }

    fn rank(&self) -> Rank {
        self.space.rank
    }

    /// Starts a program now.
    pub fn begin(&mut self, program: Program) {
        self.program = Some(program);
        (self.hits, self.misses, self.waited) = (0, 0, 0);
        self.world.after(0, Happening::Client(self.rank()));
    }

    /// Whether the client's program has ended.
    pub fn is_done(&self) -> bool {
        self.program.is_none()
    }

    /// The files contain all pages of this segment with their home on this rank, and no rank holds any.
    pub fn fill(&mut self, segment: Rank) {
        let pages = self.engine.protocol().spaces().pages(Space::of_segment(segment));
        for page in (0..pages).map(|index| PageId::of_segment(segment, index)) {
            if self.engine.protocol().spaces().home(page) == self.rank() {
                self.engine.complete(Event::Written(page));
            }
        }
    }

    /// Gives up all pages. Returns whether none is left.
    pub fn empty(&mut self) -> bool {
        let is_empty = self.engine.discard_all();
        self.world.call(self.rank());
        is_empty
    }

    /// Continues the client with its next access, or ends its program.
    pub fn go_on(&mut self) -> Result<(), String> {
        let Some(program) = &mut self.program else { return Ok(()) };
        match program.next() {
            None => {
                self.program = None;
                self.ended = self.world.now();
            }
            Some(Step::Access(asked)) => self.access(asked),
            Some(Step::Barrier) => {
                self.awaited = Awaited::Flush;
                if !self.is_cooperative {
                    self.engine.flush();
                }
                self.look_at_barrier()?;
                self.world.call(self.rank());
            }
        }
        Ok(())
    }

    /// If the client waits at a barrier or for its pages before one, continues it when possible.
    fn look_at_barrier(&mut self) -> Result<(), String> {
        if matches!(self.awaited, Awaited::Flush) && (self.is_cooperative || self.engine.is_flushed()) {
            self.engine.notify_barrier(Name::Anonymous).map_err(|misuse| format!("{misuse:?}"))?;
            self.awaited = Awaited::Barrier;
        }
        if matches!(self.awaited, Awaited::Barrier) && self.engine.barrier().is_released() {
            self.engine.barrier().finish(Name::Anonymous).map_err(|misuse| format!("{misuse:?}"))?;
            self.resume();
        }
        Ok(())
    }

    /// The client continues as soon as the driving thread has finished its current work.
    fn resume(&mut self) {
        self.awaited = Awaited::Nothing;
        let (now, done) = (self.world.now(), self.spend(0));
        self.world.after(done - now + CALL_NANOS, Happening::Client(self.rank()));
    }

    fn access(&mut self, asked: Asked) {
        let page_bytes = self.space.page_bytes();
        let page = PageId::of_segment(Rank(asked.home), asked.page);
        let piece = Piece { page, offset_bytes: asked.offset_bytes, len_bytes: asked.len_bytes, start_bytes: 0 };
        debug_assert!(asked.offset_bytes + asked.len_bytes <= page_bytes);
        if self.hit(&piece, &asked) {
            self.hits += 1;
            let nanos = CALL_NANOS + self.world.copying(asked.len_bytes as u64);
            self.world.after(nanos, Happening::Client(self.rank()));
            return;
        }
        self.misses += 1;
        let completion = self.completions.begin();
        self.completions.add(completion);
        let copy = self.copy_of(&asked);
        self.awaited = Awaited::Operation(completion, self.world.now());
        self.engine.submit(Part { piece, copy, completion: Completion::Counted(completion) });
        self.world.call(self.rank());
    }

    /// The start and length of the part of a page to write back after a put.
    fn written(&self, piece: &Piece) -> (usize, usize) {
        if self.writes_whole_pages { (0, self.space.page_bytes()) } else { (piece.offset_bytes, piece.len_bytes) }
    }

    fn copy_of(&mut self, asked: &Asked) -> Copy {
        let memory = self.scratch.as_mut_ptr();
        if asked.is_put { Copy::Put(memory) } else { Copy::Get(memory) }
    }

    /// Accesses a page open in this rank's pool or a neighbour's.
    fn hit(&mut self, piece: &Piece, asked: &Asked) -> bool {
        let access = self.copy_of(asked).access();
        let own = self.space.own_pool();
        let elsewhere: Vec<usize> = self.space.elsewhere(piece.page).map(|(pool, _)| pool).collect();
        let found = [own].into_iter().chain(elsewhere).find_map(|pool| {
            let (rank, memory) = self.space.pool(pool);
            memory.table.pin(piece.page, access).map(|pinned| (rank, pinned))
        });
        let Some((rank, pinned)) = found else { return false };
        let memory = self.space.memories.get(rank).expect("its page is pinned");
        memory.pool.touch(pinned.frame);
        if asked.is_put {
            let (offset_bytes, len_bytes) = self.written(piece);
            memory.blocks.mark(pinned.frame, offset_bytes, len_bytes);
        }
        let is_first_use = pinned.ahead && memory.table.take_ahead(pinned.frame);
        if memory.table.unpin(pinned.frame) {
            memory.table.notify_unpinned();
            self.world.call(Rank(rank as u32));
        }
        if is_first_use && ends_step(piece.page.index, self.step) {
            self.engine.prefetch_after_use(piece.page);
            self.world.call(self.rank());
        }
        true
    }

    /// Drives the engine until it is idle.
    pub fn drive(&mut self) -> Result<(), String> {
        loop {
            let worked = self.engine.drive().map_err(|line| line.to_string())?;
            let mut has_work = false;
            while let Some(work) = self.engine.take_work() {
                has_work = true;
                self.perform(work);
            }
            if !worked && !has_work {
                break;
            }
        }
        let _ = self.engine.take_news();
        self.look_at_barrier()
    }

    fn spend(&self, nanos: Nanos) -> Nanos {
        self.world.spend(self.rank(), nanos)
    }

    fn perform(&mut self, work: Work) {
        let page_bytes = self.space.page_bytes() as u64;
        match work {
            Work::Copies { frame, parts, .. } => {
                let bytes = parts.iter().map(|part| part.piece.len_bytes as u64).sum();
                self.spend(self.world.copying(bytes));
                for part in &parts {
                    if matches!(part.copy, Copy::Put(_)) {
                        let (offset_bytes, len_bytes) = self.written(&part.piece);
                        self.space.own.blocks.mark(frame, offset_bytes, len_bytes);
                    }
                }
                if self.space.own.table.unpin(frame) {
                    self.space.own.table.notify_unpinned();
                    self.world.call(self.rank());
                }
                parts.into_iter().for_each(|part| self.finish(part));
            }
            Work::Clear { page, .. } => {
                self.spend(self.world.copying(page_bytes / 2));
                self.engine.complete(Event::Cleared(page));
            }
            Work::Fill { page, frame, part } => {
                self.spend(self.world.copying(page_bytes));
                self.space.own.blocks.mark(frame, 0, page_bytes as usize);
                self.engine.complete(Event::Filled(page));
                self.finish(*part);
            }
            Work::Blocks(copies) => {
                self.spend(self.world.copying(copies.part.piece.len_bytes as u64));
                self.engine.end_on_blocks(copies.job, false);
                self.finish(copies.part);
            }
            Work::LayOver { operation, .. } => self.engine.end_lay_over(operation),
            Work::Ship(shipment) => {
                let sent = self.conduit.send(shipment.to, &shipment.heads, &shipment.collect(), Urgency::Now);
                sent.expect("there is room");
            }
            Work::Deliver(delivery) => self.finish(delivery.part),
            Work::Put(transfer) => self.conduit.put(&transfer).expect("there is room"),
            Work::Get(transfer) => self.conduit.get(&transfer).expect("there is room"),
            Work::Fail { cause, .. } => unreachable!("nothing fails here: {cause:?}"),
            Work::Unmap { .. } | Work::UnmapUnused { .. } | Work::GiveBack { .. } => {
                unreachable!("segments are not mapped here")
            }
        }
    }

    fn finish(&mut self, part: Part) {
        match part.completion {
            Completion::Counted(completion) => {
                self.completions.finish(completion);
                match self.awaited {
                    Awaited::Operation(awaited, since) if awaited == completion => {
                        self.completions.end(completion);
                        self.waited += self.spend(0) - since;
                        self.resume();
                    }
                    _ => {}
                }
            }
            Completion::Served(id) => self.engine.on_served(id),
            Completion::Nobody => {}
            Completion::Then(..) | Completion::Fault(_) => unreachable!("clients here get and put"),
        }
    }
}
