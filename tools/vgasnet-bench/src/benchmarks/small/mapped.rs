//! Small loads and stores of a file mapped by a process with the memory of a rank.

use super::measure::{DISK, load, median_us, store};
use super::reference::Reference;
use super::{Access, SIZES_BYTES, repeat, word};
use crate::mapped::{self, written_file};
use crate::prelude::*;

/// The median time of an access, in one round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Times {
    pub access: Access,
    pub size_bytes: usize,
    pub us: f64,
}

/// The access of the process for a reference.
pub fn access(reference: Reference) -> Option<Access> {
    match reference {
        Reference::MappedLoad => Some(Access::Load),
        Reference::MappedStore => Some(Access::Store),
        _ => None,
    }
}

/// The work of the process: one round per step.
pub fn serve(spec: &Spec, accesses: &[Access]) {
    mapped::serve(spec, |mapping| {
        let memory = written_file(mapping, spec.data_bytes, |_, part| repeat(word(spec, 0), part));
        memory.use_at_random();
        let mut random = fastrand::Rng::with_seed(spec.seed);
        let accesses = accesses.iter().filter(|access| access.is_by_instruction());
        let all = accesses.flat_map(|access| SIZES_BYTES.map(|size_bytes| (*access, size_bytes)));
        let all: Vec<(Access, usize)> = all.collect();
        move || -> Vec<Times> {
            let mut times = |access, size_bytes| {
                let us = time(spec, &memory, &mut random, access, size_bytes);
                Times { access, size_bytes, us }
            };
            all.iter().map(|(access, size_bytes)| times(*access, *size_bytes)).collect()
        }
    });
}

fn time(spec: &Spec, memory: &Memory, random: &mut fastrand::Rng, access: Access, size_bytes: usize) -> f64 {
    let (places, mut bytes) = (spec.data_bytes / size_bytes as u64, word(spec, 0).to_le_bytes().repeat(size_bytes / 8));
    median_us(DISK, || {
        let at = memory.start().wrapping_add((random.u64(0..places) * size_bytes as u64) as usize);
        // SAFETY: the mapping is as long as the data. The file has no other user.
        unsafe {
            match access {
                Access::Store => store(at, &bytes),
                _ => load(&mut bytes, at),
            }
        }
    })
}
