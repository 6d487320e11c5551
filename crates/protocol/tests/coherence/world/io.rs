//! Loads and stores: the I/O of homes.

use super::{Flight, World, home_of};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Cause, Event, FrameId, PageId, Priority};

impl World {
    pub(super) fn land_store(
        &mut self,
        page: PageId,
        from: Rank,
        frame: FrameId,
        priority: Priority,
        second_half: bool,
    ) {
        let bytes = self.nodes[from.index()].frames[frame.0 as usize].clone();
        let len = bytes.len();
        let file = self.nodes[home_of(page).index()].file.entry(page.index).or_insert_with(|| vec![0; len]);
        let half = if second_half { len / 2..len } else { 0..len / 2 };
        file[half.clone()].copy_from_slice(&bytes[half.clone()]);
        self.disks.iter_mut().for_each(|disks| disks.note_stored(page, half.clone()));
        if second_half {
            self.event(home_of(page), Event::Stored(page));
        } else {
            self.flights.push(Flight::Store { page, from, frame, priority, second_half: true });
        }
    }

    /// Raises the priority of the load or store of a page in flight.
    pub(super) fn hurry(&mut self, page: PageId, to: Priority) {
        let hurried = self.flights.iter_mut().filter_map(|flight| match flight {
            Flight::Load { page: its, priority, .. } | Flight::Store { page: its, priority, .. } if *its == page => {
                Some(priority)
            }
            _ => None,
        });
        let [priority] = hurried.collect::<Vec<_>>().try_into().expect("a page has one operation on its file");
        assert!(to < *priority, "it was as urgent already");
        *priority = to;
    }

    /// Whether the flight at `at` is a load without a waiting operation: it may fail in segments, too.
    pub fn is_load_ahead(&self, at: usize) -> bool {
        matches!(self.flights[at], Flight::Load { priority: Priority::Soon | Priority::Later, .. })
    }

    /// Whether the flight at `at` is a load or a store, which may fail in files. Files are cached cooperatively.
    pub fn is_io(&self, at: usize) -> bool {
        self.shape.cooperative && matches!(self.flights[at], Flight::Load { .. } | Flight::Store { .. })
    }

    /// Fails the load or store at `at`.
    pub fn fail(&mut self, at: usize) {
        match self.flights.remove(at) {
            Flight::Load { page, to, frame, priority, .. } => {
                self.nodes[to.index()].frames[frame.0 as usize].fill(0xEE);
                let cause = (priority == Priority::Now).then_some(Cause(5));
                self.event(home_of(page), Event::LoadFailed { page, cause });
            }
            Flight::Store { page, .. } => {
                // A page never written before still counts as zeros. With crashing disks each sector keeps an old or
                // the new value.
                let is_whole = self.disks.is_some();
                if let Some(bytes) = self.nodes[home_of(page).index()].file.get_mut(&page.index).filter(|_| !is_whole) {
                    bytes.fill(0xEE);
                }
                self.event(home_of(page), Event::StoreFailed { page, cause: Cause(28) });
            }
            other => panic!("{other:?} cannot fail"),
        }
    }
}
