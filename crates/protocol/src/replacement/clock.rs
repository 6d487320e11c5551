//! CLOCK: a page used since the hand's last visit gets another round.

use super::Policy;
use super::queues::{POLICY, Queues};
use super::search::{Look, Search};
use crate::coherence::{FrameId, PageId};

/// The frames in a ring, starting at the hand.
const RING: usize = POLICY;

/// The state is the order of the ring alone.
#[derive(Debug)]
pub struct Clock;

impl Policy for Clock {
    fn on_filled(&mut self, frame: FrameId, _page: PageId, queues: &mut Queues) {
        queues.push_back(RING, frame);
    }

    fn put_back(&mut self, frame: FrameId, queues: &mut Queues) {
        debug_assert!(queues.list_of(frame) < Some(POLICY), "{frame:?} was held");
        queues.push_back(RING, frame);
    }

    fn pick(&mut self, search: &mut Search<'_>) -> Option<FrameId> {
        for _ in 0..=2 * search.queues.len(RING) + search.spares_left() {
            let frame = search.queues.front(RING)?;
            match search.look(frame) {
                Look::Held => {}
                Look::InUse if search.is_over() => return None,
                Look::InUse => search.queues.push_back(RING, frame),
                Look::Used if search.gives_chance() => search.queues.push_back(RING, frame),
                Look::Used | Look::Unused if search.spares(frame) => search.queues.push_back(RING, frame),
                Look::Used | Look::Unused => {
                    let was_listed = search.queues.remove(frame);
                    debug_assert!(was_listed, "{frame:?} was in the ring");
                    return Some(frame);
                }
            }
        }
        None
    }
}
