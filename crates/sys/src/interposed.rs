//! Interposed functions: the library's own, by the names of the C library's, in programs that load it by dlopen.
//!
//! A program linked with the library, or preloading it, finds the library's functions before the C library's. A program
//! that loads it by dlopen goes on calling the C library's. There the library's functions are put into the slots
//! through which each loaded object calls them and into its tables of functions, also for objects loaded later: after
//! dlopen, before dlsym, and now and then. Handlers installed in the meantime are taken over. Addresses that the
//! program has copied before stay the C library's.

use super::client_signals::{__sigaction, reclaim};
use super::deferred_signals::SignalGuard;
use super::futex::Lock;
use super::loaded_objects::{Changes, HAS_SLOTS, Object, Slot, each_object};
use super::loader_hooks;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, c_void};
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Functions of the C library that the library also exports: to keep its handler of SIGSEGV first
/// (`signal_functions.rs`), and to keep segments from the kernel (`io`, `threads.rs`, `client_stacks.rs`, `locks`).
pub const NAMES: &[&CStr] = &[
    c"__sysv_signal",
    c"bsd_signal",
    c"call_once",
    c"cnd_broadcast",
    c"cnd_signal",
    c"cnd_timedwait",
    c"cnd_wait",
    c"fputs",
    c"fread",
    c"fread_unlocked",
    c"fwrite",
    c"fwrite_unlocked",
    c"mtx_lock",
    c"mtx_timedlock",
    c"mtx_unlock",
    c"pread",
    c"pread64",
    c"preadv",
    c"preadv2",
    c"preadv64",
    c"preadv64v2",
    c"pthread_barrier_destroy",
    c"pthread_barrier_init",
    c"pthread_barrier_wait",
    c"pthread_cancel",
    c"pthread_cond_broadcast",
    c"pthread_cond_clockwait",
    c"pthread_cond_signal",
    c"pthread_cond_timedwait",
    c"pthread_cond_wait",
    #[cfg(not(asan))]
    c"pthread_create",
    c"pthread_mutex_clocklock",
    c"pthread_mutex_lock",
    c"pthread_mutex_timedlock",
    c"pthread_mutex_unlock",
    c"pthread_once",
    c"pthread_rwlock_clockrdlock",
    c"pthread_rwlock_clockwrlock",
    c"pthread_rwlock_rdlock",
    c"pthread_rwlock_timedrdlock",
    c"pthread_rwlock_timedwrlock",
    c"pthread_rwlock_unlock",
    c"pthread_rwlock_wrlock",
    c"pthread_sigmask",
    c"puts",
    c"pwrite",
    c"pwrite64",
    c"pwritev",
    c"pwritev2",
    c"pwritev64",
    c"pwritev64v2",
    c"read",
    c"readv",
    c"recv",
    c"recvfrom",
    c"recvmmsg",
    c"recvmsg",
    c"sem_clockwait",
    c"sem_post",
    c"sem_timedwait",
    c"sem_wait",
    c"send",
    c"sendmmsg",
    c"sendmsg",
    c"sendto",
    c"sigaction",
    #[cfg(not(asan))]
    c"sigaltstack",
    c"sigblock",
    c"sighold",
    c"sigignore",
    c"signal",
    c"sigprocmask",
    c"sigrelse",
    c"sigset",
    c"sigsetmask",
    c"ssignal",
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    c"syscall",
    c"sysv_signal",
    #[cfg(not(asan))]
    c"thrd_create",
    c"write",
    c"writev",
];

/// The functions cannot replace the C library's. Holds the path of the library, for preloading.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused(pub PathBuf);

/// An interposed function.
struct Interposed {
    name: &'static CStr,
    address: usize,
    /// The library itself calls the dynamic linker's own.
    is_hook: bool,
}

/// The interposed functions, once they are in place, and their slots.
struct Placed {
    /// By name.
    functions: Vec<Interposed>,
    /// Address range of the library; the next field is the C library's.
    own: Range<usize>,
    c_library: Range<usize>,
    /// The slots of the loaded objects, by the objects' bases, each with its function.
    slots: BTreeMap<usize, Vec<(Slot, usize)>>,
    /// Loader state at the last complete fill.
    filled: Changes,
}

/// Once set, taken only by visitors of the loaded objects, one thread at a time. If it is taken nevertheless, this
/// process was forked meanwhile.
static PLACED: Lock<Option<Placed>> = Lock::new(None);

static IS_PLACED: AtomicBool = AtomicBool::new(false);

/// Address ranges of the library and the C library.
#[derive(Default)]
struct Layout {
    own: Range<usize>,
    c_library: Range<usize>,
    /// The library is searched before the C library.
    own_is_first: bool,
    sees_program: bool,
}

impl Layout {
    fn observe() -> Layout {
        let (own, of_c_library) =
            (put_in_place as fn() -> Result<(), Refused> as usize, __sigaction as *const () as usize);
        let mut layout = Layout::default();
        each_object(|object| {
            let span = object.span();
            layout.sees_program |= object.is_program();
            if span.contains(&own) {
                layout.own_is_first = layout.c_library.is_empty();
                layout.own = span.clone();
            }
            if span.contains(&of_c_library) {
                layout.c_library = span;
            }
            ControlFlow::Continue(())
        });
        layout
    }
}

/// Puts the library's functions in the place of the C library's, unless the program calls them already.
///
/// # Errors
/// Some cannot be put there.
pub fn put_in_place() -> Result<(), Refused> {
    let layout = Layout::observe();
    if layout.own_is_first && layout.sees_program {
        return Ok(());
    }
    let path = own_path();
    let refused = || Refused(PathBuf::from(OsStr::from_bytes(path.to_bytes())));
    // A namespace of its own (dlmopen) hides the program.
    let may_see_all = HAS_SLOTS && layout.sees_program;
    let functions = may_see_all.then(|| functions(&path, &layout.own)).flatten().ok_or_else(refused)?;
    let Layout { own, c_library, .. } = layout;
    let placed = Placed { functions, own, c_library, slots: BTreeMap::new(), filled: Changes::default() };
    *PLACED.lock() = Some(placed);
    IS_PLACED.store(true, Ordering::Release);
    if fill_slots(true) { Ok(()) } else { Err(refused()) }
}

/// The path of the loaded library.
fn own_path() -> CString {
    // SAFETY: a `Dl_info` is pointers, which may be null.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let own = put_in_place as fn() -> Result<(), Refused> as *const c_void;
    // SAFETY: `info` has room for the answer.
    let is_known = unsafe { libc::dladdr(own, &raw mut info) } != 0 && !info.dli_fname.is_null();
    // SAFETY: the path is a terminated string, and stays, since the library is never unloaded.
    if is_known { unsafe { CStr::from_ptr(info.dli_fname) }.to_owned() } else { CString::default() }
}

/// The interposed functions, in the order of their names. `None` if the library does not export one of them.
fn functions(path: &CStr, own: &Range<usize>) -> Option<Vec<Interposed>> {
    // In the library's own code its names lead to the C library's functions, as anywhere.
    // SAFETY: the library is loaded already, and is not initialised again.
    let library = unsafe { loader_hooks::dlopen()(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    let exported = NAMES.iter().map(|name| {
        // SAFETY: the handle is the library's, and the name a terminated string.
        let address = unsafe { libc::dlsym(library, name.as_ptr()) }.addr();
        own.contains(&address).then_some(Interposed { name, address, is_hook: false })
    });
    let hooks =
        loader_hooks::all().into_iter().map(|(name, address)| Some(Interposed { name, address, is_hook: true }));
    let mut all: Vec<Interposed> = exported.chain(hooks).collect::<Option<_>>()?;
    all.sort_by_key(|function| function.name);
    Some(all)
}

impl Placed {
    fn find(&self, name: &CStr) -> Option<&Interposed> {
        let at = self.functions.binary_search_by_key(&name, |function| function.name).ok()?;
        Some(&self.functions[at])
    }

    /// The slots of an object that belong to interposed functions, with their functions.
    fn slots_of(&self, object: &Object<'_>) -> Vec<(Slot, usize)> {
        let mut slots = Vec::new();
        let is_own = object.span() == self.own;
        if object.span() != self.c_library && !object.is_linker() {
            object.slots(|name, slot| {
                let function = self.find(name).filter(|function| !(is_own && function.is_hook));
                slots.extend(function.map(|function| (slot, function.address)));
            });
        }
        slots
    }

    /// Fills the slots of an object. Returns whether it could.
    fn fill_slots_of(&mut self, object: &Object<'_>) -> bool {
        if !self.slots.contains_key(&object.base()) {
            let slots = self.slots_of(object);
            self.slots.insert(object.base(), slots);
        }
        let slots = &self.slots[&object.base()];
        // SAFETY: the object is being visited, and interposed functions have the types of the C library's.
        let is_filled = |(slot, function): &(Slot, usize)| unsafe { slot.fill(*function, &self.c_library) };
        slots.iter().filter(|slot| !is_filled(slot)).count() == 0
    }
}

/// Fills the slots of all loaded objects; if not `always`, only after objects have been loaded or unloaded. Returns
/// whether all slots are filled.
fn fill_slots(always: bool) -> bool {
    let _signals = SignalGuard::new();
    let (mut is_first, mut all) = (true, true);
    each_object(|object| {
        let Some(mut placed) = PLACED.try_lock() else { return ControlFlow::Break(()) };
        let Some(placed) = placed.as_mut() else { return ControlFlow::Break(()) };
        let now = object.changes();
        if is_first && !always && placed.filled == now {
            return ControlFlow::Break(());
        }
        if is_first && now.has_unloaded_since(placed.filled) {
            placed.slots.clear();
        }
        is_first = false;
        all &= placed.fill_slots_of(object);
        // Until the last object has been visited, this stands for all.
        placed.filled = if all { now } else { Changes::default() };
        ControlFlow::Continue(())
    });
    all
}

/// Handles objects loaded without [`after_loading`], and handlers that the client has installed unnoticed. Costs little
/// if there are none, and nothing if the program finds the library's functions by itself.
pub fn look_again() {
    if IS_PLACED.load(Ordering::Acquire) {
        fill_slots(false);
        reclaim();
    }
}

/// Called after the program has loaded an object, which may have installed handlers.
pub(super) fn after_loading() {
    fill_slots(true);
    reclaim();
}

/// Called before the program looks up a symbol, possibly in an object loaded without [`after_loading`].
pub(super) fn before_lookup() {
    look_again();
}

/// The interposed function of this name, and the C library's address range.
pub(super) fn interposed(name: &CStr) -> Option<(usize, Range<usize>)> {
    let _signals = SignalGuard::new();
    let mut found = None;
    each_object(|_| {
        if let Some(placed) = PLACED.try_lock() {
            let placed = placed.as_ref();
            found = placed.and_then(|placed| Some((placed.find(name)?.address, placed.c_library.clone())));
        }
        ControlFlow::Break(())
    });
    found
}
