//! How often the rarer paths were taken.

macro_rules! counters {
    ($(#[doc = $about:literal])+ $counts:ident { $($(#[doc = $what:literal])+ $name:ident,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $counts {
            $($(#[doc = $what])+ pub $name: u64,)+
        }

        impl $counts {
            /// All of them.
            pub fn counts(&self) -> impl Iterator<Item = u64> {
                [$(self.$name),+].into_iter()
            }
        }

        impl std::ops::AddAssign for $counts {
            fn add_assign(&mut self, other: $counts) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

pub(crate) use counters;

counters! {
    /// Counts of the rarer paths.
    Seen {
        /// Work that the conduit had no room for.
        put_back,
        /// Copies in a neighbour's frame.
        at_neighbours,
        /// Uses of pages that were fetched ahead.
        ahead,
        /// Uses that a closing page waited for.
        notices,
        /// Instructions that loaded or stored without a fault.
        silent,
        /// Faults that found their page open.
        accesses,
        /// Faults for which other pages were unmapped.
        crowded,
        /// Faults that the engine served.
        faults,
        /// Faults for which a neighbour's frame was mapped.
        borrowed,
        /// Frames of neighbours that came back because they were asked for.
        asked_back,
        /// Loads from a neighbour's frame.
        lent_loads,
        /// Threads that waited for the turn as long as they may.
        turns_waited,
        /// Faults that were the first use of a page that was fetched ahead.
        hints,
        /// Mappings that the system refused at first.
        refusals,
        /// Pages that were unmapped.
        unmapped,
        /// Pins that waited for a page.
        pins_waited,
        /// Unpinned ranges for which a deferred close waited.
        deferred_closes,
        /// Pages that were overwritten whole without being read.
        overwritten,
        /// Writes of some blocks of a page.
        partial,
        /// Reads of pages that the threads did that waited for them.
        read_by_threads,
        /// Pins that were too many.
        too_many,
        /// Small operations that were carried out elsewhere.
        shipped,
        /// Small operations in blocks of the file.
        in_blocks,
        /// Pages that were read and had blocks laid over them.
        laid_over,
        /// Faults for which a block was mapped.
        blocks_mapped,
        /// Loads from blocks and stores to them.
        in_mapped_blocks,
        /// Blocks that lost the right to be stored to, to be written.
        protected,
        /// Pages whose blocks were unmapped because somebody asked for them.
        emptied,
        /// Drives after which frames of the pool served for blocks.
        serving,
        /// Atomic operations.
        atomic,
        /// Written pages of which a rank was told that had asked.
        writes_told,
        /// Drives after which messages to a home were held back.
        held,
    }
}
