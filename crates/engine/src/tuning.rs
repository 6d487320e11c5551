//! Protocol parameters that depend on the page size.

use vgasnet_protocol::coherence::Protocol;
use vgasnet_protocol::{Hosts, Limits};

/// Size of a group of consecutive frames for consecutive pages, in bytes: the unit turned into a large page.
const GROUP_BYTES: usize = 2 << 20;

/// Bytes that a holder sends while the home learns that one such page is done and answers.
const SENT_MEANWHILE_BYTES: usize = 64 << 10;

/// The protocol of a rank with these limits and hosts, tuned for this page size.
pub fn protocol(limits: Limits, hosts: Hosts, cooperative: bool, page_bytes: usize) -> Protocol {
    let protocol = Protocol::new(limits, cooperative).on_hosts(hosts);
    let protocol = protocol.in_groups((GROUP_BYTES / page_bytes).max(1) as u32);
    protocol.serving_at_once(readers_at_once(page_bytes))
}

/// Number of readers that a holder serves at a time. One by one is best, so that readers pass a page on, but small
/// pages need as many as hide the messages in between.
fn readers_at_once(page_bytes: usize) -> usize {
    (SENT_MEANWHILE_BYTES / page_bytes).clamp(1, 16)
}
