//! The cached files, by MPI's handles. MPI has each of them open, too, for everything not served by this library.

use crate::claims::{self, Claim};
use crate::errors;
use crate::ffi::{self, Comm};
use crate::queue::Queue;
use crate::rescue;
use crate::say;
use crate::sharing::{Hold, Identity, Way};
use crate::through::Through;
use crate::vgasnet::{Failed, File, Library, Piece};
use crate::view::{Place, View};
use crate::watch;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_int};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use vgasnet_mpi_front::SUCCESS;

/// A cached file.
#[derive(Debug)]
pub struct CachedFile {
    /// MPI's handle.
    pub handle: u64,
    pub library: &'static Library,
    pub file: File,
    pub path: CString,
    pub hold: Hold,
    pub comm: Comm,
    /// How it is read and written, the same for all handles of the file.
    pub through: Arc<Through>,
    /// The rank of the handle that chooses the way of joint calls; `None` if some ranks of the file lack the handle.
    pub decider: Option<u32>,
    pub may_read: bool,
    pub may_write: bool,
    /// Keys of its info for MPI's own I/O, with commas.
    pub ignored_hints: String,
    /// It was opened to be appended to.
    pub is_appended: bool,
    pub is_atomic: AtomicBool,
    view: Mutex<Arc<View>>,
    /// The individual pointer: a position in the view.
    pub position: Mutex<u64>,
    /// Runs non-blocking and split operations.
    pub queue: Queue,
}

/// The server of a handle after caching ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// None: it is closed.
    Nothing,
    Mpi,
    /// MPI, which continues at the pointers.
    MpiAtPointers,
}

static FILES: RwLock<BTreeMap<u64, Arc<CachedFile>>> = RwLock::new(BTreeMap::new());

/// Their number. While it is 0, calls cost one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Raised when a handle begins or ceases to be cached, or gets another view.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Number of files remembered by a thread.
const RECENT: usize = 4;

thread_local! {
    /// The files used last by the thread, found without a lock and without shared counters. A call takes one out, and
    /// puts it back.
    static OWN: [Cell<Option<Box<Recent>>>; RECENT] = const { [const { Cell::new(None) }; RECENT] };
}

struct Recent {
    generation: u64,
    /// Whether a call of this thread uses the file's bytes.
    is_busy: Arc<AtomicBool>,
    file: Arc<CachedFile>,
    view: Arc<View>,
}

/// The file of a call.
pub struct Found {
    /// Present until dropped.
    recent: Option<Box<Recent>>,
}

impl Found {
    #[inline]
    fn recent(&self) -> &Recent {
        self.recent.as_deref().expect("it is there until the end")
    }

    /// The file for another thread.
    pub fn shared(&self) -> Arc<CachedFile> {
        Arc::clone(&self.recent().file)
    }

    /// The call waits for other ranks, and uses no bytes meanwhile.
    pub fn set_idle(&self) {
        self.recent().is_busy.store(false, Ordering::Release);
    }

    /// The call uses bytes again.
    pub fn set_busy(&self) {
        self.recent().file.through.enter(&self.recent().is_busy);
    }

    /// The view at the beginning of the call.
    #[inline]
    pub fn view(&self) -> &Arc<View> {
        &self.recent().view
    }
}

impl Deref for Found {
    type Target = CachedFile;

    #[inline]
    fn deref(&self) -> &CachedFile {
        &self.recent().file
    }
}

impl Drop for Found {
    #[inline]
    fn drop(&mut self) {
        let recent = self.recent.take();
        recent.iter().for_each(|recent| recent.is_busy.store(false, Ordering::Release));
        let at = recent.as_ref().map_or(0, |recent| place_of(recent.file.handle));
        // The cells of an ending thread may be gone.
        let _ended = OWN.try_with(|own| own[at].set(recent));
    }
}

/// The cell for a handle, which is an address.
fn place_of(handle: u64) -> usize {
    (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % RECENT
}

/// The cached file of a handle.
#[inline]
pub fn find(handle: u64) -> Option<Found> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let generation = GENERATION.load(Ordering::Acquire);
    let recent = OWN.try_with(|own| own[place_of(handle)].take()).ok().flatten();
    match recent {
        Some(recent) if recent.file.handle == handle && recent.generation == generation => {
            recent.file.through.enter(&recent.is_busy);
            Some(Found { recent: Some(recent) })
        }
        _ => look_up(handle),
    }
}

#[cold]
fn look_up(handle: u64) -> Option<Found> {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let file = Arc::clone(files.get(&handle)?);
    // Nobody raises it under the lock.
    let generation = GENERATION.load(Ordering::Relaxed);
    let view = file.view();
    drop(files);
    let is_busy = file.through.add_user();
    file.through.enter(&is_busy);
    Some(Found { recent: Some(Box::new(Recent { generation, is_busy, file, view })) })
}

/// The same for a call that uses no bytes by itself.
pub fn find_idle(handle: u64) -> Option<Found> {
    find(handle).inspect(Found::set_idle)
}

/// Changes the files, or the state of one remembered by threads.
fn change<T>(change: impl FnOnce(&mut BTreeMap<u64, Arc<CachedFile>>) -> T) -> T {
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    let answer = change(&mut files);
    GENERATION.fetch_add(1, Ordering::AcqRel);
    COUNT.store(files.len(), Ordering::Release);
    answer
}

/// Adds a file, for calls to find.
pub fn add(file: CachedFile) {
    let file = Arc::new(file);
    change(|files| files.insert(file.handle, Arc::clone(&file)));
    // A handle that only reads disturbs nobody.
    if file.may_write && matches!(file.hold, Hold::Own { .. }) {
        watch::add(&file);
        rescue::prepare();
    }
}

/// The files cached and written here, each once. `None` if the table is locked, perhaps by the thread that ends the
/// process.
pub fn written_files() -> Option<Vec<Arc<CachedFile>>> {
    let files = FILES.try_read().ok()?;
    let mut told = BTreeSet::new();
    let written = files.values().filter(|file| file.may_write && !file.through.is_on() && told.insert(file.owner()));
    Some(written.cloned().collect())
}

fn remove(handle: u64) -> Option<Arc<CachedFile>> {
    change(|files| files.remove(&handle))
}

impl CachedFile {
    /// The handle for which the file was opened.
    fn owner(&self) -> u64 {
        match self.hold {
            Hold::Own { .. } => self.handle,
            Hold::Shared { first, .. } => first,
        }
    }

    /// Whether the path still leads to the file.
    pub fn is_at_its_path(&self) -> bool {
        matches!(self.hold, Hold::Own { identity: Some(own), .. } if Identity::of(&self.path) == Some(own))
    }

    /// A file of one of MPI's handles, with no access allowed yet.
    pub fn new(
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
            through: Arc::default(),
            decider: None,
            may_read: false,
            may_write: false,
            ignored_hints: String::new(),
            is_appended: false,
            is_atomic: AtomicBool::new(false),
            view: Mutex::new(Arc::new(View::of_bytes())),
            position: Mutex::new(0),
            queue: Queue::default(),
        }
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_view(&self, view: View) {
        change(|_| *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(view));
    }

    pub fn is_atomic(&self) -> bool {
        self.is_atomic.load(Ordering::Relaxed)
    }

    pub fn position(&self) -> MutexGuard<'_, u64> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets both pointers to the end of the file. Collective.
    pub fn append(&self) {
        let size = self.found_by_first(|| Ok(self.size().unwrap_or(0))).unwrap_or(0);
        *self.position() = size;
        let _set = self.set_pointer(size);
    }

    /// Reads bytes from places into pieces. Returns the number of bytes before the end of the file.
    ///
    /// # Safety
    /// The memory may be written.
    #[inline]
    pub unsafe fn read(&self, places: &[Place], pieces: &[Piece]) -> Result<u64, Failed> {
        match self.through.direct() {
            // SAFETY: as the caller says.
            None => unsafe { self.library.read(self.file, places, pieces) },
            // SAFETY: as the caller says.
            Some(direct) => unsafe { direct?.read(places, pieces, self.is_in_one_step()) },
        }
    }

    /// Writes bytes from pieces to places.
    ///
    /// # Safety
    /// The memory may be read.
    #[inline]
    pub unsafe fn write(&self, places: &[Place], pieces: &[Piece]) -> Result<(), Failed> {
        match self.through.direct() {
            // SAFETY: as the caller says.
            None => unsafe { self.library.write(self.file, places, pieces) },
            // SAFETY: as the caller says.
            Some(direct) => unsafe { direct?.write(places, pieces, self.is_in_one_step()) },
        }
    }

    /// Bytes of the file.
    pub fn size(&self) -> Result<u64, Failed> {
        match self.through.direct() {
            None => self.library.size(self.file),
            Some(direct) => direct?.size(),
        }
    }

    fn is_in_one_step(&self) -> bool {
        self.is_atomic() || self.through.is_atomic.load(Ordering::Relaxed)
    }

    /// MPI's code for an answer of vgasnet, after the file's error handler has seen it.
    pub fn code<T>(&self, answer: Result<T, Failed>) -> c_int {
        match answer {
            Ok(_) => SUCCESS,
            Err(failed) => self.raise(errors::class_of(failed)),
        }
    }

    pub fn raise(&self, code: c_int) -> c_int {
        ffi::raise(self.handle, code)
    }

    /// Gives up the claim: the team caches nothing any more. If MPI continues, the handle becomes a guest, so that a
    /// team that caches the file next does not overwrite MPI's writes with its whole blocks.
    fn end_claim(&self, after: After) {
        let Hold::Own { claim, .. } = &self.hold else { return };
        let claim = claim.lock().unwrap_or_else(PoisonError::into_inner).take();
        if after != After::Nothing {
            claim.and_then(Claim::of_mpi).into_iter().for_each(|claim| claims::keep(self.handle, claim));
        }
    }

    /// Ends caching: other programs see all writes. Collective.
    fn end(&self, after: After) -> Result<(), Failed> {
        self.queue.wait_until_idle();
        let is_own = matches!(self.hold, Hold::Own { .. });
        let joint = self.together(is_own);
        watch::remove(self.handle);
        let units = if after == After::MpiAtPointers { self.shared_units() } else { 0 };
        let answer = match &self.hold {
            Hold::Own { team, .. } => {
                let seconds = shared_with(self.handle);
                seconds.iter().for_each(|second| second.queue.wait_until_idle());
                let seconds = seconds.into_iter().map(|second| (second.guest_claim(), second));
                let seconds: Vec<_> = seconds.collect();
                let leave = || seconds.into_iter().for_each(|(claim, second)| second.leave(claim));
                let closed = if matches!(joint, Way::Through) {
                    leave();
                    self.through.end();
                    self.library.close(self.file)
                } else {
                    // Second handles stay cached until the close. Otherwise whole blocks would be written over MPI's
                    // writes.
                    let closed = self.library.close(self.file);
                    leave();
                    closed
                };
                self.library.free_team(*team);
                self.end_claim(after);
                // A handle opened next then finds the file free.
                let _free = self.comm.of_first(0);
                self.through.tell_unwritten().and(closed)
            }
            Hold::Shared { pointer, .. } => {
                drop(joint);
                let synced = self.sync();
                pointer.close(self.library);
                synced
            }
        };
        if after == After::MpiAtPointers {
            self.hand_over(units);
        }
        self.comm.free();
        answer
    }

    /// The claim of a second handle that becomes MPI's, through the descriptor the first has until then.
    fn guest_claim(&self) -> Option<Claim> {
        let is_held = self.comm.rank == 0 && self.may_write;
        is_held.then(|| Claim::of_guest(&self.own_path())).flatten()
    }

    /// The path of vgasnet's descriptor, which denotes the file even after a rename.
    pub fn own_path(&self) -> CString {
        let descriptor = self.library.descriptor(self.file).ok();
        let own = descriptor.and_then(|descriptor| CString::new(format!("/proc/self/fd/{descriptor}")).ok());
        own.unwrap_or_else(|| self.path.clone())
    }

    /// A second handle becomes MPI's, since the first is closed. All ranks of the second close the first. Collective.
    fn leave(&self, claim: Option<Claim>) {
        remove(self.handle);
        claim.into_iter().for_each(|claim| claims::keep(self.handle, claim));
        self.hand_over(self.shared_units());
        if let Hold::Shared { pointer, .. } = &self.hold {
            self.comm.meet();
            pointer.close(self.library);
        }
        self.comm.free();
    }

    /// The shared pointer, at the first rank.
    fn shared_units(&self) -> u64 {
        if self.comm.rank == 0 { self.take_in_order(0).unwrap_or(0) } else { 0 }
    }

    /// MPI's own file continues at the handle's pointers. The first rank supplies the shared one. Collective.
    fn hand_over(&self, shared: u64) {
        let units = *self.position() / self.view().unit;
        let _at = ffi::seek(self.handle, units as i64);
        // MPI's own pointer was not moved, so it is at the beginning unless the file is appended to.
        match self.comm.of_first(shared) {
            Ok(units) if units > 0 || self.is_appended => drop(ffi::seek_shared(self.handle, units as i64)),
            _ => {}
        }
        if self.is_atomic() {
            ffi::set_atomicity(self.handle);
        }
    }
}

/// The handles by which a file was opened here, each with the file's name in the job. There are several if
/// communicators overlap.
pub fn own_files(identity: Identity) -> Vec<(u64, Arc<CachedFile>)> {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let own = files.values().filter_map(|file| match file.hold {
        Hold::Own { name, identity: Some(its), .. } if its == identity => Some((name, Arc::clone(file))),
        _ => None,
    });
    own.collect()
}

/// The handles that share this one's file, in the same order on all ranks.
pub fn shared_with(handle: u64) -> Vec<Arc<CachedFile>> {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let second = |file: &Arc<CachedFile>| match file.hold {
        Hold::Shared { first, order, .. } if first == handle => Some((order, Arc::clone(file))),
        _ => None,
    };
    let mut seconds: Vec<_> = files.values().filter_map(second).collect();
    seconds.sort_unstable_by_key(|(order, _)| *order);
    seconds.into_iter().map(|(_, file)| file).collect()
}

/// Whether some handle of all ranks that shares this one's file is in mode atomic.
pub fn has_atomic_second(handle: u64) -> bool {
    let of_all = |file: &CachedFile| matches!(file.hold, Hold::Shared { by_all: true, .. });
    shared_with(handle).iter().any(|file| file.is_atomic() && of_all(file))
}

/// Leaves the program's open files to MPI, which is about to end. Collective over all ranks; the ranks of a team have
/// the same files open.
pub fn close_all() {
    let name_of = |file: &CachedFile| match file.hold {
        Hold::Own { name, .. } => Some(name),
        Hold::Shared { .. } => None,
    };
    let files: Vec<_> = FILES.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    let mut own: Vec<_> = files.into_iter().filter_map(|file| Some((name_of(&file)?, file))).collect();
    own.sort_unstable_by_key(|(name, _)| *name);
    for (_, file) in own {
        if file.comm.rank == 0 {
            let (rank, path) = (ffi::world_rank(), file.path.to_string_lossy());
            say(format_args!(
                "rank {rank}: MPI_Finalize: {path} is open; it is written now, and cached no more; call MPI_File_close before"
            ));
        }
        remove(file.handle);
        // A file of a session outlives this.
        let _told = file.end(After::MpiAtPointers);
    }
}

/// Closes a file: first here, since MPI may delete it then.
pub fn close(handle: u64, next: impl Fn() -> c_int) -> c_int {
    let Some(file) = remove(handle) else {
        let code = next();
        claims::release(handle);
        return code;
    };
    let answer = file.end(After::Nothing);
    // The error handler still exists.
    let code = file.code(answer);
    match next() {
        SUCCESS => code,
        failed => failed,
    }
}

/// Leaves a file to MPI from now on. Collective.
pub fn give_up(handle: u64, is_atomic: bool) -> c_int {
    let Some(file) = remove(handle) else { return SUCCESS };
    let answer = file.end(After::Mpi);
    match file.code(answer) {
        SUCCESS if is_atomic => ffi::set_atomicity(handle),
        code => code,
    }
}
