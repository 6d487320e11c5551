//! Small operations on absent pages, performed at the pages' holders instead of moving the pages.
//!
//! A part is shipped to its page's home. The home performs it in the blocks of its file if no rank holds the page.
//! Otherwise it forwards the part to the page's holder in a direct request, served at once or refused. After refusals
//! the home requests the page itself. Meters choose between shipping and moving ([`vgasnet_protocol::shipping`]).

mod deferred;
mod serving;
mod shipping;

pub(crate) use serving::IncomingRequest;
pub(crate) use shipping::{Outcome, Shipped};

use crate::request::{Part, ServedId};
use crate::work::Shipment;
use deferred::DeferredMessages;
use serving::Serving;
use shipping::{Shipping, Target};
use vgasnet_protocol::byte_message::Status;
use vgasnet_protocol::coherence::{Access, Cause, Event, PageId, Protocol};
use vgasnet_protocol::shipping::{Choice, Meters, SmallOperation};
use vgasnet_protocol::{Rank, Spaces};

/// Refusals by ranks that may use the page before the home asks for the page.
const TRIES_MAX: u8 = 2;

/// Small operations of this rank at other ranks, and of other ranks here.
pub(crate) struct Bytes {
    rank: Rank,
    meters: Meters,
    shipping: Shipping,
    serving: Serving,
    deferred: DeferredMessages,
    /// Without cooperative caching only homes perform parts.
    is_cooperative: bool,
}

/// The state of a rank's storage and pool that decides on a small operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supply {
    /// This rank is the page's home, and has the operation's blocks in memory.
    pub is_at_hand: bool,
    /// The pool has spare frames.
    pub has_room: bool,
    /// Largest part mapped for a load or store, in bytes.
    pub fill_bytes_max: usize,
}

/// How a home performs a part of one of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It fetches the page.
    Page,
    /// It first dismisses the page's guests.
    Guests,
    /// It asks a holder of the page, in a direct request.
    Holder(Rank),
    /// It uses blocks of the file: no rank holds the page.
    Blocks,
}

impl Bytes {
    /// Ships in messages of at most `message_bytes_max` if `is_on`.
    pub(crate) fn new(
        rank: Rank,
        meters: Meters,
        page_bytes: usize,
        message_bytes_max: usize,
        is_on: bool,
        is_cooperative: bool,
    ) -> Bytes {
        Bytes {
            rank,
            meters,
            shipping: Shipping::new(page_bytes, message_bytes_max, is_on),
            serving: Serving::new(rank, page_bytes, message_bytes_max),
            deferred: DeferredMessages::default(),
            is_cooperative,
        }
    }

    /// Whether a part is small enough to be shipped.
    #[inline]
    pub(crate) fn takes(&self, part: &Part) -> bool {
        self.shipping.takes(part)
    }

    /// Whether to ship a part instead of moving its page. A part for a load or store is cut to the bytes worth mapping.
    pub(crate) fn chooses_to_ship(&mut self, part: &mut Part, supply: Supply) -> bool {
        let page = part.piece.page;
        let is_fill = part.copy.mapped_access().is_some();
        let mut operation = SmallOperation {
            offset_bytes: part.piece.offset_bytes as u32,
            len_bytes: part.piece.len_bytes as u32,
            is_put: part.copy.access() == Access::Write,
            is_at_hand: supply.is_at_hand,
            is_fill,
        };
        if is_fill && !operation.is_at_hand {
            let most = supply.fill_bytes_max as u32;
            operation.len_bytes = self.meters.fill_bytes(page, &operation).min(most);
            part.piece.len_bytes = operation.len_bytes as usize;
        }
        debug_assert!(part.piece.len_bytes > 0, "a part that may be shipped has bytes");
        self.meters.choose(page, &operation, supply.has_room) == Choice::Ship
    }

    /// Ships a part to its page's home.
    pub(crate) fn ship(&mut self, home: Rank, part: Part) {
        debug_assert_ne!(home, self.rank, "a part is shipped to another rank");
        debug_assert!(self.shipping.takes(&part), "a part that is shipped is small enough");
        self.shipping.add(Target::home(home), part, 0);
    }

    /// Ships a part of a page of this home to a holder of the page, after `tries` ranks have refused it.
    pub(crate) fn ship_to_holder(&mut self, holder: Rank, part: Part, tries: u8) {
        assert_ne!(holder, self.rank, "a part is shipped to another rank");
        debug_assert!(tries < TRIES_MAX, "after {tries} refusals the home asks for the page");
        debug_assert!(self.shipping.fits_one_chunk(&part), "a holder performs a part as a whole");
        self.shipping.add(Target::holder(holder), part, tries + 1);
    }

    /// A page of this home is written by a rank. Returns whether another one has written it since this rank last did.
    pub(crate) fn on_written(&mut self, page: PageId, by: Rank) -> bool {
        self.meters.on_written(page, by)
    }

    /// This rank has lost the right to write a page.
    pub(crate) fn on_lost(&mut self, page: PageId) {
        self.meters.on_lost(page);
    }

    /// How this home performs a part, after `tries` ranks have refused it.
    pub(crate) fn way_at_home(&self, part: &Part, tries: u8, protocol: &Protocol) -> Way {
        let page = part.piece.page;
        assert_eq!(protocol.spaces().home(page), self.rank, "the home of {page:?} decides");
        if protocol.cache.contains(page) || self.deferred.has(page) {
            return Way::Page;
        }
        if !protocol.home.has_entry(page) {
            return Way::Blocks;
        }
        let (access, may_retry) = (part.copy.access(), tries < TRIES_MAX);
        if access == Access::Write && may_retry && protocol.home.has_only_guests(page) {
            return Way::Guests;
        }
        // Retrying a refused part in pieces could overwrite newer bytes, so only parts of one chunk are shipped.
        let may_ship = self.is_cooperative && may_retry && self.shipping.fits_one_chunk(part);
        let user = protocol.home.stable_user(page, access);
        user.filter(|user| may_ship && *user != self.rank).map_or(Way::Page, Way::Holder)
    }

    /// Whether parts wait to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        self.shipping.is_waiting()
    }

    /// The next request that its receiver may have.
    pub(crate) fn next_shipment(&mut self) -> Option<Shipment> {
        self.shipping.next()
    }

    /// Handles an answer. Returns the parts that it completes, each for [`Bytes::outcome`].
    ///
    /// # Errors
    /// The answer is malformed.
    pub(crate) fn on_answer(&mut self, from: Rank, bytes: &[u8]) -> Result<Vec<Shipped>, &'static str> {
        self.shipping.on_answer(from, bytes)
    }

    /// The outcome of a shipped part.
    pub(crate) fn outcome(&mut self, shipped: Shipped) -> Outcome {
        if let Some((page, is_contended)) = shipped.put_at_home() {
            self.meters.on_shipped(page, is_contended);
        }
        shipped.end()
    }

    /// Takes another rank's request. Its parts point into memory kept until all of them are done.
    ///
    /// # Errors
    /// The request is malformed, or about bytes that this rank cannot serve.
    pub(crate) fn begin_serving(
        &mut self,
        from: Rank,
        bytes: Vec<u8>,
        spaces: &Spaces,
    ) -> Result<IncomingRequest, &'static str> {
        self.serving.begin(from, bytes, spaces)
    }

    /// Notes the part of a request to this home, before it is performed.
    pub(crate) fn note_served(&mut self, id: ServedId, part: &Part) {
        if part.copy.is_put() && self.meters.on_written(part.piece.page, self.serving.sender(id)) {
            self.serving.set_status(id, Status::DoneContended);
        }
    }

    /// Refuses a piece of a direct request.
    pub(crate) fn refuse(&mut self, id: ServedId) {
        self.serving.set_status(id, Status::Refused);
    }

    /// A piece of a request has failed.
    pub(crate) fn note_failed(&mut self, id: ServedId, cause: Cause) {
        self.serving.note_failed(id, cause);
    }

    /// A piece of a request is done. Returns the answer and its receiver if it was the last.
    #[must_use]
    pub(crate) fn end_piece(&mut self, id: ServedId) -> Option<(Rank, Vec<u8>)> {
        self.serving.end_piece(id)
    }

    /// The sender of a request being served.
    pub(crate) fn sender_of(&self, id: ServedId) -> Rank {
        self.serving.sender(id)
    }

    /// Defers a message to this home about a page with jobs on its blocks, until the jobs end.
    pub(crate) fn defer(&mut self, page: PageId, message: Event) {
        self.deferred.defer(page, message);
    }

    /// Whether messages about a page are deferred.
    pub(crate) fn has_deferred(&self, page: PageId) -> bool {
        self.deferred.has(page)
    }

    /// The pages with deferred messages.
    pub(crate) fn deferred(&self) -> impl Iterator<Item = PageId> + '_ {
        self.deferred.pages()
    }

    /// Takes the deferred messages about a page.
    pub(crate) fn release(&mut self, page: PageId) -> Option<Vec<Event>> {
        self.deferred.release(page)
    }

    /// Number of parts in flight to other ranks.
    pub(crate) fn shipped(&self) -> usize {
        self.shipping.len()
    }

    /// Number of requests being served.
    pub(crate) fn served(&self) -> usize {
        self.serving.len()
    }

    /// Number of pages with deferred messages.
    pub(crate) fn pages_deferred(&self) -> usize {
        self.deferred.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Completion, Copy};
    use vgasnet_memory::Piece;
    use vgasnet_protocol::coherence::{
        Action, CoherenceBody, CoherenceMessage, CopyVersion, FrameId, Priority, ToCache, ToHome,
    };
    use vgasnet_protocol::{Limits, RankSizes};

    const PAGE_BYTES: usize = 64 << 10;
    const HOME: Rank = Rank(0);
    const READER: Rank = Rank(1);

    fn bytes(is_cooperative: bool) -> Bytes {
        let meters = Meters::new(HOME, PAGE_BYTES, 8, vgasnet_protocol::shipping::REQUEST_BYTES);
        Bytes::new(HOME, meters, PAGE_BYTES, 1024, true, is_cooperative)
    }

    fn page() -> PageId {
        PageId::of_segment(HOME, 1)
    }

    fn part(len_bytes: usize, copy: Copy) -> Part {
        let piece = Piece { page: page(), offset_bytes: 0, len_bytes, start_bytes: 0 };
        Part { piece, copy, completion: Completion::Served(ServedId { request: 0, piece: 0 }) }
    }

    fn get(len_bytes: usize) -> Part {
        part(len_bytes, Copy::Get(std::ptr::null_mut()))
    }

    /// The protocol of the home, before and after a rank reads the page.
    fn protocol(is_read: bool) -> Protocol {
        let mut protocol = Protocol::new(Limits::new(HOME, [RankSizes { pages: 4, frames: 8 }; 2]), true);
        let mut tell = |body: ToHome| {
            let message = CoherenceMessage { body: CoherenceBody::Home(body), page: page() };
            let mut actions = Vec::new();
            protocol.handle(Event::Message { from: READER, message }, &mut actions).expect("a message in its place");
            actions.into_iter().find_map(|action| match action {
                Action::Send { message, .. } => match message.body {
                    CoherenceBody::Cache(ToCache::Data { version, .. }) => Some(version),
                    _ => None,
                },
                _ => None,
            })
        };
        if is_read {
            let version: Option<CopyVersion> = tell(ToHome::Read { frame: FrameId(0), priority: Priority::Now });
            tell(ToHome::Done { version: version.expect("a page of zeros comes at once") });
        }
        protocol
    }

    #[test]
    fn a_home_uses_blocks_of_a_page_without_holders() {
        let (bytes, protocol) = (bytes(true), protocol(false));
        assert_eq!(bytes.way_at_home(&get(8), 0, &protocol), Way::Blocks);
        assert_eq!(bytes.way_at_home(&part(8, Copy::Set(1)), TRIES_MAX, &protocol), Way::Blocks);
    }

    #[test]
    fn a_page_with_deferred_messages_is_fetched_after_them() {
        let (mut bytes, protocol) = (bytes(true), protocol(false));
        (0..2).for_each(|_| bytes.defer(page(), Event::Tell(page())));
        assert!(bytes.has_deferred(page()));
        assert_eq!(bytes.way_at_home(&get(8), 0, &protocol), Way::Page);
        assert_eq!(bytes.release(page()).map(|messages| messages.len()), Some(2));
        assert_eq!((bytes.pages_deferred(), bytes.release(page()).is_none()), (0, true));
        assert_eq!(bytes.way_at_home(&get(8), 0, &protocol), Way::Blocks);
    }

    #[test]
    fn a_holder_is_asked_until_two_ranks_have_refused() {
        let protocol = protocol(true);
        let way = |part: Part, tries| bytes(true).way_at_home(&part, tries, &protocol);
        assert_eq!(
            [0, 1, TRIES_MAX].map(|tries| way(get(8), tries)),
            [Way::Holder(READER), Way::Holder(READER), Way::Page]
        );
        assert_eq!(way(part(8, Copy::Set(1)), 0), Way::Page, "it may only read");
        assert_eq!(way(get(2048), 0), Way::Page, "a message has no room for it");
        assert_eq!(bytes(false).way_at_home(&get(8), 0, &protocol), Way::Page, "only homes perform parts");
    }

    #[test]
    fn a_page_moves_once_it_has_been_shipped_for_its_price() {
        let mut bytes = bytes(true);
        let supply = Supply { is_at_hand: false, has_room: true, fill_bytes_max: PAGE_BYTES };
        let ships: Vec<bool> = (0..8)
            .map(|at| {
                let mut part = get(8);
                // Not in order, which would be a scan.
                part.piece.offset_bytes = (at * 40_009) % PAGE_BYTES / 8 * 8;
                bytes.chooses_to_ship(&mut part, supply)
            })
            .collect();
        assert!(ships.contains(&false), "{ships:?}");
        assert!(ships.windows(2).all(|pair| pair[0] || !pair[1]), "a page that has to move does: {ships:?}");
        assert!(bytes.takes(&get(PAGE_BYTES / 4)) && !bytes.takes(&get(PAGE_BYTES / 4 + 1)) && !bytes.takes(&get(0)));
    }
}
