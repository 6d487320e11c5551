//! Events: roots, which are handles of operations, and their leaves.
//!
//! A leaf is the handle of its root plus the number of its category. The same root therefore has the same leaves,
//! leaves need no memory, and any thread may test them or wait for them.
//!
//! No part of an operation is known to be complete before the whole operation is. A leaf is therefore complete when
//! nothing is pending for its root. A part complete from the start has no leaf: its event is the invalid one. A bit in
//! the root notes this, since the client may ask the root for the leaf.

use crate::ops::Ops;
use vgasnet_engine::request::{CompletionId, Completions, Handle};
use vgasnet_settings::UserError;

/// The category of a leaf, in the bits left free by the numbers of completions.
const CATEGORY_SHIFT: u32 = Completions::NUMBER_BITS;
const CATEGORY_MASK: u64 = (1 << (u32::BITS - CATEGORY_SHIFT)) - 1;

/// In a root's category bits, where no category has this bit: the memory read by its put is free.
const SOURCE_IS_FREE: u64 = 1 << 3;

/// The part of an operation covered by a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Gets.
    Get = 1,
    /// Puts.
    Put,
    /// Active Messages.
    Message,
    /// The memory read by a put.
    Source,
    /// Atomic operations.
    Atomic,
}

/// An event: a root or a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(Handle);

/// Counts of the events in an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Complete, and no longer the client's.
    pub complete: usize,
    /// Not complete.
    pub pending: usize,
}

impl Event {
    /// The root of an operation.
    pub fn root(handle: Handle) -> Event {
        Event(handle)
    }

    /// The root of a put with its source free for reuse.
    pub fn root_with_free_source(handle: Handle) -> Event {
        let bits = handle.to_bits() | SOURCE_IS_FREE << CATEGORY_SHIFT;
        Event(Handle::from_bits(bits).expect("more than a handle"))
    }

    /// The event passed back by a client; `None` for the invalid one.
    #[inline]
    pub fn from_bits(bits: u64) -> Option<Event> {
        Handle::from_bits(bits).map(Event)
    }

    /// The event as the client keeps it.
    pub fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    fn category(self) -> u64 {
        self.0.to_bits() >> CATEGORY_SHIFT & CATEGORY_MASK
    }

    fn is_leaf(self) -> bool {
        self.category() & !SOURCE_IS_FREE != 0
    }

    /// The operation's handle.
    fn of_root(self) -> Handle {
        Handle::from_bits(self.0.to_bits() & !(CATEGORY_MASK << CATEGORY_SHIFT)).expect("a handle has its generation")
    }

    /// The leaf of a root; `None` if its part is complete already.
    ///
    /// # Errors
    /// The event is itself a leaf, or names no operation in flight.
    pub fn leaf(self, category: Category, completions: &Completions) -> Result<Option<Event>, UserError> {
        if self.is_leaf() {
            return Err(UserError::new(format!("event {:#x} is a leaf; give its root", self.to_bits())));
        }
        let root = self.of_root();
        completions.find(root)?;
        if category == Category::Source && self.category() == SOURCE_IS_FREE {
            return Ok(None);
        }
        let bits = root.to_bits() | (category as u64) << CATEGORY_SHIFT;
        Ok(Some(Event(Handle::from_bits(bits).expect("more than a handle"))))
    }

    /// The completion awaited by the event; `None` for a leaf of a synced root.
    fn completion(self, completions: &Completions) -> Result<Option<CompletionId>, UserError> {
        if !self.is_leaf() {
            return completions.find(self.of_root()).map(Some);
        }
        match completions.find(self.of_root()) {
            Ok(completion) => Ok(Some(completion)),
            Err(_) if self.was_given_out(completions) => Ok(None),
            Err(_) => Err(UserError::new(format!(
                "event {:#x} is unknown; give one that the library has returned",
                self.to_bits()
            ))),
        }
    }

    /// Whether a leaf belongs to an operation, pending or synced.
    fn was_given_out(self, completions: &Completions) -> bool {
        self.category() <= Category::Atomic as u64 && completions.was_given_out(self.of_root())
    }

    /// Like [`Event::completion`], for an event outside an array. The client may not use a leaf after syncing its root.
    /// With checks on, this is refused.
    fn completion_alone(self, ops: &Ops) -> Result<Option<CompletionId>, UserError> {
        let completion = self.completion(ops.completions())?;
        if completion.is_none() && ops.is_strict() {
            return Err(UserError::new(format!(
                "event {:#x} is a leaf whose root was synced before; sync the leaf first, or both in one array",
                self.to_bits()
            )));
        }
        Ok(completion)
    }
}

/// Whether an event is complete. A complete root names nothing afterwards.
///
/// # Errors
/// The event is a root synced before or never given out, or is no leaf of an operation. With checks on, also a leaf of
/// a synced root.
#[inline]
pub fn test(event: Event, ops: &Ops) -> Result<bool, UserError> {
    let completions = ops.completions();
    if !event.is_leaf() {
        return completions.end_if_done(event.of_root());
    }
    Ok(event.completion_alone(ops)?.is_none_or(|completion| completions.is_done(completion)))
}

/// Like [`test`], for an event of an array. A leaf's root may be gone: an earlier sweep of the array may have taken it
/// out.
fn test_in_array(event: Event, completions: &Completions) -> Result<bool, UserError> {
    if !event.is_leaf() {
        return completions.end_if_done(event.of_root());
    }
    Ok(event.completion(completions)?.is_none_or(|completion| completions.is_done(completion)))
}

/// Waits for an event, running handlers. A root names nothing afterwards.
///
/// # Errors
/// As [`test`].
pub fn wait(event: Event, ops: &Ops) -> Result<(), UserError> {
    let Some(completion) = event.completion_alone(ops)? else { return Ok(()) };
    if event.is_leaf() {
        // The root stays for the client to sync.
        ops.driver().wait(completion);
    } else {
        ops.driver().finish(completion);
    }
    Ok(())
}

/// Tests all events of an array, and takes out complete ones. Leaves come first, so that a leaf is tested before a root
/// in the same array is gone.
///
/// # Errors
/// As [`test`], except that a leaf's root may be gone.
pub fn sweep(events: &mut [u64], ops: &Ops) -> Result<EventCounts, UserError> {
    let mut found = EventCounts::default();
    for leaves in [true, false] {
        for bits in &mut *events {
            let Some(event) = Event::from_bits(*bits).filter(|event| event.is_leaf() == leaves) else { continue };
            if test_in_array(event, ops.completions())? {
                *bits = 0;
                found.complete += 1;
            } else {
                found.pending += 1;
            }
        }
    }
    Ok(found)
}

/// Waits until all events of an array are complete, and takes them out. Waits for one event after the other, so that no
/// step tests the whole array.
///
/// # Errors
/// As [`sweep`].
pub fn wait_all(events: &mut [u64], ops: &Ops) -> Result<(), UserError> {
    for event in events.iter().filter_map(|bits| Event::from_bits(*bits)) {
        if let Some(completion) = event.completion(ops.completions())? {
            ops.driver().wait(completion);
        }
    }
    sweep(events, ops).map(drop)
}

/// Waits until at least one event of an array is complete.
///
/// # Errors
/// As [`test`].
pub fn wait_any(events: &[u64], ops: &Ops) -> Result<(), UserError> {
    let completions = ops.completions();
    let awaited = events.iter().filter_map(|bits| Event::from_bits(*bits)).map(|event| event.completion(completions));
    let awaited: Vec<Option<CompletionId>> = awaited.collect::<Result<_, _>>()?;
    if !awaited.is_empty() {
        let is_done = |one: &Option<CompletionId>| one.is_none_or(|completion| completions.is_done(completion));
        ops.driver().wait_until(&|| awaited.iter().any(is_done));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_has_identity_and_lives_as_long_as_its_root() {
        let completions = Completions::default();
        let (id, other) = (completions.begin(), completions.begin());
        completions.add(id);
        let root = Event::root(completions.handle(id));
        let leaf = |category| root.leaf(category, &completions).expect("in flight").expect("not over");
        assert_eq!(leaf(Category::Source), leaf(Category::Source));
        assert_ne!(leaf(Category::Source), leaf(Category::Put));
        assert!(leaf(Category::Source).is_leaf() && !root.is_leaf());
        let of_other = Event::root(completions.handle(other)).leaf(Category::Source, &completions);
        assert_ne!(of_other, Ok(Some(leaf(Category::Source))));
        assert!(leaf(Category::Get).leaf(Category::Get, &completions).is_err(), "a leaf has no leaves");
        let kept = leaf(Category::Source);
        assert_eq!(kept.completion(&completions), Ok(Some(id)));
        assert!(completions.find(kept.0).is_err(), "GASNet-1 does not know leaves");
        completions.finish(id);
        completions.end(id);
        assert_eq!(kept.completion(&completions), Ok(None));
        let no_category = Event::from_bits(kept.to_bits() | CATEGORY_MASK << CATEGORY_SHIFT).expect("not zero");
        let of_nothing = Event::from_bits(0x5555_1234_5678).expect("not zero");
        assert!(no_category.completion(&completions).is_err() && of_nothing.completion(&completions).is_err());
        assert!(root.completion(&completions).is_err() && root.leaf(Category::Source, &completions).is_err());
    }

    #[test]
    fn a_source_that_is_free_has_no_leaf_while_its_put_is_in_flight() {
        let completions = Completions::default();
        let id = completions.begin();
        completions.add(id);
        let root = Event::root_with_free_source(completions.handle(id));
        assert!(!root.is_leaf() && root.completion(&completions) == Ok(Some(id)));
        assert_eq!(root.leaf(Category::Source, &completions), Ok(None));
        let put = root.leaf(Category::Put, &completions).expect("in flight").expect("not over");
        assert!(put.is_leaf() && put.completion(&completions) == Ok(Some(id)));
        assert_eq!(test_in_array(root, &completions), Ok(false));
        completions.finish(id);
        assert_eq!(test_in_array(root, &completions), Ok(true));
        assert!(root.leaf(Category::Source, &completions).is_err(), "synced");
    }
}
