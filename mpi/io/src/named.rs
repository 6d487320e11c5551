//! The layouts of MPI's own datatypes, which are never freed. A lookup takes no lock, and does not call MPI.

use crate::layout::{Kept, Layout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A power of two, several times the number of MPI's types.
const SLOTS: usize = 512;

/// Number of places tried for a type.
const TRIES: usize = 8;

struct TypeSlot {
    /// 0 while the place is free: no type has this handle. Set after the layout.
    handle: AtomicU64,
    layout: OnceLock<Layout>,
}

struct Table([TypeSlot; SLOTS]);

static NAMED: Table = Table::new();

/// The layout of a type kept here.
#[inline]
pub fn find(datatype: u64) -> Option<&'static Layout> {
    NAMED.find(datatype)
}

/// Keeps the layout of a type that is never freed.
pub fn keep(datatype: u64, layout: Layout) -> Kept {
    static KEEPING: Mutex<()> = Mutex::new(());
    let _keeping = KEEPING.lock().unwrap_or_else(PoisonError::into_inner);
    match NAMED.keep(datatype, layout) {
        Ok(kept) => Kept::Always(kept),
        Err(layout) => Kept::Counted(Arc::new(layout)),
    }
}

impl Table {
    const fn new() -> Table {
        Table([const { TypeSlot { handle: AtomicU64::new(0), layout: OnceLock::new() } }; SLOTS])
    }

    fn places(&self, datatype: u64) -> impl Iterator<Item = &TypeSlot> {
        // Handles differ in the middle bits if they are addresses, and in the low bits if they are numbers.
        let first = (datatype.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (first..first + TRIES).map(|at| &self.0[at % SLOTS])
    }

    #[inline]
    fn find(&self, datatype: u64) -> Option<&Layout> {
        for place in self.places(datatype) {
            match place.handle.load(Ordering::Acquire) {
                0 => return None,
                its if its == datatype => return place.layout.get(),
                _ => {}
            }
        }
        None
    }

    /// Called by one thread at a time. Returns the layout if there is no room.
    fn keep(&self, datatype: u64, layout: Layout) -> Result<&Layout, Layout> {
        if self.find(datatype).is_some() {
            return self.find(datatype).ok_or(layout);
        }
        let is_free = |place: &&TypeSlot| place.handle.load(Ordering::Relaxed) == 0;
        let Some(place) = self.places(datatype).find(is_free).filter(|_| datatype != 0) else { return Err(layout) };
        let kept = place.layout.get_or_init(|| layout);
        place.handle.store(datatype, Ordering::Release);
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Shape;

    #[test]
    fn types_are_found_until_there_is_no_room() {
        static TABLE: Table = Table::new();
        let layout = |bytes: u64| Layout::new(&Shape::Bytes(bytes), bytes as i64);
        let kept: Vec<u64> = (1..2 * SLOTS as u64).filter(|of| TABLE.keep(*of, layout(*of)).is_ok()).collect();
        assert!(kept.len() > SLOTS / 2 && kept.len() <= SLOTS, "{}", kept.len());
        assert!(kept.iter().all(|of| TABLE.find(*of) == Some(&layout(*of))));
        assert_eq!(TABLE.find(0), None);
        let refused = (1..2 * SLOTS as u64).find(|of| !kept.contains(of)).expect("there are more than places");
        assert_eq!((TABLE.find(refused), TABLE.keep(refused, layout(3))), (None, Err(layout(3))));
        assert_eq!(TABLE.keep(kept[0], layout(99)), Ok(&layout(kept[0])), "the first stays");
    }
}
