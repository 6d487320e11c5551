//! The times of `O_DIRECT` for writing and reading a file from start to end.

use crate::disk::{Buffers, PlainFile, blocks};
use crate::rows::Row;
use std::io;
use std::path::Path;

/// Blocks in flight. Disks gain nothing from more blocks of 4 MiB.
const DEPTHS: [usize; 4] = [1, 2, 4, 8];

/// Passes with this number of blocks in flight, by round.
pub struct Direct {
    pub depth: usize,
    pub written_seconds_each: Vec<f64>,
    pub read_seconds_each: Vec<f64>,
}

impl Direct {
    pub fn row(&self) -> Row {
        let row = Row::labelled(format!("O_DIRECT, depth {}", self.depth)).keep("depth", self.depth);
        row.median("written_seconds", &self.written_seconds_each).median("read_seconds", &self.read_seconds_each)
    }
}

pub struct Loops {
    file: PlainFile,
    pub passes: Vec<Direct>,
}

impl Loops {
    pub fn new(dir: &Path, size_bytes: u64) -> Loops {
        let none = |depth| Direct { depth, written_seconds_each: Vec::new(), read_seconds_each: Vec::new() };
        Loops { file: PlainFile::new(dir, size_bytes, Buffers::LargePages), passes: DEPTHS.map(none).into() }
    }

    pub fn is_direct(&self) -> bool {
        self.file.is_direct
    }

    /// Runs a round of all depths.
    pub fn measure(&mut self) -> io::Result<()> {
        let size_bytes = self.file.size_bytes();
        for passes in &mut self.passes {
            for is_write in [true, false] {
                let mut seconds = self.file.at_depth(passes.depth, blocks(is_write, 0, size_bytes))?;
                // vgasnet ends with a sync, too.
                seconds += if is_write { self.file.sync()? } else { 0.0 };
                let each = if is_write { &mut passes.written_seconds_each } else { &mut passes.read_seconds_each };
                each.push(seconds);
            }
        }
        Ok(())
    }
}
