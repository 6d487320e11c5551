//! Functions besides MPI's by which a process ends without its exit handlers. Each has the files written first.

use crate::next_function::{NextFunction, missing};
use crate::rescue;
#[cfg(open_mpi)]
use std::ffi::c_void;
use std::ffi::{c_char, c_int};

static EXIT: NextFunction = NextFunction::new(c"_exit");
#[cfg(open_mpi)]
static ABORT: NextFunction = NextFunction::new(c"ompi_mpi_abort");
#[cfg(not(open_mpi))]
static WRITE: NextFunction = NextFunction::new(c"write");

/// Looks the functions up: a signal handler, which may call `_exit`, must not, nor a child that calls `execve`.
extern "C" fn look_all_up() {
    EXIT.look_up();
    look_replacing_up();
    #[cfg(not(open_mpi))]
    WRITE.look_up();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_all_up;

/// MPI has started.
pub fn prepare() {
    #[cfg(not(open_mpi))]
    launcher::find();
}

fn exit(status: c_int) -> ! {
    rescue::before_exit();
    let next = EXIT.address();
    if next != 0 {
        // SAFETY: the function has this signature.
        let next: unsafe extern "C" fn(c_int) = unsafe { std::mem::transmute(next) };
        // SAFETY: it takes any number.
        unsafe { next(status) };
    }
    loop {
        // SAFETY: it takes any number, and ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// C's function.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    exit(status)
}

/// C's second name of it.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "C's name")]
pub extern "C" fn _Exit(status: c_int) -> ! {
    exit(status)
}

/// Functions that replace the program of a process, which ends what the process had. The variadic ones of C call none of
/// these.
macro_rules! replacing {
    ($($name:ident $next:ident $text:literal ($($argument:ident: $type:ty),*);)*) => {
        $(static $next: NextFunction = NextFunction::new($text);)*

        fn look_replacing_up() {
            $($next.look_up();)*
        }

        $(
        /// C's function.
        ///
        /// # Safety
        /// As C's function requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            let is_rescued = rescue::before_exec();
            // SAFETY: the function has this signature, and takes what the caller promises.
            let failed = unsafe {
                match $next.address() {
                    0 => missing(),
                    next => std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(next)($($argument),*),
                }
            };
            if is_rescued {
                rescue::after_failed_exec();
            }
            failed
        }
        )*
    };
}

type Text = *const c_char;
type Texts = *const *const c_char;

replacing! {
    execv EXECV c"execv" (path: Text, arguments: Texts);
    execve EXECVE c"execve" (path: Text, arguments: Texts, environment: Texts);
    execvp EXECVP c"execvp" (file: Text, arguments: Texts);
    execvpe EXECVPE c"execvpe" (file: Text, arguments: Texts, environment: Texts);
    execveat EXECVEAT c"execveat" (directory: c_int, path: Text, arguments: Texts, environment: Texts, flags: c_int);
    fexecve FEXECVE c"fexecve" (file: c_int, arguments: Texts, environment: Texts);
}

/// Open MPI ends a job by this function, after an error under `MPI_ERRORS_ARE_FATAL` and for `MPI_Abort`, and calls it
/// by its name.
///
/// # Safety
/// Open MPI calls it with a communicator.
#[cfg(open_mpi)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_mpi_abort(comm: *mut c_void, code: c_int) -> c_int {
    rescue::on_error();
    let next = ABORT.address();
    if next == 0 {
        exit(code);
    }
    // SAFETY: the function has this signature.
    let next: unsafe extern "C" fn(*mut c_void, c_int) -> c_int = unsafe { std::mem::transmute(next) };
    // SAFETY: the arguments are those of Open MPI's own call.
    unsafe { next(comm, code) }
}

/// The way to the launcher of MPICH and MPIs made from it. After an error under `MPI_ERRORS_ARE_FATAL` they tell the
/// launcher, which kills the ranks. They export none of their functions on the way there, so `write` is replaced.
#[cfg(not(open_mpi))]
mod launcher {
    use super::WRITE;
    use crate::rescue;
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicI32, Ordering};
    use vgasnet_mpi_front::environment;

    /// The descriptor, or -1.
    static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

    /// The message, perhaps behind its length.
    const ABORT: &[u8] = b"cmd=abort";
    const LENGTH_BYTES: usize = 6;

    pub fn find() {
        let given = environment::var("PMI_FD").and_then(|given| given.parse().ok());
        DESCRIPTOR.store(given.unwrap_or(-1), Ordering::Relaxed);
    }

    /// C's function. MPI writes its message to the launcher with it.
    ///
    /// # Safety
    /// There are `len` bytes at `bytes`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn write(descriptor: c_int, bytes: *const c_void, len: usize) -> isize {
        if descriptor >= 0 && descriptor == DESCRIPTOR.load(Ordering::Relaxed) {
            let seen = len.min(LENGTH_BYTES + ABORT.len());
            // SAFETY: there are as many bytes, as the caller promises.
            let seen = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), seen) };
            if seen.windows(ABORT.len()).any(|bytes| bytes == ABORT) {
                rescue::on_error();
            }
        }
        let next = WRITE.address();
        if next == 0 {
            // SAFETY: there are as many bytes, as the caller promises.
            return unsafe { libc::syscall(libc::SYS_write, descriptor, bytes, len) } as isize;
        }
        // SAFETY: the function has this signature.
        let next: unsafe extern "C" fn(c_int, *const c_void, usize) -> isize = unsafe { std::mem::transmute(next) };
        // SAFETY: there are as many bytes, as the caller promises.
        unsafe { next(descriptor, bytes, len) }
    }
}
