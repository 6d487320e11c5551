//! Transfers to and from the own rank's memory outside its segment. GASNet checks addresses of other ranks only and
//! copies these.

use super::{Operation, Ops, Remote};
use vgasnet_settings::UserError;

impl Ops {
    /// Whether the address seems to lie in the own rank's ordinary memory, and such transfers are allowed.
    pub(super) fn is_in_own_memory(&self, remote: Remote) -> bool {
        let is_own = remote.rank == self.space.rank.0 && !self.strict && remote.address != 0;
        is_own && remote.len_bytes > 0 && !self.space.own_segment().overlaps(remote.address, remote.len_bytes)
    }

    /// Performs an operation on an address outside all segments if it lies in the own memory; otherwise fails with
    /// `error`.
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, or null.
    #[cold]
    pub(super) unsafe fn in_own_memory(
        &self,
        operation: Operation,
        remote: Remote,
        error: UserError,
    ) -> Result<(), UserError> {
        if !self.is_in_own_memory(remote) {
            return Err(error);
        }
        self.check_client(operation, remote.len_bytes)?;
        let memory = std::ptr::with_exposed_provenance_mut::<u8>(remote.address);
        let Remote { rank, len_bytes, .. } = remote;
        let from_segment = |address| Remote { rank, address, len_bytes };
        // SAFETY: the client's memory is valid, not null, and not in the segment unless it is the remote side. By the
        // call, the client vouches for its memory at the remote address.
        unsafe {
            match operation {
                Operation::Get(to) | Operation::GetWeighted(to, _) if self.is_own_segment(operation, len_bytes) => {
                    return self.transfer(Operation::Put(memory), from_segment(to.addr()));
                }
                Operation::Put(from) | Operation::PutNow(from) if self.is_own_segment(operation, len_bytes) => {
                    return self.transfer(Operation::Get(memory), from_segment(from.addr()));
                }
                Operation::Get(to) | Operation::GetWeighted(to, _) => std::ptr::copy(memory, to, len_bytes),
                Operation::Put(from) | Operation::PutNow(from) => std::ptr::copy(from, memory, len_bytes),
                Operation::Set(byte) => memory.write_bytes(byte, len_bytes),
            }
        }
        Ok(())
    }
}
