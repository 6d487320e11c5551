//! A drive takes in all arrivals and then completes what can go on. Each event that an arrival raises is admitted,
//! decided and carried out at once, so the stages of an event run within the take-in.

use super::Engine;
use crate::arrivals;
use crate::paging::page_released_by;
use vgasnet_protocol::coherence::{Access, CoherenceBody, Event, PageId, ToCache};
use vgasnet_settings::UserError;
use vgasnet_stats as stats;

impl Engine {
    /// Handles all arrivals, each with the events that follow from it. Returns whether there were any.
    ///
    /// # Errors
    /// A page could not be read or written, or a message is malformed: the job has to end.
    pub fn drive(&mut self) -> Result<bool, UserError> {
        let mut worked = self.status.is_settled() && self.poll_conduit()?;
        if worked && self.status.is_settled() {
            // The arrivals were for the rooms above only.
            return Ok(true);
        }
        worked |= self.take_in()?;
        self.handle_events();
        self.complete_drive();
        self.status.check().map(|()| worked)
    }

    pub(super) fn handle(&mut self, event: Event) {
        self.queue.raise(event);
        self.handle_events();
    }

    /// Handles all events, and evicts pages for those that wait for a frame. Stops once the job has to end, since the
    /// protocol's state may be inconsistent.
    pub(super) fn handle_events(&mut self) {
        while !self.status.is_broken() {
            while let Some(event) = self.queue.next_event() {
                if let Err(error) = self.handle_next(event) {
                    self.status.break_by(error);
                    return;
                }
            }
            // A search without a victim may have queued write-backs.
            match self.next_eviction() {
                Some(frame) => self.queue.raise(Event::Evict(frame)),
                None if !self.queue.has_events() => return,
                None => {}
            }
        }
    }

    fn handle_next(&mut self, event: Event) -> Result<(), UserError> {
        let Some(event) = self.admit(event)? else { return Ok(()) };
        let released = page_released_by(&event);
        self.decide(event)?;
        self.carry_out();
        let frame = released.and_then(|page| self.protocol.cache.frame_of(page));
        frame.into_iter().for_each(|frame| self.paging.release(frame));
        Ok(())
    }

    /// Takes in and handles arrivals, completed storage operations, and pages and frames that other threads have let
    /// go. Returns whether there were any.
    fn take_in(&mut self) -> Result<bool, UserError> {
        self.queue.retry_refused();
        let mut worked = self.outbox.flush();
        worked |= self.poll_conduit()?;
        worked |= self.storage.poll(self.queue.todo())?;
        self.take_in_blocks();
        worked |= self.poll_closing();
        self.status.note_news_if(self.paging.take_returned_loans());
        // Threads that wait for such a page to be dropped look for it; the engine does not.
        worked |= self.paging.retry_victims() && self.files.is_awaited();
        Ok(worked)
    }

    /// Takes in the blocks that neighbours have read from the own file.
    fn take_in_blocks(&mut self) {
        let count = self.storage.take_in_blocks();
        if count > 0 {
            self.paging.on_blocks_missed(count);
        }
    }

    /// Returns the event, unless it has to wait for jobs on blocks of its page. Unmaps the blocks of the page of an
    /// admitted event, since a rank may soon hold the page.
    fn admit(&mut self, event: Event) -> Result<Option<Event>, UserError> {
        if let Some(page) = self.page_at_home(&event) {
            if self.storage.has_jobs(page) {
                self.bytes.defer(page, event);
                return Ok(None);
            }
            self.storage.unmap_blocks(page)?;
        }
        Ok(Some(event))
    }

    /// Passes an event to the protocol. Its decisions are actions.
    fn decide(&mut self, event: Event) -> Result<(), UserError> {
        self.note_message(&event);
        let written = self.note_write_request(&event);
        if stats::is_on() {
            self.page_statistics.on_event(&event, &self.protocol.cache);
        }
        let was_flushing = !self.protocol.cache.flushed();
        let changed = page_at_its_home(&event).filter(|page| self.is_home(*page));
        let mut actions = self.queue.take_actions();
        debug_assert!(actions.is_empty(), "the actions of an event are carried out before the next event");
        self.protocol.handle(event, &mut actions).map_err(arrivals::refused)?;
        changed.into_iter().for_each(|page| self.show_or_hide(page));
        self.queue.return_actions(actions);
        written.into_iter().for_each(|page| self.note_writer(page));
        self.status.note_news_if(was_flushing && self.protocol.cache.flushed());
        Ok(())
    }

    /// Shows a page of this home to neighbours if its bytes are in the file, before anything is done that follows from
    /// an event.
    pub(super) fn show_or_hide(&mut self, page: PageId) {
        let home = &self.protocol.home;
        let is_plain = !home.has_entry(page) && home.is_written(page);
        self.storage.show_page(page, is_plain);
    }

    /// Carries out the actions of one event.
    pub(super) fn carry_out(&mut self) {
        let mut actions = self.queue.take_actions();
        for action in actions.drain(..) {
            if stats::is_on() {
                self.page_statistics.on_action(&action);
            }
            self.act(action);
        }
        self.queue.return_actions(actions);
        self.outbox.end_event();
    }

    /// Once all events are handled: moves frames between pages and blocks, resumes parts that can go on, and starts
    /// storage operations.
    fn complete_drive(&mut self) {
        self.balance_frames();
        self.retry_held();
        self.retry_dismissed();
        self.write_aged();
        if self.bytes.is_waiting() {
            self.send_shipments();
        }
        self.storage.advance(self.queue.todo());
        // A flush without dirty data completes here, and no other drive may follow.
        self.answer_flushes();
        self.status.end_drive(self.has_nothing_in_flight());
        self.check();
    }

    /// The page of a message to this home.
    fn page_at_home(&self, event: &Event) -> Option<PageId> {
        let Event::Message { message, .. } = event else { return None };
        let is_to_home = matches!(message.body, CoherenceBody::Home(_)) && self.is_home(message.page);
        is_to_home.then_some(message.page)
    }

    /// Notes the effect of a message to the cache on the page's frame and meter.
    fn note_message(&mut self, event: &Event) {
        let Event::Message { from, message } = event else { return };
        let CoherenceBody::Cache(body) = message.body else { return };
        let is_taken = match body {
            ToCache::Invalidate { .. } | ToCache::Relay { .. } => true,
            ToCache::Forward(forward) => forward.access == Access::Write,
            ToCache::Data { .. } => return self.paging.on_data(*from, message.page, &self.protocol),
            ToCache::Evicted { .. } => return self.files.forget_unwritten(message.page),
            ToCache::Unread => {
                let frame = self.protocol.cache.frame_of(message.page);
                return frame.into_iter().for_each(|frame| self.paging.mark_filled(frame));
            }
            _ => false,
        };
        if !is_taken {
            return;
        }
        // The next holder will write it, and it may leave this pool if it comes back.
        self.files.forget_unwritten(message.page);
        if self.space.own.table.is_open(message.page, Access::Write) {
            self.bytes.on_lost(message.page);
        }
    }
}

/// The page whose directory entry an event may change.
fn page_at_its_home(event: &Event) -> Option<PageId> {
    match event {
        Event::Message { message, .. } => matches!(message.body, CoherenceBody::Home(_)).then_some(message.page),
        Event::Loaded(page) | Event::Stored(page) | Event::Recall(page) | Event::Dismiss(page) => Some(*page),
        Event::LoadFailed { page, .. } | Event::StoreFailed { page, .. } | Event::Written(page) => Some(*page),
        _ => None,
    }
}
