//! The signal handlers for loads and stores in the segment without a mapped page.
//!
//! An open page is mapped at once, under no locks but the frame's, the page's set of loans', and the order of mapped
//! pages'. Other pages are fetched in one of two ways:
//!
//! - A thread in its ordinary course drives the engine itself, in the handler, so a miss costs no thread switch. The
//!   fault may be anywhere in the client's code, also in malloc or under a lock of the client. The engine needs no such
//!   lock, and the library has its own allocator. The thread holds no lock of the library: under those no client memory
//!   is touched.
//! - A thread in a signal handler of the client leaves a request for the helper thread and sleeps: the handler may have
//!   interrupted the library. So does a thread on an alternate stack of the client's that is small. Such a thread takes
//!   no lock and allocates nothing. In a job on several hosts every miss goes this way, because the thread may hold the
//!   locks of MPI or GASNet. If it holds MPI's, the helper cannot get the page, and the rank ends with an error line
//!   (`stuck.rs`).

mod debugger;
#[cfg(not(target_arch = "x86_64"))]
mod no_single_step;
mod repeated_fault;
#[cfg(target_arch = "x86_64")]
mod single_step;
mod stuck;
#[cfg(any(target_arch = "aarch64", test))]
mod syndrome;
mod waiting;

#[cfg(not(target_arch = "x86_64"))]
use no_single_step as single_step;

pub use debugger::{Unread, read_for_debugger};

use std::ffi::{c_int, c_void};
use std::io::{Cursor, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use stuck::{IS_SAID, LOOK_EVERY, Watch};
use vgasnet_engine::Driver;
use vgasnet_engine::request::Fault;
use vgasnet_memory::{MAPPED_BLOCK_BYTES, PageAccess, SegmentView};
use vgasnet_protocol::coherence::Access;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::alternate_stack::{self, note_stack, was_on_segment};
use vgasnet_sys::children::WipedInChildren;
use vgasnet_sys::client_signals::{Handler, call_before_handlers, chain, install as install_handlers, take_default};
use vgasnet_sys::io;
use vgasnet_sys::observers::is_traced;
use vgasnet_sys::signal_mask::with_signals_of;
use vgasnet_sys::{keep_errno, was_disturbed};
use waiting::{Frame, WaitSlot, left_behind, let_go};

/// The rank's part in a fault, for the handlers.
struct FaultState {
    view: Arc<SegmentView>,
    driver: Arc<Driver>,
    rank: u32,
    /// End of the range reserved for the segment.
    guard_end: usize,
}

/// Set once, by [`install`], and never freed. A forked child has no engine, so it is cleared there.
static STATE: WipedInChildren<AtomicPtr<FaultState>> = WipedInChildren::new(AtomicPtr::new(std::ptr::null_mut()));

/// The same, kept in forked children.
static STATE_OF_RANK: AtomicPtr<FaultState> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn forget_state() {
    STATE.store(std::ptr::null_mut(), Ordering::Relaxed);
}

/// Installs the handlers that serve loads and stores in this rank's segment. Accesses between the segment's end and
/// `guard_end`, a reserved range, are reported as mistakes.
///
/// # Errors
/// The system's errno value.
pub fn install(view: Arc<SegmentView>, driver: Arc<Driver>, guard_end: usize) -> Result<(), i32> {
    let (rank, segment) = (driver.space().rank.0, view.segment());
    let state = Box::leak(Box::new(FaultState { view, driver, rank, guard_end }));
    let before = STATE_OF_RANK.swap(state, Ordering::AcqRel);
    assert!(before.is_null(), "a rank has one segment");
    STATE.wipe(forget_state);
    STATE.store(state, Ordering::Release);
    const HANDLERS: [(c_int, Handler); 3] =
        [(libc::SIGSEGV, on_fault_signal), (libc::SIGBUS, on_fault_signal), (libc::SIGTRAP, on_trap)];
    alternate_stack::prepare();
    call_before_handlers(on_client_handler);
    install_handlers(&HANDLERS, on_synchronous)?;
    io::keep_from_kernel(segment.base, segment.size_bytes);
    Ok(())
}

fn state() -> Option<&'static FaultState> {
    // SAFETY: the pointer is null, or to a leaked box completed before it was stored.
    unsafe { STATE.load(Ordering::Acquire).as_ref() }
}

/// The state of the parent rank, if this process was forked from one.
fn state_of_parent() -> Option<&'static FaultState> {
    let is_child = state().is_none();
    // SAFETY: as above; a child has a copy of the box.
    unsafe { STATE_OF_RANK.load(Ordering::Acquire).as_ref() }.filter(|_| is_child)
}

/// The handler of SIGSEGV and SIGBUS. SIGBUS is raised where blocks of a page are copied to the segment.
///
/// # Safety
/// Called by the kernel, with the siginfo and the ucontext of `signal`.
unsafe extern "C" fn on_fault_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    keep_errno(|| {
        // SAFETY: `info` is the siginfo of this handler from the kernel; a fault's has an address.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
        let is_fault = match signal {
            libc::SIGBUS => code == libc::BUS_ADRERR,
            _ => code > 0 && code != libc::SI_KERNEL,
        };
        match state().filter(|state| is_fault && state.covers(address)) {
            Some(state) => {
                // SAFETY: `info` and `context` are this handler's, from the kernel.
                let fault = AssertUnwindSafe(|| unsafe { state.on_fault(signal, address, info, context) });
                if catch_unwind(fault).is_err() {
                    state.driver.fail("load or store", &UserError::of_panic());
                }
            }
            // SAFETY: `info` and `context` are this handler's for `signal`, from the kernel.
            None => unsafe {
                if let Some(state) = state() {
                    state.end_step(context);
                }
                if let Some(state) = state_of_parent().filter(|state| is_fault && state.covers(address)) {
                    state.say(address, "this process was forked from the rank; only the rank itself has its segment");
                    if was_on_segment(context) {
                        // It may be within `fork`, under locks that the client's handler would wait for.
                        return take_default(signal, false);
                    }
                }
                chain(signal, info, context);
            },
        }
    });
}

/// The handler of SIGTRAP.
///
/// In a single step every kernel-raised one is the end of the step. Its code is unreliable: the kernel takes it from
/// the processor's DR6, which a virtual machine may lose.
///
/// # Safety
/// Called by the kernel, with the siginfo and the ucontext of `signal`.
unsafe extern "C" fn on_trap(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    keep_errno(|| {
        // SAFETY: `info` and `context` are this handler's for `signal`, from the kernel.
        unsafe {
            let was_raised = (*info).si_code > 0;
            let is_step = was_raised && state().is_some_and(|state| state.end_step(context));
            if !is_step {
                chain(signal, info, context);
            }
        }
    });
}

/// An instruction has raised another signal of the client. The handler may leave the instruction for good, so its
/// single step ends.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
unsafe fn on_synchronous(context: *mut c_void) {
    if let Some(state) = state() {
        // SAFETY: `context` is the ucontext of the calling handler.
        unsafe { state.end_step(context) };
    }
}

/// A handler of the client is about to run, and may leave the interrupted access for good.
fn on_client_handler() {
    if let Some(state) = state() {
        let_go().for_each(|index| state.unpin(index));
    }
}

fn count_miss(access: Access) {
    stats::count(match access {
        Access::Read => Row::FaultRead,
        Access::Write => Row::FaultWrite,
    });
}

/// The access of the interrupted instruction, if the processor reports it.
///
/// # Safety
/// `context` is the ucontext of a handler of a fault.
#[cfg(target_arch = "x86_64")]
unsafe fn access_of(context: *mut c_void) -> Option<Access> {
    /// The bit for a write in the error code of a page fault (Intel SDM, volume 3, 4.7).
    const WRITE: i64 = 2;
    // SAFETY: `context` is a ucontext, and after a fault this register has the error code.
    let error = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    Some(if error & WRITE != 0 { Access::Write } else { Access::Read })
}

/// The access of the interrupted instruction, if the kernel reports it.
///
/// # Safety
/// `context` is the ucontext of a handler of a fault.
#[cfg(target_arch = "aarch64")]
unsafe fn access_of(context: *mut c_void) -> Option<Access> {
    /// Behind the fault's address, 31 registers, sp, pc and pstate, aligned to 16.
    const RECORDS_OFFSET_BYTES: usize = 288;
    const RECORDS_BYTES: usize = 4096;
    // SAFETY: `context` is a ucontext, which contains this part. No reference to its fields is made.
    let machine = unsafe { &raw const (*context.cast::<libc::ucontext_t>()).uc_mcontext }.cast::<u8>();
    // SAFETY: the kernel's records end the machine's context, and are as long (`struct sigcontext` of asm/sigcontext.h).
    let records = unsafe { std::slice::from_raw_parts(machine.add(RECORDS_OFFSET_BYTES), RECORDS_BYTES) };
    syndrome::access_of(records)
}

/// Other processors do not report the access.
///
/// # Safety
/// None: nothing is read.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn access_of(_context: *mut c_void) -> Option<Access> {
    None
}

/// Whether the faulting thread may take the library's locks, and its stack has room for that.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
unsafe fn may_drive(context: *mut c_void) -> bool {
    // SAFETY: `context` is the ucontext of the calling handler.
    unsafe { Frame::of(context).has_room && !was_disturbed(context) }
}

impl FaultState {
    fn covers(&self, address: usize) -> bool {
        (self.view.segment().base..self.guard_end).contains(&address)
    }

    /// Handles a load or store at `address`, in the segment or behind it.
    ///
    /// # Safety
    /// `info` and `context` are the calling handler's for `signal`, from the kernel.
    unsafe fn on_fault(&self, signal: c_int, address: usize, info: *mut libc::siginfo_t, context: *mut c_void) {
        if !self.view.segment().overlaps(address, 1) {
            let why = match self.view.segment().size_bytes {
                0 => "the segment is not attached yet; attach it first",
                _ => "it is behind the segment's end; stay inside, or attach a larger segment",
            };
            self.say(address, why);
            // SAFETY: `info` and `context` are the handler's, from the kernel.
            return unsafe { chain(signal, info, context) };
        }
        // SAFETY: `context` is the ucontext of the handler of the fault.
        unsafe { note_stack(context) };
        let index = self.view.index_of(address);
        // SAFETY: `context` is the ucontext of the handler of the fault.
        let told = unsafe { access_of(context) };
        let access = told.unwrap_or_else(|| self.view.more_than_mapped(index));
        let accessed = self.view.access(index, access);
        if let PageAccess::Pinned { first_use: true, .. } = accessed {
            self.driver.note_first_use(index);
        }
        if let PageAccess::Pinned { notify: true, .. } = accessed {
            self.driver.notify_unpinned();
        }
        if accessed != PageAccess::Missed {
            stats::count(Row::FaultMapped);
        }
        match accessed {
            // An open page is unpinned at once; if it is lost before the instruction, the instruction misses it. But if
            // others were unmapped to make room, the page stays pinned: the instruction might need the others, too.
            PageAccess::Pinned { crowded: false, .. } if !single_step::is_in_flight() => self.unpin(index),
            // SAFETY: `context` is the ucontext of the handler of the fault.
            PageAccess::Pinned { .. } => unsafe { self.keep(index, context) },
            // SAFETY: `context` is the ucontext of the handler of the fault.
            PageAccess::Missed => unsafe { self.on_miss((address, access), told.is_some(), context) },
            PageAccess::Refused(_) => {
                self.unpin(index);
                self.refuse(
                    signal,
                    address,
                    "the system has no more mappings for this process; raise vm.max_map_count and ulimit -v",
                );
            }
        }
    }

    /// Handles a load or store to a page not in the own pool, or without write access. `is_told`: the processor has
    /// reported the access.
    ///
    /// # Safety
    /// `context` is the ucontext of the calling signal handler.
    unsafe fn on_miss(&self, (address, access): (usize, Access), is_told: bool, context: *mut c_void) {
        let index = self.view.index_of(address);
        // SAFETY: `context` is the ucontext of the calling handler.
        let repeated = unsafe { repeated_fault::is_repeated(context, address) };
        let is_repeated = repeated != Some(false);
        if self.borrow_or_give_back(index, access, is_repeated) {
            return stats::count(Row::FaultBorrowed);
        }
        count_miss(access);
        // If an instruction has lost a page or a block, its pages stay pinned. With very many threads this is not
        // known; the page's meter ensures progress.
        let takes_block = is_told && repeated != Some(true) && !single_step::is_in_flight();
        single_step::release_pages().for_each(|index| self.unpin(index));
        single_step::take_turn();
        // SAFETY: `context` is the ucontext of the calling signal handler.
        let may_drive = self.driver.drives_in_faults() && unsafe { may_drive(context) };
        // SAFETY: `context` is the ucontext of the calling signal handler.
        if !unsafe { self.wait_for_page((address, access), takes_block, may_drive, context) } {
            // The instruction runs again, and hits or faults again.
            return;
        }
        let is_first = may_drive && !is_repeated;
        if is_first && !single_step::is_in_flight() && !self.view.is_wanted(index) {
            self.unpin(index);
        } else {
            // SAFETY: `context` is the ucontext of the calling signal handler.
            unsafe { self.keep(index, context) };
        }
    }

    /// For a load, maps a missing page in a neighbour's frame. A repeated load has lost such a page and gets one that
    /// stays; a store needs a page of its own. Returns whether the page is mapped.
    fn borrow_or_give_back(&self, index: u32, access: Access, is_repeated: bool) -> bool {
        if access == Access::Read && !is_repeated {
            return self.driver.space().borrow(index);
        }
        self.driver.give_back(index);
        false
    }

    /// Waits for a page, or for a block of it if the access takes one. After a long wait the thread ends its single
    /// step and lets signals in. Returns whether the page is mapped and pinned; it is not if the block is mapped, or a
    /// handler of the client has run since the page arrived.
    ///
    /// # Safety
    /// `context` is the ucontext of the calling signal handler.
    unsafe fn wait_for_page(
        &self,
        (address, access): (usize, Access),
        takes_block: bool,
        may_drive: bool,
        context: *mut c_void,
    ) -> bool {
        let _waiting = stats::wait(Row::WaitFault);
        let index = self.view.index_of(address);
        // SAFETY: `context` is the ucontext of the calling handler.
        let frame = unsafe { Frame::of(context) };
        left_behind(frame).for_each(|index| self.unpin(index));
        let Some(place) = WaitSlot::take(frame, index, access, may_drive) else {
            // The table is full of waiting threads. This one lets no signals in.
            let fault = Fault::new();
            fault.begin(index, access, may_drive);
            if !self.driver.fetch(&fault) {
                fault.wait(None);
            }
            return true;
        };
        if takes_block {
            let offset_bytes = (address - self.view.segment().base) % self.view.page_bytes();
            place.fault().accept_block((offset_bytes - offset_bytes % MAPPED_BLOCK_BYTES) as u32);
        }
        if !self.driver.fetch(place.fault()) {
            // SAFETY: `context` is the ucontext of the calling handler.
            unsafe { self.end_step(context) };
            // SAFETY: `context` is the ucontext of the calling signal handler.
            place.interruptibly(|| unsafe { with_signals_of(context, || self.wait(place, address)) });
        }
        place.give_back()
    }

    /// Continues the wait for a page with signals let in. Ends the process if the page cannot arrive because this or
    /// another waiting thread holds the lock of MPI.
    fn wait(&self, place: &WaitSlot, address: usize) {
        if self.driver.drives_in_faults() {
            return place.wait(None, || {});
        }
        let mut watch = Watch::default();
        place.wait(Some(LOOK_EVERY), || {
            if watch.is_stuck(self.driver.conduit().call_under_way()) && !IS_SAID.swap(true, Ordering::Relaxed) {
                self.refuse(
                    libc::SIGSEGV,
                    address,
                    "the page comes by MPI, which waits for this access itself; copy to ordinary memory by vgasnet_get, \
                     and give MPI that",
                );
                // SAFETY: the call takes a number only. The signal has its default action, and is not blocked.
                unsafe { libc::raise(libc::SIGSEGV) };
            }
        });
    }

    /// Keeps a page pinned until the instruction has completed, if possible; otherwise unpins it. A debugger takes
    /// every SIGTRAP for its own and would never pass on the end of a single step.
    ///
    /// # Safety
    /// `context` is the ucontext of the calling signal handler.
    unsafe fn keep(&self, index: u32, context: *mut c_void) {
        if is_traced() {
            // SAFETY: `context` is the ucontext of the calling handler.
            unsafe { self.end_step(context) };
            return self.unpin(index);
        }
        // SAFETY: `context` is the ucontext of the calling handler.
        if !unsafe { single_step::keep(index, context) } {
            self.unpin(index);
        }
    }

    /// Ends the single step of the interrupted thread, if any; returns whether there was one.
    ///
    /// # Safety
    /// `context` is the ucontext of the calling signal handler.
    unsafe fn end_step(&self, context: *mut c_void) -> bool {
        // SAFETY: `context` is the ucontext of the calling handler.
        let pages = unsafe { single_step::end(context) };
        let was_in_flight = pages.is_some();
        pages.into_iter().flatten().for_each(|index| self.unpin(index));
        was_in_flight
    }

    fn unpin(&self, index: u32) {
        self.driver.unpin_own(index);
    }

    /// Reports an invalid access, and lets it end the process by the signal that it has raised.
    fn refuse(&self, signal: c_int, address: usize, why: &str) {
        self.say(address, why);
        take_default(signal, false);
    }

    fn say(&self, address: usize, why: &str) {
        let segment = self.view.segment();
        let (base, end) = (segment.base, segment.base + segment.size_bytes);
        let mut buffer = [0u8; 256];
        let mut line = Cursor::new(&mut buffer[..]);
        // Integers and strings only, so nothing is allocated; the line is truncated if it does not fit.
        let _ = writeln!(
            line,
            "vgasnet: rank {}: load or store at {address:#x}, segment {base:#x} to {end:#x}: {why}",
            self.rank
        );
        let len_bytes = line.position() as usize;
        // SAFETY: the buffer has as many bytes. If stderr is closed, there is nobody to tell.
        unsafe { libc::write(libc::STDERR_FILENO, buffer.as_ptr().cast(), len_bytes) };
    }
}
