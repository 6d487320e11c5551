//! The disk of a rank in virtual time. It moves no bytes.

use crate::world::World;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use vgasnet_conduit::Rank;
use vgasnet_settings::IoDirection;
use vgasnet_storage::{Busy, FileSlot, IoOperation, NamedFile, Storage};

/// A rank's disk.
pub struct VirtualDisk {
    world: Arc<World>,
    rank: Rank,
    in_flight: usize,
}

impl VirtualDisk {
    pub fn new(world: Arc<World>, rank: Rank) -> VirtualDisk {
        VirtualDisk { world, rank, in_flight: 0 }
    }
}

impl Storage for VirtualDisk {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        if self.in_flight >= self.world.machine().disk.depth {
            return Err(Busy);
        }
        self.in_flight += 1;
        let is_write = operation.direction == IoDirection::Write;
        self.world.start_disk(self.rank, operation.len_bytes as u64, is_write, operation.token);
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        while let Some(token) = self.world.take_finished(self.rank) {
            self.in_flight -= 1;
            sink(token, Ok(()));
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn add_file(&mut self, _file: Arc<NamedFile>) -> FileSlot {
        unreachable!("no program here opens files")
    }

    fn remove_file(&mut self, _slot: FileSlot) {
        unreachable!("no program here opens files")
    }
}
