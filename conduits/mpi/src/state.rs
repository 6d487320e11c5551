//! The state of all operations in flight in MPI. Used under one lock.
//!
//! A page moves by rendezvous: the origin announces the transfer in a message, and both ends pass the frame itself to
//! MPI.
//!
//! ```text
//!   get:  origin ──Ask{offset, len, id}──▶ peer        put:  origin ──Offer{offset, len, id}──▶ peer
//!         origin ◀═════════page═════════ peer                origin ═════════page═════════════▶ peer
//!                                                            origin ◀──────────Arrived{id}────── peer
//! ```

use std::collections::VecDeque;

use slab::Slab;
use vgasnet_conduit::{Arrival, Busy, ConduitError, Rank, Region, Token, Transfer, Urgency};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::ffi::{Mpi, PageMove, ReceiveBuffer, SendBuffer};

/// Maximum message size. MPIs send this much eagerly, without asking the receiver first.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// Numbers of buffers for arriving and for departing messages.
const RECEIVES: usize = 32;
const SENDS: usize = 64;

/// Buffers reserved for messages about pages, which thus progress while clients send as much as they can.
const SENDS_FOR_PAGES: usize = 8;

/// Buffers reserved for these and messages of the protocol.
const SENDS_FOR_PROTOCOL: usize = 16;

/// Maximum number of this rank's transfers in flight.
const TRANSFERS_MAX: usize = 64;

/// Tags of messages.
const ACTIVE_MESSAGE: i32 = 0;
const ASK: i32 = 1;
const OFFER: i32 = 2;
const ARRIVED: i32 = 3;
const EXCHANGE: i32 = 4;

/// A message about a page.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Note {
    /// Offset in the peer's pool.
    offset_bytes: U64,
    len_bytes: U64,
    /// The origin's name for the transfer.
    id: U64,
}

impl Note {
    fn new(offset_bytes: usize, len_bytes: usize, id: u64) -> Note {
        let [offset_bytes, len_bytes, id] = [offset_bytes as u64, len_bytes as u64, id].map(U64::new);
        Note { offset_bytes, len_bytes, id }
    }
}

/// The action after a page has moved.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Nothing: it was sent, and the receiver knows.
    Nothing,
    /// This rank asked for it.
    Complete(usize),
    /// A rank offered it, and must be told.
    Tell(Rank, u64),
}

/// A transfer of this rank.
#[derive(Clone, Copy, Debug)]
struct Moving {
    token: Token,
    /// Put: the peer, which reports the arrival of the page.
    told_by: Option<Rank>,
}

/// MPI with all operations in flight.
pub(crate) struct InFlight {
    pub(crate) mpi: Mpi,
    /// Messages match receives in the order of their start, so only the oldest must be tested.
    receives: VecDeque<ReceiveBuffer>,
    sends_free: Vec<SendBuffer>,
    sends_active: VecDeque<SendBuffer>,
    /// Messages about pages waiting for a buffer.
    notes_waiting: VecDeque<(Rank, i32, Note)>,
    moves: Vec<(PageMove, Then)>,
    /// This rank's transfers, indexed by id.
    transfers: Slab<Moving>,
    /// Arrived parts of exchanges.
    parts: Vec<(Rank, Vec<u8>)>,
    pool: Option<Region>,
    is_closed: bool,
}

impl InFlight {
    pub(crate) fn new(mut mpi: Mpi) -> Result<InFlight, ConduitError> {
        let receives =
            (0..RECEIVES).map(|_| ReceiveBuffer::new(&mut mpi, MESSAGE_BYTES_MAX)).collect::<Result<_, _>>()?;
        Ok(InFlight {
            mpi,
            receives,
            sends_free: (0..SENDS).map(|_| SendBuffer::new(MESSAGE_BYTES_MAX)).collect(),
            sends_active: VecDeque::new(),
            notes_waiting: VecDeque::new(),
            moves: Vec::new(),
            transfers: Slab::new(),
            parts: Vec::new(),
            pool: None,
            is_closed: false,
        })
    }

    pub(crate) fn set_pool(&mut self, pool: Region) {
        self.pool = Some(pool);
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.moves.is_empty() || !self.transfers.is_empty() || !self.sends_active.is_empty()
    }

    /// Sends an Active Message.
    pub(crate) fn send(
        &mut self,
        to: Rank,
        head: &[u8],
        body: &[u8],
        urgency: Urgency,
    ) -> Result<Result<(), Busy>, ConduitError> {
        if self.is_closed {
            return Ok(Ok(()));
        }
        self.reclaim_sends()?;
        let kept_free = match urgency {
            Urgency::Now => SENDS_FOR_PAGES,
            Urgency::WhenCalled => SENDS_FOR_PROTOCOL,
        };
        if self.sends_free.len() <= kept_free {
            return Ok(Err(Busy));
        }
        self.start_send(to, ACTIVE_MESSAGE, head, body)?;
        Ok(Ok(()))
    }

    /// Sends a part of an exchange.
    pub(crate) fn send_part(&mut self, to: Rank, part: &[u8]) -> Result<Result<(), Busy>, ConduitError> {
        self.reclaim_sends()?;
        if self.sends_free.len() <= SENDS_FOR_PAGES {
            return Ok(Err(Busy));
        }
        self.start_send(to, EXCHANGE, part, &[])?;
        Ok(Ok(()))
    }

    /// Whether messages are still to leave.
    pub(crate) fn is_sending(&mut self) -> Result<bool, ConduitError> {
        self.reclaim_sends()?;
        Ok(!self.sends_active.is_empty())
    }

    /// The arrived parts of exchanges.
    pub(crate) fn take_parts(&mut self) -> Vec<(Rank, Vec<u8>)> {
        std::mem::take(&mut self.parts)
    }

    pub(crate) fn put(&mut self, transfer: &Transfer) -> Result<Result<(), Busy>, ConduitError> {
        if self.transfers.len() >= TRANSFERS_MAX {
            return Ok(Err(Busy));
        }
        let id = self.transfers.insert(Moving { token: transfer.token, told_by: Some(transfer.peer) });
        let base = self.frame(transfer.own_offset_bytes, transfer.len_bytes);
        self.note(transfer.peer, OFFER, Note::new(transfer.peer_offset_bytes, transfer.len_bytes, id as u64))?;
        let tag = offer_tag(id as u64);
        // SAFETY: `frame` checked the bytes against the pool, which stays mapped. By contract they are untouched until
        // completion, which the peer reports when it has them all.
        let page = unsafe { PageMove::send(&mut self.mpi, base, transfer.len_bytes, transfer.peer, tag)? };
        self.moves.push((page, Then::Nothing));
        Ok(Ok(()))
    }

    pub(crate) fn get(&mut self, transfer: &Transfer) -> Result<Result<(), Busy>, ConduitError> {
        if self.transfers.len() >= TRANSFERS_MAX {
            return Ok(Err(Busy));
        }
        let id = self.transfers.insert(Moving { token: transfer.token, told_by: None });
        let base = self.frame(transfer.own_offset_bytes, transfer.len_bytes);
        let tag = ask_tag(id as u64);
        // SAFETY: as in `put`; completion follows MPI's receive.
        let page = unsafe { PageMove::receive(&mut self.mpi, base, transfer.len_bytes, transfer.peer, tag)? };
        self.moves.push((page, Then::Complete(id)));
        self.note(transfer.peer, ASK, Note::new(transfer.peer_offset_bytes, transfer.len_bytes, id as u64))?;
        Ok(Ok(()))
    }

    /// Receives at most one message. Returns whether there was one.
    pub(crate) fn receive(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<bool, ConduitError> {
        let Some(oldest) = self.receives.front_mut() else { return Ok(false) };
        let Some((envelope, bytes)) = oldest.test(&mut self.mpi)? else { return Ok(false) };
        let from = envelope.from;
        let note = match envelope.tag {
            ACTIVE_MESSAGE => {
                sink(Arrival::Message { from, bytes });
                None
            }
            EXCHANGE => {
                self.parts.push((from, bytes.to_vec()));
                None
            }
            kind => Some((kind, Note::read_from_bytes(bytes).map_err(|_| violation(from, "a message about a page"))?)),
        };
        let mut receive = self.receives.pop_front().expect("the oldest is there");
        receive.restart(&mut self.mpi)?;
        self.receives.push_back(receive);
        match note {
            Some((ARRIVED, note)) => self.complete(note.id.get() as usize, Some(from), sink)?,
            Some((kind, note)) => self.serve(kind, from, note)?,
            None => {}
        }
        Ok(true)
    }

    /// Progresses pages and messages in flight. Returns whether anything has moved.
    pub(crate) fn advance(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) -> Result<bool, ConduitError> {
        let mut worked = false;
        let mut at = 0;
        while at < self.moves.len() {
            if !self.moves[at].0.test(&mut self.mpi)? {
                at += 1;
                continue;
            }
            worked = true;
            match self.moves.swap_remove(at).1 {
                Then::Nothing => {}
                Then::Complete(id) => self.complete(id, None, sink)?,
                Then::Tell(from, id) => self.note(from, ARRIVED, Note::new(0, 0, id))?,
            }
        }
        self.reclaim_sends()?;
        while let Some((to, kind, note)) = self.notes_waiting.front().copied() {
            if self.sends_free.is_empty() {
                break;
            }
            self.notes_waiting.pop_front();
            self.start_send(to, kind, note.as_bytes(), &[])?;
            worked = true;
        }
        Ok(worked)
    }

    /// Cancels the receives once all sends are done. Returns whether they are.
    pub(crate) fn close(&mut self) -> Result<bool, ConduitError> {
        self.reclaim_sends()?;
        if !self.sends_active.is_empty() {
            return Ok(false);
        }
        self.is_closed = true;
        for mut receive in std::mem::take(&mut self.receives) {
            receive.cancel(&mut self.mpi)?;
        }
        Ok(true)
    }

    /// A peer wants a page, or has one for this rank.
    fn serve(&mut self, kind: i32, peer: Rank, note: Note) -> Result<(), ConduitError> {
        let (offset_bytes, len_bytes, id) =
            (note.offset_bytes.get() as usize, note.len_bytes.get() as usize, note.id.get());
        let place = self.pool.and_then(|pool| pool.get(offset_bytes, len_bytes));
        let Some(base) = place.filter(|_| id < TRANSFERS_MAX as u64 && (kind == ASK || kind == OFFER)) else {
            return Err(violation(peer, "a message about a page"));
        };
        // SAFETY: `get` checked the bytes against the pool, which stays mapped. By the contract of put and get nobody
        // here uses them until the peer reports completion.
        let moved = unsafe {
            if kind == ASK {
                (PageMove::send(&mut self.mpi, base, len_bytes, peer, ask_tag(id))?, Then::Nothing)
            } else {
                (PageMove::receive(&mut self.mpi, base, len_bytes, peer, offer_tag(id))?, Then::Tell(peer, id))
            }
        };
        self.moves.push(moved);
        Ok(())
    }

    /// A transfer is complete: a get, or a put confirmed by the peer.
    fn complete(
        &mut self,
        id: usize,
        told_by: Option<Rank>,
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Result<(), ConduitError> {
        let what = format!("the end of transfer {id}");
        let Moving { token, .. } =
            self.transfers.get(id).copied().filter(|moving| moving.told_by == told_by).ok_or_else(|| {
                told_by.map_or_else(
                    || ConduitError(what.clone() + ", which is not under way"),
                    |from| violation(from, &what),
                )
            })?;
        self.transfers.remove(id);
        sink(Arrival::Complete(token));
        Ok(())
    }

    fn note(&mut self, to: Rank, kind: i32, note: Note) -> Result<(), ConduitError> {
        self.reclaim_sends()?;
        if self.sends_free.is_empty() || !self.notes_waiting.is_empty() {
            self.notes_waiting.push_back((to, kind, note));
            return Ok(());
        }
        self.start_send(to, kind, note.as_bytes(), &[])
    }

    fn start_send(&mut self, to: Rank, tag: i32, head: &[u8], body: &[u8]) -> Result<(), ConduitError> {
        let mut send = self.sends_free.pop().expect("the caller made sure that there is one");
        send.start(&mut self.mpi, to, tag, head, body)?;
        // Most messages are gone at once.
        if send.test(&mut self.mpi)? {
            self.sends_free.push(send);
        } else {
            self.sends_active.push_back(send);
        }
        Ok(())
    }

    fn reclaim_sends(&mut self) -> Result<(), ConduitError> {
        for _ in 0..self.sends_active.len() {
            let Some(mut send) = self.sends_active.pop_front() else { break };
            if send.test(&mut self.mpi)? {
                self.sends_free.push(send);
            } else {
                self.sends_active.push_back(send);
            }
        }
        Ok(())
    }

    /// Part of this rank's pool.
    fn frame(&self, offset_bytes: usize, len_bytes: usize) -> *mut u8 {
        self.pool.expect("attach comes before any transfer").part(offset_bytes, len_bytes)
    }
}

fn violation(from: Rank, what: &str) -> ConduitError {
    ConduitError(format!("rank {from} sent {what} that makes no sense; do all ranks run the same version of vgasnet?"))
}

/// Tags of pages: an id is the origin's, so the two directions differ.
fn ask_tag(id: u64) -> i32 {
    2 * id as i32
}

fn offer_tag(id: u64) -> i32 {
    2 * id as i32 + 1
}
