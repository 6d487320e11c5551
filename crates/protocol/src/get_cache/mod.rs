//! A cache of small gets: bytes of other ranks, of any size, not written meanwhile.
//!
//! After Di Girolamo, Vella and Hoefler, "Transparent Caching for RMA Systems" (IPDPS 2017). An entry holds the bytes
//! of one get and is found by their start address. It is *pending* while the bytes are in flight, and *open* once they
//! are present. A get finding a longer entry hits. A get finding a shorter entry fetches the missing bytes. A get
//! finding its bytes pending joins the waiters. A get may request part of an object; the cache then keeps the whole
//! object.
//!
//! The machine decides. Its driver keeps the state read by hitting threads ([`Mirror`]), copies bytes and fetches them.
//! The driver passes each get that did not hit to [`Machine::get`], and reports arrived bytes ([`Machine::fill`]) or
//! failed fetches ([`Machine::abandon`]).
//!
//! - [`Index`] finds entries by key, [`Arena`] allocates their bytes, [`Ranges`] finds them by address, [`Sizing`]
//!   decides the amount of memory.
//! - Without free room, up to three adjacent entries are evicted: the least valuable per byte in a sample. They stay if
//!   the new entry is worth less; [`Ghosts`] remembers its earlier use. A small [`Window`] admits some new entries
//!   regardless.
//! - Spaces and their targets are invalidated by generation: entries of an older generation are not served, and are
//!   dropped incrementally.

mod answer;
mod arena;
mod demand;
mod entries;
mod ghosts;
mod heat;
mod index;
mod key;
mod limits;
mod machine;
mod mirror;
mod ranges;
mod room;
mod sizing;
mod stats;
mod window;

pub use answer::{Answer, Filled, Part, Want};
pub use arena::{Arena, MEMORY_MAX, RegionId, Span, UNIT_BYTES, units_of};
pub use entries::{Entries, Entry};
pub use ghosts::Ghosts;
pub use heat::{Clock, Heat};
pub use index::{BUCKETS_MIN, Index};
pub use key::{
    ENTRIES_MAX, EntryId, GENERATION_PLACES, Hash, Hasher, Key, SLOTS, TARGET_PLACES, entry_of, generation_place,
    place_of, target_place,
};
pub use limits::Limits;
pub use machine::Machine;
pub use mirror::{Mirror, Opened, Seen};
pub use ranges::Ranges;
pub use sizing::{Counts, Sizing};
pub use stats::Stats;
pub use window::Window;
