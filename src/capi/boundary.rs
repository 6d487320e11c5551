//! The boundary of the C interface. Panics do not cross it. A refused call is reported in one line, then returns an
//! error code, or ends the job if its function has none.

use super::{ERR_BAD_ARG, ERR_IO, ERR_NOT_INIT, last_line, preconditions};
use crate::job::{self, Job, Runtime};
use std::borrow::Cow;
use std::ffi::{c_char, c_int};
use std::fmt::Display;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_settings::UserError;
use vgasnet_sys::set_errno;

/// The reason for refusing a call.
pub(super) struct Refusal {
    /// The error code for functions with codes. `None` ends the job in every function.
    code: Option<c_int>,
    line: UserError,
    /// The system's errno value, for the caller's `errno`.
    errno: Option<c_int>,
    /// The user was told before. The line is kept for `vgasnet_ErrorLine`, but not printed.
    is_told: bool,
}

impl Refusal {
    #[cold]
    pub(super) fn with_code(code: c_int, line: UserError) -> Refusal {
        Refusal { code: Some(code), line, errno: None, is_told: false }
    }

    /// A refusal by the system, with an errno value.
    #[cold]
    pub(super) fn by_system(errno: c_int, line: UserError) -> Refusal {
        Refusal { code: Some(ERR_IO), line, errno: Some(errno), is_told: false }
    }

    /// Like [`Refusal::by_system`], for a reason the user was told before.
    #[cold]
    pub(super) fn again(errno: c_int) -> Refusal {
        Refusal { is_told: true, ..Refusal::by_system(errno, UserError::new("as before")) }
    }

    #[cold]
    pub(super) fn bad_argument(line: impl Display) -> Refusal {
        Refusal::with_code(ERR_BAD_ARG, UserError::new(line.to_string()))
    }

    /// Answers [`ERR_BAD_ARG`] where the refusal would end the job.
    #[cold]
    pub(super) fn into_bad_argument(self) -> Refusal {
        Refusal { code: self.code.or(Some(ERR_BAD_ARG)), ..self }
    }

    /// Ignores a misuse tolerated by GASNet, with a warning the first time. With `VGASNET_CHECK=1` it is refused.
    #[cold]
    pub(super) fn tolerate(self, call: &str, warned: &AtomicBool) -> Result<(), Refusal> {
        if preconditions::are_checked() {
            return Err(self);
        }
        if !warned.swap(true, Ordering::Relaxed) {
            let line = format!("warning: {}; the call is ignored, and VGASNET_CHECK=1 ends the job instead", self.line);
            job::report(call, &UserError::new(line));
        }
        Ok(())
    }
}

impl From<UserError> for Refusal {
    #[cold]
    fn from(line: UserError) -> Refusal {
        Refusal { code: None, line, errno: None, is_told: false }
    }
}

/// A return type of the C interface's functions.
pub(super) trait Answer: Sized {
    /// The answer for an error code, if the function returns codes.
    fn from_code(_code: c_int) -> Option<Self> {
        None
    }
}

impl Answer for c_int {
    fn from_code(code: c_int) -> Option<c_int> {
        Some(code)
    }
}

impl Answer for () {}
impl Answer for u16 {}
impl Answer for u32 {}
impl Answer for u64 {}
impl Answer for i64 {}
impl Answer for f64 {}
impl Answer for usize {}
impl Answer for *const c_char {}
impl<T> Answer for *mut T {}

/// Runs the body of a function of the C interface.
#[inline(always)]
pub(super) fn enter<T: Answer>(call: &'static str, body: impl FnOnce() -> Result<T, Refusal>) -> T {
    // A panicking body may leave broken state behind, but the process ends before anything uses it.
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(refusal)) => refuse(call, refusal),
        Err(_) => internal_error(call),
    }
}

/// Defines functions of the C interface. The body is a `Result<T, Refusal>`. Functions that differ
/// only in their names share it. A number of items follows the type of a pointer that leads to more than one, or to none
/// that this call may use: `to: *mut c_void [len], place: *mut EventPointer [0]`. See [`super::preconditions`].
///
/// A function with `hit (condition) => answer` gives this answer if the condition holds. Its body is a function of its
/// own then, so that a hit saves no registers.
macro_rules! entry_points {
    (@one unsafe $name:ident ($($argument:ident: $type:ty $([$items:expr])?),* $(,)?) [$($result:tt)*] [] $body:block) => {
        /// See the header, in `include/`.
        ///
        /// # Safety
        /// Each pointer is null, or valid for as many bytes and as long as the header documents.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $($result)* {
            crate::capi::again::leave_segment!($name, ($($argument: $type),*) $($result)*);
            entry_points!(@checked $name ($($argument $([$items])?),*) $body)
        }
    };
    (@checked $name:ident ($($argument:ident $([$items:expr])?),*) $body:block) => {
        // SAFETY: each pointer is null or valid as the header documents. The body checks the pointers for null where the
        // header forbids null. The functions it calls need no more.
        crate::capi::boundary::enter(stringify!($name), || unsafe {
            if crate::capi::preconditions::are_checked() {
                use crate::capi::preconditions::{self, Argument};
                preconditions::check(&[$($argument.seen(&[$(preconditions::items($items))?])),*])?;
            }
            $body
        })
    };
    (@one unsafe $name:ident ($($argument:ident: $type:ty $([$items:expr])?),* $(,)?) [$($result:tt)*] [$hit:expr, $answer:expr]
        $body:block) => {
        /// See the header, in `include/`.
        ///
        /// # Safety
        /// Each pointer is null, or valid for as many bytes and as long as the header documents.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $($result)* {
            /// # Safety
            /// As for the function around it.
            #[inline(never)]
            unsafe extern "C" fn miss($($argument: $type),*) $($result)* {
                crate::capi::again::leave_segment!(miss, ($($argument: $type),*) $($result)*);
                entry_points!(@checked $name ($($argument $([$items])?),*) $body)
            }
            // SAFETY: each pointer is null or valid as the header documents.
            unsafe { if $hit { $answer } else { miss($($argument),*) } }
        }
    };
    (@one safe $name:ident ($($argument:ident: $type:ty),* $(,)?) [$($result:tt)*] [] $body:block) => {
        /// See the header, in `include/`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) $($result)* {
            crate::capi::again::leave_segment!($name, ($($argument: $type),*) $($result)*);
            crate::capi::boundary::enter(stringify!($name), || $body)
        }
    };
    (@each $kind:ident [$($name:ident)+] $arguments:tt $result:tt $hit:tt $body:block) => {
        $(entry_points!(@one $kind $name $arguments $result $hit $body);)+
    };
    ($(unsafe fn $($name:ident)|+ ($($arguments:tt)*) $(-> $result:ty)? $(, hit ($hit:expr) => $answer:expr;)? $body:block)*) => {
        $(entry_points!(@each unsafe [$($name)+] ($($arguments)*) [$(-> $result)?] [$($hit, $answer)?] $body);)*
    };
    ($(fn $($name:ident)|+ ($($arguments:tt)*) $(-> $result:ty)? $body:block)*) => {
        $(entry_points!(@each safe [$($name)+] ($($arguments)*) [$(-> $result)?] [] $body);)*
    };
}
pub(super) use entry_points;

/// The job. Every function except init needs it.
pub(super) fn initialised() -> Result<&'static Job, Refusal> {
    job::job().ok_or_else(|| too_early("the job is not initialised; call vgasnet_init first"))
}

/// The runtime. Transfers, syncs and barriers need it.
#[inline]
pub(super) fn attached() -> Result<&'static Runtime, Refusal> {
    job::runtime().ok_or_else(|| match job::job() {
        Some(_) => too_early("this rank is not attached; call vgasnet_attach first"),
        None => too_early("the job is not initialised; call vgasnet_init and vgasnet_attach first"),
    })
}

/// Makes [`enter`] report panics with the name of the called function. Nobody joins the library's threads, so a panic
/// in one of them ends the job here.
pub(super) fn take_over_panics() {
    panic::set_hook(Box::new(|info| {
        UserError::note_panic(info);
        if std::thread::current().name().is_some_and(|name| name.starts_with("vgasnet-")) {
            job::fail("helper thread", &UserError::of_panic());
        }
    }));
}

#[cold]
fn too_early(line: &str) -> Refusal {
    Refusal::with_code(ERR_NOT_INIT, job::refusal_in_child().unwrap_or_else(|| UserError::new(line)))
}

/// The client's name for a function. Functions of GASNet-EX and of its tools have other names in the library.
fn as_called(call: &str) -> Cow<'_, str> {
    match (call.strip_prefix("vgasnet_ex_tool_"), call.strip_prefix("vgasnet_ex_")) {
        // GASNet-1's header declares it for clients of both interfaces.
        (None, Some("QueryGexObjects")) => "gasnet_QueryGexObjects".into(),
        (Some(name), _) => format!("gasnett_{name}").into(),
        (None, Some(name)) => format!("gex_{name}").into(),
        (None, None) => Cow::Borrowed(call),
    }
}

#[cold]
fn refuse<T: Answer>(call: &str, refusal: Refusal) -> T {
    let errno = refusal.errno;
    let answer = told(call, refusal);
    // Last: a thread freeing memory may wait for other threads, which sets `errno`.
    if let Some(errno) = errno {
        set_errno(errno);
    }
    answer
}

/// Reports a refusal. Returns the answer or ends the job.
fn told<T: Answer>(call: &str, refusal: Refusal) -> T {
    let call = &*as_called(call);
    match refusal.code.and_then(T::from_code) {
        Some(answer) => {
            let text = job::line_of(call, &refusal.line);
            if !refusal.is_told {
                job::say(&text);
            }
            last_line::keep(text);
            answer
        }
        None => job::fail(call, &refusal.line),
    }
}

#[cold]
fn internal_error(call: &str) -> ! {
    job::fail(&as_called(call), &UserError::of_panic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn calls_have_the_names_that_clients_know() {
        let names = ["vgasnet_ex_AM_Poll", "vgasnet_ex_tool_parse_int", "vgasnet_ex_QueryGexObjects", "vgasnet_put"];
        let known = ["gex_AM_Poll", "gasnett_parse_int", "gasnet_QueryGexObjects", "vgasnet_put"];
        assert_eq!(names.map(as_called), known);
    }

    /// Set in the process of a test that ends its own process.
    const APART: &str = "RUN_APART";

    /// Runs a test again in a process of its own. Returns its exit status and stderr, or `None` inside that process.
    fn run_apart(test: &str) -> Option<(Option<i32>, String)> {
        if std::env::var_os(APART).is_some() {
            return None;
        }
        let program = std::env::current_exe().expect("this program has a path");
        let name = format!("capi::boundary::tests::{test}");
        let output = Command::new(program).args(["--exact", &name, "--nocapture"]).env(APART, "1").output();
        let output = output.expect("this program runs");
        Some((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    #[test]
    fn a_panic_is_one_line_and_the_end() {
        let Some((status, stderr)) = run_apart("a_panic_is_one_line_and_the_end") else {
            take_over_panics();
            return enter("vgasnet_get", || -> Result<(), Refusal> { panic!("{} is not\n7", 6) });
        };
        assert_eq!(status, Some(1), "{stderr}");
        assert!(
            stderr.starts_with("vgasnet: vgasnet_get: internal error: 6 is not 7 (src/capi/boundary.rs:"),
            "{stderr}"
        );
        assert!(stderr.ends_with("; please report\n") && stderr.lines().count() == 1, "{stderr}");
    }

    #[test]
    fn a_panic_of_the_helper_ends_the_process() {
        let Some((status, stderr)) = run_apart("a_panic_of_the_helper_ends_the_process") else {
            take_over_panics();
            let helper = std::thread::Builder::new().name("vgasnet-helper".into()).spawn(|| panic!("lost"));
            return helper.expect("a thread").join().expect("not reached");
        };
        assert_eq!(status, Some(1), "{stderr}");
        assert!(stderr.starts_with("vgasnet: helper thread: internal error: lost"), "{stderr}");
    }

    #[test]
    fn a_function_without_a_code_ends_the_process_when_called_too_early() {
        let Some((status, stderr)) = run_apart("a_function_without_a_code_ends_the_process_when_called_too_early")
        else {
            return enter("vgasnet_get", || attached().map(|_| ()));
        };
        assert_eq!(status, Some(1), "{stderr}");
        let expected = "vgasnet: vgasnet_get: the job is not initialised; call vgasnet_init and vgasnet_attach first\n";
        assert_eq!(stderr, expected);
    }

    #[test]
    fn a_function_with_a_code_answers_with_it() {
        assert_eq!(enter("vgasnet_try_syncnb", || attached().map(|_| 0)), ERR_NOT_INIT);
        let refused = || -> Result<c_int, Refusal> { Err(Refusal::bad_argument("-1 entries")) };
        assert_eq!(enter("vgasnet_getSegmentInfo", refused), ERR_BAD_ARG);
        let refused = || -> Result<c_int, Refusal> { Err(Refusal::by_system(libc::ENOSPC, UserError::new("full"))) };
        assert_eq!(enter("vgasnet_file_sync", refused), ERR_IO);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOSPC));
    }

    /// A refusal's line is freed while other threads may hold the heap's lock.
    #[test]
    fn errno_is_the_refusals_while_other_threads_allocate() {
        let Some((status, stderr)) = run_apart("errno_is_the_refusals_while_other_threads_allocate") else {
            for _ in 0..3 {
                std::thread::spawn(|| {
                    loop {
                        drop(std::hint::black_box(vec![0u8; 100]));
                    }
                });
            }
            for i in 0..20_000 {
                let line = move || UserError::new(format!("full {i}"));
                let refused = move || -> Result<c_int, Refusal> { Err(Refusal::by_system(libc::ENOSPC, line())) };
                assert_eq!(enter("vgasnet_file_sync", refused), ERR_IO);
                assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOSPC), "{i}");
            }
            return;
        };
        assert_eq!(status, Some(0), "{}", stderr.lines().last().unwrap_or_default());
    }
}
