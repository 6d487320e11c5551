//! The pages in flight between the files and frames, or waiting to be: at most one operation a page.

use super::home_page::HomePage;
use super::storage_queue::{Need, StorageQueue, WaitingOperation};
use slab::Slab;
use std::collections::HashMap;
use vgasnet_memory::Extent;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{FrameId, PageId, Priority};
use vgasnet_storage::IoDirection;

/// A page to be read from or written to its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub direction: IoDirection,
    pub page: PageId,
    pub place: HomePage,
    /// The rank with the frame.
    pub peer: Rank,
    pub frame: FrameId,
    pub priority: Priority,
}

/// A page in flight between the file and a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    order: Order,
    /// The resource it waits for, while it waits.
    need: Option<Need>,
    staging: Option<FrameId>,
    /// The bytes of the page in the storage now, or last.
    part: Extent,
    /// Set while it is in the storage as a background operation: whether it is the first of its request.
    in_background: Option<bool>,
    /// Sequence number of arrival.
    number: u64,
}

impl Operation {
    /// The page, its file and its frame.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Its staging frame, if it has one.
    pub(super) fn staging(&self) -> Option<FrameId> {
        self.staging
    }

    /// The bytes of the page in the storage now, or last.
    pub(super) fn part(&self) -> Extent {
        self.part
    }

    /// Whether it waits only for room in the storage.
    pub(super) fn is_ready(&self) -> bool {
        self.need == Some(Need::Nothing)
    }

    /// Whether it waits for a resource, if only for room in the storage.
    pub(super) fn is_waiting(&self) -> bool {
        self.need.is_some()
    }

    /// Whether somebody waits for it.
    pub(super) fn is_urgent(&self) -> bool {
        self.order.priority == Priority::Now
    }

    /// The need of a staging frame with which it took the one that it has.
    pub(super) fn staging_need(&self) -> Need {
        match self.order.direction {
            IoDirection::Read => Need::LoadStaging,
            IoDirection::Write => Need::StoreStaging,
        }
    }
}

/// The operations of a home.
#[derive(Debug, Default)]
pub(super) struct PageOperations {
    operations: Slab<Operation>,
    of_page: HashMap<HomePage, usize>,
    /// Sequence number of the next operation.
    next: u64,
    waiting: StorageQueue,
    /// Operations that wait for blocks of their page to be written, by page.
    behind_blocks: HashMap<HomePage, usize>,
}

impl PageOperations {
    /// Adds an operation. It waits for nothing yet.
    pub(super) fn add(&mut self, order: Order) -> usize {
        let (need, staging, part, in_background, number) = (None, None, Extent::NONE, None, self.next);
        self.next += 1;
        let id = self.operations.insert(Operation { order, need, staging, part, in_background, number });
        let before = self.of_page.insert(order.place, id);
        debug_assert!(before.is_none(), "{:?} has one operation at a time", order.page);
        debug_assert_eq!(self.of_page.len(), self.operations.len(), "each operation is found by its page");
        id
    }

    /// Removes an operation.
    pub(super) fn remove(&mut self, id: usize) -> Operation {
        debug_assert!(self.behind_blocks.values().all(|other| *other != id), "the operation waits for no block");
        let operation = self.operations.remove(id);
        assert!(!operation.is_waiting(), "an operation ends outside of the queue");
        assert!(operation.in_background.is_none(), "an operation leaves the storage before it ends");
        let known = self.of_page.remove(&operation.order.place);
        assert_eq!(known, Some(id), "{:?} had this operation", operation.order.page);
        operation
    }

    /// Number of operations.
    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    /// An operation.
    pub(super) fn get(&self, id: usize) -> &Operation {
        &self.operations[id]
    }

    /// The operation of a page, if it has one.
    pub(super) fn of_page(&self, place: HomePage) -> Option<usize> {
        self.of_page.get(&place).copied()
    }

    /// Whether pages of the file in this slot have operations.
    pub(super) fn has_any_of(&self, slot: u32) -> bool {
        self.of_page.keys().any(|place| place.slot() == slot)
    }

    /// Makes an operation wait.
    pub(super) fn wait(&mut self, id: usize, need: Need) {
        debug_assert!(!self.operations[id].is_waiting(), "an operation waits for one resource");
        self.operations[id].need = Some(need);
        self.waiting.push(self.waiting_of(id).expect("it has a need"));
    }

    fn waiting_of(&self, id: usize) -> Option<WaitingOperation> {
        let Operation { order: Order { priority, .. }, need, number, .. } = self.operations[id];
        need.map(|need| WaitingOperation { priority, need, number, id })
    }

    /// The next waiting operation among those that `may_go_on`.
    pub(super) fn next(&self, may_go_on: impl Fn(Priority, Need) -> bool) -> Option<WaitingOperation> {
        self.waiting.next(may_go_on)
    }

    /// A waiting operation is in the storage with this part of its page, or fetches the page.
    pub(super) fn begin(&mut self, id: usize, part: Extent) {
        debug_assert!(part.start_bytes <= part.end_bytes, "{part:?} begins before its end");
        let waiting = self.waiting_of(id).expect("it was waiting");
        let was_there = self.waiting.remove(&waiting);
        assert!(was_there, "the operation was in the queue");
        let operation = &mut self.operations[id];
        (operation.need, operation.part) = (None, part);
    }

    /// The [`PageOperations::next`] operation and those merged with it have begun, `operations` in all.
    pub(super) fn on_begun(&mut self, operations: usize) {
        self.waiting.on_begun(operations as u64);
    }

    /// Gives an operation a staging frame.
    pub(super) fn set_staging(&mut self, id: usize, staging: FrameId) {
        debug_assert!(self.operations[id].staging.is_none(), "an operation has one staging frame");
        self.operations[id].staging = Some(staging);
    }

    /// Takes an operation's staging frame.
    pub(super) fn take_staging(&mut self, id: usize) -> Option<FrameId> {
        self.operations[id].staging.take()
    }

    /// Changes the priority of an operation. Returns whether it was the first of its request, if it is no longer in the
    /// storage as a background operation.
    pub(super) fn raise_priority(&mut self, id: usize, priority: Priority) -> Option<bool> {
        let waiting = self.waiting_of(id);
        debug_assert!(priority <= self.operations[id].order.priority, "the operation becomes more urgent");
        self.operations[id].order.priority = priority;
        if let Some(waiting) = waiting.filter(|waiting| self.waiting.remove(waiting)) {
            self.waiting.push(WaitingOperation { priority, ..waiting });
            return None;
        }
        if priority == Priority::Now { self.leave_background(id) } else { None }
    }

    /// A background operation is in the storage, as the first of its request if it `leads`.
    pub(super) fn enter_background(&mut self, id: usize, leads: bool) {
        debug_assert!(
            !self.operations[id].is_urgent(),
            "an operation for which a thread waits is not in the background"
        );
        debug_assert!(self.operations[id].in_background.is_none(), "an operation is in the storage once");
        self.operations[id].in_background = Some(leads);
    }

    /// An operation has left the storage. Returns whether it led its request, if it was a background operation.
    pub(super) fn leave_background(&mut self, id: usize) -> Option<bool> {
        self.operations[id].in_background.take()
    }

    /// Makes an operation wait for blocks of its page to be written.
    pub(super) fn wait_for_blocks(&mut self, id: usize) {
        debug_assert!(!self.operations[id].is_waiting(), "an operation waits for blocks before any resource");
        let before = self.behind_blocks.insert(self.operations[id].order.place, id);
        debug_assert!(before.is_none(), "a page has one operation");
    }

    /// Whether a page's operation waits for blocks to be written.
    pub(super) fn waits_for_blocks(&self, place: HomePage) -> bool {
        self.behind_blocks.contains_key(&place)
    }

    /// The blocks of a page are written. Returns the operation that waited for them.
    pub(super) fn end_wait_for_blocks(&mut self, place: HomePage) -> Option<usize> {
        self.behind_blocks.remove(&place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::Space;

    fn add(operations: &mut PageOperations, index: u32, priority: Priority) -> usize {
        let (page, place) = (PageId { space: Space::of_segment(Rank(0)), index }, HomePage::of_segment(index));
        let (direction, peer, frame) = (IoDirection::Read, Rank(1), FrameId(index));
        operations.add(Order { direction, page, place, peer, frame, priority })
    }

    fn next(operations: &PageOperations) -> Option<usize> {
        operations.next(|_, _| true).map(|waiting| waiting.id)
    }

    #[test]
    fn a_hurried_operation_overtakes_the_older_ones() {
        let mut operations = PageOperations::default();
        let ids = [0, 1].map(|index| add(&mut operations, index, Priority::Later));
        assert_eq!(next(&operations), None, "they wait for nothing yet");
        ids.into_iter().for_each(|id| operations.wait(id, Need::Nothing));
        assert_eq!(next(&operations), Some(ids[0]));
        assert_eq!(operations.raise_priority(ids[1], Priority::Now), None);
        assert_eq!((next(&operations), operations.get(ids[1]).is_urgent()), (Some(ids[1]), true));
        operations.begin(ids[1], Extent { start_bytes: 0, end_bytes: 9 });
        assert_eq!((next(&operations), operations.get(ids[1]).part().len_bytes()), (Some(ids[0]), 9));
    }

    #[test]
    fn an_operation_with_a_waiting_thread_leaves_the_background() {
        let mut operations = PageOperations::default();
        let id = add(&mut operations, 7, Priority::Later);
        operations.wait(id, Need::Nothing);
        operations.begin(id, Extent::NONE);
        operations.enter_background(id, true);
        assert_eq!(operations.raise_priority(id, Priority::Soon), None);
        assert_eq!(operations.raise_priority(id, Priority::Now), Some(true));
        assert_eq!(operations.leave_background(id), None, "it has left");
    }

    #[test]
    fn a_page_has_one_operation_until_it_ends() {
        let (mut operations, place) = (PageOperations::default(), HomePage::of_segment(7));
        let id = add(&mut operations, 7, Priority::Now);
        operations.wait_for_blocks(id);
        assert!(operations.waits_for_blocks(place) && next(&operations).is_none());
        assert_eq!((operations.of_page(place), operations.end_wait_for_blocks(place)), (Some(id), Some(id)));
        operations.wait(id, Need::LoadStaging);
        assert!(!operations.get(id).is_ready() && operations.has_any_of(0) && !operations.has_any_of(1));
        operations.begin(id, Extent::NONE);
        operations.set_staging(id, FrameId(3));
        assert_eq!(operations.get(id).staging(), Some(FrameId(3)));
        assert_eq!(operations.remove(id).staging_need(), Need::LoadStaging);
        assert_eq!((operations.len(), operations.of_page(place)), (0, None));
    }
}
