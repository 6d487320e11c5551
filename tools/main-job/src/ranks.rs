//! A rank of vgasnet: puts its share of the file into the segments and gets the whole file back.

use crate::plan::{BLOCK_BYTES, Done, Orders, Sums};
use crate::readers::leave_report;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;
use vgasnet::job::{self, Failure, Runtime};
use vgasnet::ops::{Operation, Remote};
use vgasnet_measuring::cgroup;
use vgasnet_measuring::disk::disk_bytes;
use vgasnet_measuring::progress::Bytes;
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::Name;
use vgasnet_protocol::coherence::{Access, PageId};
use vgasnet_settings::UserError;

/// Errors of this program are reported under this name.
const CALL: &str = "main job";

/// Four words per rank, behind the first rank's data.
const MAIL_BYTES: u64 = 32;

fn fail(line: impl Into<String>) -> ! {
    job::fail(CALL, &UserError::new(line))
}

/// Does the work of a rank and ends the process.
pub fn run(orders: &Orders) -> Result<(), String> {
    if let Some(cgroup) = &orders.cgroup {
        cgroup::enter(cgroup)?;
    }
    let failed = |failure: Failure| failure.line.map_or_else(String::new, |line| line.to_string());
    job::init().map_err(failed)?;
    let share = orders.blocks().div_ceil(u64::from(orders.processes)) * BLOCK_BYTES;
    let runtime = job::attach(share + BLOCK_BYTES).map_err(failed)?;
    let member = Member { runtime, orders, share, me: job::job().map_or(0, |job| job.conduit().rank().0) };
    let done = member.work();
    if let Some(done) = done {
        leave_report(orders, &done).unwrap_or_else(|error| fail(format!("its report: {error}")));
    }
    job::exit(0)
}

struct Member<'a> {
    runtime: &'static Runtime,
    orders: &'a Orders,
    /// Bytes of data in each segment.
    share: u64,
    me: u32,
}

impl Member<'_> {
    fn work(&self) -> Option<Done> {
        let sums = Sums::inherited(self.orders.sums_fd).unwrap_or_else(|error| fail(format!("checksums: {error}")));
        let fill_seconds = self.timed(|| self.fill());
        self.empty_pool();
        let mut own = 0;
        let [before, _] = disk_bytes();
        let seconds = self.timed(|| own = self.read(&sums));
        let mine = [self.orders.data_bytes, disk_bytes()[0] - before, own, 0];
        let all = self.gather(mine);
        let total = |column: usize| all.iter().map(|row| row[column]).sum();
        let (read_bytes, disk_bytes, own_pool_bytes) = (total(0), total(1), total(2));
        (self.me == 0).then_some(Done { seconds, fill_seconds, read_bytes, disk_bytes, own_pool_bytes })
    }

    /// The place of a block. Blocks are distributed round robin over the ranks.
    fn place(&self, block: u64) -> (u32, u64) {
        let ranks = u64::from(self.orders.processes);
        ((block % ranks) as u32, block / ranks * BLOCK_BYTES)
    }

    /// Puts this rank's blocks of the file to their places, most of them in other ranks' segments.
    fn fill(&self) {
        let path = self.orders.file.display();
        let file = File::open(&self.orders.file).unwrap_or_else(|error| fail(format!("{path}: {error}")));
        let (ranks, blocks) = (u64::from(self.orders.processes), self.orders.blocks());
        let mut progress = Bytes::new(self.me == 0, "  vgasnet writes", self.orders.data_bytes / ranks);
        let mut buffer = vec![0; BLOCK_BYTES as usize];
        // Neighbouring ranks take neighbouring parts of the file, so most blocks go to another rank's segment.
        let quarter = blocks.div_ceil(ranks);
        for block in (u64::from(self.me) * quarter..blocks).take(quarter as usize) {
            let bytes = &mut buffer[..self.orders.block_bytes(block)];
            file.read_exact_at(bytes, block * BLOCK_BYTES).unwrap_or_else(|error| fail(format!("{path}: {error}")));
            let (rank, offset) = self.place(block);
            self.transfer(Operation::Put(bytes.as_ptr()), rank, offset, bytes.len());
            progress.add(bytes.len() as u64);
        }
    }

    /// Gets all blocks and compares them. Returns the number of bytes found in this rank's own pool.
    fn read(&self, sums: &Sums) -> u64 {
        let mut progress = Bytes::new(self.me == 0, "  vgasnet reads", self.orders.data_bytes);
        let mut buffer = vec![0; BLOCK_BYTES as usize];
        let mut own = 0;
        for block in self.orders.order(self.me) {
            let bytes = &mut buffer[..self.orders.block_bytes(block)];
            let (rank, offset) = self.place(block);
            if self.is_in_own_pool(rank, offset) {
                own += bytes.len() as u64;
            }
            self.transfer(Operation::Get(bytes.as_mut_ptr()), rank, offset, bytes.len());
            if !sums.is_same(block, bytes) {
                fail(format!("block {block} of {} is not the same in the segment", self.orders.file.display()));
            }
            progress.add(bytes.len() as u64);
        }
        own
    }

    /// Whether the first page of a block is in this rank's pool.
    fn is_in_own_pool(&self, rank: u32, offset: u64) -> bool {
        let page_bytes = job::job().map_or(BLOCK_BYTES, |job| job.config().page_bytes);
        let page = PageId::of_segment(Rank(rank), (offset / page_bytes) as u32);
        let memories = &self.runtime.space().memories;
        memories.get(self.me as usize).is_some_and(|memory| memory.table.is_open(page, Access::Read))
    }

    fn transfer(&self, operation: Operation, rank: u32, offset: u64, len_bytes: usize) {
        let address = self.runtime.space().segments.of(Rank(rank)).base + offset as usize;
        // SAFETY: the operation's memory is a buffer of this length owned by this thread. It outlives the call.
        let done = unsafe { self.runtime.ops().transfer(operation, Remote { rank, address, len_bytes }) };
        done.unwrap_or_else(|error| job::fail(CALL, &error));
    }

    fn barrier(&self) {
        let driver = self.runtime.driver();
        let matched = driver.barrier_notify(Name::Anonymous).and_then(|()| driver.barrier_wait(Name::Anonymous));
        assert_eq!(matched, Ok(true), "nobody names a barrier");
    }

    /// Seconds from the common start of `work` on all ranks to the end of the last rank.
    fn timed(&self, work: impl FnOnce()) -> f64 {
        self.barrier();
        let start = Instant::now();
        work();
        self.barrier();
        start.elapsed().as_secs_f64()
    }

    /// Evicts all pages from this rank's pool. Dirty pages are written back.
    fn empty_pool(&self) {
        let driver = self.runtime.driver();
        while !driver.engine().discard_all() {
            driver.step();
        }
    }

    /// Gathers four words of each rank at the first rank. Collective.
    fn gather(&self, mine: [u64; 4]) -> Vec<[u64; 4]> {
        let bytes: Vec<u8> = mine.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.transfer(Operation::Put(bytes.as_ptr()), 0, self.share + u64::from(self.me) * MAIL_BYTES, bytes.len());
        self.barrier();
        let mut all = vec![0; self.orders.processes as usize * MAIL_BYTES as usize];
        self.transfer(Operation::Get(all.as_mut_ptr()), 0, self.share, all.len());
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let row = |row: &[u8]| std::array::from_fn(|column| word(&row[8 * column..8 * column + 8]));
        all.chunks_exact(MAIL_BYTES as usize).map(row).collect()
    }
}
