//! Collectives of teams: broadcast, scatter, gather, gather_all, exchange, reduce, and barriers of teams.
//!
//! A rank's part in a collective is a plan, and a machine without I/O runs the plans of all collectives in progress
//! ([`vgasnet_protocol::collectives`]). This room takes the machine's actions to Active Messages and the client's
//! memory. Messages run as handlers, in client threads in calls, and only note their arrival: handlers may not send
//! requests. Threads that poll or wait call [`Coll::advance`], which does the rest.
//!
//! A rank may have several images: threads that each take part. They meet here (`meeting.rs`), and the rank takes part
//! for them (`images.rs`).
//!
//! Sources: the interface of GASNet-1's collectives (reference, K.5); GASNet-EX (specification 0.19), for reductions.

mod calls;
mod drive;
mod images;
mod meeting;
mod of_images;
mod operators;
mod reading;

pub use calls::{Call, Caller, Syncs};
pub use operators::{CombineFunction, Combining, ElementType, Operator, ReduceFunction, Reducer, Reduction, built_in};

use crate::am::Am;
use drive::Memory;
use meeting::Meeting;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use vgasnet_protocol::collectives::{Machine, TEAM_ALL, Team};
use vgasnet_sys::Signalproof;

/// The collectives of an attached rank.
pub struct Coll {
    am: Arc<Am>,
    machine: Mutex<Machine<Memory>>,
    /// The functions available to reductions.
    reducers: RwLock<Box<[Reducer]>>,
    /// The meeting of this rank's images, if some rank has several.
    meeting: Mutex<Option<Meeting>>,
    /// Number of splits that this rank has taken part in.
    splits: AtomicU32,
    /// The machine has actions.
    has_actions: AtomicBool,
    /// Some actions had no credit when credit had been returned `stalled_at` times.
    is_stalled: AtomicBool,
    stalled_at: AtomicU64,
    /// A thread is carrying out actions.
    is_busy: AtomicBool,
}

impl Coll {
    /// The collectives of the team of all ranks. Their messages are handled from now on.
    pub fn new(am: Arc<Am>) -> Arc<Coll> {
        let space = am.ops().space();
        let mut machine = Machine::default();
        let all = Team::new((0..space.segments.ranks()).collect(), space.rank.0);
        machine.add_team(TEAM_ALL, all).expect("nothing has come");
        let coll = Arc::new(Coll {
            am,
            machine: Mutex::new(machine),
            reducers: RwLock::default(),
            meeting: Mutex::default(),
            splits: AtomicU32::new(0),
            has_actions: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            stalled_at: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
        });
        let handler = Arc::clone(&coll);
        coll.am.messages().set_library_handler(Box::new(move |from, args, payload, payload_bytes| {
            // SAFETY: the payload of a message is valid for its handler's length.
            unsafe { handler.on_message(from, args, payload, payload_bytes) };
        }));
        coll
    }

    /// Whether the machine has actions that no thread is carrying out.
    ///
    /// A thread that makes actions sets `has_actions` before it reads `is_busy`. A busy thread clears `is_busy` before
    /// it reads `has_actions`. So one of them sees the other.
    #[inline]
    pub fn has_work(&self) -> bool {
        let returned = self.am.messages().credit_returns();
        let may_retry = || self.is_stalled.load(Ordering::SeqCst) && self.stalled_at.load(Ordering::SeqCst) != returned;
        (self.has_actions.load(Ordering::SeqCst) || may_retry()) && !self.is_busy.load(Ordering::SeqCst)
    }

    /// Uses the machine. The caller must not access client memory meanwhile.
    fn with<R>(&self, body: impl FnOnce(&mut Machine<Memory>) -> R) -> R {
        let mut machine = Signalproof::lock(&self.machine);
        let result = body(&mut machine);
        self.is_stalled.store(machine.is_stalled(), Ordering::SeqCst);
        self.has_actions.store(machine.has_actions(), Ordering::SeqCst);
        result
    }

    /// Takes the turn to carry out actions, if no thread has it. Actions without credit are retried.
    fn begin_turn(&self, returned: u64) -> bool {
        if self.is_busy.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.stalled_at.store(returned, Ordering::SeqCst);
        self.with(Machine::retry);
        true
    }

    fn end_turn(&self) {
        self.is_busy.store(false, Ordering::SeqCst);
    }
}
