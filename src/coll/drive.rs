//! Carries out the actions of the machine.

use super::Coll;
use super::images::Together;
use super::operators::Reduction;
use crate::am::{Destination, Envelope, LIBRARY};
use crate::ops::{Operation, Remote};
use std::ffi::c_void;
use std::sync::Arc;
use vgasnet_engine::request::CompletionId;
use vgasnet_protocol::Rank;
use vgasnet_protocol::active_message::Args;
use vgasnet_protocol::collectives::plan::{Buffer, BufferOffset, LocalStep};
use vgasnet_protocol::collectives::{Action, Announcing, Arrived, Client, CollectiveMessage, Machine, Misfit, Sending};
use vgasnet_settings::UserError;

/// The call named in errors that no call can return. A transfer fails if the client gave memory only partly in its
/// segment.
pub(super) const CALL: &str = "collective";

/// Description of a message that fits no collective of this rank.
pub(super) const MISFIT: &str = "a message of a collective that makes no sense here; all ranks of a team have to start the \
                                 same collectives, of the same sizes, in the same order";

/// The first addresses of a collective's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases {
    pub source: usize,
    pub destination: usize,
    pub scratch: usize,
}

impl Bases {
    fn address(&self, place: BufferOffset) -> usize {
        let base = match place.buffer {
            Buffer::Source => self.source,
            Buffer::Destination => self.destination,
            Buffer::Scratch => self.scratch,
        };
        base + place.offset_bytes
    }
}

/// A collective's memory, and its completion.
#[derive(Debug)]
pub(super) struct Memory {
    bases: Bases,
    /// The memory at [`Bases::scratch`], once the collective has begun.
    scratch: Box<[u128]>,
    /// The memory at the other bases, if it is the collective's own.
    _own: Box<[u128]>,
    reduction: Option<Reduction>,
    party: Party,
}

/// The party waiting for a collective.
#[derive(Clone, Debug)]
pub(super) enum Party {
    /// The rank.
    Rank(CompletionId),
    /// Its images.
    Images(Arc<Together>),
}

impl Memory {
    /// The memory of a collective in which a rank takes part for itself.
    pub fn of_rank(
        source: usize,
        destination: usize,
        reduction: Option<Reduction>,
        completion: CompletionId,
    ) -> Memory {
        let (scratch, own) = Default::default();
        Memory {
            bases: Bases { source, destination, scratch: 0 },
            scratch,
            _own: own,
            reduction,
            party: Party::Rank(completion),
        }
    }

    /// The memory of a collective in which a rank takes part for its images.
    ///
    /// # Errors
    /// There is not enough memory for their blocks.
    pub fn of_images(together: Together, reduction: Option<Reduction>) -> Result<Memory, UserError> {
        let (source_bytes, destination_bytes) = together.own_bytes();
        let source = source_bytes.div_ceil(size_of::<u128>());
        let len = source + destination_bytes.div_ceil(size_of::<u128>());
        let mut own = Vec::new();
        own.try_reserve_exact(len).map_err(|_| {
            UserError::new(format!(
                "the images of this rank need {} bytes of memory besides theirs, which there are not; give fewer bytes at a time",
                source_bytes + destination_bytes
            ))
        })?;
        own.resize(len, 0_u128);
        let mut own = own.into_boxed_slice();
        let (start, mut bases) = (own.as_mut_ptr().expose_provenance(), together.bases());
        if source_bytes > 0 {
            bases.source = start;
        }
        if destination_bytes > 0 {
            bases.destination = start + source * size_of::<u128>();
        }
        let party = Party::Images(Arc::new(together));
        Ok(Memory { bases, scratch: Box::default(), _own: own, reduction, party })
    }
}

impl Client for Memory {
    fn begin(&mut self, scratch_bytes: usize) {
        self.scratch = vec![0; scratch_bytes.div_ceil(size_of::<u128>())].into_boxed_slice();
        self.bases.scratch = self.scratch.as_mut_ptr().expose_provenance();
    }
}

impl Coll {
    /// Carries out the actions of collectives, as far as there is credit, unless another thread is doing so. Returns
    /// whether it did anything. Not called in handlers.
    pub fn advance(&self) -> bool {
        let mut worked = false;
        while self.has_work() {
            // In this order: `has_work` then sees credit returned from now on.
            let returned = self.am.messages().credit_returns();
            if !self.begin_turn(returned) {
                break;
            }
            while let Some(action) = self.with(Machine::next_action) {
                worked |= self.carry_out(action);
            }
            self.end_turn();
        }
        worked
    }

    /// Carries out an action. Returns false if the machine has to keep the action until there is credit.
    fn carry_out(&self, action: Action<Memory>) -> bool {
        match action {
            Action::Tell { to, ref message } => {
                let to = Rank(to);
                if !self.am.try_credit(to, 0) {
                    self.with(|machine| machine.stall(action));
                    return false;
                }
                self.post_to_handler(to, message, &[]);
            }
            Action::Send(sending) => {
                if !self.am.try_credit(Rank(sending.to), sending.len_bytes as u32) {
                    self.with(|machine| machine.stall(action));
                    return false;
                }
                self.send(sending);
                self.with(|machine| machine.on_sent(sending));
            }
            Action::Announce(ref announcing) => {
                let Announcing { operation, to, place, len_bytes, .. } = *announcing;
                if !self.am.try_credit(Rank(to), 0) {
                    self.with(|machine| machine.stall(action));
                    return false;
                }
                let bases = self.with(|machine| {
                    machine.on_announcing(announcing);
                    machine.client(operation).bases
                });
                let source = self.source_for(to, bases.address(place), len_bytes);
                self.post_to_handler(Rank(to), &announcing.message(source), &[]);
            }
            Action::Read(reading) => {
                let bases = self.with(|machine| machine.client(reading.operation).bases);
                let is_read = self.read(&reading, bases.address(reading.place));
                self.with(|machine| machine.on_read(reading, is_read));
            }
            Action::Do { operation, local_steps } => {
                let (bases, reduction, party) = self.with(|machine| {
                    let memory = machine.client(operation);
                    (memory.bases, memory.reduction, memory.party.clone())
                });
                for local in local_steps {
                    self.do_local(local, &bases, reduction, &party);
                }
                self.with(|machine| machine.on_done(operation));
            }
            Action::Finish { team, client } => {
                self.with(|machine| machine.on_finished(team));
                let completions = self.am.driver().completions();
                match client.party {
                    Party::Rank(completion) => _ = completions.finish(completion),
                    Party::Images(together) => {
                        together.parts.iter().for_each(|part| _ = completions.finish(part.completion));
                    }
                }
                self.am.driver().notify();
            }
        }
        true
    }

    /// Sends bytes with credit.
    fn send(&self, sending: Sending) {
        let Sending { operation, to, ref message, place, len_bytes, .. } = sending;
        if len_bytes == 0 {
            return self.post_to_handler(Rank(to), message, &[]);
        }
        let address = self.with(|machine| machine.client(operation).bases).address(place);
        if self.am.ops().space().own_segment().overlaps(address, len_bytes) {
            let mut copy = vec![0; len_bytes];
            let from = Remote { rank: self.am.ops().space().rank.0, address, len_bytes };
            // SAFETY: the copy has `len_bytes` bytes.
            self.am.driver().must(CALL, unsafe { self.am.ops().transfer(Operation::Get(copy.as_mut_ptr()), from) });
            return self.post_to_handler(Rank(to), message, &copy);
        }
        let start = std::ptr::with_exposed_provenance(address);
        // SAFETY: the client's memory is valid until the collective is synced, and the plan stays inside it.
        let bytes = unsafe { std::slice::from_raw_parts(start, len_bytes) };
        self.post_to_handler(Rank(to), message, bytes);
    }

    fn post_to_handler(&self, to: Rank, message: &CollectiveMessage, bytes: &[u8]) {
        let envelope = Envelope {
            handler: LIBRARY,
            payload: bytes.as_ptr(),
            payload_bytes: bytes.len(),
            destination: if bytes.is_empty() { Destination::Nowhere } else { Destination::Buffer },
            args: message.encode(),
        };
        // SAFETY: the payload is the slice `bytes`.
        unsafe { self.am.post_with_credit(to, &envelope) };
    }

    fn do_local(&self, local: LocalStep, bases: &Bases, reduction: Option<Reduction>, party: &Party) {
        match (local, party) {
            (LocalStep::Copy { from, to, len_bytes }, _) => {
                // SAFETY: the client's memory is valid until the collective is synced, and the plan stays inside it.
                unsafe { self.copy_memory(bases.address(from), bases.address(to), len_bytes) }
            }
            (LocalStep::Combine { into, with, len_bytes }, _) => {
                let reduction = reduction.expect("only reductions combine");
                // SAFETY: both are in the collective's scratch, which has `len_bytes` there and is aligned for any
                // type.
                unsafe { reduction.combine(bases.address(into), bases.address(with), len_bytes) };
            }
            (LocalStep::Collect, Party::Images(together)) => self.collect(together, bases, reduction),
            (LocalStep::Deliver, Party::Images(together)) => self.deliver(together, bases),
            (LocalStep::Collect | LocalStep::Deliver, Party::Rank(_)) => unreachable!("the plan is that of a rank"),
        }
    }

    /// Copies bytes from one address to another. Each may be in the own segment.
    ///
    /// # Safety
    /// `from` is valid for reads and `to` for writes of `len_bytes` bytes.
    pub(super) unsafe fn copy_memory(&self, from: usize, to: usize, len_bytes: usize) {
        if from == to || len_bytes == 0 {
            return;
        }
        let (own, segment) = (self.am.ops().space().rank.0, self.am.ops().space().own_segment());
        let source = std::ptr::with_exposed_provenance::<u8>(from);
        let target = std::ptr::with_exposed_provenance_mut::<u8>(to);
        // SAFETY: `from` is valid for reads and `to` for writes of `len_bytes` bytes. An address not passed as one of
        // the segment is outside of it.
        unsafe {
            if segment.overlaps(to, len_bytes) {
                self.am.driver().must(
                    CALL,
                    self.am.ops().transfer(Operation::Put(source), Remote { rank: own, address: to, len_bytes }),
                );
            } else if segment.overlaps(from, len_bytes) {
                self.am.driver().must(
                    CALL,
                    self.am.ops().transfer(Operation::Get(target), Remote { rank: own, address: from, len_bytes }),
                );
            } else {
                std::ptr::copy(source, target, len_bytes);
            }
        }
    }

    /// Handles a message of a collective from a rank. Runs as a handler, and sends nothing.
    ///
    /// # Safety
    /// `payload` is valid for reads of `payload_bytes` bytes.
    pub(super) unsafe fn on_message(&self, sender: Rank, args: &Args, payload: *const c_void, payload_bytes: usize) {
        let taken = CollectiveMessage::decode(args).ok_or(Misfit).and_then(|message| {
            self.with(|machine| {
                let arrived = machine.on_message(sender, &message, payload_bytes)?;
                Ok(arrived.map(|arrived| (arrived, machine.client(arrived.operation).bases)))
            })
        });
        match taken {
            Ok(Some((arrived, bases))) => {
                let Arrived { place, .. } = arrived;
                let from = payload.expose_provenance();
                // SAFETY: the payload is valid for its length. The client's memory is valid until the collective is
                // synced, and the machine has checked the bytes' place.
                unsafe { self.copy_memory(from, bases.address(place), payload_bytes) };
                self.with(|machine| machine.on_written(arrived));
            }
            Ok(None) => {}
            Err(Misfit) => self.am.driver().fail(CALL, &UserError::new(format!("rank {sender} sent {MISFIT}"))),
        }
    }
}
