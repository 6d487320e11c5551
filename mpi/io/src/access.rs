//! Reads and writes. MPI's 40 functions differ in the start of the access and in its completion.

use crate::cached_files::{self, CachedFile, CallFile};
use crate::ffi::{self, OwnRequest, Status, constants};
use crate::ffi_types;
use crate::operation::{Operation, Outcome};
use crate::queue::{Split, Started, Work};
use crate::say;
use crate::transfer::{Memory, Transfer};
use crate::types::layout_of;
use crate::vgasnet::{Failed, Piece};
use crate::view::{Extent, View};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use vgasnet_mpi_front::kind::{Datatype, File};
use vgasnet_mpi_front::{Handle, RequestRoom, SUCCESS};

/// Longer accesses are not begun by the calling thread, which would copy resident bytes at once.
const SHORT_BYTES: u64 = 64 << 10;

/// The start of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At an offset in elementary types.
    Offset(i64),
    /// At the individual pointer, which it moves.
    Individual,
    /// At the shared pointer, which it moves.
    Shared,
    /// The same, in rank order. Collective.
    Ordered,
}

/// An access requested by a program. Its buffer is the access's until it is complete.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    file: Handle<File>,
    at: At,
    is_write: bool,
    buffer: usize,
    count: i64,
    datatype: Handle<Datatype>,
}

/// A checked access: its file, its position, and its memory.
struct Ready {
    file: CallFile,
    position: u64,
    memory: Memory,
}

/// The reason for not beginning an access.
enum Refusal {
    /// MPI has to report the error, or to do the access, since the file is not cached.
    Next,
    /// MPI's code.
    Code(c_int),
}

impl Access {
    /// A write of `count` elements of a datatype at `buffer`, else a read.
    ///
    /// # Safety
    /// MPI's caller has called such an access with these arguments, and the call has not returned. Until the access is
    /// complete, by MPI's rules, the elements of a write are readable, and nobody writes them; the elements of a read
    /// are writable, and nobody else accesses them.
    pub unsafe fn new(
        file: Handle<File>,
        at: At,
        is_write: bool,
        (buffer, count, datatype): (usize, i64, Handle<Datatype>),
    ) -> Access {
        Access { file, at, is_write, buffer, count, datatype }
    }

    /// Checks the access and takes its position. Invalid accesses are left to MPI, so that the program gets MPI's
    /// errors.
    fn prepare(&self) -> Result<Ready, Refusal> {
        let file = cached_files::find(self.file).ok_or(Refusal::Next)?;
        let count = u64::try_from(self.count).map_err(|_| Refusal::Next)?;
        let is_allowed = if self.is_write { file.may_write } else { file.may_read };
        let layout = layout_of(self.datatype).filter(|_| is_allowed);
        let Some(layout) = layout else { return Err(self.refusal_of_type(&file, is_allowed)) };
        let view = file.view();
        let refused = |class| Err(Refusal::Code(file.raise(class)));
        // SAFETY: the layout is the datatype's, so these are the elements of the access. They are the access's until it
        // is complete, by the promise to `Access::new`.
        let memory = unsafe { Memory::new(self.is_write, (self.buffer, count), layout) };
        let Some(memory) = memory else { return refused(constants().err_arg) };
        let bytes = memory.bytes();
        if bytes % view.unit != 0 && !self.may_be_partial() {
            return refused(constants().err_io);
        }
        if matches!(self.at, At::Offset(offset) if offset < 0) {
            return Err(Refusal::Next);
        }
        if self.at == At::Ordered {
            file.set_idle();
        }
        let position = self.take_position(&file, view, bytes);
        if self.at == At::Ordered {
            file.set_busy();
        }
        let position = position.map_err(|failed| Refusal::Code(file.code(Err::<(), _>(failed))))?;
        Ok(Ready { file, position, memory })
    }

    /// The refusal of a datatype without a layout. MPI refuses invalid types, and accesses for which the file was not
    /// opened. Any other access MPI would perform past the pages.
    fn refusal_of_type(&self, file: &CachedFile, is_allowed: bool) -> Refusal {
        if !is_allowed || !ffi_types::is_committed(self.datatype) {
            return Refusal::Next;
        }
        let what = "a read or write with a datatype that is made in a way that this library does not know";
        Refusal::Code(file.code(file.refuse(what, "use another, or give the file the hint vgasnet_cache=disable")))
    }

    /// Whether the access may end within an elementary type, which the standard leaves to implementations. Open MPI
    /// continues after such bytes; MPICH never allows them, and shared pointers count elementary types.
    fn may_be_partial(&self) -> bool {
        cfg!(open_mpi) && matches!(self.at, At::Offset(_) | At::Individual)
    }

    /// The start in the view. Moves the pointer past the requested bytes (MPI 4.0, section 14.4.3).
    fn take_position(&self, file: &CachedFile, view: &View, bytes: u64) -> Result<u64, Failed> {
        let units = bytes / view.unit;
        let checked = |position: Option<u64>| position.filter(|at| view.has_places(*at, bytes)).ok_or(Failed::Argument);
        match self.at {
            At::Offset(offset) => checked((offset as u64).checked_mul(view.unit)),
            At::Individual => {
                let mut position = file.position();
                let before = checked(Some(*position))?;
                *position += bytes;
                Ok(before)
            }
            At::Shared => checked(file.take(units)?.checked_mul(view.unit)),
            At::Ordered => {
                let (before, all) = file.comm.sums(units).map_err(|_| Failed::Otherwise)?;
                // The other ranks wait for the first one's answer, whatever it is.
                let first = if file.comm.rank == 0 { file.take_in_order(all).unwrap_or(u64::MAX) } else { 0 };
                let first = file.comm.of_first(first).map_err(|_| Failed::Otherwise)?;
                if first == u64::MAX {
                    return Err(Failed::Otherwise);
                }
                checked(first.checked_add(before).and_then(|first| first.checked_mul(view.unit)))
            }
        }
    }
}

/// Performs a transfer.
fn run(transfer: &Transfer<'_>, file: &CachedFile) -> Outcome {
    match transfer.run(file) {
        Ok(bytes) => Outcome { code: SUCCESS, bytes },
        Err(failed) => Outcome { code: file.code(Err::<(), _>(failed)), bytes: 0 },
    }
}

/// An access for which the program does not wait. The program leaves the memory alone until the access is done.
struct Later {
    file: Arc<CachedFile>,
    view: Arc<View>,
    position: u64,
    memory: Memory,
    /// Bytes moved, once it is in flight.
    moved: AtomicU64,
    /// The file's error count when it was begun.
    errors: AtomicU64,
}

impl Later {
    fn new(file: &CallFile, position: u64, memory: Memory) -> Later {
        let (view, moved, errors) = (Arc::clone(file.view()), AtomicU64::new(0), AtomicU64::new(0));
        Later { file: file.shared(), view, position, memory, moved, errors }
    }

    /// Whether a thread that must not wait may begin it.
    fn is_short(&self) -> bool {
        self.memory.bytes() <= SHORT_BYTES && self.block().is_some() && !self.file.is_atomic()
    }

    /// The place and the piece, if there is one of each: only then vgasnet runs the access asynchronously.
    fn block(&self) -> Option<(Extent, Piece)> {
        let block = self.transfer().block();
        block.filter(|(_, piece)| piece.len > 0)
    }

    fn transfer(&self) -> Transfer<'_> {
        Transfer { view: &self.view, position: self.position, memory: self.memory.clone() }
    }

    fn run(&self) -> Outcome {
        run(&self.transfer(), &self.file)
    }
}

impl Work for Later {
    /// vgasnet runs an access of one place and one piece asynchronously. It then reports only whether any access to the
    /// file has failed.
    fn start(&self) -> Started {
        let (library, file) = (self.file.library, self.file.file);
        let Some((place, piece)) = self.block() else { return Started::Done(self.run()) };
        if self.file.is_atomic() || self.file.through.is_on() {
            return Started::Done(self.run());
        }
        self.errors.store(library.errors(file), Ordering::Relaxed);
        // SAFETY: the piece is the access's memory, readable or writable until the access is complete, by the promise
        // to `Memory::new`. The queue completes it only after it was waited for.
        let (handle, moved) = unsafe {
            if self.memory.is_write() {
                (library.start_write(file, place, piece), piece.len as u64)
            } else {
                library.start_read(file, place, piece)
            }
        };
        self.moved.store(moved, Ordering::Relaxed);
        if handle.is_done() { Started::Done(self.end()) } else { Started::InFlight(handle) }
    }

    fn end(&self) -> Outcome {
        if self.file.library.errors(self.file.file) != self.errors.load(Ordering::Relaxed) {
            // This access or another has failed: doing it again shows which.
            return self.run();
        }
        if self.memory.is_write() {
            let _fails_if_closed = self.file.library.end_write(self.file.file);
        }
        Outcome { code: SUCCESS, bytes: self.moved.load(Ordering::Relaxed) }
    }
}

/// An access completed before the call returns.
pub fn now(access: &Access, status: Status, next: impl Fn() -> c_int) -> c_int {
    let Ready { file, position, memory } = match access.prepare() {
        Ok(ready) => ready,
        Err(Refusal::Next) => return next(),
        Err(Refusal::Code(code)) => return code,
    };
    let outcome = run(&Transfer { view: file.view(), position, memory }, &file);
    if outcome.code == SUCCESS {
        status.set(outcome.bytes);
    }
    outcome.code
}

/// Queues an access for which the program does not wait. `begin` prepares its completion: a request, if there is one.
fn queue(
    access: &Access,
    begin: impl FnOnce(&CallFile, &Arc<Operation>) -> Result<Option<OwnRequest>, c_int>,
    next: impl Fn() -> c_int,
) -> c_int {
    let Ready { file, position, memory } = match access.prepare() {
        Ok(ready) => ready,
        Err(Refusal::Next) => return next(),
        Err(Refusal::Code(code)) => return code,
    };
    let operation = Arc::new(Operation::default());
    let work = Later::new(&file, position, memory);
    let is_short = work.is_short();
    match begin(&file, &operation) {
        Ok(request) => file.queue.add(operation, request, Box::new(work), is_short),
        Err(code) => return code,
    }
    SUCCESS
}

/// An access with a request.
pub fn later(access: &Access, room: &RequestRoom<'_>, next: impl Fn() -> c_int) -> c_int {
    queue(access, |_, operation| ffi::request(Arc::clone(operation), room).map(Some), next)
}

/// Begins the split collective of this name.
pub fn begin(access: &Access, name: &'static str, next: impl Fn() -> c_int) -> c_int {
    if let Some(file) = cached_files::find(access.file) {
        let split = file.queue.split.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(split) = &*split {
            say(format_args!("{name}_begin: {}_begin has begun; call its end before", split.name));
            return file.raise(constants().err_io);
        }
    }
    let note = |file: &CallFile, operation: &Arc<Operation>| {
        let split = Split { operation: Arc::clone(operation), name };
        *file.queue.split.lock().unwrap_or_else(PoisonError::into_inner) = Some(split);
        Ok(None)
    };
    queue(access, note, next)
}

/// Ends the split collective of this name.
pub fn end(file: Handle<File>, name: &str, status: Status, next: impl Fn() -> c_int) -> c_int {
    let Some(file) = cached_files::find(file) else { return next() };
    let mut begun = file.queue.split.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(split) = begun.take_if(|split| split.name == name) else {
        drop(begun);
        say(format_args!("{name}_end: {name}_begin was not called before"));
        return file.raise(constants().err_io);
    };
    drop(begun);
    let outcome = split.operation.wait();
    if outcome.code == SUCCESS {
        status.set(outcome.bytes);
    }
    outcome.code
}
