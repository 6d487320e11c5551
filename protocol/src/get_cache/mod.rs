//! A cache of small gets: bytes of other ranks, of any size, that nobody writes meanwhile.
//!
//! After Di Girolamo, Vella and Hoefler, "Transparent Caching for RMA Systems" (IPDPS 2017). An entry is what one get asked for,
//! found by where its bytes begin. It is *pending* while the bytes are on their way, and *open* as soon as they are here. A get that
//! finds a longer entry hits; one that finds a shorter entry fetches what lacks; one that finds its bytes pending joins those who wait.
//! A get may want a part of an object only, of which all is kept then.
//!
//! The machine decides; its driver keeps what threads look at that hit ([`Mirror`]), copies bytes and fetches them. The driver asks
//! [`Machine::get`] about each get that did not hit, and tells it when bytes have come ([`Machine::fill`]) or will not
//! ([`Machine::abandon`]).
//!
//! - [`Index`] finds entries, [`Arena`] has their bytes, [`Ranges`] knows them by address, [`Sizing`] decides how much memory they get.
//! - Where there is no room, up to three entries side by side go: those of the least worth a byte among a sample. They stay if the new one
//!   is worth less: [`Ghosts`] knows how much it was used before. A small [`Window`] takes some of those in spite of that.
//! - A space is invalidated by its generation, and so is a target of it: entries of an older one are not served, and go bit by bit.

mod answer;
mod arena;
mod entries;
mod ghosts;
mod heat;
mod index;
mod key;
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
pub use machine::{Limits, Machine};
pub use mirror::{Mirror, Opened, Seen};
pub use ranges::Ranges;
pub use sizing::{Counts, Sizing};
pub use stats::Stats;
pub use window::Window;
