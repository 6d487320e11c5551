//! The segment as memory: loads and stores of the rank that it belongs to.
//!
//! A page that the pool has is shown in the segment by a second mapping of its frame (`window.rs`). A load or store
//! elsewhere raises SIGSEGV (`fault.rs`). If the page is open in the page table, the handler shows it itself, without any
//! lock but that of `mapped.rs`; else the engine fetches the page like one that an operation waits for, driven by the thread
//! itself or, in a handler of the client or on an alternate stack, by the helper, for which it leaves word in `mailbox.rs`. A page is shown only while it is pinned, and hidden after it is closed and before the engine says
//! so: what is stored in a shown page is never lost.

#[cfg(target_arch = "x86_64")]
mod again;
pub mod fault;
pub(crate) mod futex;
mod held;
mod mailbox;
mod mapped;
mod signals;
#[cfg(target_arch = "x86_64")]
mod step;
mod thread;
mod window;

pub use fault::Bell;
pub use held::{SignalsOff, Undisturbed};
pub use mailbox::{Fault, Waiting};
pub use mapped::Mapped;
pub use window::{SecondMapping, Window, shown_max};

use crate::coherence::{Access, FrameId, PageId};
use crate::engine::{Copy, Part};
use crate::handles::CompletionId;
use crate::page_table::{Pinned, Slots};
use crate::space::{Piece, RankMemory, Segment};
use mailbox::Mailbox;
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_conduit::Rank;

/// Pages that one instruction may need at once: two operands, each across a border.
pub const FRAMES_MIN: u32 = 4;

/// A rank's own segment.
pub struct Local {
    rank: Rank,
    segment: Segment,
    page_shift: u32,
    frames: u32,
    memory: RankMemory,
    slots: Slots,
    mapped: Mapped,
    mailbox: Mailbox,
    /// Threads whose pages the engine is fetching, and who do not drive it.
    waiting: AtomicU32,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Local { rank, segment, frames, .. } = self;
        formatter.debug_struct("Local").field("rank", rank).field("segment", segment).field("frames", frames).finish()
    }
}

/// What became of an attempt to use a page at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// It is shown, and pinned once for the caller. `crowded`: others were hidden to make room for it.
    Pinned {
        /// See above.
        crowded: bool,
    },
    /// The engine has to fetch it.
    Missed,
    /// It is pinned, but the system refuses to map it: its error number.
    Refused(i32),
}

impl Local {
    /// The segment of `rank` through a window that shows nothing yet, and never more than `shown_max` pages.
    pub fn new(
        rank: Rank,
        segment: Segment,
        memory: RankMemory,
        slots: Slots,
        frames: u32,
        window: Box<dyn Window>,
        shown_max: u32,
    ) -> Local {
        Local {
            rank,
            segment,
            page_shift: memory.pool.page_bytes().trailing_zeros(),
            frames,
            memory,
            slots,
            mapped: Mapped::new(window, frames, shown_max),
            mailbox: Mailbox::default(),
            waiting: AtomicU32::new(0),
        }
    }

    /// The range.
    pub fn segment(&self) -> Segment {
        self.segment
    }

    /// How many frames the pool has.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// The page that an address in the segment lies in.
    pub fn index_of(&self, address: usize) -> u32 {
        debug_assert!(self.segment.overlaps(address, 1));
        ((address - self.segment.base) >> self.page_shift) as u32
    }

    /// Pins and shows a page, if it may be used here and now. Runs in signal handlers.
    pub fn visit(&self, index: u32, access: Access) -> Visit {
        let slot = self.slots.of(self.page(index));
        let Some(Pinned { frame, ahead }) = self.memory.table.pin(slot, access) else { return Visit::Missed };
        self.memory.pool.touch(frame);
        if ahead && self.memory.table.take_ahead(slot) {
            self.mailbox.hint(index);
        }
        match self.show(index, frame, access) {
            Ok(crowded) => Visit::Pinned { crowded },
            Err(errno) => Visit::Refused(errno),
        }
    }

    /// For processors that do not tell a store from a load: what a page that is shown, or not, must lack.
    pub fn more_than_shown(&self, index: u32) -> Access {
        if self.mapped.is_shown(index) { Access::Write } else { Access::Read }
    }

    /// Whether somebody waits for a page that the caller has pinned.
    pub fn is_wanted(&self, index: u32) -> bool {
        self.memory.table.is_closing(self.slots.of(self.page(index)))
    }

    /// Ends a visit. Returns whether the engine waits for just this: then it is to be kicked.
    #[must_use]
    pub fn leave(&self, index: u32) -> bool {
        self.memory.table.unpin(self.slots.of(self.page(index)))
    }

    /// Leaves word that a thread waits; the helper thread is to be woken, and the thread to wait.
    pub fn post(&self, fault: &Fault) {
        self.mailbox.post(fault);
    }

    /// Whether there is something for the engine to take.
    pub fn has_mail(&self) -> bool {
        self.mailbox.has_any()
    }

    /// Whether threads sleep until the engine has fetched their pages.
    pub fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Takes the threads that wait, for the engine to fetch their pages.
    pub fn take_faults(&self) -> impl Iterator<Item = Waiting> + '_ {
        self.mailbox.take().inspect(|_| {
            self.waiting.fetch_add(1, Ordering::SeqCst);
        })
    }

    /// What the engine is to do for a thread that waits.
    pub fn part(&self, waiting: Waiting) -> Part {
        let (index, access) = waiting.wants();
        self.admission(index, access, Some(waiting), None)
    }

    /// What the engine is to do to show a page and keep it pinned.
    pub fn admission(
        &self,
        index: u32,
        access: Access,
        waiting: Option<Waiting>,
        completion: Option<CompletionId>,
    ) -> Part {
        let piece = Piece { page: self.page(index), offset_bytes: 0, len_bytes: 0, start_bytes: 0 };
        Part { piece, copy: Copy::Admit(access, waiting), completion }
    }

    /// Takes the pages that were fetched ahead and are used now.
    pub fn take_hints(&self) -> impl Iterator<Item = PageId> + '_ {
        self.mailbox.take_hints().map(|index| self.page(index))
    }

    /// Shows a page that the caller has pinned, and pins it once more for somebody else.
    ///
    /// # Errors
    /// The system refuses a mapping: its error number.
    pub fn admit(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
        self.show(index, frame, access)?;
        self.memory.table.pin_again(self.slots.of(self.page(index)));
        Ok(())
    }

    /// Lets a thread go on whose page is admitted.
    pub fn serve(&self, waiting: Waiting) {
        if !waiting.leads() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        waiting.serve();
    }

    /// Hides the page of a frame that is closed and not pinned, if it is shown.
    ///
    /// # Errors
    /// The system's error number.
    pub fn hide(&self, page: PageId, frame: FrameId) -> Result<(), i32> {
        if page.home == self.rank { self.mapped.hide(frame) } else { Ok(()) }
    }

    /// Frames are needed: hides the pages that were shown first, so that a quarter of the pool is used only by ways that
    /// leave a trace.
    pub fn age(&self) {
        self.mapped.shrink(self.frames - self.frames / 4, &|index| self.may_hide(index));
    }

    /// How many pages are shown.
    pub fn shown(&self) -> u32 {
        self.mapped.count()
    }

    /// Returns whether others were hidden to make room.
    fn show(&self, index: u32, frame: FrameId, access: Access) -> Result<bool, i32> {
        let slot = self.slots.of(self.page(index));
        // A page that may be written is shown so at once: it counts as dirty already.
        let access = if self.memory.table.is_writable(slot) { Access::Write } else { access };
        self.mapped.show(index, frame, access, &|index| self.may_hide(index))
    }

    fn may_hide(&self, index: u32) -> bool {
        !self.memory.table.is_pinned(self.slots.of(self.page(index)))
    }

    fn page(&self, index: u32) -> PageId {
        PageId { home: self.rank, index }
    }
}
