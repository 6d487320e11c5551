//! The shape of a job.

use crate::mapper;
use vgasnet_memory as memory;
use vgasnet_protocol::Spaces;
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_sim_conduit::Settings;

/// The shape of a job.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Pages and frames of each rank.
    pub ranks: Vec<memory::Shape>,
    pub network: Settings,
    pub cooperative: bool,
    /// Consecutive pages of a segment with the same home, if the homes are cyclic.
    pub stripe_pages: Option<u32>,
    /// Operations in flight at a disk.
    pub disk_depth: usize,
    /// Fewer clean bytes than this between two dirty ranges are written with them.
    pub gap_bytes: usize,
    pub mapper: mapper::Settings,
    pub policy: PolicyKind,
    /// As `EngineOptions::ships`.
    pub ships: Option<u64>,
    /// As `EngineOptions::offers_max`.
    pub offers_max: u32,
    /// A home's slots for blocks of pages without holders. A frame has room for four.
    pub block_slots: usize,
    /// Up to this many holders of a page, the home sends all invalidations itself. With more, holders relay them.
    pub told_itself_max: usize,
}

impl Shape {
    /// The segments, with their homes.
    pub fn segments(&self) -> Spaces {
        let segments = Spaces::new(self.ranks.iter().map(|rank| rank.pages));
        self.stripe_pages.map_or(segments.clone(), |pages| segments.with_cyclic_homes(pages))
    }
}
