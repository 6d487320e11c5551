//! Runs the production engines of many ranks in virtual time against a model of a cluster.
//!
//! A [`Machine`] describes nodes, links and disks. A [`Point`] is a job on it: the number of ranks, the data and the
//! order of accesses. No bytes are carried. The same point always has the same outcome.

mod addresses;
mod conduit;
mod disk;
mod hints;
mod job;
mod lcc;
mod machine;
mod page_size;
pub mod paper;
pub mod parts;
mod point;
mod program;
mod progress;
mod rank;
pub mod scale;
mod shared_files;
pub mod spreading;
pub mod startup;
mod table;
pub mod twice;
mod world;

pub use hints::Hints;
pub use machine::{Disk, Link, Machine, Node};
pub use page_size::PageSize;
pub use point::{Homes, Outcome, Pattern, Point, ProtocolKind, Spread};
pub use program::Order;
pub use progress::Progress;
pub use shared_files::Shared;
pub use table::{Table, short};
pub use world::{HANDLINGS, LOCAL_US};
