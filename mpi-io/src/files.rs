//! The files that are cached, by MPI's handles. MPI has each of them open, too: what this library does not serve works by that.

use crate::LIBRARY;
use crate::ffi::{self, Comm, constants};
use crate::queue::Queue;
use crate::settings::{Hints, Patterns, path_of};
use crate::sharing::{Claim, Hold, Identity, Pointer, Taken};
use crate::vgasnet::{self, Failed, File, Library, Opening};
use crate::view::View;
use crate::{errors, job};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use vgasnet_mpi_front::SUCCESS;

/// A file that is cached.
#[derive(Debug)]
pub struct CachedFile {
    /// MPI's handle.
    pub handle: u64,
    pub library: &'static Library,
    pub file: File,
    pub path: CString,
    pub hold: Hold,
    pub comm: Comm,
    pub may_read: bool,
    pub may_write: bool,
    /// It was opened to be appended to.
    is_appended: bool,
    pub is_atomic: AtomicBool,
    pub view: RwLock<Arc<View>>,
    /// The individual pointer: a position in the view.
    pub position: Mutex<u64>,
    /// What does non-blocking operations and split ones.
    pub queue: Queue,
}

static FILES: RwLock<BTreeMap<u64, Arc<CachedFile>>> = RwLock::new(BTreeMap::new());

/// How many there are: where there is none, calls cost one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Teams that this rank is the first of.
static TEAMS: AtomicU64 = AtomicU64::new(0);

/// Names a team that this rank is the first of: only ranks of one job make teams.
fn next_tag() -> u64 {
    TEAMS.fetch_add(1, Ordering::Relaxed) & u64::from(u32::MAX >> 1)
}

/// The cached file of a handle.
#[inline]
pub fn find(handle: u64) -> Option<Arc<CachedFile>> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    FILES.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
}

fn add(file: CachedFile) {
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    files.insert(file.handle, Arc::new(file));
    COUNT.store(files.len(), Ordering::Release);
}

fn remove(handle: u64) -> Option<Arc<CachedFile>> {
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    let file = files.remove(&handle);
    COUNT.store(files.len(), Ordering::Release);
    file
}

/// What a program asks `MPI_File_open` for.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub comm: u64,
    /// Its name, without the zero.
    pub name: &'a [u8],
    pub mode: c_int,
    pub hints: Hints,
}

impl Wanted<'_> {
    fn has(&self, mode: c_int) -> bool {
        self.mode & mode != 0
    }

    fn may_read(&self) -> bool {
        !self.has(constants().mode_write_only)
    }

    fn may_write(&self) -> bool {
        !self.has(constants().mode_read_only)
    }
}

/// Opens a file by MPI, and has it cached if that is wanted on all ranks. `handle` reads MPI's handle.
pub fn open<'a>(wanted: impl Fn() -> Wanted<'a>, next: impl Fn() -> c_int, handle: impl Fn() -> u64) -> c_int {
    let Some(library) = job::library() else { return next() };
    let code = next();
    if code != SUCCESS {
        return code;
    }
    match cache(library, &wanted(), handle()) {
        Ok(()) => SUCCESS,
        Err(Taken) => {
            ffi::close(handle());
            constants().err_file_in_use
        }
    }
}

fn cache(library: &'static Library, wanted: &Wanted<'_>, handle: u64) -> Result<(), Taken> {
    let Some(comm) = Comm::dup(wanted.comm) else { return Ok(()) };
    let path = CString::new(path_of(wanted.name)).ok();
    let identity = path.as_deref().and_then(Identity::of);
    let Some(comm) = share(library, wanted, handle, comm, identity) else { return Ok(()) };
    let members = comm.world_ranks();
    // Each rank may open one file for itself, and they know nothing of each other: who has it cached has to say so.
    let by_pattern =
        || !comm.is_one_of_several() && path.as_ref().is_some_and(|path| Patterns::of_environment().match_path(path));
    let is_meant = || !wanted.has(constants().mode_sequential) && wanted.hints.is_cached.unwrap_or_else(by_pattern);
    let is_cached = comm.all(members.is_some() && is_meant());
    // What MPI writes beside a communicator that caches and writes the file would be lost in its whole blocks.
    let claim = claimed(wanted, &comm, path.as_deref())?.filter(|_| is_cached);
    let (true, Some(path), Some(members)) = (is_cached, path, members) else {
        comm.free();
        return Ok(());
    };
    let Ok(tag) = comm.of_first(next_tag()) else { return Ok(()) };
    let team = library.team_of(&members, tag as u32);
    let flags = if wanted.may_read() { vgasnet::READ } else { 0 } | if wanted.may_write() { vgasnet::WRITE } else { 0 };
    let Hints { stripe_bytes, io_ranks, .. } = wanted.hints;
    let Ok(file) = library.open(team, &Opening { path: &path, flags, stripe_bytes, io_ranks }) else {
        library.free_team(team);
        comm.free();
        return Ok(());
    };
    let hold = Hold::Own { team, name: u64::from(members[0]) << 32 | tag, identity, claim: Mutex::new(claim) };
    begin(wanted, CachedFile::new(library, (handle, file), path, comm, hold));
    Ok(())
}

/// Claims a file for a communicator that may write it, at its first rank. Collective.
fn claimed(wanted: &Wanted<'_>, comm: &Comm, path: Option<&CStr>) -> Result<Option<Claim>, Taken> {
    let own = if comm.rank == 0 && wanted.may_write() { path.map_or(Ok(None), Claim::of) } else { Ok(None) };
    if comm.all(own.is_ok()) {
        return own;
    }
    if comm.rank == 0 {
        let path = path.map(CStr::to_string_lossy).unwrap_or_default();
        eprintln!(
            "{LIBRARY}: MPI_File_open: {path}: ranks of another communicator, or of another job, cache and write the file, too; \
             leave it out of VGASNET_MPI_FILES, or give it the hint vgasnet_cache=disable"
        );
    }
    comm.free();
    Err(Taken)
}

/// Has a handle share the file that all its ranks have by another one, which may do as much. Gives the communicator back otherwise.
/// Collective.
fn share(
    library: &'static Library,
    wanted: &Wanted<'_>,
    handle: u64,
    comm: Comm,
    identity: Option<Identity>,
) -> Option<Comm> {
    let fits = |file: &CachedFile| wanted.may_read() <= file.may_read && wanted.may_write() <= file.may_write;
    let theirs = identity.filter(|_| !wanted.has(constants().mode_sequential)).map(own_files).unwrap_or_default();
    // The first rank chooses. A file of more ranks is one that more of them share.
    let chosen = theirs.iter().filter(|(_, file)| fits(file)).max_by_key(|(name, file)| (file.comm.ranks, *name));
    let name = comm.of_first(chosen.map_or(u64::MAX, |(name, _)| *name));
    let first = theirs.iter().find(|(its, _)| Ok(*its) == name).map(|(_, file)| file);
    if name == Ok(u64::MAX) || !comm.all(first.is_some()) {
        return Some(comm);
    }
    let first = first?;
    let by_all = first.comm.ranks == comm.ranks;
    let tag = comm.of_first(next_tag()).unwrap_or(0);
    let order = (tag, comm.world_ranks().map_or(0, |members| members[0]));
    let pointer = Pointer::new(library, &comm, &first.path, tag as u32);
    let hold = Hold::Shared { first: first.handle, order, by_all, pointer };
    begin(wanted, CachedFile::new(library, (handle, first.file), first.path.clone(), comm, hold));
    None
}

fn begin(wanted: &Wanted<'_>, mut file: CachedFile) {
    (file.may_read, file.may_write) = (wanted.may_read(), wanted.may_write());
    file.is_appended = wanted.has(constants().mode_append);
    if file.is_appended {
        file.append();
    }
    add(file);
}

impl CachedFile {
    fn new(
        library: &'static Library,
        (handle, file): (u64, File),
        path: CString,
        comm: Comm,
        hold: Hold,
    ) -> CachedFile {
        CachedFile {
            handle,
            library,
            file,
            path,
            hold,
            comm,
            may_read: false,
            may_write: false,
            is_appended: false,
            is_atomic: AtomicBool::new(false),
            view: RwLock::new(Arc::new(View::of_bytes())),
            position: Mutex::new(0),
            queue: Queue::default(),
        }
    }

    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn is_atomic(&self) -> bool {
        self.is_atomic.load(Ordering::Relaxed)
    }

    pub fn position(&self) -> MutexGuard<'_, u64> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Both pointers are at the end of the file. Collective.
    fn append(&self) {
        let size = self.library.size(self.file).unwrap_or(0);
        *self.position() = size;
        let _set = self.set_pointer(size);
    }

    /// MPI's code for an answer of vgasnet's, after the file's error handler has looked at it.
    pub fn code<T>(&self, answer: Result<T, Failed>) -> c_int {
        match answer {
            Ok(_) => SUCCESS,
            Err(Failed) => self.raise(errors::class_of(self.library.error(self.file))),
        }
    }

    pub fn raise(&self, code: c_int) -> c_int {
        ffi::raise(self.handle, code)
    }

    /// Ends caching: other programs see what was written. Collective.
    fn end(&self) -> Result<(), Failed> {
        self.queue.wait_until_idle();
        self.comm.meet();
        let answer = match &self.hold {
            Hold::Own { team, claim, .. } => {
                let seconds = shared_with(self.handle);
                seconds.iter().for_each(|second| second.queue.wait_until_idle());
                let closed = self.library.close(self.file);
                // Not before: whole blocks would be written over what MPI writes.
                seconds.iter().for_each(|second| second.leave());
                self.library.free_team(*team);
                claim.lock().unwrap_or_else(PoisonError::into_inner).take();
                // Who opens the file next finds it free.
                let _free = self.comm.of_first(0);
                closed
            }
            Hold::Shared { pointer, .. } => {
                let synced = self.sync();
                pointer.close(self.library);
                synced
            }
        };
        self.comm.free();
        answer
    }

    /// A second handle is MPI's from now on, since the first is closed: all its ranks close that. Collective.
    fn leave(&self) {
        remove(self.handle);
        let units = *self.position() / self.view().unit;
        let _at = ffi::seek(self.handle, units as i64);
        let shared = if self.comm.rank == 0 { self.take_in_order(0).unwrap_or(0) } else { 0 };
        // MPI's own pointer was not moved, so it is at the begin unless the file is appended to.
        match self.comm.of_first(shared) {
            Ok(units) if units > 0 || self.is_appended => drop(ffi::seek_shared(self.handle, units as i64)),
            _ => {}
        }
        if self.is_atomic() {
            ffi::set_atomicity(self.handle);
        }
        if let Hold::Shared { pointer, .. } = &self.hold {
            self.comm.meet();
            pointer.close(self.library);
        }
        self.comm.free();
    }
}

/// The handles that a file was opened by here, each with the file's name in the job: more than one where communicators overlap.
fn own_files(identity: Identity) -> Vec<(u64, Arc<CachedFile>)> {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let own = files.values().filter_map(|file| match file.hold {
        Hold::Own { name, identity: Some(its), .. } if its == identity => Some((name, Arc::clone(file))),
        _ => None,
    });
    own.collect()
}

/// The handles that share the file of this one, in the same order on all ranks.
fn shared_with(handle: u64) -> Vec<Arc<CachedFile>> {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let second = |file: &Arc<CachedFile>| match file.hold {
        Hold::Shared { first, order, .. } if first == handle => Some((order, Arc::clone(file))),
        _ => None,
    };
    let mut seconds: Vec<_> = files.values().filter_map(second).collect();
    seconds.sort_unstable_by_key(|(order, _)| *order);
    seconds.into_iter().map(|(_, file)| file).collect()
}

/// Closes a file: first here, so that MPI may delete it then.
pub fn close(handle: u64, next: impl Fn() -> c_int) -> c_int {
    let Some(file) = remove(handle) else { return next() };
    let answer = file.end();
    // The error handler is still there.
    let code = file.code(answer);
    match next() {
        SUCCESS => code,
        failed => failed,
    }
}

/// Leaves a file to MPI from now on. Collective.
pub fn give_up(handle: u64, is_atomic: bool) -> c_int {
    let Some(file) = remove(handle) else { return SUCCESS };
    let answer = file.end();
    match file.code(answer) {
        SUCCESS if is_atomic => ffi::set_atomicity(handle),
        code => code,
    }
}
