//! Tests with access to internals: operations that take several requests, on the real backends and the real kernel.

use super::*;
use std::io::Write;
use std::os::fd::AsFd;

mod failing_syncs;
mod named;
mod opening;
mod spill;

const LEN_BYTES: usize = 19 * BLOCK_BYTES;

#[repr(align(4096))]
#[derive(Clone)]
struct Block([u8; BLOCK_BYTES]);

fn operation(direction: IoDirection, offset_bytes: u64, blocks: &mut [Block]) -> IoOperation {
    IoOperation {
        file: FileSlot::BACKING,
        direction,
        offset_bytes,
        memory: blocks.as_mut_ptr().cast(),
        len_bytes: LEN_BYTES,
        token: 5,
        is_urgent: true,
    }
}

fn finish(storage: &mut dyn Storage) -> io::Result<()> {
    let mut outcome = None;
    while outcome.is_none() {
        storage.poll(&mut |token, result| {
            assert_eq!(token, 5);
            outcome = Some(result);
        });
        std::thread::yield_now();
    }
    assert_eq!(storage.in_flight(), 0);
    outcome.unwrap()
}

/// Each request is shorter than its operation. So every operation must be continued at the right place, or the bytes
/// differ.
fn write_and_read_in_parts(storage: &mut dyn Storage) {
    let mut written = vec![Block([0; BLOCK_BYTES]); 19];
    for (index, block) in written.iter_mut().enumerate() {
        block.0.fill(index as u8 + 1);
    }
    let mut read = vec![Block([0xFF; BLOCK_BYTES]); 19];
    // SAFETY: the vector has `LEN_BYTES` bytes, outlives the operation, and is left alone until it is finished.
    unsafe { storage.start(operation(IoDirection::Write, BLOCK_BYTES as u64, &mut written)) }.unwrap();
    finish(storage).unwrap();
    // SAFETY: the vector has `LEN_BYTES` bytes, outlives the operation, and is left alone until it is finished.
    unsafe { storage.start(operation(IoDirection::Read, BLOCK_BYTES as u64, &mut read)) }.unwrap();
    finish(storage).unwrap();
    assert!(read.iter().zip(&written).all(|(read, written)| read.0 == written.0));
}

fn file() -> BackingFile {
    BackingFile::create(&std::env::temp_dir(), 1 << 20).unwrap()
}

#[test]
fn the_ring_continues_until_complete() {
    match RingStorage::new(file(), 2) {
        Ok(mut ring) => {
            ring.request_bytes_max = 2 * BLOCK_BYTES;
            write_and_read_in_parts(&mut ring);
        }
        Err(refused) => {
            // The test harness hides `eprintln`.
            io::stderr().write_all(format!("NOT RUN: storage by io_uring: {}\n", refused.error).as_bytes()).unwrap();
        }
    }
}

#[test]
fn the_threads_continue_until_complete() {
    write_and_read_in_parts(&mut ThreadStorage::with_requests_of(file(), 2, 2 * BLOCK_BYTES).unwrap());
}

#[test]
fn a_file_that_became_shorter_is_an_error_after_a_short_read() {
    let mut storage: Vec<Box<dyn Storage>> = Vec::new();
    let cut = |file: BackingFile| {
        std::fs::File::from(file.as_fd().try_clone_to_owned().unwrap()).set_len(7 * BLOCK_BYTES as u64).unwrap();
        file
    };
    storage.push(Box::new(ThreadStorage::new(cut(file()), 1).unwrap()));
    if let Ok(ring) = RingStorage::new(cut(file()), 1) {
        storage.push(Box::new(ring));
    }
    for storage in &mut storage {
        let mut memory = vec![Block([0xFF; BLOCK_BYTES]); 19];
        // SAFETY: the vector has `LEN_BYTES` bytes, outlives the operation, and is left alone until it is finished.
        unsafe { storage.start(operation(IoDirection::Read, 0, &mut memory)) }.unwrap();
        assert_eq!(finish(&mut **storage).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(memory[..7].iter().all(|block| block.0 == [0; BLOCK_BYTES]), "the blocks that are left were read");
    }
}

/// Writes and reads three pieces by runs. Their order in memory differs from their order in the file.
fn write_and_read_a_run(storage: &mut dyn Storage) {
    const PIECES: usize = 3;
    let place = |piece: usize| 2 * ((piece + 1) % PIECES);
    let run = |direction, blocks: &mut [Block]| -> Vec<IoOperation> {
        let memory: *mut u8 = blocks.as_mut_ptr().cast();
        let piece = |piece: usize| IoOperation {
            file: FileSlot::BACKING,
            direction,
            offset_bytes: ((4 + 2 * piece) * BLOCK_BYTES) as u64,
            memory: memory.wrapping_add(place(piece) * BLOCK_BYTES),
            len_bytes: 2 * BLOCK_BYTES,
            token: piece as u64,
            is_urgent: true,
        };
        (0..PIECES).map(piece).collect()
    };
    let mut go = |operations: Vec<IoOperation>| {
        let mut left = operations.as_slice();
        while !left.is_empty() || storage.in_flight() > 0 {
            // SAFETY: the blocks outlive the operations, which end before this returns, and are left alone until then.
            let started = if left.is_empty() { 0 } else { unsafe { storage.start_run(left) } };
            left = &left[started..];
            storage.poll(&mut |_, result| result.unwrap());
        }
    };
    let mut written: Vec<Block> = (1..=2 * PIECES as u8).map(|byte| Block([byte; BLOCK_BYTES])).collect();
    let mut read = vec![Block([0xFF; BLOCK_BYTES]); 2 * PIECES];
    go(run(IoDirection::Write, &mut written));
    go(run(IoDirection::Read, &mut read));
    assert!(read.iter().zip(&written).all(|(read, written)| read.0 == written.0));
    // In the file the pieces lie in order.
    let mut first = vec![Block([0xFF; BLOCK_BYTES]); 2];
    let (offset_bytes, memory, len_bytes) = ((4 * BLOCK_BYTES) as u64, first.as_mut_ptr().cast(), 2 * BLOCK_BYTES);
    go(vec![IoOperation {
        file: FileSlot::BACKING,
        direction: IoDirection::Read,
        offset_bytes,
        memory,
        len_bytes,
        token: 9,
        is_urgent: true,
    }]);
    assert!(first.iter().zip(&written[place(0)..]).all(|(read, written)| read.0 == written.0));
}

#[test]
fn runs_go_together_or_one_by_one() {
    write_and_read_a_run(&mut ThreadStorage::new(file(), 2).unwrap());
    write_and_read_a_run(&mut MemoryStorage::new(1 << 20, 2, 5));
    // With requests long enough for the whole run, and with too short ones.
    for blocks_max in [1 << 10, 4, 1] {
        match RingStorage::new(file(), 2) {
            Ok(mut ring) => {
                ring.request_bytes_max = blocks_max * BLOCK_BYTES;
                write_and_read_a_run(&mut ring);
            }
            Err(refused) => {
                io::stderr().write_all(format!("NOT RUN: runs by io_uring: {}\n", refused.error).as_bytes()).unwrap();
            }
        }
    }
}
