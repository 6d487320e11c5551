//! The signal handlers: a load or store in the segment that found no page.
//!
//! A page that is open is mapped at once, under no lock but that of the order of mapped pages. For one that is not, there are
//! two ways:
//!
//! - A thread in its ordinary course drives the engine itself, in the handler, so that a miss costs no thread switch. It may
//!   be anywhere in the client's code, also in malloc or with a lock of the client's. The engine needs no such lock, and the
//!   library has an allocator of its own. It has no lock of the library: whoever has one touches no memory of the client.
//! - A thread that runs a handler of the client's, which may have interrupted the library, or that is on an alternate stack,
//!   which may be small, leaves a request for the helper thread and sleeps. It takes no lock and allocates nothing. Over MPI
//!   and GASNet every miss goes this way, because their locks and their malloc may be held.

#[cfg(not(target_arch = "x86_64"))]
mod no_single_step;
#[cfg(target_arch = "x86_64")]
mod repeated_fault;
#[cfg(target_arch = "x86_64")]
mod single_step;

#[cfg(not(target_arch = "x86_64"))]
use no_single_step as single_step;
#[cfg(not(target_arch = "x86_64"))]
use no_single_step as repeated_fault;

use crate::engine::Driver;
use crate::memory::{FRAMES_MIN, PageAccess, SegmentView};
use crate::request::Fault;
use crate::sys::{client_signals as signals, is_disturbed};
use std::ffi::{c_int, c_void};
use std::io::{Cursor, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use vgasnet_protocol::coherence::Access;

/// What the handlers know.
struct Scene {
    view: Arc<SegmentView>,
    driver: Arc<Driver>,
    rank: u32,
    /// The first address behind what is reserved for the segment.
    guard_end: usize,
    /// The process that attached; a child of it has no engine.
    pid: u32,
}

/// Set once, by [`install`], and never freed.
static SCENE: AtomicPtr<Scene> = AtomicPtr::new(std::ptr::null_mut());

/// From now on loads and stores in this rank's segment work. What lies between the segment's end and `guard_end` is
/// reserved, and an access there is a mistake that is told.
///
/// # Errors
/// The system's error number.
pub fn install(view: Arc<SegmentView>, driver: Arc<Driver>, guard_end: usize) -> Result<(), i32> {
    let rank = driver.space().rank.0;
    let scene = Box::new(Scene { view, driver, rank, guard_end, pid: std::process::id() });
    let before = SCENE.swap(Box::leak(scene), Ordering::AcqRel);
    assert!(before.is_null(), "a rank has one segment");
    signals::install(&[(libc::SIGSEGV, on_segv), (libc::SIGTRAP, on_trap)])
}

unsafe extern "C" fn on_segv(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    signals::keep_errno(|| {
        // SAFETY: the kernel gave this handler a valid siginfo; a fault's has an address.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
        // SAFETY: null, or a leaked box that was complete before it was stored.
        let scene = unsafe { SCENE.load(Ordering::Acquire).as_ref() };
        let is_fault = code > 0 && code != libc::SI_KERNEL;
        match scene.filter(|scene| is_fault && scene.covers(address)) {
            // SAFETY: these are the handler's arguments.
            Some(scene) => unsafe { scene.on_fault(address, info, context) },
            // SAFETY: as above.
            None => unsafe {
                if let Some(scene) = scene {
                    scene.give_up(context);
                }
                signals::chain(signal, info, context);
            },
        }
    });
}

unsafe extern "C" fn on_trap(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    signals::keep_errno(|| {
        // SAFETY: null, or a leaked box that was complete before it was stored.
        let scene = unsafe { SCENE.load(Ordering::Acquire).as_ref() };
        // SAFETY: these are the handler's arguments.
        unsafe {
            let is_step = (*info).si_code == libc::TRAP_TRACE && scene.is_some_and(|scene| scene.give_up(context));
            if !is_step {
                signals::chain(signal, info, context);
            }
        }
    });
}

/// What the interrupted instruction did, as far as the processor tells.
///
/// # Safety
/// `context` is the ucontext of a handler of SIGSEGV.
#[cfg(target_arch = "x86_64")]
unsafe fn access_of(context: *mut c_void) -> Option<Access> {
    /// The bit of the page fault's error code that says so (Intel SDM, volume 3, 4.7).
    const WRITE: i64 = 2;
    // SAFETY: the caller's promise.
    let error = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    Some(if error & WRITE != 0 { Access::Write } else { Access::Read })
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn access_of(_context: *mut c_void) -> Option<Access> {
    None
}

/// Whether the thread that faulted may take the library's locks, and has some stack left.
///
/// # Safety
/// `context` is the ucontext of the handler that calls this.
unsafe fn may_drive(context: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    let stack = unsafe { (*context.cast::<libc::ucontext_t>()).uc_stack };
    let here = (&raw const stack).addr();
    let is_alternate = (stack.ss_sp.addr()..stack.ss_sp.addr() + stack.ss_size).contains(&here);
    !is_alternate && !is_disturbed()
}

impl Scene {
    fn covers(&self, address: usize) -> bool {
        (self.view.segment().base..self.guard_end).contains(&address)
    }

    /// A load or store at `address`, in the segment or behind it.
    ///
    /// # Safety
    /// `info` and `context` are the arguments of the handler of SIGSEGV that calls this.
    unsafe fn on_fault(&self, address: usize, info: *mut libc::siginfo_t, context: *mut c_void) {
        if !self.view.segment().overlaps(address, 1) {
            self.say(address, "it is behind the segment's end; stay inside, or attach a larger segment");
            // SAFETY: these are the handler's arguments.
            return unsafe { signals::chain(libc::SIGSEGV, info, context) };
        }
        if std::process::id() != self.pid {
            return self.refuse(address, "this process was forked from the rank; only the rank itself has its segment");
        }
        if self.view.frames() < FRAMES_MIN {
            return self.refuse(
                address,
                "the pool is too small for loads and stores; set VGASNET_POOL_SIZE to at least 4 pages",
            );
        }
        let index = self.view.index_of(address);
        // SAFETY: the caller's promise.
        let access = unsafe { access_of(context) }.unwrap_or_else(|| self.view.more_than_mapped(index));
        let accessed = self.view.access(index, access);
        if let PageAccess::Pinned { first_use: true, .. } = accessed {
            self.driver.note_first_use(index);
        }
        match accessed {
            // A page that was there is let go at once; if it is lost before the instruction, it is missed then. Not if
            // others had to be unmapped for it: the instruction might need those too.
            PageAccess::Pinned { crowded: false, .. } if !single_step::is_under_way() => self.unpin(index),
            // SAFETY: `context` is this handler's.
            PageAccess::Pinned { .. } => unsafe { self.keep(index, context) },
            PageAccess::Missed => {
                single_step::let_go().for_each(|index| self.unpin(index));
                single_step::take_turn();
                // SAFETY: `context` is this handler's.
                let may_drive = self.driver.drives_in_faults() && unsafe { may_drive(context) };
                self.driver.fetch(&Fault::new(index, access, may_drive));
                // SAFETY: `context` is this handler's.
                unsafe {
                    let is_first = may_drive && !repeated_fault::is_repeated(context, address);
                    if is_first && !single_step::is_under_way() && !self.view.is_wanted(index) {
                        self.unpin(index);
                    } else {
                        self.keep(index, context);
                    }
                }
            }
            PageAccess::Refused(_) => {
                self.unpin(index);
                self.refuse(address, "the system has no more mappings for this process; raise vm.max_map_count");
            }
        }
    }

    /// Keeps a pinned page until the instruction is through.
    ///
    /// # Safety
    /// As [`Scene::on_fault`].
    unsafe fn keep(&self, index: u32, context: *mut c_void) {
        // SAFETY: the caller's promise.
        if !unsafe { single_step::keep(index, context) } {
            self.unpin(index);
        }
    }

    /// Ends the single step that the interrupted thread is in, if any; returns whether it was in one.
    ///
    /// # Safety
    /// `context` is the ucontext of the handler that calls this.
    unsafe fn give_up(&self, context: *mut c_void) -> bool {
        // SAFETY: the caller's promise.
        let pages = unsafe { single_step::end(context) };
        let was_under_way = pages.is_some();
        pages.into_iter().flatten().for_each(|index| self.unpin(index));
        was_under_way
    }

    fn unpin(&self, index: u32) {
        if self.view.unpin(index) {
            self.driver.notify_unpinned();
        }
    }

    /// Says what is wrong with an access, and lets it end the process by SIGSEGV.
    fn refuse(&self, address: usize, why: &str) {
        self.say(address, why);
        signals::take_default(libc::SIGSEGV, false);
    }

    fn say(&self, address: usize, why: &str) {
        let segment = self.view.segment();
        let (base, end) = (segment.base, segment.base + segment.size_bytes);
        let mut buffer = [0u8; 256];
        let mut line = Cursor::new(&mut buffer[..]);
        // Integers and strings only, so nothing is allocated; what does not fit is cut off.
        let _ = writeln!(
            line,
            "vgasnet: rank {}: load or store at {address:#x}, segment {base:#x} to {end:#x}: {why}",
            self.rank
        );
        let len_bytes = line.position() as usize;
        // SAFETY: the bytes are valid; nobody is to be told if stderr is closed.
        unsafe { libc::write(libc::STDERR_FILENO, buffer.as_ptr().cast(), len_bytes) };
    }
}
