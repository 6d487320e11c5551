//! Joins the rank's small operations on absent pages ([`Bytes`]) with its pool, its storage and its protocol.
//!
//! A faulting thread drives on its own stack, which may be small. Code not needed there is kept out of line.

use super::Engine;
use crate::Work;
#[cfg(doc)]
use crate::bytes::Bytes;
use crate::bytes::{Outcome, Supply, Way};
use crate::request::{Copy, Part, ServedId};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, Cause, Event, PageId};
use vgasnet_stats::{self as stats, Row};

/// What is left to do for a part.
pub(super) enum Kept {
    Nothing,
    /// Its page is to be fetched.
    ToFetch(Part),
    /// It is to be shipped to this home.
    ToShip(Part, Rank),
}

impl Engine {
    /// Whether the part may avoid fetching its page.
    #[inline]
    fn may_ship(&self, part: &Part) -> bool {
        let is_fault = matches!(part.copy, Copy::MakeResident(_));
        let may = !is_fault || self.storage.maps_blocks();
        may && self.bytes.takes(part) && !self.protocol.cache.contains(part.piece.page)
    }

    /// Carries out a part in the blocks of the own file, if that is cheaper than moving its page.
    pub(super) fn ship_or_keep(&mut self, part: Part) -> Kept {
        if self.may_ship(&part) { self.choose(part) } else { Kept::ToFetch(part) }
    }

    #[inline(never)]
    fn choose(&mut self, mut part: Part) -> Kept {
        let (page, own) = (part.piece.page, self.space.rank);
        let home = self.protocol.spaces().home(page);
        let has_room = self.has_room();
        if part.copy.mapped_access().is_some() && !self.may_map_block(page, has_room) {
            return Kept::ToFetch(part);
        }
        let is_at_hand = home == own && self.storage.has_blocks(&part);
        let supply = Supply { is_at_hand, has_room, fill_bytes_max: self.storage.block_part_bytes_max() };
        if !self.bytes.chooses_to_ship(&mut part, supply) {
            return Kept::ToFetch(part);
        }
        self.page_statistics.on_part(&part);
        if home != own {
            return Kept::ToShip(part, home);
        }
        if part.copy.access() == Access::Write {
            self.bytes.on_written(page, own);
        }
        self.do_at_home_or_fetch(part, 0);
        Kept::Nothing
    }

    /// Whether the pool has spare frames: some are free without evictions, and none serves for blocks.
    fn has_room(&self) -> bool {
        let is_full = self.storage.frames_for_blocks() > 0 || self.paging.is_short();
        !is_full && self.protocol.cache.surplus_frames() > 0
    }

    /// Whether a load or store may use a block of a page of this home: no rank holds the page. If there is room, a page
    /// of zeros is served as a page at once.
    fn may_map_block(&self, page: PageId, has_room: bool) -> bool {
        debug_assert!(self.space.is_own(page), "{page:?} of another space has no address");
        let home = &self.protocol.home;
        let is_here = !home.has_entry(page) && !self.bytes.has_deferred(page);
        is_here && (home.is_written(page) || !has_room)
    }

    /// Performs a part of a page of this home at the page's holder, after `tries` ranks have refused it. Otherwise
    /// fetches the page.
    pub(super) fn do_at_home_or_fetch(&mut self, part: Part, tries: u8) {
        let kept = self.do_at_home(part, tries);
        kept.into_iter().for_each(|part| self.want(part));
    }

    /// Performs a part as [`Engine::do_at_home_or_fetch`]. Returns the part if this rank is to fetch the page for it.
    #[inline(never)]
    fn do_at_home(&mut self, part: Part, tries: u8) -> Option<Part> {
        let page = part.piece.page;
        match self.bytes.way_at_home(&part, tries, &self.protocol) {
            Way::Page => return Some(part),
            Way::Guests => {
                let dismissed = self.paging.wait_for_dismissal(part, tries).then_some(Event::Dismiss(page));
                self.queue.raise_all(dismissed);
            }
            Way::Holder(rank) => self.bytes.ship_to_holder(rank, part, tries),
            Way::Blocks if !self.storage.takes_on_blocks(&part) || self.is_first_put(&part) => return Some(part),
            Way::Blocks => self.do_on_blocks(part),
        }
        None
    }

    /// Performs a part in blocks of the file.
    fn do_on_blocks(&mut self, part: Part) {
        let page = part.piece.page;
        assert!(self.is_home(page) && !self.protocol.home.has_entry(page), "no rank holds {page:?}");
        if self.notes_writes() && self.space.is_own(page) {
            self.note_job(&part);
        }
        let is_written = self.protocol.home.is_written(page);
        if part.copy.access() == Access::Write && !is_written {
            let mut actions = Vec::new();
            let noted = self.protocol.handle(Event::Written(page), &mut actions);
            noted.expect("no message is part of it");
            assert!(actions.is_empty(), "no rank holds {page:?}, so none is told");
            self.show_or_hide(page);
        }
        stats::count(Row::InBlocks);
        stats::add(Row::FaultBlock, u64::from(part.copy.mapped_access().is_some()));
        let is_here = self.storage.has_blocks(&part);
        if !is_here && is_written {
            self.paging.on_blocks_missed(1);
        }
        stats::add(Row::BlockHits, u64::from(is_here));
        self.storage.start_on_blocks(part, is_written, self.queue.todo());
    }

    /// Whether a part is the first write to a page of an own segment that fits the pool: the page comes without I/O,
    /// and later accesses hit. All such pages together take no longer than clearing the pool once.
    fn is_first_put(&self, part: &Part) -> bool {
        let (page, space) = (part.piece.page, &self.space);
        let is_new = part.copy.is_put() && space.is_own(page) && !self.protocol.home.is_written(page);
        let fits = || space.own_segment().size_bytes / space.page_bytes() <= self.protocol.cache.frames() as usize;
        is_new && fits() && self.has_room()
    }

    /// The copies of a job on blocks are done. `is_copied`: its block is in the segment, for loads.
    pub fn end_on_blocks(&mut self, job: usize, is_copied: bool) {
        stats::add(Row::FaultCopied, u64::from(is_copied));
        let page = self.storage.end_on_blocks(job, is_copied, self.queue.todo());
        debug_assert!(page.is_none_or(|page| !self.storage.has_jobs(page)), "{page:?} has no other job");
        self.note_age_of_blocks();
        if let Some(messages) = page.and_then(|page| self.bytes.release(page)) {
            self.queue.raise_all(messages);
            self.handle_events();
        }
    }

    /// Whether requests are to be sent at the next drive.
    pub fn has_shipments(&self) -> bool {
        self.bytes.is_waiting()
    }

    /// Queues requests, as many as their receivers may have.
    #[inline(never)]
    pub(super) fn send_shipments(&mut self) {
        while let Some(shipment) = self.bytes.next_shipment() {
            self.queue.add(Work::Ship(Box::new(shipment)));
        }
    }

    /// Handles an answer.
    #[inline(never)]
    pub(super) fn on_byte_answer(&mut self, from: Rank, bytes: &[u8]) -> Result<(), &'static str> {
        for shipped in self.bytes.on_answer(from, bytes)? {
            match self.bytes.outcome(shipped) {
                Outcome::Done(delivery) => self.queue.add(Work::Deliver(Box::new(delivery))),
                Outcome::Refused(part, tries) => self.do_at_home_or_fetch(part, tries),
                Outcome::Failed(part, cause) => self.queue.add(Work::Fail { parts: vec![part], cause }),
            }
        }
        Ok(())
    }

    /// Handles a request of another rank.
    #[inline(never)]
    pub(super) fn on_byte_request(&mut self, from: Rank, bytes: Vec<u8>) -> Result<(), &'static str> {
        let request = self.bytes.begin_serving(from, bytes, self.protocol.spaces())?;
        let is_direct = request.is_direct();
        for (id, part) in request.into_parts() {
            if is_direct {
                self.do_if_here(id, part);
            } else {
                self.bytes.note_served(id, &part);
                self.do_at_home_or_fetch(part, 0);
            }
        }
        Ok(())
    }

    /// Performs a part of a direct request if its page is open here, or refuses it.
    fn do_if_here(&mut self, id: ServedId, part: Part) {
        let (page, own) = (part.piece.page, &self.space.own);
        if let Some(pinned) = own.table.pin(page, part.copy.access()) {
            own.pool.touch(pinned.frame);
            self.queue.add(Work::Copies { page, frame: pinned.frame, parts: vec![part] });
            return;
        }
        self.bytes.refuse(id);
        // The home does not know yet that the page is gone.
        self.handle(Event::Tell(page));
        self.on_served(id);
    }

    /// A piece of a request has failed.
    #[inline(never)]
    pub fn on_served_failed(&mut self, id: ServedId, cause: Cause) {
        self.bytes.note_failed(id, cause);
        self.on_served(id);
    }

    /// A piece of a request is done. The last one sends the answer.
    #[inline(never)]
    pub fn on_served(&mut self, id: ServedId) {
        if let Some((from, answer)) = self.bytes.end_piece(id) {
            self.outbox.send(from, &answer);
        }
    }
}
