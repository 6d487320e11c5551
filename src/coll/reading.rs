//! Large transfers of collectives: a receiver reads the sender's bytes itself, from its segment by gets, and from other
//! memory of a rank of this host by the kernel.

use super::Coll;
use super::drive::CALL;
use crate::ops::{Operation, Remote};
use vgasnet_protocol::collectives::{Reading, Source};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::{Process, ReadError};

/// Bytes that the kernel copies at a time on their way to the own segment, whose pages it does not know.
const BUFFER_BYTES: usize = 256 << 10;

impl Coll {
    /// The place of `len_bytes` bytes at `address` of this rank's memory, for rank `to`.
    pub(super) fn source_for(&self, to: u32, address: usize, len_bytes: usize) -> Source {
        let space = self.am.ops().space();
        if space.own_segment().overlaps(address, len_bytes) {
            let is_inside = space.pieces(space.rank.0, address, len_bytes).is_ok();
            return if is_inside { Source::Segment { address: address as u64 } } else { Source::Unreadable };
        }
        if space.memories.get(to as usize).is_none() {
            return Source::Unreadable;
        }
        let Process { id, proof_address, proof } = Process::this();
        Source::Process { address: address as u64, process: id, proof_address, proof }
    }

    /// Reads bytes of a peer to `to`. Returns false if they cannot be read.
    pub(super) fn read(&self, reading: &Reading, to: usize) -> bool {
        let Reading { from, source, offset_bytes, len_bytes, .. } = *reading;
        let at = |address: u64| {
            address
                .checked_add(offset_bytes as u64)
                .unwrap_or_else(|| self.refuse(from, address, "an address that is none"))
        };
        match source {
            Source::Unreadable => false,
            Source::Segment { address } => {
                let remote = Remote { rank: from, address: at(address) as usize, len_bytes };
                if self.am.ops().space().pieces(from, remote.address, len_bytes).is_err() {
                    self.refuse(from, address, "a source that is not in its segment");
                }
                let target = std::ptr::with_exposed_provenance_mut(to);
                // SAFETY: the client's memory is valid until the collective is synced, and the plan stays inside it.
                self.am.driver().must(CALL, unsafe { self.am.ops().transfer(Operation::Get(target), remote) });
                true
            }
            Source::Process { address, process, proof_address, proof } => {
                let process = Process { id: process, proof_address, proof };
                match self.read_memory(&process, at(address), to, len_bytes) {
                    Ok(()) => {
                        stats::add(Row::CollectiveReadBytes, len_bytes as u64);
                        true
                    }
                    // Either side may have memory with faults handled by its program. A rank raises such faults only by
                    // its own accesses, so the bytes are sent in messages.
                    Err(ReadError) => false,
                }
            }
        }
    }

    fn refuse(&self, from: u32, address: u64, what: &str) -> ! {
        self.am.driver().fail(CALL, &UserError::new(format!("rank {from} gave, at {address:#x}, {what}")))
    }

    fn read_memory(&self, process: &Process, from: u64, to: usize, len_bytes: usize) -> Result<(), ReadError> {
        let target = std::ptr::with_exposed_provenance_mut(to);
        if !self.am.ops().space().own_segment().overlaps(to, len_bytes) {
            // SAFETY: the client's memory belongs to the collective until it is synced, and the plan stays inside it.
            return unsafe { process.read(from, target, len_bytes) };
        }
        let mut buffer = vec![0_u8; BUFFER_BYTES.min(len_bytes)];
        for start in (0..len_bytes).step_by(BUFFER_BYTES) {
            let some_bytes = BUFFER_BYTES.min(len_bytes - start);
            // SAFETY: the buffer has as many bytes, and is this call's own. The client's bytes are a part of the
            // collective's memory.
            unsafe {
                process.read(from + start as u64, buffer.as_mut_ptr(), some_bytes)?;
                self.copy_memory(buffer.as_ptr().expose_provenance(), to + start, some_bytes);
            }
        }
        Ok(())
    }
}
