//! The engine of a rank, over twins of what it drives.

use crate::disk::Disk;
use crate::job::{COPIES_BYTES, Node, PAGE_BYTES, Phase};
use crate::mapper::Mapper;
use crate::phases::Watch;
use crate::shape::Shape;
use std::sync::Arc;
use vgasnet_conduit::{Conduit, Rank};
use vgasnet_engine::request::{Budget, Completions, Mailbox};
use vgasnet_engine::{Engine, EngineOptions, Optimisations, Received, Receiver, StorageServer};
use vgasnet_memory::{
    self as memory, AddressSpace, Loans, STAGING_FRAMES_MIN, Segment, SegmentView, Segments, staging_frames,
};
use vgasnet_protocol::coherence::{FrameId, Protocol};
use vgasnet_protocol::{Hosts, Limits, RankSizes};
use vgasnet_sim_conduit::Hub;
use vgasnet_storage::{MemoryStorage, Storage};

/// Refuses all messages: these jobs send no Active Messages.
struct Deaf;

impl Receiver for Deaf {
    fn on_message(&self, _from: Rank, _bytes: &[u8]) -> Result<Received, &'static str> {
        Err("an Active Message, which nobody here sends")
    }
}

fn server(shape: &Shape, space: &Arc<AddressSpace>, mapper: &Mapper, storage: Box<dyn Storage>) -> StorageServer {
    let own = shape.ranks[space.rank.index()];
    let staging = (own.frames..own.frames + STAGING_FRAMES_MIN).map(FrameId).collect();
    let blocks = (FrameId(own.frames + staging_frames(PAGE_BYTES)), shape.block_slots);
    let mut server = StorageServer::new(Arc::clone(space), storage, staging, blocks)
        .with_gaps(shape.gap_bytes)
        .with_homes(shape.segments());
    if shape.mapper.blocks_max > 0 {
        server = server.with_mapped_blocks(mapper.of_blocks(), shape.mapper.blocks_max);
    }
    server
}

pub fn node(shape: &Shape, hub: &Arc<Hub>, rank: Rank, seed: u64, storage: &dyn Fn(Disk) -> Box<dyn Storage>) -> Node {
    let conduit: Arc<dyn Conduit> = Arc::new(hub.conduit(rank));
    let own = shape.ranks[rank.index()];
    let memories = memory::memories(&*conduit, &shape.ranks, PAGE_BYTES, true);
    let segments = shape
        .ranks
        .iter()
        .enumerate()
        .map(|(at, rank)| Segment { base: (at + 1) << 32, size_bytes: rank.pages as usize * PAGE_BYTES });
    let space = AddressSpace::new(rank, Segments::new(segments), memories);
    let mapper = Mapper::new(rank, space.own, shape.mapper);
    let areas_max = shape.mapper.areas_max;
    let view =
        SegmentView::new(rank, Arc::clone(&space.segments), space.own, own.frames, Box::new(mapper.clone()), areas_max);
    let lenders = space.lenders(|rank| shape.cooperative.then(|| mapper.of_neighbour(rank)));
    let view = view.with_loans(Loans::new(Arc::clone(&conduit), lenders, own.frames, u32::MAX));
    let space = Arc::new(space.with_view(Some(Arc::new(view))));
    let segments = shape.segments();
    let size_bytes = segments.places_at_home(rank).max(1) * PAGE_BYTES as u64;
    let disk = Disk::new(MemoryStorage::new(size_bytes, shape.disk_depth, seed));
    let server = server(shape, &space, &mapper, storage(disk.clone()));
    let sizes = shape.ranks.iter().map(|rank| RankSizes { pages: rank.pages, frames: rank.frames });
    let protocol = Protocol::new(Limits::new(rank, sizes).with_homes(segments), shape.cooperative).in_groups(2);
    let hosts = Hosts::of((0..shape.ranks.len() as u32).map(|rank| rank / shape.ranks.len().min(3) as u32));
    let protocol = protocol.telling_itself(shape.told_itself_max).on_hosts(hosts);
    let options = EngineOptions {
        policy: shape.policy,
        cooperative: shape.cooperative,
        ships: shape.ships,
        offers_max: shape.offers_max,
        optimisations: Optimisations::ALL,
    };
    Node {
        engine: Engine::new(Arc::clone(&conduit), Arc::clone(&space), protocol, server, Arc::new(Deaf), options),
        space,
        conduit,
        completions: Completions::default(),
        copies: Budget::new(COPIES_BYTES),
        disk,
        tasks: Vec::new(),
        operations: Vec::new(),
        mapper,
        threads: Vec::new(),
        threads_started: 0,
        turn: None,
        mailbox: Mailbox::default(),
        pinners: Vec::new(),
        watch: Watch::new(rank.index() / 2),
        barrier: Phase::Away,
        notified: 0,
        passed: 0,
        asleep: false,
        notices_seen: 0,
    }
}
