//! How the protocol is tuned to the size of pages.

use vgasnet_protocol::coherence::Protocol;
use vgasnet_protocol::{Hosts, Limits};

/// Pages that follow each other get frames that do so, of groups of so many bytes: what is made a large page at a time.
const GROUP_BYTES: usize = 2 << 20;

/// Bytes of a page that a holder sends while the home hears of the end of another such page, and answers.
const SENT_MEANWHILE_BYTES: usize = 64 << 10;

/// The protocol of a rank with these limits, for pages of so many bytes that ranks of these hosts use. Nothing has happened yet.
pub fn protocol(limits: Limits, hosts: Hosts, cooperative: bool, page_bytes: usize) -> Protocol {
    let protocol = Protocol::new(limits, cooperative).on_hosts(hosts);
    let protocol = protocol.in_groups((GROUP_BYTES / page_bytes).max(1) as u32);
    protocol.serving_at_once(readers_at_once(page_bytes))
}

/// How many readers of a page of so many bytes a holder best serves at a time: one by one, so that those who have it pass it on, but
/// as many as hide the messages in between.
fn readers_at_once(page_bytes: usize) -> usize {
    (SENT_MEANWHILE_BYTES / page_bytes).clamp(1, 16)
}
