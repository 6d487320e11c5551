//! Alternate stacks for signal handlers. A thread whose own stack is used up gets SIGSEGV, whose handler has the files
//! written before the process ends.

use std::ptr;

/// Bytes of a stack beyond what the kernel stores at a signal.
const BYTES: usize = 64 << 10;

/// A thread's stack, and the page before it, which nobody may access.
struct AlternateStack {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: there is room for the answer. The thread ends. If it does so in a handler on this stack, the kernel
        // refuses to change the stack, and it stays.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            let is_known = libc::sigaltstack(ptr::null(), &mut now) == 0;
            // The program may have set a stack of its own meanwhile.
            let is_used = (self.start.addr()..self.start.addr() + self.bytes).contains(&now.ss_sp.addr());
            if is_known && (!is_used || libc::sigaltstack(&none, ptr::null_mut()) == 0) {
                libc::munmap(self.start, self.bytes);
            }
        }
    }
}

thread_local! {
    static OWN: Option<AlternateStack> = make();
}

/// Gives this thread an alternate stack, unless it has one. At its end the thread loses it.
pub fn prepare() {
    // The values of an ending thread may be gone.
    let _ended = OWN.try_with(|_| ());
}

fn make() -> Option<AlternateStack> {
    // SAFETY: the calls have no preconditions, and there is room for the answer. The mapping is new, and nobody else's.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        if libc::sigaltstack(ptr::null(), &mut now) != 0 || now.ss_flags & libc::SS_DISABLE == 0 {
            return None;
        }
        let guard = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let room = (libc::getauxval(libc::AT_MINSIGSTKSZ) as usize).next_multiple_of(guard) + BYTES;
        let (bytes, flags) = (guard + room, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        let start = libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return None;
        }
        let own = AlternateStack { start, bytes };
        libc::mprotect(start, guard, libc::PROT_NONE);
        let stack = libc::stack_t { ss_sp: start.byte_add(guard), ss_flags: 0, ss_size: room };
        (libc::sigaltstack(&stack, ptr::null_mut()) == 0).then_some(own)
    }
}
