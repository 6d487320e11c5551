//! The barriers of ranks that share the memory of one host, all of the job's. They take no message: who comes counts itself, and who comes
//! last lets the others go.
//!
//! A thread that waits looks at [`HostBarriers::is_released`] before it sleeps, as for what arrives by the conduit. Who lets the others go
//! wakes those that sleep.

mod meeting;
mod named;
mod unnamed;

use meeting::Meeting;
use named::{NamedHostBarrier, NamedMeeting};
use unnamed::HostBarrier;
pub(super) use unnamed::Passed;
use vgasnet_conduit::Region;

/// What the ranks share: zero at first.
#[repr(C)]
struct Words {
    unnamed: Meeting,
    named: NamedMeeting,
}

/// This rank's part in both barriers.
pub(super) struct HostBarriers<'a> {
    /// That of which a rank may begin several.
    pub unnamed: HostBarrier<'a>,
    /// That with a name.
    pub named: NamedHostBarrier<'a>,
}

impl HostBarriers<'static> {
    /// The barriers of so many ranks, at the first bytes of this memory, which is zero at first and shared until the process ends.
    pub(super) fn new(memory: Region, ranks: u32) -> HostBarriers<'static> {
        assert!(memory.address % align_of::<Words>() == 0 && memory.len_bytes >= size_of::<Words>());
        // SAFETY: the memory is aligned, large enough and mapped until the process ends. Ranks use it as these atomic words only.
        let words: &Words = unsafe { &*std::ptr::with_exposed_provenance(memory.address) };
        HostBarriers {
            unnamed: HostBarrier::new(&words.unnamed, ranks),
            named: NamedHostBarrier::new(&words.named, ranks),
        }
    }
}

impl HostBarriers<'_> {
    /// Whether a barrier is over to which this rank has come, and nobody has taken note of that.
    #[inline]
    pub(super) fn is_released(&self) -> bool {
        self.unnamed.is_released() || self.named.is_released()
    }
}
