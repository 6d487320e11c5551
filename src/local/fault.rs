//! The signal handlers: a load or store in the segment that found no page.
//!
//! A page that is open is shown at once, without any lock but [`super::mapped`]'s. For one that is not, a thread in its
//! ordinary course drives the engine itself: it has no lock that the engine needs, nor the C library's allocator's. A
//! handler of the client may have interrupted anything, so a fault in one leaves word for the helper thread, and takes no
//! lock and allocates nothing; so does a fault on an alternate stack, which may be small.

use super::mailbox::Fault;
use super::{FRAMES_MIN, Local, Visit, held, signals};
use crate::coherence::Access;
use std::ffi::{c_int, c_void};
use std::io::{Cursor, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

#[cfg(target_arch = "x86_64")]
use super::{again, step};
#[cfg(not(target_arch = "x86_64"))]
use unsteady as again;
#[cfg(not(target_arch = "x86_64"))]
use unsteady as step;

/// How the handlers reach the engine. All of it may be called in a signal handler, except where it says otherwise.
pub trait Bell: Send + Sync {
    /// Drives the engine until the page is there. Not for a thread that may have a lock of the library or of the allocator.
    fn fetch(&self, fault: &Fault);

    /// Wakes the helper thread, to look at what was posted.
    fn wake_helper(&self);

    /// A page that is closing is not used any more.
    fn kick(&self);
}

/// What the handlers know.
struct Scene {
    local: Arc<Local>,
    bell: Arc<dyn Bell>,
    rank: u32,
    /// The first address behind what is reserved for the segment.
    guard_end: usize,
    /// The process that attached; a child of it has no engine.
    pid: u32,
}

/// Set once, by [`install`], and never freed.
static SCENE: AtomicPtr<Scene> = AtomicPtr::new(std::ptr::null_mut());

/// From now on loads and stores in the segment of `rank` work. What lies between the segment's end and `guard_end` is
/// reserved, and an access there is a mistake that is told.
///
/// # Errors
/// The system's error number.
pub fn install(local: Arc<Local>, bell: Arc<dyn Bell>, rank: u32, guard_end: usize) -> Result<(), i32> {
    let scene = Box::new(Scene { local, bell, rank, guard_end, pid: std::process::id() });
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

/// Whether the thread that was interrupted by its own fault may do what takes locks, memory and some stack.
///
/// # Safety
/// `context` is the ucontext of the handler that calls this.
unsafe fn may_drive(context: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    let stack = unsafe { (*context.cast::<libc::ucontext_t>()).uc_stack };
    let here = (&raw const stack).addr();
    let is_alternate = (stack.ss_sp.addr()..stack.ss_sp.addr() + stack.ss_size).contains(&here);
    !is_alternate && !held::is_disturbed()
}

impl Scene {
    fn covers(&self, address: usize) -> bool {
        (self.local.segment().base..self.guard_end).contains(&address)
    }

    /// A load or store at `address`, in the segment or behind it.
    ///
    /// # Safety
    /// `info` and `context` are the arguments of the handler of SIGSEGV that calls this.
    unsafe fn on_fault(&self, address: usize, info: *mut libc::siginfo_t, context: *mut c_void) {
        if !self.local.segment().overlaps(address, 1) {
            self.say(address, "it is behind the segment's end; stay inside, or attach a larger segment");
            // SAFETY: these are the handler's arguments.
            return unsafe { signals::chain(libc::SIGSEGV, info, context) };
        }
        if std::process::id() != self.pid {
            return self.refuse(address, "this process was forked from the rank; only the rank itself has its segment");
        }
        if self.local.frames() < FRAMES_MIN {
            return self.refuse(
                address,
                "the pool is too small for loads and stores; set VGASNET_POOL_SIZE to at least 4 pages",
            );
        }
        let index = self.local.index_of(address);
        // SAFETY: the caller's promise.
        let access = unsafe { access_of(context) }.unwrap_or_else(|| self.local.more_than_shown(index));
        match self.local.visit(index, access) {
            // A page that was there is let go at once; if it is lost before the instruction, it is missed then. Not if
            // others had to be hidden for it: the instruction might need those too.
            Visit::Pinned { crowded: false } if !step::is_visiting() => self.unpin(index),
            // SAFETY: the caller's promise.
            Visit::Pinned { .. } => unsafe { self.keep(index, context) },
            Visit::Missed => {
                step::let_go().for_each(|index| self.unpin(index));
                step::take_turn();
                // SAFETY: the caller's promise.
                let may_drive = unsafe { may_drive(context) };
                self.fetch(&Fault::new(index, access, may_drive));
                // SAFETY: the caller's promise.
                unsafe {
                    let is_first = may_drive && !again::is_repeated(context, address);
                    if is_first && !step::is_visiting() && !self.local.is_wanted(index) {
                        self.unpin(index);
                    } else {
                        self.keep(index, context);
                    }
                }
            }
            Visit::Refused(_) => {
                self.unpin(index);
                self.refuse(address, "the system has no more mappings for this process; raise vm.max_map_count");
            }
        }
    }

    /// Waits until the page is shown and pinned.
    fn fetch(&self, fault: &Fault) {
        if fault.leads {
            return self.bell.fetch(fault);
        }
        self.local.post(fault);
        self.bell.wake_helper();
        fault.wait();
    }

    /// Keeps a pinned page until the instruction is through.
    ///
    /// # Safety
    /// As [`Scene::on_fault`].
    unsafe fn keep(&self, index: u32, context: *mut c_void) {
        // SAFETY: the caller's promise.
        if !unsafe { step::keep(index, context) } {
            self.unpin(index);
        }
    }

    /// Ends the visit that the interrupted thread is in, if any; returns whether it was in one.
    ///
    /// # Safety
    /// `context` is the ucontext of the handler that calls this.
    unsafe fn give_up(&self, context: *mut c_void) -> bool {
        // SAFETY: the caller's promise.
        let pages = unsafe { step::end(context) };
        let was_visiting = pages.is_some();
        pages.into_iter().flatten().for_each(|index| self.unpin(index));
        was_visiting
    }

    fn unpin(&self, index: u32) {
        if self.local.leave(index) {
            self.bell.kick();
        }
    }

    /// Says what is wrong with an access, and lets it end the process by SIGSEGV.
    fn refuse(&self, address: usize, why: &str) {
        self.say(address, why);
        signals::take_default(libc::SIGSEGV, false);
    }

    fn say(&self, address: usize, why: &str) {
        let segment = self.local.segment();
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

/// Processors without single steps that a process can take by itself: a page is let go when it is shown, and a thread that
/// loses it before its instruction asks again.
#[cfg(not(target_arch = "x86_64"))]
mod unsteady {
    use std::ffi::c_void;

    pub fn is_visiting() -> bool {
        false
    }

    pub unsafe fn keep(_page: u32, _context: *mut c_void) -> bool {
        false
    }

    pub fn take_turn() {}

    pub fn let_go() -> impl Iterator<Item = u32> {
        std::iter::empty()
    }

    pub unsafe fn is_repeated(_context: *mut c_void, _address: usize) -> bool {
        false
    }

    pub unsafe fn end(_context: *mut c_void) -> Option<std::iter::Empty<u32>> {
        None
    }
}
