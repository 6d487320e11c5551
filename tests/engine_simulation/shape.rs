//! The shape of a job.

use crate::mapper;
use vgasnet::memory;
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
    /// Pages of a segment that have one home, where homes take turns.
    pub stripe_pages: Option<u32>,
    /// Operations that a disk takes at a time.
    pub disk_depth: usize,
    /// Fewer clean bytes than this between dirty ones are written along.
    pub gap_bytes: usize,
    pub mapper: mapper::Settings,
    pub policy: PolicyKind,
    /// As `EngineOptions::ships`.
    pub ships: Option<u64>,
    /// As `EngineOptions::offers_max`.
    pub offers_max: u32,
    /// Blocks of pages that nobody holds that a home has in memory: a frame has room for four.
    pub block_slots: usize,
    /// Holders of a page that a home tells itself that they lose it.
    pub told_itself_max: usize,
}

impl Shape {
    /// The segments, with their homes.
    pub fn segments(&self) -> Spaces {
        let segments = Spaces::new(self.ranks.iter().map(|rank| rank.pages));
        self.stripe_pages.map_or(segments.clone(), |pages| segments.with_cyclic_homes(pages))
    }
}
