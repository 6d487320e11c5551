//! MPI as used by this crate: the functions of `shim.c`, and safe names for them.

use std::ffi::{c_char, c_int, c_void};

use vgasnet_conduit::{ConduitError, NAMED, Rank, blocking_signals, keeping_handlers};

unsafe extern "C" {
    fn vgasnet_mpi_start(started: *mut Started) -> c_int;
    fn vgasnet_mpi_init(argc: *mut c_int, argv: *mut *mut *mut c_char, provided: *mut c_int) -> c_int;
    fn vgasnet_mpi_call_before_end(function: extern "C" fn()) -> c_int;
    fn vgasnet_mpi_make_communicators() -> c_int;
    fn vgasnet_mpi_barrier(request: *mut Request) -> c_int;
    fn vgasnet_mpi_receive_init(buffer: *mut c_void, bytes: c_int, request: *mut Request) -> c_int;
    fn vgasnet_mpi_send(buffer: *const c_void, bytes: c_int, to: c_int, tag: c_int, request: *mut Request) -> c_int;
    fn vgasnet_mpi_send_page(
        buffer: *const c_void,
        bytes: c_int,
        to: c_int,
        tag: c_int,
        request: *mut Request,
    ) -> c_int;
    fn vgasnet_mpi_receive_page(
        buffer: *mut c_void,
        bytes: c_int,
        from: c_int,
        tag: c_int,
        request: *mut Request,
    ) -> c_int;
    fn vgasnet_mpi_test(
        request: *mut Request,
        done: *mut c_int,
        source: *mut c_int,
        tag: *mut c_int,
        bytes: *mut c_int,
    ) -> c_int;
    fn vgasnet_mpi_cancel(request: *mut Request) -> c_int;
    fn vgasnet_mpi_abort(status: c_int) -> c_int;
    fn vgasnet_mpi_poll() -> c_int;
    fn vgasnet_mpi_talks_pmi1() -> c_int;
    fn vgasnet_mpi_describe(code: c_int, text: *mut c_char, bytes: c_int) -> c_int;
}

// MPI functions with the same arguments in every MPI.
#[allow(non_snake_case, reason = "MPI's names")]
unsafe extern "C" {
    fn PMPI_Start(request: *mut Request) -> c_int;
    fn PMPI_Finalize() -> c_int;
    fn PMPI_Initialized(is_so: *mut c_int) -> c_int;
    fn PMPI_Finalized(is_so: *mut c_int) -> c_int;
}

/// MPI's values at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Started {
    pub(crate) rank: c_int,
    pub(crate) ranks: c_int,
    /// Maximum tag.
    pub(crate) tag_max: c_int,
    /// 0 to 3: single, funneled, serialized, multiple.
    pub(crate) threads: c_int,
    /// Not 0 if the program had initialised MPI.
    pub(crate) was_there: c_int,
}

/// A failed call's error has its name, and MPI's description.
fn check(what: &str, code: c_int) -> Result<(), ConduitError> {
    if code == 0 {
        return Ok(());
    }
    let mut text = [0_u8; 256];
    // SAFETY: the call writes at most the given number of bytes.
    let len = unsafe { vgasnet_mpi_describe(code, text.as_mut_ptr().cast(), text.len() as c_int) };
    let text = String::from_utf8_lossy(text.get(..len as usize).unwrap_or_default()).into_owned();
    Err(ConduitError(format!("{what}: {text}")))
}

/// MPI's handle of an operation in flight; its representation depends on the implementation.
#[repr(C)]
#[derive(Debug, Default)]
struct Request(u64);

/// Sender and length of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) from: Rank,
    pub(crate) tag: i32,
    len_bytes: usize,
}

/// Starts MPI without changes to the program's signals.
fn with_own_signals<T>(start: impl FnOnce() -> T) -> T {
    blocking_signals(|| keeping_handlers(NAMED, start))
}

/// MPI, started. A process has one, and exclusive access to this value is the right to call it.
#[derive(Debug)]
pub(crate) struct Mpi(());

impl Mpi {
    /// Starts MPI unless the program has. Once a process.
    pub(crate) fn start() -> Result<(Mpi, Started), ConduitError> {
        let mut started = Started::default();
        // SAFETY: the call fills in `started`.
        let code = with_own_signals(|| unsafe { vgasnet_mpi_start(&mut started) });
        check("MPI_Init_thread", code)?;
        Ok((Mpi(()), started))
    }

    /// Separates this crate's traffic from the program's. Collective.
    pub(crate) fn make_communicators(&mut self) -> Result<(), ConduitError> {
        // SAFETY: MPI has started.
        check("MPI_Comm_dup", unsafe { vgasnet_mpi_make_communicators() })
    }

    /// Enters a barrier; collective.
    pub(crate) fn barrier(&mut self) -> Result<Barrier, ConduitError> {
        let mut barrier = Barrier { request: Request::default() };
        // SAFETY: MPI has started, and its communicators are made.
        check("MPI_Ibarrier", unsafe { vgasnet_mpi_barrier(&mut barrier.request) })?;
        Ok(barrier)
    }

    /// Registers `function` to be called when MPI begins to end, through this crate or the program.
    pub(crate) fn call_before_end(&mut self, function: extern "C" fn()) -> Result<(), ConduitError> {
        // SAFETY: MPI has started, and the function lives as long as the process.
        check("MPI_Comm_set_attr", unsafe { vgasnet_mpi_call_before_end(function) })
    }

    fn test(&mut self, request: &mut Request) -> Result<Option<Envelope>, ConduitError> {
        let (mut done, mut source, mut tag, mut bytes) = (0, 0, 0, 0);
        // SAFETY: the request was made by MPI, or is null in its representation after completion.
        check("MPI_Test", unsafe { vgasnet_mpi_test(request, &mut done, &mut source, &mut tag, &mut bytes) })?;
        Ok((done != 0).then_some(Envelope { from: Rank(source as u32), tag, len_bytes: bytes as usize }))
    }

    /// Lets MPI progress its sends. Errors are ignored: no caller waits for them.
    pub(crate) fn poll(&mut self) {
        // SAFETY: MPI has started, and its communicators are made.
        unsafe { vgasnet_mpi_poll() };
    }

    /// Whether this MPI uses PMI-1 with its launcher.
    pub(crate) fn talks_pmi1(&self) -> bool {
        // SAFETY: callable at any time.
        unsafe { vgasnet_mpi_talks_pmi1() != 0 }
    }

    /// Ends MPI. No MPI call may follow.
    pub(crate) fn finalize(&mut self) -> Result<(), ConduitError> {
        // SAFETY: MPI has started; a second call returns an error.
        check("MPI_Finalize", unsafe { finalize() })
    }

    /// Whether this crate or the program has ended MPI.
    pub(crate) fn is_finalized(&self) -> bool {
        let mut is_so = 0;
        // SAFETY: callable at any time.
        unsafe { PMPI_Finalized(&mut is_so) == 0 && is_so != 0 }
    }
}

/// Starts MPI for the program, unless this library has.
///
/// # Safety
/// As for `MPI_Init_thread`; `provided` may be null.
pub(crate) unsafe fn init(argc: *mut c_int, argv: *mut *mut *mut c_char, provided: *mut c_int) -> c_int {
    // SAFETY: the caller passes the arguments of `MPI_Init_thread`.
    with_own_signals(|| unsafe { vgasnet_mpi_init(argc, argv, provided) })
}

/// Ends MPI for the program.
///
/// # Safety
/// As for `MPI_Finalize`.
pub(crate) unsafe fn finalize() -> c_int {
    // SAFETY: this thread has initialised MPI, and nobody calls MPI after this, as `MPI_Finalize` demands.
    unsafe { PMPI_Finalize() }
}

/// Whether this program has initialised MPI.
pub fn is_initialised() -> bool {
    let mut is_so = 0;
    // SAFETY: callable at any time.
    unsafe { PMPI_Initialized(&mut is_so) == 0 && is_so != 0 }
}

/// Ends all ranks of the job. Returns if MPI does not.
pub(crate) fn abort(status: i32) {
    // SAFETY: MPI has started, and lets any thread abort at any time.
    unsafe { vgasnet_mpi_abort(status) };
}

/// A barrier entered by this rank.
pub(crate) struct Barrier {
    request: Request,
}

impl Barrier {
    /// Whether all ranks have entered.
    pub(crate) fn test(&mut self, mpi: &mut Mpi) -> Result<bool, ConduitError> {
        Ok(mpi.test(&mut self.request)?.is_some())
    }
}

/// Memory MPI may use at any time; never freed.
#[derive(Debug)]
struct Buffer {
    base: *mut u8,
    len_bytes: usize,
}

// SAFETY: the buffer belongs to this value, except while MPI uses it from the start of a request to its end.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(len_bytes: usize) -> Buffer {
        let memory: &'static mut [u8] = Box::leak(vec![0; len_bytes].into_boxed_slice());
        Buffer { base: memory.as_mut_ptr(), len_bytes }
    }
}

/// A buffer for arriving messages, one at a time.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    buffer: Buffer,
    request: Request,
}

impl ReceiveBuffer {
    /// A buffer for messages of up to `len_bytes` bytes, ready for one.
    pub(crate) fn new(mpi: &mut Mpi, len_bytes: usize) -> Result<ReceiveBuffer, ConduitError> {
        let mut receive = ReceiveBuffer { buffer: Buffer::new(len_bytes), request: Request::default() };
        let base = receive.buffer.base.cast();
        // SAFETY: the buffer has this length and is never freed.
        let code = unsafe { vgasnet_mpi_receive_init(base, len_bytes as c_int, &mut receive.request) };
        check("MPI_Recv_init", code)?;
        receive.restart(mpi)?;
        Ok(receive)
    }

    /// The arrived message, if there is one.
    pub(crate) fn test(&mut self, mpi: &mut Mpi) -> Result<Option<(Envelope, &[u8])>, ConduitError> {
        let Some(envelope) = mpi.test(&mut self.request)? else { return Ok(None) };
        let len_bytes = envelope.len_bytes.min(self.buffer.len_bytes);
        // SAFETY: MPI is through with the buffer until it is restarted, which takes `self` exclusively.
        Ok(Some((envelope, unsafe { std::slice::from_raw_parts(self.buffer.base, len_bytes) })))
    }

    /// Makes the buffer ready for the next message.
    pub(crate) fn restart(&mut self, _mpi: &mut Mpi) -> Result<(), ConduitError> {
        // SAFETY: the request is persistent and inactive: new, or done.
        check("MPI_Start", unsafe { PMPI_Start(&mut self.request) })
    }

    /// Gives the buffer up; nothing will arrive.
    pub(crate) fn cancel(&mut self, _mpi: &mut Mpi) -> Result<(), ConduitError> {
        // SAFETY: the request is persistent and active.
        check("MPI_Cancel", unsafe { vgasnet_mpi_cancel(&mut self.request) })
    }
}

/// A buffer for departing messages, one at a time.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    buffer: Buffer,
    request: Request,
}

impl SendBuffer {
    /// A buffer for messages of up to `len_bytes` bytes.
    pub(crate) fn new(len_bytes: usize) -> SendBuffer {
        SendBuffer { buffer: Buffer::new(len_bytes), request: Request::default() }
    }

    /// Sends `head` and `body`. The previous send from this buffer must be done.
    pub(crate) fn start(
        &mut self,
        _mpi: &mut Mpi,
        to: Rank,
        tag: i32,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), ConduitError> {
        let len_bytes = head.len() + body.len();
        assert!(len_bytes <= self.buffer.len_bytes, "a message of {len_bytes} bytes");
        let base = self.buffer.base;
        // SAFETY: both parts fit the buffer, which MPI does not use now; it stays unchanged until the request is done.
        let code = unsafe {
            base.copy_from_nonoverlapping(head.as_ptr(), head.len());
            base.add(head.len()).copy_from_nonoverlapping(body.as_ptr(), body.len());
            vgasnet_mpi_send(base.cast(), len_bytes as c_int, to.0 as c_int, tag, &mut self.request)
        };
        check("MPI_Isend", code)
    }

    /// Whether the buffer is free again.
    pub(crate) fn test(&mut self, mpi: &mut Mpi) -> Result<bool, ConduitError> {
        Ok(mpi.test(&mut self.request)?.is_some())
    }
}

/// A page in flight from or to this rank's pool.
#[derive(Debug, Default)]
pub(crate) struct PageMove(Request);

impl PageMove {
    /// Sends the bytes at `base`.
    ///
    /// # Safety
    /// The bytes are mapped and unchanged until the move is done.
    pub(crate) unsafe fn send(
        _mpi: &mut Mpi,
        base: *const u8,
        len_bytes: usize,
        to: Rank,
        tag: i32,
    ) -> Result<PageMove, ConduitError> {
        let mut page = PageMove::default();
        // SAFETY: the caller guarantees the bytes mapped and unchanged until the move is done.
        let code = unsafe { vgasnet_mpi_send_page(base.cast(), len_bytes as c_int, to.0 as c_int, tag, &mut page.0) };
        check("MPI_Isend", code).map(|()| page)
    }

    /// Receives bytes from another rank with this tag.
    ///
    /// # Safety
    /// The bytes are mapped, and unused until the move is done.
    pub(crate) unsafe fn receive(
        _mpi: &mut Mpi,
        base: *mut u8,
        len_bytes: usize,
        from: Rank,
        tag: i32,
    ) -> Result<PageMove, ConduitError> {
        let (mut page, len, rank) = (PageMove::default(), len_bytes as c_int, from.0 as c_int);
        // SAFETY: the caller guarantees the bytes mapped and unused until the move is done.
        let code = unsafe { vgasnet_mpi_receive_page(base.cast(), len, rank, tag, &mut page.0) };
        check("MPI_Irecv", code).map(|()| page)
    }

    /// Whether the bytes have arrived, or have left.
    pub(crate) fn test(&mut self, mpi: &mut Mpi) -> Result<bool, ConduitError> {
        Ok(mpi.test(&mut self.0)?.is_some())
    }
}
