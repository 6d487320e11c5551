//! Operations started now and synchronised later: explicit handles, implicit handles, access regions.

use super::resolve::Resolved;
use super::{Operation, Ops, Remote};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use vgasnet_engine::request::{CompletionId, Completions, Handle};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::at_thread_end;

/// The implicit operations that a sync covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Implicit {
    /// Gets.
    pub gets: bool,
    /// Puts and memsets.
    pub puts: bool,
    /// Atomic operations, if counted apart.
    pub atomics: bool,
    /// The source memory of puts.
    pub sources: bool,
}

impl Implicit {
    /// Gets only.
    pub const GETS: Implicit = Implicit { gets: true, puts: false, atomics: false, sources: false };
    /// Puts and memsets only.
    pub const PUTS: Implicit = Implicit { puts: true, gets: false, atomics: false, sources: false };
    /// All operations.
    pub const ALL: Implicit = Implicit { gets: true, puts: true, atomics: true, sources: true };
}

/// The kind under which an implicit operation counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As a get.
    Get,
    /// As a put.
    Put,
    /// As an atomic operation.
    Atomic,
}

/// The implicit operations of a thread.
struct Thread {
    /// All completions of the rank, once the thread has one.
    completions: Option<Arc<Completions>>,
    gets: Option<CompletionId>,
    puts: Option<CompletionId>,
    atomics: Option<CompletionId>,
    /// A put in flight may read the client's memory, and the client asks when it has been read.
    reads_sources: bool,
    /// Counts the implicit operations while an access region is open.
    region: Option<CompletionId>,
}

impl Thread {
    const NEW: Thread =
        Thread { completions: None, gets: None, puts: None, atomics: None, reads_sources: false, region: None };

    fn attach(&mut self, completions: &Arc<Completions>) {
        self.completions.get_or_insert_with(|| {
            at_thread_end(|| drop(THREAD.with_borrow_mut(|thread| std::mem::replace(&mut **thread, Thread::NEW))));
            Arc::clone(completions)
        });
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let Some(completions) = &self.completions else { return };
        // A completion with pending operations is not given back: they still count there.
        for completion in [self.gets, self.puts, self.atomics, self.region].into_iter().flatten() {
            if completions.is_done(completion) {
                completions.end(completion);
            }
        }
    }
}

thread_local! {
    static THREAD: RefCell<ManuallyDrop<Thread>> = const { RefCell::new(ManuallyDrop::new(Thread::NEW)) };
}

impl Ops {
    /// Starts an operation. `None`: it is complete already. A put from the own segment to another rank's always has a
    /// handle: clients that exchange such puts take a put without one for a local operation (GASNet-EX's `testnbr`) and
    /// then do not notify the other rank.
    ///
    /// # Errors
    /// As [`Ops::transfer`].
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, or null, until the handle has been synced; for an
    /// [`Operation::PutNow`] until this returns.
    pub unsafe fn start_explicit(&self, operation: Operation, remote: Remote) -> Result<Option<Handle>, UserError> {
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
        if unsafe { self.hits.small(operation, remote) } {
            return Ok(None);
        }
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
        let resolved = unsafe { self.resolve(operation, remote)? };
        if let Resolved::Done = resolved {
            return Ok(None);
        }
        let is_told =
            matches!(resolved, Resolved::Between(_)) && !operation.is_get() && remote.rank != self.space.rank.0;
        let completion = self.completions().begin();
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes until the handle of this completion is
        // synced, and not null, since it is resolved.
        let started = unsafe { self.start_missing(resolved, completion) };
        let handle =
            if is_told { Some(self.completions().handle(completion)) } else { self.handle_unless_done(completion) };
        started.map(|()| handle)
    }

    /// The handle of a completion. If nothing is pending, ends the completion and returns `None`.
    pub fn handle_unless_done(&self, completion: CompletionId) -> Option<Handle> {
        if self.completions().is_done(completion) {
            self.completions().end(completion);
            return None;
        }
        Some(self.completions().handle(completion))
    }

    /// Whether the operation of a handle is in flight. Once synced, it is not.
    pub fn is_in_flight(&self, handle: Handle) -> bool {
        self.completions().is_pending(handle)
    }

    /// Starts an operation counted among this thread's implicit ones, or in its open access region.
    ///
    /// # Errors
    /// As [`Ops::transfer`].
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, or null, until the thread has synced its implicit
    /// operations; for an [`Operation::PutNow`] until this returns.
    pub unsafe fn start_implicit(&self, operation: Operation, remote: Remote) -> Result<(), UserError> {
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
        if unsafe { self.hits.small(operation, remote) } {
            return Ok(());
        }
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
        let resolved = unsafe { self.resolve(operation, remote)? };
        if let Resolved::Done = resolved {
            return Ok(());
        }
        let completion = self.implicit_completion(if operation.is_get() { Kind::Get } else { Kind::Put });
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes until the thread's implicit operations are
        // synced, and not null, since it is resolved.
        unsafe { self.start_missing(resolved, completion) }
    }

    /// As [`Ops::start_implicit`] of an [`Operation::Put`]; a sync of sources waits until the put has read the client's
    /// memory.
    ///
    /// # Errors
    /// As [`Ops::transfer`].
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, or null, until the thread has synced its sources.
    pub unsafe fn start_implicit_put(&self, from: *const u8, remote: Remote) -> Result<(), UserError> {
        note_source();
        // SAFETY: the sources are synced with the puts, so the memory is valid as long as the put may read it.
        unsafe { self.start_implicit(Operation::Put(from), remote) }
    }

    /// The completion of this thread's implicit operations of a kind.
    pub(super) fn implicit_completion(&self, kind: Kind) -> CompletionId {
        THREAD.with_borrow_mut(|thread| {
            thread.attach(self.driver.completions());
            let region = thread.region;
            let kind = match kind {
                Kind::Get => &mut thread.gets,
                Kind::Put => &mut thread.puts,
                Kind::Atomic => &mut thread.atomics,
            };
            region.unwrap_or_else(|| *kind.get_or_insert_with(|| self.completions().begin()))
        })
    }

    /// Starts a get of at most eight bytes into the completion. [`Ops::wait_value`] ends it.
    ///
    /// # Errors
    /// As [`Ops::transfer`].
    pub fn start_value(&self, remote: Remote) -> Result<Handle, UserError> {
        let completion = self.completions().begin();
        let value = self.completions().value(completion);
        value.store(0, std::sync::atomic::Ordering::Relaxed);
        assert!(remote.len_bytes <= size_of::<u64>());
        let skipped = if cfg!(target_endian = "big") { size_of::<u64>() - remote.len_bytes } else { 0 };
        let low_order = value.as_ptr().cast::<u8>().wrapping_add(skipped);
        let get = Operation::Get(low_order);
        // SAFETY: the value has room for eight bytes, and belongs to this get until `wait_value` ends the completion.
        let started = unsafe {
            if self.hits.get_number(low_order, remote) || self.hits.small(get, remote) {
                Ok(())
            } else {
                self.resolve(get, remote).and_then(|resolved| self.start_missing(resolved, completion))
            }
        };
        if let Err(error) = started {
            self.completions().end(completion);
            return Err(error);
        }
        Ok(self.completions().handle(completion))
    }

    /// Waits for a get by value. Bytes beyond its length are zero.
    ///
    /// # Errors
    /// The handle names no operation in flight.
    pub fn wait_value(&self, handle: Handle) -> Result<u64, UserError> {
        let completion = self.completions().find(handle)?;
        self.driver.wait(completion);
        let value = self.completions().value(completion).load(std::sync::atomic::Ordering::Relaxed);
        self.completions().end(completion);
        Ok(value)
    }

    /// Waits for one operation. Its handle becomes invalid.
    ///
    /// # Errors
    /// The handle names no operation in flight.
    pub fn wait_explicit(&self, handle: Handle) -> Result<(), UserError> {
        let completion = self.completions().find(handle)?;
        self.driver.finish(completion);
        Ok(())
    }

    /// Whether an operation is complete. If so, its handle becomes invalid.
    ///
    /// # Errors
    /// The handle names no operation in flight.
    pub fn test_explicit(&self, handle: Handle) -> Result<bool, UserError> {
        self.completions().end_if_done(handle)
    }

    /// Waits until at least one of the operations is complete.
    ///
    /// # Errors
    /// A handle names no operation in flight.
    pub fn wait_any(&self, handles: impl Iterator<Item = Handle>) -> Result<(), UserError> {
        let completions: Vec<_> = handles.map(|handle| self.completions().find(handle)).collect::<Result<_, _>>()?;
        if !completions.is_empty() {
            let _waiting = stats::wait(Row::WaitPage);
            self.driver.wait_until(&|| completions.iter().any(|completion| self.completions().is_done(*completion)));
        }
        Ok(())
    }

    /// Waits for this thread's implicit operations.
    ///
    /// # Errors
    /// The thread's access region is open.
    pub fn wait_implicit(&self, which: Implicit) -> Result<(), UserError> {
        let completions = implicit(which)?;
        let done = || completions.iter().flatten().all(|completion| self.completions().is_done(*completion));
        if !done() {
            let _waiting = stats::wait(Row::WaitPage);
            self.driver.wait_until(&done);
        }
        note_puts_done(which);
        Ok(())
    }

    /// Whether this thread's implicit operations are complete. If not and if it `polls`, drives the engine and checks
    /// again.
    ///
    /// # Errors
    /// The thread's access region is open.
    pub fn test_implicit(&self, which: Implicit, polls: bool) -> Result<bool, UserError> {
        let completions = implicit(which)?;
        let is_done = || completions.iter().flatten().all(|completion| self.completions().is_done(*completion));
        if polls && !is_done() {
            self.driver.poll();
        }
        let is_done = is_done();
        if is_done {
            note_puts_done(which);
        }
        Ok(is_done)
    }

    /// Opens this thread's access region, which counts implicit operations from now on.
    ///
    /// # Errors
    /// A region is open already.
    pub fn begin_region(&self) -> Result<(), UserError> {
        THREAD.with_borrow_mut(|thread| {
            if thread.region.is_some() {
                return Err(UserError::new(
                    "this thread's access region is open already; end it before you begin another",
                ));
            }
            thread.attach(self.driver.completions());
            thread.region = Some(self.completions().begin());
            Ok(())
        })
    }

    /// Closes this thread's access region. `None`: its operations are complete already.
    ///
    /// # Errors
    /// No region is open.
    pub fn end_region(&self) -> Result<Option<Handle>, UserError> {
        let region = THREAD.with_borrow_mut(|thread| thread.region.take());
        let Some(completion) = region else {
            return Err(UserError::new("this thread has no access region to end; begin one first"));
        };
        Ok(self.handle_unless_done(completion))
    }
}

/// Makes syncs of sources wait for this thread's implicit puts, the next of which reads the client's memory.
pub(super) fn note_source() {
    THREAD.with_borrow_mut(|thread| thread.reads_sources = true);
}

/// The completions that a sync waits for.
fn implicit(which: Implicit) -> Result<[Option<CompletionId>; 3], UserError> {
    THREAD.with_borrow(|thread| {
        if thread.region.is_some() {
            return Err(UserError::new(
                "implicit operations cannot be synced while this thread's access region is open; end it first",
            ));
        }
        let asks_for_puts = which.puts || which.sources && thread.reads_sources;
        let asked = [(which.gets, thread.gets), (asks_for_puts, thread.puts), (which.atomics, thread.atomics)];
        Ok(asked.map(|(is_asked, completion)| completion.filter(|_| is_asked)))
    })
}

/// Notes the completion of all implicit puts of this thread.
fn note_puts_done(which: Implicit) {
    if which.puts || which.sources {
        THREAD.with_borrow_mut(|thread| thread.reads_sources = false);
    }
}
