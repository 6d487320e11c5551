//! Reads the own segment for a debugger, which calls in a thread stopped at an arbitrary place.
//!
//! The thread may be driving the engine or hold locks of the library. So this takes no lock and leaves the fetch to the
//! helper. The debugger lets the other threads run meanwhile.

use super::{FaultState, state};
use std::time::{Duration, Instant};
use vgasnet_engine::request::Fault;
use vgasnet_protocol::coherence::Access;

/// Far longer than a page takes.
const PATIENCE: Duration = Duration::from_secs(5);

/// The debugger's fault; it stays if the debugger gives up.
static WANTED: Fault = Fault::new();

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// This rank has no segment accessible by loads.
    NoView,
    /// A page has not arrived in time.
    HeldUp,
}

/// Copies bytes of the own segment.
///
/// # Errors
/// See [`Unread`].
///
/// # Safety
/// The range lies in the own segment, and `to` is valid for as many bytes.
pub unsafe fn read_for_debugger(to: *mut u8, from: usize, len_bytes: usize) -> Result<(), Unread> {
    let state = state().ok_or(Unread::NoView)?;
    let page_bytes = state.view.page_bytes();
    let mut done_bytes = 0;
    while done_bytes < len_bytes {
        let at = from + done_bytes;
        let offset_bytes = at % page_bytes;
        let piece_bytes = (page_bytes - offset_bytes).min(len_bytes - done_bytes);
        let read = |frame: *const u8| {
            // SAFETY: the page is pinned and in this frame, which contains the piece, and `to` has room for all bytes.
            unsafe { to.add(done_bytes).copy_from_nonoverlapping(frame.add(offset_bytes), piece_bytes) }
        };
        state.with_page(state.view.index_of(at), read)?;
        done_bytes += piece_bytes;
    }
    Ok(())
}

impl FaultState {
    /// Runs `read` with the frame of a page, which stays pinned meanwhile.
    fn with_page(&self, index: u32, read: impl Fn(*const u8)) -> Result<(), Unread> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(frame) = self.view.pin_to_read(index) {
                read(frame);
                self.unpin(index);
                return Ok(());
            }
            self.make_resident(index, end)?;
        }
    }

    /// Has the helper fetch a page, then unpins it.
    fn make_resident(&self, index: u32, end: Instant) -> Result<(), Unread> {
        if !WANTED.begin(index, Access::Read, false) {
            return Err(Unread::HeldUp);
        }
        if !self.driver.fetch(&WANTED) {
            WANTED.wait(Some(end.saturating_duration_since(Instant::now())));
        }
        self.unpin(WANTED.abandon().ok_or(Unread::HeldUp)?);
        Ok(())
    }
}
