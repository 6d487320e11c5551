//! All benchmarks.

mod ahead;
mod blocks;
mod collectives;
mod cyclic;
mod examples;
mod false_sharing;
mod fault;
mod figures;
mod files;
mod gasnet_ex;
mod gets;
mod hit;
mod lists;
mod messages;
mod operations;
mod page_size;
mod random_threads;
mod reads;
mod replacement;
mod small;
mod stream;
mod sweep;
mod table;
mod triad;

use crate::benchmark::Entry;

/// The subcommands in the order of the help.
pub static ALL: &[Entry] = &[
    Entry::of::<reads::Sequential>(),
    Entry::of::<reads::Random>(),
    Entry::of::<page_size::PageSize>(),
    Entry::of::<sweep::Sweep>(),
    Entry::of::<false_sharing::FalseSharing>(),
    Entry::of::<hit::Hit>(),
    Entry::of::<triad::Triad>(),
    Entry::of::<fault::Fault>(),
    Entry::of::<stream::Stream>(),
    Entry::of::<ahead::Ahead>(),
    Entry::of::<messages::Messages>(),
    Entry::of::<lists::Lists>(),
    Entry::of::<operations::Operations>(),
    Entry::of::<collectives::Collectives>(),
    Entry::of::<cyclic::Loop>(),
    Entry::of::<blocks::Blocks>(),
    Entry::of::<small::Small>(),
    Entry::of::<table::Table>(),
    Entry::of::<random_threads::RandomThreads>(),
    Entry::of::<gets::Gets>(),
    Entry::of::<examples::Lcc>(),
    Entry::of::<examples::BarnesHut>(),
    Entry::of::<files::Files>(),
    Entry::of::<gasnet_ex::GasnetEx>(),
    figures::ENTRY,
    Entry::of::<replacement::Replacement>(),
];
