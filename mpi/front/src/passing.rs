//! Calls passed on by the library may come back. A tool loaded after the library is called by `MPI_Send` and calls
//! `PMPI_Send`; the process's first definition of `PMPI_Send` is again the library's. MPI's Fortran functions also call
//! the C functions by `PMPI_` names. A returning call goes on to MPI.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

unsafe extern "C" {
    fn vgasnet_mpi_front_has_tool() -> c_int;
}

/// Whether a tool is loaded after the library: 0 if not looked up yet, 1 for no, 2 for yes.
static TOOL: AtomicU8 = AtomicU8::new(0);

thread_local! {
    /// Number of nested program calls served by this thread, counted if a tool is loaded after the library. Meanwhile
    /// the tool's calls by MPI's second names originate from the library.
    static SERVED: Cell<u32> = const { Cell::new(0) };
}

/// Marks a call of the program as being served, until dropped.
#[derive(Debug)]
pub struct Serving {
    is_noted: bool,
}

impl Serving {
    /// Starts serving a call.
    #[inline]
    pub fn begin() -> Serving {
        match TOOL.load(Ordering::Relaxed) {
            1 => Serving { is_noted: false },
            _ => Serving::begin_noted(),
        }
    }

    #[cold]
    fn begin_noted() -> Serving {
        if TOOL.load(Ordering::Relaxed) == 0 {
            // SAFETY: it only looks names up.
            let has_tool = unsafe { vgasnet_mpi_front_has_tool() } != 0;
            TOOL.store(if has_tool { 2 } else { 1 }, Ordering::Relaxed);
            if !has_tool {
                return Serving { is_noted: false };
            }
        }
        Serving { is_noted: SERVED.try_with(|served| served.set(served.get() + 1)).is_ok() }
    }
}

impl Drop for Serving {
    #[inline]
    fn drop(&mut self) {
        if self.is_noted {
            let _ended = SERVED.try_with(|served| served.set(served.get() - 1));
        }
    }
}

fn is_served() -> bool {
    TOOL.load(Ordering::Relaxed) == 2 && SERVED.try_with(|served| served.get() > 0).unwrap_or(false)
}

/// Identifies an MPI function. All names of a function give the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Family(u64);

impl Family {
    /// The family of a name: C or Fortran, MPI's first or second.
    pub(crate) const fn of(name: &[u8]) -> Family {
        let (mut at, mut end) = (0, name.len());
        if name[0] == b'P' || name[0] == b'p' {
            at = 1;
        }
        loop {
            let ends: [&[u8]; 3] = [b"_", b"_f08", b"_cptr"];
            let (mut which, mut is_cut) = (0, false);
            while which < ends.len() {
                if ends_with(name, end, ends[which]) {
                    (end, is_cut) = (end - ends[which].len(), true);
                }
                which += 1;
            }
            if !is_cut {
                break;
            }
        }
        // A tool may start MPI by either function.
        if ends_with(name, end, b"_Init_thread") || ends_with(name, end, b"_init_thread") {
            end -= b"_thread".len();
        }
        let mut hash = 0xcbf2_9ce4_8422_2325;
        while at < end {
            hash = (hash ^ name[at].to_ascii_lowercase() as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        Family(hash)
    }
}

const fn ends_with(name: &[u8], end: usize, text: &[u8]) -> bool {
    if end < text.len() {
        return false;
    }
    let mut at = 0;
    while at < text.len() {
        if name[end - text.len() + at] != text[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The function by which a program ends MPI.
const FINALIZE: Family = Family::of(b"MPI_Finalize");

/// See [`end`].
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Notes that the program has called `MPI_Finalize`, which is passed on next. From now on other calls bypass the tools
/// loaded after the library, since they may have ended. A tool that writes its file at the end makes such calls.
pub fn end() {
    IS_ENDING.store(true, Ordering::Relaxed);
}

/// Whether calls of the family bypass the tools loaded after the library.
#[cold]
pub(crate) fn bypasses_tools(family: Family) -> bool {
    IS_ENDING.load(Ordering::Relaxed) && family != FINALIZE
}

/// Whether any call passed on so far may come back.
static ANY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The calls being passed on by this thread, innermost last.
    static PASSED: RefCell<Vec<Family>> = const { RefCell::new(Vec::new()) };
}

/// Marks a call as being passed on, until dropped.
#[derive(Debug)]
pub struct Passing {
    is_noted: bool,
}

impl Passing {
    /// A call that does not come back.
    #[inline]
    pub(crate) fn away() -> Passing {
        Passing { is_noted: false }
    }

    /// A call that may come back.
    #[cold]
    pub(crate) fn noted(family: Family) -> Passing {
        ANY.store(true, Ordering::Relaxed);
        let is_noted = PASSED.try_with(|passed| passed.borrow_mut().push(family)).is_ok();
        Passing { is_noted }
    }
}

impl Drop for Passing {
    #[inline]
    fn drop(&mut self) {
        if self.is_noted {
            let _ended = PASSED.try_with(|passed| passed.borrow_mut().pop());
        }
    }
}

/// Whether a call of the family by MPI's second name is one this thread is passing on, or a tool's call originating
/// from the library.
#[inline]
pub(crate) fn is_passed(family: Family) -> bool {
    is_served()
        || ANY.load(Ordering::Relaxed) && PASSED.try_with(|passed| passed.borrow().contains(&family)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_function_are_one_family() {
        let same = |names: &[&str]| {
            let first = Family::of(names[0].as_bytes());
            assert!(names.iter().all(|name| Family::of(name.as_bytes()) == first), "{names:?}");
            first
        };
        let of_open =
            same(&["MPI_File_open", "PMPI_File_open", "mpi_file_open_", "mpi_file_open_f08_", "pmpi_file_open_"]);
        let of_allocate = same(&["MPI_Win_allocate", "mpi_win_allocate_cptr_", "pmpi_win_allocate_f08_"]);
        let of_start = same(&["MPI_Init", "MPI_Init_thread", "PMPI_Init_thread", "mpi_init_thread_f08_", "mpi_init_"]);
        let of_get = same(&["MPI_Get", "PMPI_Get"]);
        let others = ["MPI_Get_c", "MPI_Rget", "MPI_File_close"].map(|name| Family::of(name.as_bytes()));
        let all = [[of_open, of_allocate, of_start, of_get].as_slice(), &others].concat();
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])), "{all:?}");
    }

    #[test]
    fn a_call_is_passed_while_it_is_on_its_way() {
        let [first, other] = ["MPI_Put", "MPI_Rput"].map(|name| Family::of(name.as_bytes()));
        assert!(!is_passed(first));
        let outer = Passing::noted(first);
        let inner = Passing::noted(other);
        assert!(is_passed(first) && is_passed(other));
        drop(inner);
        drop(Passing::away());
        assert!(is_passed(first) && !is_passed(other));
        assert!(!std::thread::spawn(move || is_passed(first)).join().expect("it has not panicked"));
        drop(outer);
        assert!(!is_passed(first));
    }
}
