//! The times of `O_DIRECT` for writing and reading a file from start to end.

use crate::disk::{Buffers, PlainFile, blocks};
use crate::prelude::*;
use std::io;

/// Blocks in flight. Disks gain nothing from more blocks of 4 MiB.
const DEPTHS: [usize; 4] = [1, 2, 4, 8];

pub struct Loops {
    file: PlainFile,
    /// The times of each depth.
    pub passes: Vec<Row>,
}

impl Loops {
    pub fn new(dir: &Path, size_bytes: u64) -> Loops {
        let row = |depth| Row::labelled(format!("O_DIRECT, depth {depth}")).keep("depth", depth);
        Loops { file: PlainFile::new(dir, size_bytes, Buffers::LargePages), passes: DEPTHS.map(row).into() }
    }

    pub fn is_direct(&self) -> bool {
        self.file.is_direct
    }

    /// Runs a round of all depths.
    pub fn measure(&mut self) -> io::Result<()> {
        let size_bytes = self.file.size_bytes();
        for (depth, row) in DEPTHS.into_iter().zip(&mut self.passes) {
            for (name, is_write) in [("written_seconds", true), ("read_seconds", false)] {
                let seconds = self.file.at_depth(depth, blocks(is_write, 0, size_bytes))?;
                // vgasnet ends with a sync, too.
                row.add(name, seconds + if is_write { self.file.sync()? } else { 0.0 });
            }
        }
        Ok(())
    }
}
