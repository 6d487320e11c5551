//! Hooks before `dlopen` and `dlsym`, so that no later object calls the C library's functions in place of the library's
//! interposed ones (`interposed.rs`).
//!
//! Both functions depend on their caller: its object's directories are searched, and `RTLD_NEXT` means the objects
//! after it. So a hook does its own work first and then jumps to the real function, which sees the caller; it calls the
//! real function itself only if the caller does not matter.

use super::interposed::{after_loading, before_lookup, interposed};
use std::ffi::{CStr, c_char, c_int, c_void};

/// The continuation of a hook: a jump to a function if there is one, otherwise a return of the answer.
#[repr(C)]
struct Next {
    function: usize,
    answer: *mut c_void,
}

impl Next {
    fn jump(function: usize) -> Next {
        Next { function, answer: std::ptr::null_mut() }
    }

    fn answer(answer: *mut c_void) -> Next {
        Next { function: 0, answer }
    }
}

/// The names of the functions with the hooks before them.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn all() -> [(&'static CStr, usize); 2] {
    unsafe extern "C" {
        fn vgasnet_on_dlopen_();
        fn vgasnet_on_dlsym_();
    }
    [(c"dlopen", vgasnet_on_dlopen_ as *const () as usize), (c"dlsym", vgasnet_on_dlsym_ as *const () as usize)]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn all() -> [(&'static CStr, usize); 0] {
    []
}

/// Defines a hook of a function with two arguments: calls `$first` with them, and follows its [`Next`].
#[cfg(target_arch = "x86_64")]
macro_rules! hook {
    ($name:literal, $first:path) => {
        std::arch::global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"),
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "endbr64",
            "sub rsp, 24",
            ".cfi_adjust_cfa_offset 24",
            "mov [rsp], rdi",
            "mov [rsp + 8], rsi",
            "call {first}",
            "mov rdi, [rsp]",
            "mov rsi, [rsp + 8]",
            "add rsp, 24",
            ".cfi_adjust_cfa_offset -24",
            "test rax, rax",
            "jz 2f",
            "jmp rax",
            "2:",
            "mov rax, rdx",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            first = sym $first,
        );
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! hook {
    ($name:literal, $first:path) => {
        std::arch::global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"),
            ".balign 4",
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "hint #34", // bti c
            "stp x29, x30, [sp, #-32]!",
            ".cfi_def_cfa_offset 32",
            ".cfi_offset x29, -32",
            ".cfi_offset x30, -24",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "bl {first}",
            "mov x16, x0",
            "mov x17, x1",
            "ldp x0, x1, [sp, #16]",
            "ldp x29, x30, [sp], #32",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "cbz x16, 2f",
            "br x16",
            "2:",
            "mov x0, x17",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            first = sym $first,
        );
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
hook!("vgasnet_on_dlopen_", on_dlopen);
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
hook!("vgasnet_on_dlsym_", on_dlsym);

type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// The dynamic linker's `dlopen`. It is looked up at run time, because a static program that links it depends on shared
/// objects of the C library.
pub(super) fn dlopen() -> Dlopen {
    // SAFETY: the name is a terminated string. Code that runs here was loaded by a dynamic linker, which has the
    // function.
    unsafe { std::mem::transmute::<*mut c_void, Dlopen>(libc::dlsym(libc::RTLD_DEFAULT, c"dlopen".as_ptr())) }
}

/// # Safety
/// As for `dlopen`.
unsafe extern "C" fn on_dlopen(file: *const c_char, mode: c_int) -> Next {
    // SAFETY: the path is null or a terminated string.
    let path = (!file.is_null()).then(|| unsafe { CStr::from_ptr(file) }.to_bytes());
    // Other names are searched for, or expanded, depending on the caller's file.
    if !path.is_some_and(|path| path.contains(&b'/') && !path.contains(&b'$')) {
        return Next::jump(dlopen() as usize);
    }
    // SAFETY: the arguments are the caller's.
    let opened = unsafe { dlopen()(file, mode) };
    after_loading();
    Next::answer(opened)
}

/// # Safety
/// As for `dlsym`.
unsafe extern "C" fn on_dlsym(object: *mut c_void, name: *const c_char) -> Next {
    before_lookup();
    let real = Next::jump(libc::dlsym as *const () as usize);
    if object == libc::RTLD_NEXT || name.is_null() {
        return real;
    }
    // SAFETY: the name is a terminated string.
    let Some((function, c_library)) = interposed(unsafe { CStr::from_ptr(name) }) else { return real };
    // SAFETY: the arguments are the caller's, and its place does not matter for symbols of the C library.
    let found = unsafe { libc::dlsym(object, name) };
    if c_library.contains(&found.addr()) { Next::answer(std::ptr::with_exposed_provenance_mut(function)) } else { real }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn hooks_answer_as_the_real_functions() {
        type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
        let [(_, on_dlopen), (_, on_dlsym)] = all();
        // SAFETY: the hooks have the types of the functions behind them, and the strings are terminated.
        unsafe {
            let on_dlopen = std::mem::transmute::<usize, Dlopen>(on_dlopen);
            let on_dlsym = std::mem::transmute::<usize, Dlsym>(on_dlsym);
            let mut of_libc: libc::Dl_info = std::mem::zeroed();
            assert_ne!(libc::dladdr(libc::getpid as *const c_void, &raw mut of_libc), 0);
            assert!(CStr::from_ptr(of_libc.dli_fname).to_bytes().contains(&b'/'));
            // One path calls the real function, the other jumps to it.
            for path in [of_libc.dli_fname, c"libc.so.6".as_ptr()] {
                let opened = on_dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
                assert_eq!(opened, libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD));
                assert!(!opened.is_null());
                assert_eq!(on_dlsym(opened, c"getpid".as_ptr()), libc::dlsym(opened, c"getpid".as_ptr()));
            }
            assert!(on_dlopen(c"./no such file".as_ptr(), libc::RTLD_LAZY).is_null());
            assert!(!libc::dlerror().is_null());
        }
    }
}
