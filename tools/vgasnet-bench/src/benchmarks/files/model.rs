//! The final contents of the patterns' files, byte by byte.

use super::{Case, Pattern};
use crate::prelude::*;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use std::fs::File;
use std::io::{Read, Write};
use xxhash_rust::xxh3::Xxh3;

/// Bytes compared at a time, in whole words.
const CHUNK_BYTES: usize = 1 << 20;

/// Words between marks, if most words are the same in all blocks.
const MARK_WORDS: u64 = 512;

/// A word of a file before modification, as `word_of_file` in `main.c`.
fn word(index: u64) -> u64 {
    (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The path with a suffix.
fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

impl Case {
    /// The final word. In the sliding window each rank has modified it once, as `modify` in `sliding.c`.
    fn last_word(&self, index: u64) -> u64 {
        match self.pattern {
            Pattern::SlidingWindow => {}
            // As `sequential` in `plain.c`: blocks differ only in the marks.
            Pattern::Sequential if index % MARK_WORDS > 0 => return word(index % (self.unit / 8)),
            _ => return word(index),
        }
        let (ranks, window) = (u64::from(self.ranks), index * 8 / self.unit);
        let visitors = (0..ranks).map(|step| (window + ranks - step) % ranks);
        visitors.fold(word(index), |word, rank| word.wrapping_mul(3).wrapping_add(rank + 1))
    }

    /// Creates the files a pattern expects, and drops them from memory.
    pub fn prepare(&self, path: &Path) -> Result<(), String> {
        if !matches!(self.pattern, Pattern::SlidingWindow | Pattern::Sequential) {
            return Ok(());
        }
        let mut file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        let words = self.size / 8;
        for index in 0..words {
            bytes.extend_from_slice(&word(index).to_le_bytes());
            if bytes.len() == CHUNK_BYTES || index + 1 == words {
                file.write_all(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
                bytes.clear();
            }
        }
        let out = file.sync_all().and_then(|()| leave(&file));
        out.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Compares the files with the model, then removes them. Returns a checksum of their contents.
    pub fn check_and_remove(&self, path: &Path) -> Result<String, String> {
        let mut sum = Xxh3::new();
        for (end, size_bytes) in self.files() {
            let path = with_end(path, end);
            let checked = self.check(&path, size_bytes, &mut sum);
            checked.map_err(|why| format!("{}: {why}", path.display()))?;
            std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(format!("{:016x}", sum.digest()))
    }

    fn check(&self, path: &Path, size_bytes: u64, sum: &mut Xxh3) -> Result<(), String> {
        let mut file = File::open(path).map_err(|error| error.to_string())?;
        let found_bytes = file.metadata().map_err(|error| error.to_string())?.len();
        if found_bytes != size_bytes {
            return Err(format!("it has {found_bytes} bytes and not {size_bytes}"));
        }
        let (mut found, mut wanted) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        for start in (0..size_bytes).step_by(CHUNK_BYTES) {
            let len = (size_bytes - start).min(CHUNK_BYTES as u64) as usize;
            file.read_exact(&mut found[..len]).map_err(|error| error.to_string())?;
            for (index, bytes) in (start / 8..).zip(wanted.chunks_exact_mut(8)) {
                bytes.copy_from_slice(&self.last_word(index).to_le_bytes());
            }
            if found[..len] != wanted[..len] {
                let at = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted).unwrap_or(0);
                return Err(format!("byte {} is not what was written there last", start + at as u64));
            }
            sum.update(&found[..len]);
        }
        leave(&file).map_err(|error| error.to_string())
    }
}

/// Drops a file from the page cache.
fn leave(file: &File) -> std::io::Result<()> {
    posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_differs_or_is_missing_is_found() {
        let dir = crate::programs::Folder::new().unwrap();
        let path = dir.path().join("file");
        let case = Case::new(Pattern::Rows, 2, 1000, 100);
        let bytes: Vec<u8> = (0..125).flat_map(|index| word(index).to_le_bytes()).collect();
        let check = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut changed = bytes.clone();
            change(&mut changed);
            std::fs::write(&path, changed).unwrap();
            case.check_and_remove(&path)
        };
        assert_eq!(check(&|_| ()).map(|sum| sum.len()), Ok(16));
        assert!(check(&|bytes| bytes[777] ^= 1).is_err_and(|why| why.contains("byte 777 ")));
        assert!(check(&|bytes| bytes.truncate(999)).is_err_and(|why| why.contains("999 bytes and not 1000")));
    }

    #[test]
    fn ranks_modify_a_window_in_the_order_of_their_visits() {
        let case = Case::new(Pattern::SlidingWindow, 2, 64, 16);
        // The second window: rank 1 first, then rank 0.
        assert_eq!(case.last_word(2), (word(2).wrapping_mul(3).wrapping_add(2)).wrapping_mul(3).wrapping_add(1));
        assert_eq!(case.last_word(4), (word(4).wrapping_mul(3).wrapping_add(1)).wrapping_mul(3).wrapping_add(2));
    }
}
