//! The cached files, by MPI's handles. MPI has each of them open, too, for everything not served by this library.

use crate::ffi::{self, Comm};
use crate::hold::{Hold, Identity};
use crate::queue::Queue;
use crate::through::Through;
use crate::vgasnet::{Failed, File, Library, Piece};
use crate::view::{Extent, View};
use crate::{alternate_stack, errors};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_int};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use vgasnet_mpi_front::{Handle, SUCCESS, kind};

/// A cached file.
#[derive(Debug)]
pub struct CachedFile {
    /// MPI's handle.
    pub handle: Handle<kind::File>,
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

static FILES: RwLock<BTreeMap<Handle<kind::File>, Arc<CachedFile>>> = RwLock::new(BTreeMap::new());

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
pub struct CallFile {
    /// Present until dropped.
    recent: Option<Box<Recent>>,
}

impl CallFile {
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

impl Deref for CallFile {
    type Target = CachedFile;

    #[inline]
    fn deref(&self) -> &CachedFile {
        &self.recent().file
    }
}

impl Drop for CallFile {
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
fn place_of(handle: Handle<kind::File>) -> usize {
    (handle.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % RECENT
}

/// The cached file of a handle.
#[inline]
pub fn find(handle: Handle<kind::File>) -> Option<CallFile> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let generation = GENERATION.load(Ordering::Acquire);
    let recent = OWN.try_with(|own| own[place_of(handle)].take()).ok().flatten();
    match recent {
        Some(recent) if recent.file.handle == handle && recent.generation == generation => {
            recent.file.through.enter(&recent.is_busy);
            Some(CallFile { recent: Some(recent) })
        }
        _ => look_up(handle),
    }
}

#[cold]
fn look_up(handle: Handle<kind::File>) -> Option<CallFile> {
    alternate_stack::prepare();
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let file = Arc::clone(files.get(&handle)?);
    // Nobody raises it under the lock.
    let generation = GENERATION.load(Ordering::Relaxed);
    let view = file.view();
    drop(files);
    let is_busy = file.through.add_user();
    file.through.enter(&is_busy);
    Some(CallFile { recent: Some(Box::new(Recent { generation, is_busy, file, view })) })
}

/// The same for a call that uses no bytes by itself.
pub fn find_idle(handle: Handle<kind::File>) -> Option<CallFile> {
    find(handle).inspect(CallFile::set_idle)
}

/// Changes the files, or the state of one remembered by threads.
fn change<T>(change: impl FnOnce(&mut BTreeMap<Handle<kind::File>, Arc<CachedFile>>) -> T) -> T {
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    let answer = change(&mut files);
    GENERATION.fetch_add(1, Ordering::AcqRel);
    COUNT.store(files.len(), Ordering::Release);
    answer
}

/// Adds a file, for calls to find.
pub fn add(file: &Arc<CachedFile>) {
    change(|files| files.insert(file.handle, Arc::clone(file)));
}

/// The files cached and written here, each once. `None` if the tables are locked, perhaps by the thread that ends the
/// process.
pub fn written_files() -> Option<Vec<Arc<CachedFile>>> {
    let files = FILES.try_read().ok()?;
    let closing = CLOSING.try_lock().ok()?;
    let mut told = BTreeSet::new();
    let all = files.values().chain(closing.iter());
    let written = all.filter(|file| file.may_write && !file.through.is_on() && told.insert(file.owner()));
    Some(written.cloned().collect())
}

/// Files that are being closed. Calls find them no longer, but a rescue does.
static CLOSING: Mutex<Vec<Arc<CachedFile>>> = Mutex::new(Vec::new());

fn closing() -> MutexGuard<'static, Vec<Arc<CachedFile>>> {
    CLOSING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is being closed, until this is dropped.
pub struct Closing(Arc<CachedFile>);

impl Deref for Closing {
    type Target = CachedFile;

    fn deref(&self) -> &CachedFile {
        &self.0
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        closing().retain(|file| !Arc::ptr_eq(file, &self.0));
    }
}

/// Whether files are being closed.
pub fn has_closing() -> bool {
    !closing().is_empty()
}

/// Whether calls find the file.
pub fn is_open(file: &Arc<CachedFile>) -> bool {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    files.get(&file.handle).is_some_and(|known| Arc::ptr_eq(known, file))
}

/// Whether the file is being closed.
pub fn is_closing(file: &Arc<CachedFile>) -> bool {
    closing().iter().any(|known| Arc::ptr_eq(known, file))
}

/// Calls no longer find it.
pub fn remove(handle: Handle<kind::File>) -> Option<Closing> {
    change(|files| {
        let file = files.remove(&handle)?;
        closing().push(Arc::clone(&file));
        Some(Closing(file))
    })
}

impl CachedFile {
    /// The handle for which the file was opened.
    fn owner(&self) -> Handle<kind::File> {
        match self.hold {
            Hold::Own { .. } => self.handle,
            Hold::Shared { first, .. } => first,
        }
    }

    /// A file of one of MPI's handles, with no access allowed yet.
    pub fn new(
        library: &'static Library,
        (handle, file): (Handle<kind::File>, File),
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

    /// The view in force.
    pub fn view(&self) -> Arc<View> {
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
    /// The pieces are writable, and nobody else accesses them, until this returns.
    #[inline]
    pub unsafe fn read(&self, places: &[Extent], pieces: &[Piece]) -> Result<u64, Failed> {
        match self.through.direct() {
            // SAFETY: the pieces are writable until this returns, as the caller promises.
            None => unsafe { self.library.read(self.file, places, pieces) },
            // SAFETY: the pieces are writable until this returns, as the caller promises.
            Some(direct) => unsafe { direct?.read(places, pieces, self.is_in_one_step()) },
        }
    }

    /// Writes bytes from pieces to places.
    ///
    /// # Safety
    /// The pieces are readable, and nobody writes them, until this returns.
    #[inline]
    pub unsafe fn write(&self, places: &[Extent], pieces: &[Piece]) -> Result<(), Failed> {
        match self.through.direct() {
            // SAFETY: the pieces are readable until this returns, as the caller promises.
            None => unsafe { self.library.write(self.file, places, pieces) },
            // SAFETY: the pieces are readable until this returns, as the caller promises.
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

    /// The path of vgasnet's descriptor, which denotes the file even after a rename.
    pub fn own_path(&self) -> CString {
        let descriptor = self.library.descriptor(self.file).ok();
        let own = descriptor.and_then(|descriptor| CString::new(format!("/proc/self/fd/{descriptor}")).ok());
        own.unwrap_or_else(|| self.path.clone())
    }
}

/// The handles by which a file was opened here, each with the file's name in the job. There are several if
/// communicators overlap.
pub fn own_files(identity: Identity) -> Vec<(u64, Arc<CachedFile>)> {
    let has_identity =
        |file: &CachedFile| matches!(file.hold, Hold::Own { identity: Some(own), .. } if own == identity);
    all_own_files().into_iter().filter(|(_, file)| has_identity(file)).collect()
}

/// The handles that share this one's file, in the same order on all ranks.
pub fn shared_with(handle: Handle<kind::File>) -> Vec<Arc<CachedFile>> {
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
pub fn has_atomic_second(handle: Handle<kind::File>) -> bool {
    let of_all = |file: &CachedFile| matches!(file.hold, Hold::Shared { by_all: true, .. });
    shared_with(handle).iter().any(|file| file.is_atomic() && of_all(file))
}

/// The handles that files were opened by, each with its file's name in the job.
pub fn all_own_files() -> Vec<(u64, Arc<CachedFile>)> {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let own = files.values().filter_map(|file| match file.hold {
        Hold::Own { name, .. } => Some((name, Arc::clone(file))),
        Hold::Shared { .. } => None,
    });
    own.collect()
}
