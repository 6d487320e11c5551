//! A job: its ranks, and the events on them in virtual time.

use crate::addresses::Addresses;
use crate::conduit::Memory;
use crate::hints::Hints;
use crate::machine::Machine;
use crate::program::{Data, Program};
use crate::progress::Pace;
use crate::rank::{Common, VirtualRank};
use crate::world::{Happening, Nanos, World};
use std::sync::Arc;
use vgasnet_conduit::Rank;
use vgasnet_engine::EngineOptions;
use vgasnet_memory::{Segment, Shape, table_bytes};
use vgasnet_protocol::Hosts;
use vgasnet_protocol::coherence::AsInPaper;

/// Model address of the first segment.
const SEGMENTS_AT: usize = 1 << 45;

/// Limits on the addresses of pools, on the addresses of data, and on the memory of page tables, in bytes.
const ADDRESSES_MAX: u128 = 1 << 45;
const TABLES_MAX: u128 = 8 << 30;

/// Options of the ranks' behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Ways {
    pub options: EngineOptions,
    pub as_in_paper: AsInPaper,
    /// The protocol is this library's and not the paper's. Dirty pages are written back by blocks.
    pub is_ours: bool,
    pub hints: Hints,
    pub hosts_are_known: bool,
    pub home_keeps: bool,
    /// The pages of a segment have their homes round robin on all ranks.
    pub cyclic_homes: bool,
}

pub struct VirtualJob {
    pub world: Arc<World>,
    pub ranks: Vec<VirtualRank>,
    /// The ranks' pools and page tables. They are dropped after the ranks.
    _memory: [Addresses; 2],
}

impl VirtualJob {
    /// Creates ranks with segments that have room for the data.
    ///
    /// # Errors
    /// This machine has too little memory or too few addresses for the model. One line.
    pub fn new(machine: &Machine, ranks: u32, data: Data, ways: Ways) -> Result<VirtualJob, String> {
        let page_bytes = machine.node.page as usize;
        let frames = (machine.node.pool / machine.node.page) as u32;
        let pages = |rank: u32| if rank < data.homes { data.pages_each } else { 1 };
        let shapes: Vec<Shape> = (0..ranks).map(|rank| Shape { pages: pages(rank), frames }).collect();
        let world = Arc::new(World::new(machine.clone(), ranks, ways.hints));
        let pool_bytes = vgasnet_memory::all_frames(frames, page_bytes) as usize * page_bytes;
        check_room(&shapes, data, page_bytes, pool_bytes)?;
        let table = |shape: &Shape| table_bytes(*shape, page_bytes);
        let too_few =
            |error| format!("addresses of {} ranks: {error}; give a larger scale or fewer ranks", shapes.len());
        let mut pools = Addresses::to_read(shapes.iter().map(|_| pool_bytes)).map_err(too_few)?;
        let mut tables = Addresses::to_write(shapes.iter().map(table)).map_err(too_few)?;
        let memory = |shape| Memory { pool: pools.take(pool_bytes), table: tables.take(table(shape)) };
        let memories = shapes.iter().map(memory).collect();
        let mut base = SEGMENTS_AT;
        let segments = shapes.iter().map(|shape| {
            let size_bytes = shape.pages as usize * page_bytes;
            base += size_bytes;
            Segment { base: base - size_bytes, size_bytes }
        });
        let segments = segments.collect();
        let known = if ways.hosts_are_known { shapes.len() as u32 } else { 0 };
        let hosts = Hosts::of((0..known).map(|rank| world.node_of(Rank(rank))));
        let common = Common { world: Arc::clone(&world), memories, shapes, hosts, ways, segments };
        let mut ranks: Vec<VirtualRank> = (0..ranks).map(|rank| VirtualRank::new(&common, Rank(rank))).collect();
        for owner in (0..data.homes).map(Rank) {
            let homes = if ways.cyclic_homes { 0..ranks.len() } else { owner.index()..owner.index() + 1 };
            ranks[homes].iter_mut().for_each(|rank| rank.fill(owner));
        }
        Ok(VirtualJob { world, ranks, _memory: [pools, tables] })
    }

    /// Makes all ranks give up all pages, so only the files have them.
    ///
    /// # Errors
    /// As [`VirtualJob::run`].
    pub fn empty(&mut self) -> Result<(), String> {
        loop {
            // Every rank is asked, whatever the answers of the others.
            let are_empty: Vec<bool> = self.ranks.iter_mut().map(VirtualRank::empty).collect();
            if are_empty.into_iter().all(|is_empty| is_empty) {
                break;
            }
            self.until(|world, _| world.is_quiet())?;
        }
        self.until(|world, _| world.is_quiet())
    }

    /// Runs until no event is left and no thread is busy.
    ///
    /// # Errors
    /// As [`VirtualJob::run`].
    pub fn settle(&mut self) -> Result<(), String> {
        self.until(|world, _| world.is_quiet())?;
        self.world.settle_drivers();
        Ok(())
    }

    /// Runs a program on each rank until all have ended. Returns the elapsed virtual time.
    ///
    /// # Errors
    /// An engine has failed, or no event is left although a program has not ended.
    pub fn run(&mut self, program: impl Fn(u32) -> Program) -> Result<Nanos, String> {
        let begun = self.world.now();
        for (rank, node) in self.ranks.iter_mut().enumerate() {
            node.begin(program(rank as u32));
        }
        self.until(|_, ranks| ranks.iter().all(VirtualRank::is_done))?;
        Ok(self.ranks.iter().map(|rank| rank.ended).fold(begun, Nanos::max) - begun)
    }

    fn until(&mut self, is_done: impl Fn(&World, &[VirtualRank]) -> bool) -> Result<(), String> {
        let mut pace = Pace::new();
        while !is_done(&self.world, &self.ranks) {
            pace.tell(|| {
                let accesses: u64 = self.ranks.iter().map(|rank| rank.hits + rank.misses).sum();
                format!("{accesses} accesses, {:.6} s in the model", self.world.now() as f64 / 1e9)
            });
            let Some(happening) = self.world.next() else { return Err("nothing happens any more".into()) };
            match happening {
                Happening::Incoming { node, bytes, to, arrived, after } => {
                    self.world.receive(node, bytes, to, arrived, after);
                }
                Happening::Arrival { to, arrived } => self.world.deliver(to, arrived),
                Happening::Asked { by, transfer } => self.world.answer(by, &transfer),
                Happening::Disk { rank, token } => self.world.end_disk(rank, token),
                Happening::Drive(rank) => self.ranks[rank.index()].drive()?,
                Happening::Client(rank) => self.ranks[rank.index()].go_on()?,
            }
        }
        Ok(())
    }
}

/// Checks that there are addresses for pools and data, and memory for page tables.
fn check_room(shapes: &[Shape], data: Data, page_bytes: usize, pool_bytes: usize) -> Result<(), String> {
    let tables: u128 = shapes.iter().map(|shape| table_bytes(*shape, page_bytes) as u128).sum();
    let pools = shapes.len() as u128 * pool_bytes as u128;
    let data = (u128::from(data.pages()) + shapes.len() as u128) * page_bytes as u128;
    let ranks = shapes.len();
    for (what, bytes, max) in
        [("pools", pools, ADDRESSES_MAX), ("data", data, ADDRESSES_MAX), ("page tables", tables, TABLES_MAX)]
    {
        if bytes > max {
            let (gib, max) = (bytes >> 30, max >> 30);
            return Err(format!(
                "{what} of {ranks} ranks take {gib} GiB, and {max} are the most; give a larger scale or fewer ranks"
            ));
        }
    }
    Ok(())
}
