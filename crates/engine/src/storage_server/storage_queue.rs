//! The waiting operations of a storage server: by priority, then by age.

use std::collections::BTreeMap;
use vgasnet_protocol::coherence::Priority;

/// Resource needed by an operation, besides room in the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Its frame is mapped here, or its page is in its staging frame.
    Nothing,
    /// A staging frame, from which the page goes to the requester's frame.
    LoadStaging,
    /// A staging frame, into which the page is fetched from the owner's frame.
    StoreStaging,
}

const NEEDS: [Need; 3] = [Need::Nothing, Need::LoadStaging, Need::StoreStaging];

pub(super) const PRIORITIES: [Priority; 3] = [Priority::Now, Priority::Soon, Priority::Later];

/// After this many operations, or the run that reaches the number, the oldest one goes first regardless of priority. So
/// none starves.
const TURNS: u64 = 64;

/// A waiting operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitingOperation {
    pub priority: Priority,
    pub need: Need,
    /// Sequence number of arrival.
    pub number: u64,
    pub id: usize,
}

/// The waiting operations by priority and need, ordered by number. A blocked one delays none that has another need or a
/// higher priority.
#[derive(Debug, Default)]
pub(super) struct StorageQueue {
    queues: [[BTreeMap<u64, usize>; NEEDS.len()]; PRIORITIES.len()],
    /// Number of operations, since the engine checks after each message.
    len: usize,
    /// Operations begun since the oldest one last had its turn.
    since_oldest: u64,
}

impl StorageQueue {
    pub fn push(&mut self, waiting: WaitingOperation) {
        let queue = &mut self.queues[waiting.priority as usize][waiting.need as usize];
        let before = queue.insert(waiting.number, waiting.id);
        debug_assert!(before.is_none(), "operation {} waits once", waiting.id);
        self.len += 1;
    }

    /// Removes an operation. Returns whether it was there.
    pub fn remove(&mut self, waiting: &WaitingOperation) -> bool {
        let was_there = self.queues[waiting.priority as usize][waiting.need as usize].remove(&waiting.number).is_some();
        assert!(!was_there || self.len > 0, "operations are counted");
        self.len -= usize::from(was_there);
        was_there
    }

    /// The next operation among those that `may_go_on`: the most urgent, or the oldest at its turn.
    pub fn next(&self, may_go_on: impl Fn(Priority, Need) -> bool) -> Option<WaitingOperation> {
        if self.is_turn_of_oldest() { self.oldest(may_go_on) } else { self.first(may_go_on) }
    }

    /// The [`StorageQueue::next`] operation and those merged with it have begun, `operations` in all.
    pub fn on_begun(&mut self, operations: u64) {
        let is_oldest = self.is_turn_of_oldest() && operations > 0;
        self.since_oldest = if is_oldest { 0 } else { self.since_oldest + operations };
    }

    fn is_turn_of_oldest(&self) -> bool {
        self.since_oldest + 1 >= TURNS
    }

    /// The most urgent operation that `may_go_on`.
    fn first(&self, may_go_on: impl Fn(Priority, Need) -> bool) -> Option<WaitingOperation> {
        if self.len == 0 {
            debug_assert!(self.queues.iter().flatten().all(BTreeMap::is_empty), "operations are counted");
            return None;
        }
        PRIORITIES.into_iter().find_map(|priority| self.oldest_of(priority, &may_go_on))
    }

    /// The oldest operation that `may_go_on`, regardless of priority.
    fn oldest(&self, may_go_on: impl Fn(Priority, Need) -> bool) -> Option<WaitingOperation> {
        let oldest = PRIORITIES.into_iter().filter_map(|priority| self.oldest_of(priority, &may_go_on));
        oldest.min_by_key(|waiting| waiting.number)
    }

    fn oldest_of(&self, priority: Priority, may_go_on: &impl Fn(Priority, Need) -> bool) -> Option<WaitingOperation> {
        let able = NEEDS.into_iter().filter(|need| may_go_on(priority, *need));
        let firsts = able.filter_map(|need| {
            let (number, id) = self.queues[priority as usize][need as usize].first_key_value()?;
            Some(WaitingOperation { priority, need, number: *number, id: *id })
        });
        firsts.min_by_key(|waiting| waiting.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(operations: &[(Priority, Need)]) -> StorageQueue {
        let mut queue = StorageQueue::default();
        for (id, (priority, need)) in operations.iter().enumerate() {
            queue.push(WaitingOperation { priority: *priority, need: *need, number: id as u64, id });
        }
        queue
    }

    #[test]
    fn the_most_urgent_goes_first_and_then_the_oldest() {
        let mut queue = queue(&[
            (Priority::Later, Need::Nothing),
            (Priority::Soon, Need::LoadStaging),
            (Priority::Now, Need::StoreStaging),
            (Priority::Soon, Need::Nothing),
            (Priority::Now, Need::Nothing),
        ]);
        assert_eq!(queue.oldest(|_, _| true).map(|first| first.id), Some(0));
        let mut order = Vec::new();
        while let Some(first) = queue.first(|_, _| true) {
            assert!(queue.remove(&first) && !queue.remove(&first));
            order.push(first.id);
        }
        assert_eq!(order, [2, 4, 1, 3, 0]);
    }

    #[test]
    fn none_waits_for_ever_whatever_goes_together() {
        for run in [1, 5, 16, 64] {
            let mut queue = queue(&[(Priority::Later, Need::Nothing), (Priority::Now, Need::Nothing)]);
            let mut begun = 0;
            while queue.next(|_, _| true).is_some_and(|next| next.priority == Priority::Now) {
                queue.on_begun(run);
                begun += run;
                assert!(begun < TURNS + run, "the oldest waits while {begun} begin, {run} at a time");
            }
            queue.on_begun(0);
            assert_eq!(queue.next(|_, _| true).map(|next| next.id), Some(0), "there was no room for it");
            queue.on_begun(1);
            assert_eq!(queue.next(|_, _| true).map(|next| next.id), Some(1));
        }
    }

    #[test]
    fn a_blocked_operation_delays_no_other() {
        let queue = queue(&[
            (Priority::Now, Need::LoadStaging),
            (Priority::Now, Need::StoreStaging),
            (Priority::Now, Need::Nothing),
            (Priority::Later, Need::Nothing),
        ]);
        assert_eq!(queue.first(|_, need| need == Need::Nothing).map(|first| first.id), Some(2));
        assert_eq!(queue.first(|priority, _| priority == Priority::Later).map(|first| first.id), Some(3));
        assert_eq!(queue.first(|_, _| false), None);
    }
}
