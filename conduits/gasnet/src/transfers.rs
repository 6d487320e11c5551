//! Puts and gets in flight.
//!
//! Over GASNet-EX, the thread calling put or get starts the copy, and the polling thread tests it. With GASNet-1 only
//! the starting thread may test a copy, so a dedicated thread does both.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vgasnet_conduit::{Busy, ConduitError, Token, give_way};

use crate::ffi::{Begun, Ends};

/// Maximum number of this rank's transfers in flight.
const TRANSFERS_MAX: usize = 64;

/// Maximum time a rank leaves GASNet to the moving thread, if nothing completes.
const GIVE_WAY_MAX: Duration = Duration::from_micros(100);

/// Lets other threads run, from the thread in charge of GASNet.
fn pause() {
    /// Sleep if the processor is busy.
    const PAUSE: Duration = Duration::from_micros(20);
    if !give_way() {
        std::thread::sleep(PAUSE);
    }
}

/// The direction of a page.
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
        // SAFETY: the caller guarantees both ends valid and untouched until completion.
        let begun = unsafe {
            match self.direction {
                Direction::Put => Begun::put(self.ends),
                Direction::Get => Begun::get(self.ends),
            }
        };
        (begun, self)
    }
}

/// Complete copies not yet collected.
#[derive(Default)]
struct Complete {
    copies: Mutex<Vec<PageCopy>>,
    /// Signalled when there are some.
    come: Condvar,
}

/// All started transfers of this rank not yet reported complete.
pub(crate) struct Transfers {
    count: AtomicUsize,
    begun: Mutex<Vec<(Begun, PageCopy)>>,
    complete: Arc<Complete>,
    /// Channel to the thread starting and testing copies, if there must be one.
    mover: Option<Sender<PageCopy>>,
}

impl Transfers {
    /// With a dedicated thread, or without.
    pub(crate) fn new(needs_thread: bool) -> Result<Transfers, ConduitError> {
        let complete = Arc::<Complete>::default();
        let mover = if needs_thread { Some(start_mover(&complete)?) } else { None };
        Ok(Transfers { count: AtomicUsize::new(0), begun: Mutex::default(), complete, mover })
    }

    /// Number of transfers.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Makes room for one more.
    pub(crate) fn admit(&self) -> Result<(), Busy> {
        let admitted = |count| (count < TRANSFERS_MAX).then_some(count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, admitted).map(drop).map_err(|_| Busy)
    }

    /// Starts an admitted transfer.
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
            // SAFETY: the caller guarantees both ends valid and untouched until completion. GASNet runs handlers
            // meanwhile, so no lock is held.
            let begun = unsafe { copy.begin() };
            lock(&self.begun).push(begun);
        }
    }

    /// Leaves the processor to the moving thread.
    pub(crate) fn give_way(&self) {
        if self.mover.is_some() && self.count() > 0 {
            // The thread polls GASNet meanwhile, so a message is delayed only a little.
            let copies = lock(&self.complete.copies);
            let waited = self.complete.come.wait_timeout_while(copies, GIVE_WAY_MAX, |copies| copies.is_empty());
            drop(waited);
        } else {
            pause();
        }
    }

    /// The newly complete copies.
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

/// Starts copies and tests them. Sleeps when there are none.
fn move_pages(copies: &Receiver<PageCopy>, complete: &Complete) {
    let mut begun = Vec::new();
    loop {
        let first = if begun.is_empty() { copies.recv().ok() } else { None };
        if first.is_none() && begun.is_empty() {
            return;
        }
        // SAFETY: the caller of `Transfers::start` guaranteed both ends until completion, reported only by this thread.
        begun.extend(first.into_iter().chain(copies.try_iter()).map(|copy| unsafe { copy.begin() }));
        let mut done = Vec::new();
        take_complete(&mut begun, &mut done);
        if done.is_empty() {
            pause();
        } else {
            lock(&complete.copies).append(&mut done);
            complete.come.notify_all();
        }
    }
}
