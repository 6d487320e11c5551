//! The engine's queues: events for the protocol, and work to be performed without the lock.

use super::Work;
use std::collections::VecDeque;
use vgasnet_protocol::coherence::{Action, Event};

/// Events and work that a component of the engine leaves behind. A component can only add; the [`Queue`] alone takes.
#[derive(Debug, Default)]
pub(super) struct Todo {
    events: VecDeque<Event>,
    work: VecDeque<Work>,
}

impl Todo {
    /// Adds an event for the protocol.
    pub(super) fn raise(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Adds a work item.
    pub(super) fn add(&mut self, work: Work) {
        self.work.push_back(work);
    }

    /// Adds work items.
    pub(super) fn add_all(&mut self, work: impl IntoIterator<Item = Work>) {
        self.work.extend(work);
    }
}

/// The events and the work of one engine, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    todo: Todo,
    /// Actions of the event being handled; the memory is kept.
    actions: Vec<Action>,
    /// Transfers refused by the conduit for lack of room, until the next drive.
    refused: Vec<Work>,
}

impl Queue {
    /// Takes events and work from a component of the engine.
    pub(super) fn todo(&mut self) -> &mut Todo {
        &mut self.todo
    }

    /// Adds an event for the protocol.
    pub(super) fn raise(&mut self, event: Event) {
        self.todo.raise(event);
    }

    /// Adds events for the protocol.
    pub(super) fn raise_all(&mut self, events: impl IntoIterator<Item = Event>) {
        self.todo.events.extend(events);
    }

    /// Takes the next event.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.todo.events.pop_front()
    }

    /// Whether events are to be handled.
    pub(super) fn has_events(&self) -> bool {
        !self.todo.events.is_empty()
    }

    /// Takes the empty list for the actions of an event. [`Queue::return_actions`] gives it back.
    pub(super) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Takes the list of actions back for the next event.
    pub(super) fn return_actions(&mut self, actions: Vec<Action>) {
        debug_assert!(self.actions.is_empty(), "no action is lost");
        self.actions = actions;
    }

    /// Adds a work item.
    pub(super) fn add(&mut self, work: Work) {
        self.todo.add(work);
    }

    /// Adds work items.
    pub(super) fn add_all(&mut self, work: impl IntoIterator<Item = Work>) {
        self.todo.add_all(work);
    }

    /// Takes the next work item.
    pub(super) fn next_work(&mut self) -> Option<Work> {
        self.todo.work.pop_front()
    }

    /// Whether work items wait for a thread. Refused ones do not count before the next drive.
    pub(super) fn has_work(&self) -> bool {
        !self.todo.work.is_empty()
    }

    /// Takes back a refused transfer. It delays no other work until [`Queue::retry_refused`].
    pub(super) fn put_back(&mut self, work: Work) {
        self.refused.push(work);
    }

    /// Queues the refused transfers again.
    pub(super) fn retry_refused(&mut self) {
        self.todo.work.extend(self.refused.drain(..));
    }

    /// Whether transfers have been refused since the last drive.
    pub(super) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Number of work items, including refused ones.
    pub(super) fn work_items(&self) -> usize {
        self.todo.work.len() + self.refused.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::Rank;
    use vgasnet_protocol::coherence::PageId;

    fn page(index: u32) -> PageId {
        PageId::of_segment(Rank(0), index)
    }

    #[test]
    fn a_refused_transfer_waits_for_the_next_drive_and_delays_no_other_work() {
        let mut queue = Queue::default();
        queue.add_all([Work::GiveBack { index: 1 }, Work::GiveBack { index: 2 }]);
        let refused = queue.next_work().expect("two were added");
        queue.put_back(refused);
        assert!(matches!(queue.next_work(), Some(Work::GiveBack { index: 2 })));
        assert!(queue.next_work().is_none() && !queue.has_work() && queue.has_refused());
        assert_eq!(queue.work_items(), 1, "the refused one is not forgotten");
        queue.retry_refused();
        assert!(queue.has_work() && !queue.has_refused());
        assert!(matches!(queue.next_work(), Some(Work::GiveBack { index: 1 })));
    }

    #[test]
    fn events_of_parts_and_of_the_engine_keep_their_order() {
        let mut queue = Queue::default();
        queue.raise(Event::Closed(page(1)));
        queue.todo().raise(Event::Closed(page(2)));
        queue.raise_all([Event::Closed(page(3))]);
        let order: Vec<u32> = std::iter::from_fn(|| queue.next_event())
            .map(|event| if let Event::Closed(page) = event { page.index } else { 0 })
            .collect();
        assert_eq!(order, [1, 2, 3]);
        assert!(!queue.has_events());
    }
}
