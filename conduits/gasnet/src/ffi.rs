//! GASNet as used by this crate: safe names for the functions of gasnet-sys.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use gasnet_sys as sys;
use vgasnet_conduit::{Busy, ConduitError, NAMED, Rank, Region, blocking_signals, keeping_handlers};

use crate::arguments::Arguments;
use crate::inbox::{Inbox, MessageKind};

/// A static, because a process has one GASNet.
pub(crate) static INBOX: Inbox = Inbox::new();

static IS_ATTACHED: AtomicBool = AtomicBool::new(false);

/// A failed call's error has its name and GASNet's reason.
fn check(what: &str, code: c_int) -> Result<(), ConduitError> {
    if code == sys::VGASNET_GN_OK as c_int {
        return Ok(());
    }
    // SAFETY: callable at any time.
    let reason = text(unsafe { sys::vgasnet_gn_error(code) });
    Err(ConduitError(format!("{what} failed with {reason}")))
}

fn text(constant: *const c_char) -> String {
    // SAFETY: the shim returns GASNet's string constants.
    unsafe { CStr::from_ptr(constant) }.to_string_lossy().into_owned()
}

unsafe extern "C" fn deliver(from: u32, kind: u32, bytes: *const c_void, len_bytes: usize) {
    let bytes = if len_bytes == 0 {
        &[]
    } else {
        // SAFETY: GASNet lends the handler this many bytes, unchanged until it returns.
        unsafe { std::slice::from_raw_parts(bytes.cast(), len_bytes) }
    };
    INBOX.deliver(Rank(from), kind, bytes);
}

/// Starts GASNet without changes to the program's signals.
fn with_own_signals<T>(start: impl FnOnce() -> T) -> T {
    match conduit().as_str() {
        // Its ranks end each other by this signal.
        "SMP" => keeping_handlers(NAMED.filter(|&signal| signal != libc::SIGIO), start),
        "MPI" => keeping_handlers(NAMED, || blocking_signals(start)),
        // GASNet may start the other ranks here, and they would inherit the mask.
        _ => keeping_handlers(NAMED, start),
    }
}

/// Starts GASNet. Once a process.
pub(crate) fn start(arguments: &Arguments) -> Result<sys::vgasnet_gn_started, ConduitError> {
    let mut started = sys::vgasnet_gn_started::default();
    let (count, values) = (arguments.count, arguments.values);
    // SAFETY: `Arguments` satisfies GASNet's requirements, and the call fills in `started`.
    let code = with_own_signals(|| unsafe { sys::vgasnet_gn_start(count, values, Some(deliver), &mut started) });
    check("the start of GASNet", code)?;
    Ok(started)
}

/// Attaches GASNet for the program, as `gasnet_attach` does, and for vgasnet. Collective, once, before the network
/// starts.
///
/// # Errors
/// GASNet is not initialised, or it refuses.
///
/// # Safety
/// `table` has `count` entries of `gasnet_handlerentry_t`.
pub unsafe fn attach_both(
    table: *mut c_void,
    count: c_int,
    segment_bytes: usize,
    min_heap_offset: usize,
) -> Result<(), ConduitError> {
    // SAFETY: the caller guarantees that `table` has `count` entries.
    let code = with_own_signals(|| unsafe {
        sys::vgasnet_gn_attach_both(table, count, segment_bytes, min_heap_offset, Some(deliver))
    });
    if code == sys::VGASNET_GN_NOT_STARTED {
        let text = "GASNet is not initialised, or another copy of it is; call gasnet_init first, and link the program with \
                    libvgasnet.a, so that both use one GASNet";
        return Err(ConduitError(text.to_owned()));
    }
    let attached = check("gasnet_attach", code);
    IS_ATTACHED.store(attached.is_ok(), Ordering::Release);
    attached
}

/// Whether the program has attached GASNet for both.
pub fn is_attached() -> bool {
    IS_ATTACHED.load(Ordering::Acquire)
}

/// GASNet's name for its conduit, such as `UDP`.
pub(crate) fn conduit() -> String {
    // SAFETY: callable at any time.
    text(unsafe { sys::vgasnet_gn_conduit() })
}

/// Makes memory the segment, and returns its address for peers. Once, collective.
///
/// # Safety
/// It stays mapped until the process ends, and is a shared mapping.
pub(crate) unsafe fn bind(memory: Region) -> Result<usize, ConduitError> {
    let mut address = std::ptr::null_mut();
    // SAFETY: the caller guarantees a permanent shared mapping. GASNet-1's replaced memory is empty.
    let code = unsafe { sys::vgasnet_gn_bind(memory.at(0).cast(), memory.len_bytes, &mut address) };
    check("making the pool GASNet's segment", code)?;
    Ok(address.expose_provenance())
}

/// Lets GASNet create the segment. Returns its start, and vgasnet's part of it. Once, collective.
pub(crate) fn allocate(len_bytes: usize) -> Result<(usize, Region), ConduitError> {
    let (mut segment, mut base) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the call fills in the two addresses.
    check("gex_Segment_Attach", unsafe { sys::vgasnet_gn_allocate(len_bytes, &mut segment, &mut base) })?;
    Ok((segment.expose_provenance(), Region { address: base.expose_provenance(), len_bytes }))
}

/// Whether the segment of `rank` is mapped here, or will be.
pub(crate) fn is_neighbour(rank: Rank) -> bool {
    // SAFETY: GASNet has started, and `rank` is in the job.
    unsafe { sys::vgasnet_gn_is_neighbour(rank.0) != 0 }
}

/// The start of `rank`'s segment, if it is mapped here.
pub(crate) fn mapped(rank: Rank) -> Option<usize> {
    // SAFETY: the segments exist, and `rank` is in the job.
    let here = unsafe { sys::vgasnet_gn_mapped(rank.0) };
    (!here.is_null()).then(|| here.expose_provenance())
}

/// Sends a message if there is room.
pub(crate) fn send(to: Rank, kind: MessageKind, bytes: &[u8]) -> Result<Result<(), Busy>, ConduitError> {
    // SAFETY: GASNet has started and reads this many bytes.
    let code = unsafe { sys::vgasnet_gn_send(to.0, kind as u32, bytes.as_ptr().cast(), bytes.len()) };
    if code == sys::VGASNET_GN_BUSY { Ok(Err(Busy)) } else { check("gasnet_AMRequestMedium", code).map(Ok) }
}

/// Sends a message, waiting for room.
pub(crate) fn send_patiently(to: Rank, kind: MessageKind, bytes: &[u8]) -> Result<(), ConduitError> {
    // SAFETY: `bytes` is valid for reads of its length, and the C function keeps no address of it.
    let code = unsafe { sys::vgasnet_gn_send_patiently(to.0, kind as u32, bytes.as_ptr().cast(), bytes.len()) };
    check("gasnet_AMRequestMedium", code)
}

/// Processes arrivals.
pub(crate) fn poll() -> Result<(), ConduitError> {
    // SAFETY: GASNet has started.
    check("gasnet_AMPoll", unsafe { sys::vgasnet_gn_poll() })
}

/// The two ends of a copy: local bytes and bytes of a peer's segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) here: *mut u8,
    pub(crate) peer: Rank,
    pub(crate) there: *mut u8,
    pub(crate) len_bytes: usize,
}

// SAFETY: these are addresses; the copying functions state the requirements on them.
unsafe impl Send for Ends {}

/// A copy started by GASNet.
#[derive(Debug)]
pub(crate) struct Begun(*mut c_void);

// SAFETY: a handle of GASNet. Where only the starting thread may test it, `transfers` ensures this.
unsafe impl Send for Begun {}

impl Begun {
    /// Copies from here to there.
    ///
    /// # Safety
    /// The local bytes are mapped and unchanged until completion. The remote bytes lie in the peer's segment and are
    /// not in use.
    pub(crate) unsafe fn put(ends: Ends) -> Begun {
        let Ends { here, peer, there, len_bytes } = ends;
        // SAFETY: the caller guarantees both ends valid and untouched until completion.
        Begun(unsafe { sys::vgasnet_gn_put(peer.0, there.cast(), here.cast(), len_bytes) })
    }

    /// Copies from there to here.
    ///
    /// # Safety
    /// As [`Begun::put`], with the ends exchanged.
    pub(crate) unsafe fn get(ends: Ends) -> Begun {
        let Ends { here, peer, there, len_bytes } = ends;
        // SAFETY: the caller guarantees both ends valid and untouched until completion.
        Begun(unsafe { sys::vgasnet_gn_get(peer.0, here.cast(), there.cast(), len_bytes) })
    }

    /// Whether it is complete.
    pub(crate) fn is_complete(&mut self) -> bool {
        // SAFETY: GASNet has not yet reported completion of this handle: it would be null.
        if !self.0.is_null() && unsafe { sys::vgasnet_gn_is_complete(self.0) != 0 } {
            self.0 = std::ptr::null_mut();
        }
        self.0.is_null()
    }
}

/// Flushes the output streams of the C library.
pub(crate) fn flush() {
    // SAFETY: the call has no precondition.
    unsafe { sys::vgasnet_gn_flush() }
}

/// This process's connection to GASNet's launcher, if the launcher reacts to its loss.
pub(crate) fn connection() -> Option<BorrowedFd<'static>> {
    // SAFETY: GASNet has started, and keeps its connection until the process ends.
    unsafe {
        let descriptor = sys::vgasnet_gn_connection();
        (descriptor >= 0).then(|| BorrowedFd::borrow_raw(descriptor))
    }
}

/// Sets whether GASNet reads from its launcher.
pub(crate) fn hear_launcher(hears: bool) {
    // SAFETY: GASNet has started. A concurrent poll reads either value of one word.
    unsafe { sys::vgasnet_gn_hear_launcher(hears.into()) }
}

/// Ends all ranks.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: GASNet has started, and any thread may end the job at any time.
    unsafe { sys::vgasnet_gn_exit(status) };
    std::process::abort()
}
