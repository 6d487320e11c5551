//! Barriers of a job whose ranks all share the memory of one host. They send no messages: each rank counts its arrival,
//! and the last one releases the others.
//!
//! A waiting thread checks [`HostBarriers::is_released`] before it sleeps, as it checks for arrivals from the conduit.
//! The releasing rank wakes the sleepers.

mod meeting;
mod named;
mod unnamed;

use meeting::Meeting;
use named::{NamedHostBarrier, NamedMeeting};
use unnamed::HostBarrier;
pub(super) use unnamed::Passed;
use vgasnet_conduit::Region;

/// The ranks' shared words, initially zero.
#[repr(C)]
struct Words {
    unnamed: Meeting,
    named: NamedMeeting,
}

/// This rank's part in both barriers.
pub(super) struct HostBarriers<'a> {
    unnamed: HostBarrier<'a>,
    named: NamedHostBarrier<'a>,
}

impl HostBarriers<'static> {
    /// The barriers of `ranks` ranks at the start of `memory`, which is initially zero and shared until the process
    /// ends.
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

impl<'a> HostBarriers<'a> {
    /// The unnamed barrier, of which a rank may begin several.
    pub(super) fn unnamed(&self) -> &HostBarrier<'a> {
        &self.unnamed
    }

    /// The named barrier.
    pub(super) fn named(&self) -> &NamedHostBarrier<'a> {
        &self.named
    }

    /// Whether this rank's barrier is complete and no thread has taken note yet.
    #[inline]
    pub(super) fn is_released(&self) -> bool {
        self.unnamed.is_released() || self.named.is_released()
    }
}
