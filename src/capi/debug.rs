//! Lets debuggers find the resident pages of this rank's segment, and read the other pages.

use super::again::leave_segment;
use super::boundary::{Refusal, attached, enter};
use super::{ERR_NOT_READY, ERR_RESOURCE, OK};
use crate::job::{self, Unread};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_memory::{AddressSpace, PageTable};
use vgasnet_protocol::coherence::FrameId;
use vgasnet_settings::UserError;

/// The version of [`Layout`].
const VERSION: u64 = 2;

/// `vgasnet_debug_layout_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Layout {
    version: AtomicU64,
    rank: AtomicU64,
    segment: AtomicU64,
    segment_bytes: AtomicU64,
    page_bytes: AtomicU64,
    entries: AtomicU64,
    entry_bytes: AtomicU64,
    entry_count: AtomicU64,
    key: AtomicU64,
    frames: AtomicU64,
    readable: AtomicU64,
    scratch: AtomicU64,
    scratch_bytes: AtomicU64,
    code: AtomicU64,
}

/// See `include/vgasnet/debug.h`. For C it is a plain structure.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static vgasnet_debug_layout: Layout = Layout {
    version: AtomicU64::new(0),
    rank: AtomicU64::new(0),
    segment: AtomicU64::new(0),
    segment_bytes: AtomicU64::new(0),
    page_bytes: AtomicU64::new(0),
    entries: AtomicU64::new(0),
    entry_bytes: AtomicU64::new(0),
    entry_count: AtomicU64::new(0),
    key: AtomicU64::new(0),
    frames: AtomicU64::new(0),
    readable: AtomicU64::new(0),
    scratch: AtomicU64::new(0),
    scratch_bytes: AtomicU64::new(0),
    code: AtomicU64::new(0),
};

/// The debugger's buffer for calls of [`vgasnet_debug_read`].
static SCRATCH: [AtomicU64; 512] = [const { AtomicU64::new(0) }; 512];

/// Tells debuggers where the pages of this rank's segment are.
pub(super) fn note_layout(space: &AddressSpace) {
    let (segment, layout) = (space.own_segment(), &vgasnet_debug_layout);
    let set = |field: &AtomicU64, value: usize| field.store(value as u64, Ordering::Relaxed);
    set(&layout.rank, space.rank.index());
    set(&layout.page_bytes, space.page_bytes());
    if segment.size_bytes > 0 {
        let format = space.own.table.format();
        set(&layout.segment, segment.base);
        set(&layout.segment_bytes, segment.size_bytes);
        set(&layout.entries, format.entries);
        set(&layout.entry_bytes, format.entry_bytes);
        set(&layout.entry_count, format.count);
        layout.key.store(PageTable::key(space.own_page(0)), Ordering::Relaxed);
        set(&layout.frames, space.own.pool.frame(FrameId(0)).addr());
        layout.readable.store(format.readable, Ordering::Relaxed);
    }
    set(&layout.scratch, SCRATCH.as_ptr().addr());
    set(&layout.scratch_bytes, size_of_val(&SCRATCH));
    layout.version.store(VERSION, Ordering::Release);
}

/// See `include/vgasnet/debug.h`.
///
/// # Safety
/// As the header documents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vgasnet_debug_read(to: *mut c_void, from: *const c_void, len_bytes: usize) -> c_int {
    // SAFETY: the arguments are as this function requires.
    unsafe { vgasnet_debug_read_(to, from, len_bytes) }
}

/// Reads, and stores the answer in the layout.
///
/// # Safety
/// As [`vgasnet_debug_read`].
unsafe extern "C" fn vgasnet_debug_read_body_(to: *mut c_void, from: *const c_void, len_bytes: usize) -> c_int {
    leave_segment!(vgasnet_debug_read_body_, (to: *mut c_void, from: *const c_void, len_bytes: usize) -> c_int);
    // SAFETY: `to` is valid for `len_bytes`, as the header documents.
    let code = enter("vgasnet_debug_read", || unsafe { read(to, from, len_bytes) });
    vgasnet_debug_layout.code.store(code as u64, Ordering::Release);
    code
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn vgasnet_debug_read_(to: *mut c_void, from: *const c_void, len_bytes: usize) -> c_int;
}

// gdb 13 and older cannot restore a thread's vector registers on processors with AMX. This function saves them: XSAVE
// and XRSTOR of all state enabled by the system. CPUID gives the size (Intel SDM, volume 1, chapter 13).
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".hidden vgasnet_debug_read_",
    ".globl vgasnet_debug_read_",
    "vgasnet_debug_read_:",
    "push rbp",
    "mov rbp, rsp",
    "push rbx",
    "push rdi",
    "push rsi",
    "push rdx",
    "mov eax, 1",
    "xor ecx, ecx",
    "cpuid",
    "xor ebx, ebx",
    "bt ecx, 27",
    "jnc 2f",
    "mov eax, 13",
    "xor ecx, ecx",
    "cpuid",
    "2:",
    "mov rdx, [rbp - 32]",
    "mov rsi, [rbp - 24]",
    "mov rdi, [rbp - 16]",
    "test ebx, ebx",
    "jz 3f",
    "sub rsp, rbx",
    "and rsp, -64",
    "xor eax, eax",
    "mov ecx, 8",
    "4: mov [rsp + rcx * 8 + 504], rax",
    "dec ecx",
    "jnz 4b",
    "mov eax, -1",
    "mov edx, -1",
    "xsave64 [rsp]",
    "mov rdx, [rbp - 32]",
    "call {body}",
    "mov ecx, eax",
    "mov eax, -1",
    "mov edx, -1",
    "xrstor64 [rsp]",
    "mov eax, ecx",
    "jmp 5f",
    // Without XSAVE the debugger knows all registers.
    "3: and rsp, -16",
    "call {body}",
    "5: mov rbx, [rbp - 8]",
    "leave",
    "ret",
    body = sym vgasnet_debug_read_body_,
);

#[cfg(not(target_arch = "x86_64"))]
unsafe fn vgasnet_debug_read_(to: *mut c_void, from: *const c_void, len_bytes: usize) -> c_int {
    // SAFETY: the arguments are as this function requires.
    unsafe { vgasnet_debug_read_body_(to, from, len_bytes) }
}

/// # Safety
/// As [`vgasnet_debug_read`].
unsafe fn read(to: *mut c_void, from: *const c_void, len_bytes: usize) -> Result<c_int, Refusal> {
    let space = attached()?.space();
    space.pieces(space.rank.0, from.addr(), len_bytes).map_err(Refusal::bad_argument)?;
    if to.is_null() && len_bytes > 0 {
        return Err(Refusal::bad_argument("the buffer is a null pointer; give one of as many bytes"));
    }
    // SAFETY: the range is in the segment, and `to` is valid for as many bytes.
    match unsafe { job::read_for_debugger(to.cast(), from.addr(), len_bytes) } {
        Ok(()) => Ok(OK),
        Err(Unread::HeldUp) => Ok(ERR_NOT_READY),
        Err(Unread::NoView) => {
            Err(Refusal::with_code(ERR_RESOURCE, UserError::new("the segment cannot be loaded from here; use gets")))
        }
    }
}
