//! Puts and gets under way.
//!
//! Over GASNet-EX, the thread that puts or gets begins the copy, and the thread that polls tests it. GASNet-1 lets only the thread that
//! began a copy test it, so there a thread of its own does both.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vgasnet_conduit::{Busy, ConduitError, Token, give_way};

use crate::ffi::{Begun, Ends};

/// Transfers of this rank's that may be under way.
const TRANSFERS_MAX: usize = 64;

/// How long a rank leaves GASNet to the thread that moves pages, if nothing is complete.
const GIVE_WAY_MAX: Duration = Duration::from_micros(100);

/// Lets other threads run, for one that looks after GASNet.
fn rest() {
    /// Where the processor is taken.
    const PAUSE: Duration = Duration::from_micros(20);
    if !give_way() {
        std::thread::sleep(PAUSE);
    }
}

/// Which way a page goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into the peer's pool.
    Put,
    /// Out of it.
    Get,
}

/// A copy of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageCopy {
    pub(crate) direction: Direction,
    pub(crate) ends: Ends,
    pub(crate) token: Token,
    /// The peer was told of the remote transfer.
    pub(crate) is_announced: bool,
}

impl PageCopy {
    /// # Safety
    /// As [`Begun::put`] and [`Begun::get`].
    unsafe fn begin(self) -> (Begun, PageCopy) {
        // SAFETY: the caller promises that both ends are valid and left alone until completion.
        let begun = unsafe {
            match self.direction {
                Direction::Put => Begun::put(self.ends),
                Direction::Get => Begun::get(self.ends),
            }
        };
        (begun, self)
    }
}

/// Complete copies that nobody has collected.
#[derive(Default)]
struct Complete {
    copies: Mutex<Vec<PageCopy>>,
    /// There are some.
    come: Condvar,
}

/// All that this rank has started and not been told the end of.
pub(crate) struct Transfers {
    count: AtomicUsize,
    begun: Mutex<Vec<(Begun, PageCopy)>>,
    complete: Arc<Complete>,
    /// Where copies go that one thread must begin and ask about.
    mover: Option<Sender<PageCopy>>,
}

impl Transfers {
    /// With a thread of their own, or without.
    pub(crate) fn new(needs_thread: bool) -> Result<Transfers, ConduitError> {
        let complete = Arc::<Complete>::default();
        let mover = if needs_thread { Some(start_mover(&complete)?) } else { None };
        Ok(Transfers { count: AtomicUsize::new(0), begun: Mutex::default(), complete, mover })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Makes room for one more.
    pub(crate) fn admit(&self) -> Result<(), Busy> {
        let admitted = |count| (count < TRANSFERS_MAX).then_some(count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, admitted).map(drop).map_err(|_| Busy)
    }

    /// Starts one that was admitted.
    ///
    /// # Safety
    /// As [`Begun::put`] and [`Begun::get`].
    pub(crate) unsafe fn start(&self, copy: PageCopy) {
        if copy.ends.len_bytes == 0 {
            lock(&self.complete.copies).push(copy);
        } else if let Some(mover) = &self.mover {
            // The thread ends with the process.
            mover.send(copy).expect("the thread that moves pages is there");
        } else {
            // SAFETY: the caller promises that both ends are valid and left alone until completion.
            // GASNet runs handlers meanwhile, so no lock is held.
            let begun = unsafe { copy.begin() };
            lock(&self.begun).push(begun);
        }
    }

    /// Leaves the processor to the thread that moves the bytes.
    pub(crate) fn give_way(&self) {
        if self.mover.is_some() && self.count() > 0 {
            // The thread looks after GASNet meanwhile, so all that is lost is a little time for a message.
            let copies = lock(&self.complete.copies);
            let waited = self.complete.come.wait_timeout_while(copies, GIVE_WAY_MAX, |copies| copies.is_empty());
            drop(waited);
        } else {
            rest();
        }
    }

    /// The copies that have become complete.
    pub(crate) fn collect(&self) -> Vec<PageCopy> {
        if self.count() == 0 {
            return Vec::new();
        }
        let mut complete = std::mem::take(&mut *lock(&self.complete.copies));
        take_complete(&mut lock(&self.begun), &mut complete);
        self.count.fetch_sub(complete.len(), Ordering::Relaxed);
        complete
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_complete(begun: &mut Vec<(Begun, PageCopy)>, complete: &mut Vec<PageCopy>) {
    let mut at = 0;
    while at < begun.len() {
        if begun[at].0.is_complete() {
            complete.push(begun.swap_remove(at).1);
        } else {
            at += 1;
        }
    }
}

fn start_mover(complete: &Arc<Complete>) -> Result<Sender<PageCopy>, ConduitError> {
    let (sender, copies) = channel();
    let complete = Arc::clone(complete);
    let thread = std::thread::Builder::new().name("vgasnet-mover".to_owned());
    vgasnet_conduit::blocking_signals(|| thread.spawn(move || move_pages(&copies, &complete)))
        .map_err(|error| ConduitError(format!("cannot start the thread that moves pages: {error}")))?;
    Ok(sender)
}

/// Begins copies and asks about them. Sleeps when there are none.
fn move_pages(copies: &Receiver<PageCopy>, complete: &Complete) {
    let mut begun = Vec::new();
    loop {
        let first = if begun.is_empty() { copies.recv().ok() } else { None };
        if first.is_none() && begun.is_empty() {
            return;
        }
        // SAFETY: `Transfers::start` got the promise that both ends are valid until completion, which only this thread reports.
        begun.extend(first.into_iter().chain(copies.try_iter()).map(|copy| unsafe { copy.begin() }));
        let mut done = Vec::new();
        take_complete(&mut begun, &mut done);
        if done.is_empty() {
            rest();
        } else {
            lock(&complete.copies).append(&mut done);
            complete.come.notify_all();
        }
    }
}
