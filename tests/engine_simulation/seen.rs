//! Counters of the rarer paths.

macro_rules! counters {
    ($(#[doc = $about:literal])+ $counts:ident { $($(#[doc = $what:literal])+ $name:ident,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $counts {
            $($(#[doc = $what])+ pub $name: u64,)+
        }

        impl $counts {
            /// All counters.
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
    /// How often runs took the rarer paths.
    Seen {
        /// Work put back because the conduit had no room.
        put_back,
        /// Copies in a neighbour's frame.
        at_neighbours,
        /// Uses of read-ahead pages.
        ahead,
        /// Unpins of pages waiting to be closed.
        notices,
        /// Instructions without a fault.
        silent,
        /// Faults on pages already open.
        accesses,
        /// Faults for which other pages were unmapped.
        crowded,
        /// Faults served by the engine.
        faults,
        /// Faults served by mapping a neighbour's frame.
        borrowed,
        /// Neighbours' frames returned on request.
        asked_back,
        /// Loads from a neighbour's frame.
        lent_loads,
        /// Waits for the turn up to the limit.
        turns_waited,
        /// Faults as the first use of a read-ahead page.
        hints,
        /// Mappings refused by the system at first.
        refusals,
        /// Pages unmapped.
        unmapped,
        /// Pins after a wait for the page.
        pins_waited,
        /// Unpinned ranges for which a deferred close waited.
        deferred_closes,
        /// Pages overwritten whole without being read.
        overwritten,
        /// Writes of some blocks of a page.
        partial,
        /// Page reads by the waiting threads themselves.
        read_by_threads,
        /// Pins refused because of the limit.
        too_many,
        /// Small operations carried out at another rank.
        shipped,
        /// Small operations in blocks of the file.
        in_blocks,
        /// Pages read and overlaid with blocks.
        laid_over,
        /// Faults served by mapping a block.
        blocks_mapped,
        /// Loads from mapped blocks and stores to them.
        in_mapped_blocks,
        /// Mapped blocks made read-only before a write-back.
        protected,
        /// Pages with all blocks unmapped because a rank asked for the page.
        emptied,
        /// Loads from copies of blocks.
        in_copies,
        /// Pages opened again for copies.
        opened,
        /// Drives that left frames of the pool serving for blocks.
        serving,
        /// Atomic operations.
        atomic,
        /// Written pages reported to a rank on request.
        writes_told,
        /// Drives that left messages to a home held back.
        held,
    }
}
