//! When dirty blocks are written for lack of clean ones, and where the search for them goes on.

use super::numbering::Block;

/// The write-back of dirty blocks.
#[derive(Debug, Default)]
pub(super) struct Cleaning {
    /// Clean blocks run short.
    is_on: bool,
    /// All dirty blocks are to be written.
    is_emptying: bool,
    /// Blocks written for lack of clean ones since the last query.
    cleaned: u32,
    /// Dirty blocks are written in order from here on.
    cursor: Block,
}

impl Cleaning {
    /// Starts the write-back if clean blocks run short.
    pub(super) fn start_if(&mut self, is_short: bool) {
        self.is_on |= is_short;
    }

    /// Starts writing all dirty blocks.
    pub(super) fn empty(&mut self) {
        self.is_emptying = true;
    }

    /// Stops the write-back if nothing is dirty, or if there are enough clean blocks.
    pub(super) fn stop_if(&mut self, has_enough: bool, is_all_clean: bool) {
        self.is_on &= !has_enough && !is_all_clean;
        self.is_emptying &= !is_all_clean;
    }

    /// Whether dirty blocks are to be written in order.
    pub(super) fn is_due(&self) -> bool {
        self.is_on || self.is_emptying
    }

    /// A block has been written.
    pub(super) fn on_written(&mut self) {
        self.cleaned += u32::from(self.is_on);
    }

    /// Blocks written for lack of clean ones since the last call.
    pub(super) fn take_cleaned(&mut self) -> u32 {
        std::mem::take(&mut self.cleaned)
    }

    /// The block from which dirty ones are written in order.
    pub(super) fn cursor(&self) -> Block {
        self.cursor
    }

    /// Goes on from this block.
    pub(super) fn go_on_from(&mut self, cursor: Block) {
        self.cursor = cursor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_written_for_lack_of_clean_ones_count() {
        let mut cleaning = Cleaning::default();
        cleaning.empty();
        cleaning.on_written();
        assert!(cleaning.is_due() && cleaning.take_cleaned() == 0);
        cleaning.start_if(true);
        cleaning.on_written();
        cleaning.start_if(false);
        cleaning.on_written();
        assert_eq!((cleaning.take_cleaned(), cleaning.take_cleaned()), (2, 0));
        cleaning.stop_if(true, false);
        assert!(cleaning.is_due(), "all are to be written");
        cleaning.stop_if(false, true);
        assert!(!cleaning.is_due());
    }
}
