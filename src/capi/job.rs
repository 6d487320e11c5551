//! Job control and queries.

use super::again;
use super::boundary::{self, Refusal, attached, entry_points, initialised};
use super::{ERR_BAD_ARG, ERR_BARRIER_MISMATCH, ERR_IO, ERR_NOT_INIT, ERR_NOT_READY, ERR_RESOURCE, OK};
use super::{client, debug, last_line, preconditions};
use crate::am::Entry;
use crate::job::{self, Arguments, Failure, FailureClass, RankLocation, Runtime};
use std::ffi::{CStr, c_char, c_int, c_void};
use vgasnet_conduit::environment;
use vgasnet_engine::WaitMode;
use vgasnet_settings::UserError;

/// `vgasnet_seginfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentInfo {
    address: *mut c_void,
    size_bytes: usize,
}

unsafe extern "C" {
    /// From glibc: runs `function` with the exit status when the process exits.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn at_process_end(status: c_int, argument: *mut c_void) {
    again::leave_segment!(at_process_end, (status: c_int, argument: *mut c_void));
    boundary::enter("exit", || {
        job::on_process_exit(status);
        Ok(())
    });
}

entry_points! {
    fn vgasnet_exit(status: c_int) {
        job::exit(status)
    }

    fn vgasnet_mynode() -> u32 {
        Ok(initialised()?.conduit().rank().0)
    }

    fn vgasnet_nodes() -> u32 {
        Ok(initialised()?.conduit().ranks())
    }

    fn vgasnet_getMaxLocalSegmentSize() -> usize {
        Ok(initialised()?.max_local_segment_bytes() as usize)
    }

    fn vgasnet_getMaxGlobalSegmentSize() -> usize {
        Ok(initialised()?.max_global_segment_bytes() as usize)
    }

    fn vgasnet_set_waitmode(mode: c_int) -> c_int {
        let mode = match mode {
            0 => WaitMode::Spin,
            1 => WaitMode::Block,
            2 => WaitMode::SpinBlock,
            _ => return Err(Refusal::bad_argument(format!("mode {mode}; give one of the VGASNET_WAIT_ constants, 0 to 2"))),
        };
        mode.make_current();
        Ok(OK)
    }

    fn vgasnet_ErrorName(code: c_int) -> *const c_char {
        Ok(describe(code).0.as_ptr())
    }

    fn vgasnet_ErrorDesc(code: c_int) -> *const c_char {
        Ok(describe(code).1.as_ptr())
    }
}

entry_points! {
    unsafe fn vgasnet_init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
        init(argc, argv)
    }

    unsafe fn vgasnet_attach(
        table: *mut Entry [entries], entries: c_int, segment_bytes: usize, _min_heap_offset: usize,
    ) -> c_int {
        let count = usize::try_from(entries).ok().filter(|count| *count == 0 || !table.is_null());
        let Some(count) = count else {
            return Err(bad_table(entries, table));
        };
        let handlers = if count == 0 { &mut [] } else { std::slice::from_raw_parts_mut(table, count) };
        attach(segment_bytes, handlers)
    }

    unsafe fn vgasnet_attach_gasnet(
        table: *mut c_void, entries: c_int, segment_bytes: usize, min_heap_offset: usize,
    ) -> c_int {
        boundary::take_over_panics();
        if job::job().is_some() {
            return Err(Refusal::with_code(ERR_NOT_INIT, UserError::new("call it before vgasnet_init, and once")));
        }
        if entries < 0 || (entries > 0 && table.is_null()) {
            return Err(bad_table(entries, table));
        }
        let attached = job::attach_gasnet(table, entries, segment_bytes, min_heap_offset).map(|()| OK);
        attached.map_err(|error| Refusal::with_code(ERR_RESOURCE, UserError::new(error.to_string())))
    }

    unsafe fn vgasnet_getNodeInfo(table: *mut RankLocation [entries], entries: c_int) -> c_int {
        let job = initialised()?;
        for (at, place) in job.places().take(entries_of(table, entries)?).enumerate() {
            table.add(at).write(place);
        }
        Ok(OK)
    }

    unsafe fn vgasnet_getSegmentInfo(table: *mut SegmentInfo [entries], entries: c_int) -> c_int {
        let segments = attached()?.space().segments.all();
        for (at, segment) in segments.take(entries_of(table, entries)?).enumerate() {
            let address = std::ptr::without_provenance_mut(segment.base);
            table.add(at).write(SegmentInfo { address, size_bytes: segment.size_bytes });
        }
        Ok(OK)
    }

    unsafe fn vgasnet_getenv(name: *const c_char) -> *mut c_char {
        initialised()?;
        if name.is_null() {
            return Err(UserError::new("the name is a null pointer; give the name of a variable").into());
        }
        Ok(environment::c_value(CStr::from_ptr(name)))
    }
}

/// Starts the job.
///
/// # Safety
/// As for [`Arguments::of_program`].
pub(super) unsafe fn init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> Result<c_int, Refusal> {
    boundary::take_over_panics();
    // SAFETY: `argc` and `argv` are those of `main`, or null.
    let arguments = unsafe { Arguments::of_program(argc, argv) };
    if let Err(failure) = job::init_with(client::segment_limit_bytes(), arguments) {
        return answer(failure);
    }
    job::watch_signals();
    if initialised()?.config().strict {
        preconditions::check_from_now_on();
    }
    // SAFETY: the function stays loaded for the life of the process: the library cannot be unloaded (build.rs).
    if unsafe { on_exit(at_process_end, std::ptr::null_mut()) } != 0 {
        return Err(UserError::new("the C library refuses an exit handler: there is no memory for it").into());
    }
    job::note_exit_handler();
    Ok(OK)
}

/// Attaches a segment of `segment_bytes`, with these handlers.
pub(super) fn attach(segment_bytes: usize, handlers: &mut [Entry]) -> Result<c_int, Refusal> {
    match job::attach_with(segment_bytes as u64, handlers) {
        Ok(runtime) => {
            note_attached(runtime);
            Ok(OK)
        }
        Err(failure) => answer(failure),
    }
}

/// Tells debuggers and the client about this rank's segment.
pub(super) fn note_attached(runtime: &Runtime) {
    debug::note_layout(runtime.space());
    client::call_attach_hook(runtime.space().own_segment());
}

fn bad_table<T>(entries: c_int, table: *mut T) -> Refusal {
    Refusal::bad_argument(format!(
        "a handler table of {entries} entries at {table:?}; give the table and the number of its entries"
    ))
}

/// The number of entries in a client's table.
fn entries_of<T>(table: *mut T, entries: c_int) -> Result<usize, Refusal> {
    let Ok(entries) = usize::try_from(entries) else {
        return Err(Refusal::bad_argument(format!("{entries} entries; give the number of entries in the table")));
    };
    if table.is_null() && entries > 0 {
        return Err(Refusal::bad_argument(format!("the table of {entries} entries is a null pointer")));
    }
    Ok(entries)
}

/// The answer of init or attach. It has no line if another rank has reported the error.
pub(super) fn answer(failure: Failure) -> Result<c_int, Refusal> {
    let code = match failure.class {
        FailureClass::NotInit => ERR_NOT_INIT,
        FailureClass::Resource => ERR_RESOURCE,
        FailureClass::BadArgument => ERR_BAD_ARG,
    };
    if let Some(said) = failure.said {
        last_line::keep(said);
    }
    failure.line.map_or(Ok(code), |line| Err(Refusal::with_code(code, line)))
}

/// Name and meaning of an error code.
pub(super) fn describe(code: c_int) -> (&'static CStr, &'static CStr) {
    match code {
        OK => (c"VGASNET_OK", c"no error"),
        ERR_NOT_INIT => (c"VGASNET_ERR_NOT_INIT", c"called too early, or once too often"),
        ERR_RESOURCE => (c"VGASNET_ERR_RESOURCE", c"the machine lacks something: disk space, memory or threads"),
        ERR_BAD_ARG => (c"VGASNET_ERR_BAD_ARG", c"an argument or an environment variable makes no sense"),
        ERR_NOT_READY => (c"VGASNET_ERR_NOT_READY", c"not complete yet"),
        ERR_IO => (c"VGASNET_ERR_IO", c"the file system has refused to open, read or write a shared file"),
        ERR_BARRIER_MISMATCH => (c"VGASNET_ERR_BARRIER_MISMATCH", c"the ranks came to the barrier with different ids"),
        _ => (c"unknown", c"this number is no error code of vgasnet"),
    }
}
