//! Shared files as the engine has them: the pages of each are a space. What of a file could not be read or written is an answer to
//! who asked, and the job goes on.

use super::{Driver, Engine, Work};
use crate::error::UserError;
use crate::memory::Closing;
use crate::storage::NamedFile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vgasnet_protocol::coherence::{Cause, Event, FrameId, PageId, Waiter};
use vgasnet_protocol::{Space, Stripes};

/// The files that are open.
#[derive(Debug, Default)]
pub(super) struct OpenFiles(BTreeMap<Space, OpenFile>);

#[derive(Debug)]
struct OpenFile {
    /// Pages from here on are behind the end, as far as this rank knows.
    end: u32,
    /// The first error of all.
    first_error: Option<Cause>,
    /// Why nothing more is to be written: a page could not be.
    refusal: Option<Cause>,
    /// Dirty pages that could not be written. They stay until the file is flushed again.
    unwritten: BTreeSet<PageId>,
}

impl OpenFiles {
    /// Whether a page could not be written when that was tried last.
    pub(super) fn is_unwritten(&self, page: PageId) -> bool {
        self.0.get(&page.space).is_some_and(|file| file.unwritten.contains(&page))
    }
}

impl Engine {
    /// A file is open now, with bytes in its first `pages` pages. A rank that is a home of some gives the `file` to do I/O on.
    ///
    /// # Errors
    /// This rank's storage has no files but its own.
    pub fn open_file(
        &mut self,
        space: Space,
        stripes: Stripes,
        pages: u32,
        file: Option<Arc<NamedFile>>,
    ) -> Result<(), UserError> {
        if let Some(file) = file.filter(|_| stripes.homes.contains(&self.space.rank)) {
            self.storage.add_file(space, file)?;
        }
        self.protocol.add_file(space, stripes, pages);
        let (first_error, refusal, unwritten) = Default::default();
        self.files.0.insert(space, OpenFile { end: pages, first_error, refusal, unwritten });
        Ok(())
    }

    /// Whether nothing is under way about the file here, so that it may be closed.
    pub fn is_quiet_about(&self, space: Space) -> bool {
        self.protocol.cache.is_quiet_about(space) && self.storage.is_quiet_about(space)
    }

    /// Forgets a file, which nobody uses any more on any rank. What was not written is lost.
    pub fn close_file(&mut self, space: Space) {
        self.forget_pages(space, 0);
        self.protocol.remove_file(space);
        self.storage.remove_file(space);
        self.files.0.remove(&space);
    }

    /// Forgets the pages of a file from one on, without a word.
    fn forget_pages(&mut self, space: Space, first: u32) {
        let pages: Vec<PageId> = self.protocol.cache.pages_of(space).filter(|page| page.index >= first).collect();
        let mut actions = Vec::new();
        for page in pages {
            let closed = self.space.close(page);
            assert!(matches!(closed, Closing::Done(_)), "{page:?} is in use, and its file ends");
            let frame = self.protocol.cache.forget_page(page, &mut actions);
            self.frames.use_otherwise(frame);
        }
        actions.into_iter().for_each(|action| self.act(action));
        self.handle_events();
    }

    /// Cuts a file: nobody has pages from this one on, or the directory of them is forgotten.
    pub fn cut_file(&mut self, space: Space, pages: u32) {
        self.forget_pages(space, pages);
        self.storage.cut_file(space, pages);
        self.protocol.cut_file(space, pages);
        self.note_end(space, pages);
    }

    /// The file has so many pages now, as far as this rank knows.
    pub fn note_end(&mut self, space: Space, pages: u32) {
        self.files.0.get_mut(&space).into_iter().for_each(|file| file.end = pages);
    }

    /// The pages of a space that may be fetched ahead.
    pub(super) fn end_of(&self, space: Space) -> u32 {
        self.files.0.get(&space).map_or_else(|| self.protocol.spaces().pages(space), |file| file.end)
    }

    /// Starts writing what this rank has of a file, in its pool or as a home. Done when [`Engine::is_flushed_file`].
    pub fn flush_file(&mut self, space: Space) {
        let Some(file) = self.files.0.get_mut(&space) else { return };
        (file.refusal, file.unwritten) = Default::default();
        self.storage.flush_file(space);
        self.handle(Event::FlushSpace(space));
    }

    /// Whether that is done: all is written, or cannot be. A page that was forwarded to another rank is its now.
    pub fn is_flushed_file(&self, space: Space) -> bool {
        self.protocol.cache.is_flushed_of(space) && self.storage.is_flushed(space).is_some()
    }

    /// Why nothing more is to be written to the file, if that is so.
    pub fn refusal(&self, space: Space) -> Option<Cause> {
        let file = self.files.0.get(&space)?;
        file.refusal.or_else(|| self.storage.is_flushed(space)?.err())
    }

    /// The first error of the file on this rank.
    pub fn first_error(&self, space: Space) -> Option<Cause> {
        self.files.0.get(&space)?.first_error.or_else(|| self.refusal(space))
    }

    /// An operation on the file has failed.
    pub fn note_error(&mut self, space: Space, cause: Cause) {
        if let Some(file) = self.files.0.get_mut(&space) {
            file.first_error.get_or_insert(cause);
        }
    }

    /// A page could not be read, for which these waited.
    pub(super) fn fail(&mut self, page: PageId, frame: FrameId, waiters: &[Waiter], cause: Cause) {
        self.frames.spoil(frame);
        self.prefetch.on_opened(page);
        self.note_error(page.space, cause);
        let parts = waiters.iter().map(|waiter| self.parts.remove(waiter.0 as usize)).collect();
        self.work.push_back(Work::Fail { parts, cause });
    }

    /// A dirty page of this rank could not be written.
    pub(super) fn on_unwritten(&mut self, page: PageId, cause: Cause) {
        let Some(file) = self.files.0.get_mut(&page.space) else { return };
        file.refusal.get_or_insert(cause);
        file.first_error.get_or_insert(cause);
        file.unwritten.insert(page);
        self.has_event = true;
    }
}

impl Driver {
    /// Writes what this rank has of a file, in its pool or as a home, as far as that is possible.
    pub fn flush_file(&self, space: Space) {
        self.engine().flush_file(space);
        self.step();
        self.wait_until(&|| self.engine().is_flushed_file(space));
    }

    /// Waits until nothing is under way about a file here.
    pub fn settle_file(&self, space: Space) {
        self.wait_until(&|| self.engine().is_quiet_about(space));
    }
}
