//! Active Messages: every size between every pair, and more than fits at once.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use super::{Suite, check, pattern};
use crate::{MESSAGE_BYTES_MIN, Rank, Sleeper};

/// Number and size of messages sent by each rank in the flood.
const FLOOD: u32 = 4_000;
const FLOOD_BYTES: usize = 200;

pub(super) fn of_every_size(suite: &mut Suite<'_>) -> Result<(), String> {
    let own = suite.rank();
    let most_bytes = suite.conduit.message_bytes_max();
    check(most_bytes >= MESSAGE_BYTES_MIN, || format!("messages of {most_bytes} bytes at most"))?;
    // The largest, and some between.
    let large = (0..16).map(|n| most_bytes - n * (most_bytes - MESSAGE_BYTES_MIN) / 16);
    let sizes: BTreeSet<usize> = (0..=MESSAGE_BYTES_MIN).chain(large).collect();
    for len_bytes in sizes.iter().copied() {
        for to in suite.all_ranks() {
            let mut message = pattern(own, to, len_bytes);
            suite.send(to, &message)?;
            // The buffer may be reused.
            message.fill(0xff);
        }
    }
    let expected = suite.ranks() as usize * sizes.len();
    let mut seen = HashSet::new();
    suite.wait("a message of some size", |suite| {
        for (from, bytes) in suite.messages.drain(..) {
            let len_bytes = bytes.len();
            check(bytes == pattern(from, own, len_bytes), || format!("{len_bytes} bytes from {from} are wrong"))?;
            check(seen.insert((from, len_bytes)), || format!("{len_bytes} bytes from {from} came twice"))?;
        }
        Ok(seen.len() == expected)
    })
}

/// All ranks send to rank 0 more than it can hold, while it does not poll. A refused message is sent again.
pub(super) fn flood(suite: &mut Suite<'_>) -> Result<(), String> {
    let own = suite.rank();
    let to = Rank(0);
    if own == to {
        // On conduits with an inbox the others fill it meanwhile. This rank's own flood must not interfere.
        suite.conduit.sleep(Sleeper::Caller, None, Some(Duration::from_millis(20)), &|| false);
    }
    for n in 0..FLOOD {
        suite.send(to, &flood_message(own, n))?;
    }
    if own != to {
        return Ok(());
    }
    let mut next = vec![HashSet::new(); suite.ranks() as usize];
    let mut count = 0;
    let expected = FLOOD as usize * suite.ranks() as usize;
    suite.wait("a message of the flood", |suite| {
        for (from, bytes) in suite.messages.drain(..) {
            let n = bytes.first_chunk().map_or(u32::MAX, |number| u32::from_le_bytes(*number));
            check(bytes == flood_message(from, n), || format!("message {n} from {from} is wrong"))?;
            check(next[from.index()].insert(n), || format!("message {n} from {from} came twice"))?;
            count += 1;
        }
        Ok(count == expected)
    })
}

fn flood_message(from: Rank, n: u32) -> Vec<u8> {
    let mut message = pattern(from, Rank(n), FLOOD_BYTES);
    message[..4].copy_from_slice(&n.to_le_bytes());
    message
}
