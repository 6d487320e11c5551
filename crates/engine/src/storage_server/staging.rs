//! Staging frames, through which pages pass whose frames are not mapped here. They serve for nothing else, so a home can
//! always take in a dirty page, even with a full pool. Stores, which may wait for space on the disk, leave one of them
//! to loads; background operations leave one to urgent ones.

use super::storage_queue::Need;
use vgasnet_protocol::coherence::FrameId;

/// The staging frames.
#[derive(Debug)]
pub(super) struct Staging {
    free: Vec<FrameId>,
    /// Stores that may still take one.
    stores_left: usize,
}

impl Staging {
    /// These frames, all free.
    ///
    /// # Panics
    /// There are fewer than three.
    pub(super) fn new(frames: Vec<FrameId>) -> Staging {
        assert!(frames.len() > 2, "a store, a load, and one that nobody waits for each need a frame for staging");
        Staging { stores_left: frames.len() - 1, free: frames }
    }

    /// Whether an operation may take the frame that it needs, if any.
    pub(super) fn has(&self, need: Need, is_urgent: bool) -> bool {
        let (free, stores_left) = (self.free.len(), self.stores_left);
        match (need, is_urgent) {
            (Need::Nothing, _) => true,
            (Need::LoadStaging, true) => free > 0,
            (Need::LoadStaging, false) => free > usize::from(stores_left > 0),
            (Need::StoreStaging, true) => free > 0 && stores_left > 0,
            (Need::StoreStaging, false) => free > 1 && stores_left > 1,
        }
    }

    /// Takes a frame for an operation with a need that [`Staging::has`] admits.
    pub(super) fn take(&mut self, need: Need) -> FrameId {
        debug_assert_ne!(need, Need::Nothing, "a frame is for a load or a store");
        let is_store = need == Need::StoreStaging;
        assert!(self.stores_left >= usize::from(is_store), "stores leave a frame to loads");
        self.stores_left -= usize::from(is_store);
        self.free.pop().expect("there is one")
    }

    /// Takes back the frame of an operation with this need.
    pub(super) fn give_back(&mut self, frame: FrameId, need: Need) {
        debug_assert_ne!(need, Need::Nothing, "the frame was for a load or a store");
        debug_assert!(!self.free.contains(&frame), "{frame:?} is given back once");
        self.stores_left += usize::from(need == Need::StoreStaging);
        self.free.push(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Need, bool); 4] = [
        (Need::LoadStaging, true),
        (Need::LoadStaging, false),
        (Need::StoreStaging, true),
        (Need::StoreStaging, false),
    ];

    fn admitted(staging: &Staging) -> [bool; 4] {
        ALL.map(|(need, is_urgent)| staging.has(need, is_urgent))
    }

    #[test]
    fn stores_leave_a_frame_to_loads_and_the_background_one_to_urgent_operations() {
        let mut staging = Staging::new((0..3).map(FrameId).collect());
        assert_eq!(admitted(&staging), [true; 4]);
        let first = staging.take(Need::StoreStaging);
        assert_eq!(admitted(&staging), [true, true, true, false], "the last store is an urgent one");
        let second = staging.take(Need::StoreStaging);
        assert_eq!(admitted(&staging), [true, true, false, false], "the last frame is for loads");
        let third = staging.take(Need::LoadStaging);
        assert_eq!((admitted(&staging), staging.has(Need::Nothing, false)), ([false; 4], true));
        staging.give_back(first, Need::StoreStaging);
        assert_eq!(admitted(&staging), [true, false, true, false], "the last frame is for urgent operations");
        staging.give_back(second, Need::StoreStaging);
        staging.give_back(third, Need::LoadStaging);
        assert_eq!(admitted(&staging), [true; 4]);
    }
}
