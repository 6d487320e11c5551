//! Creation and freeing of windows, and their modes.

use crate::ffi::{self, SUCCESS};
use crate::lines::line;
use crate::locking::lock;
use crate::pools::{self, Choice, Words};
use crate::reissue::reissue;
use crate::report::{COUNTS, count};
use crate::settings::{self, Mode};
use crate::store::WINDOWS_MAX;
use crate::window::Window;
use crate::windows;
use crate::{LIBRARY, completion, meter, news, pending, store};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::{Mutex, Once};
use vgasnet_mpi_front::kind::{Comm, Info, Win};
use vgasnet_mpi_front::{Handle, say_other_mpi};

thread_local! {
    /// Whether this thread is in an MPI function creating or freeing a window. Windows created by MPI itself are not
    /// the program's.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

fn inside<T>(work: impl FnOnce() -> T) -> T {
    let before = IS_INSIDE.replace(true);
    let result = work();
    IS_INSIDE.set(before);
    result
}

/// The arguments of a window's creation.
#[derive(Debug)]
pub struct Creation {
    pub call: &'static str,
    pub unit: i64,
    pub info: Handle<Info>,
    pub comm: Handle<Comm>,
}

/// Exchanged by the ranks when a window is created.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Offer {
    unit: i64,
    mode: u64,
    /// The first rank's choice, if it wants mode told.
    words: Choice,
}

/// `MPI_Win_create` and `MPI_Win_allocate`. `handle` reads the new window's handle, and is called after `next` has
/// succeeded.
pub fn create(creation: &Creation, next: impl Fn() -> c_int, handle: impl FnOnce() -> Handle<Win>) -> c_int {
    let is_inside = IS_INSIDE.get();
    let error = inside(next);
    if error == SUCCESS && !is_inside && is_its_mpi(creation.call) {
        ffi::constants();
        inside(|| make_known(creation, handle()));
    }
    error
}

/// Whether the library was built for the MPI of this process. If not, one line says so.
fn is_its_mpi(call: &str) -> bool {
    static TOLD: Once = Once::new();
    let is_it = vgasnet_mpi_front::is_its_mpi();
    if !is_it {
        // This MPI has other handles, so it cannot be asked for the rank.
        TOLD.call_once(|| say_other_mpi(LIBRARY, call, "no window is cached"));
    }
    is_it
}

/// Creates an uncached window.
pub fn create_other(next: impl Fn() -> c_int) -> c_int {
    inside(next)
}

/// The mode requested for a window at this rank.
fn wanted(creation: &Creation) -> Mode {
    let call = creation.call;
    settings::tell_unknown(call);
    let mode = settings::of_info(call, creation.info).unwrap_or_else(|| settings::default_mode(call));
    if mode != Mode::Off && !(store::prepare(call) && ffi::prepare_types()) { Mode::Off } else { mode }
}

/// This rank's offer for a window.
fn offer(creation: &Creation, has_number: bool, rank: u32) -> Offer {
    let call = creation.call;
    let mut mode = wanted(creation);
    if !has_number && mode != Mode::Off {
        line(call, &format!("there are {WINDOWS_MAX} windows already; this one is not cached"));
        mode = Mode::Off;
    }
    let mut words = Choice::default();
    if mode == Mode::Told && rank == 0 {
        match pools::choose(creation.comm) {
            Some(choice) => words = choice,
            None => {
                line(call, "too many groups of processes have windows in mode told; the window is not cached");
                mode = Mode::Off;
            }
        }
    }
    Offer { unit: creation.unit, mode: mode as u64, words }
}

/// Whether the ranks of a window exchange their offers. A process without the library takes part in no exchange, so
/// there is none unless the user or the program asks for something that concerns all ranks. The cache of one rank needs
/// no other rank in all modes but told.
fn is_exchanged(creation: &Creation) -> bool {
    settings::has_key(creation.info) || settings::default_mode(creation.call) == Mode::Told
}

extern "C" fn tell_late() {
    line(
        "a window's creation",
        "waits for all ranks of the window; all must load the library, with VGASNET_MPI_CACHE=told on all or on none",
    );
}

/// Collective if the offers are exchanged: the units of all ranks, and whether all want mode told.
fn make_known(creation: &Creation, handle: Handle<Win>) {
    let call = creation.call;
    let Some((rank, ranks)) = ffi::place(creation.comm) else { return };
    let number = windows::take_number();
    let mine = offer(creation, number.is_some(), rank);
    let mut offers = vec![Offer::default(); ranks as usize];
    if !is_exchanged(creation) {
        offers[rank as usize] = mine;
    } else {
        // SAFETY: there is an offer for each of the communicator's ranks. It consists of integers, without gaps.
        let is_gathered = unsafe { ffi::gather(creation.comm, &mine, &mut offers, tell_late) };
        if !is_gathered {
            number.into_iter().for_each(windows::return_number);
            return;
        }
    }
    let mut mode = Mode::from_number(mine.mode as u8);
    let words = if is_exchanged(creation) { words_of(call, &offers, rank, creation.comm) } else { None };
    if mode == Mode::Told && words.is_none() {
        mode = Mode::Off;
    }
    let Some(number) = number else { return };
    if mode != Mode::Off {
        begin(call, mode, rank);
    }
    let units: Vec<i64> = offers.iter().map(|offer| offer.unit).collect();
    windows::insert(Box::new(Window::new(handle, number, rank, &units, mode, words)));
}

/// A window is cached from now on. Its first rank shows the promise of its mode, unless this was done for an earlier
/// window of this rank.
fn begin(call: &str, mode: Mode, rank: u32) {
    static TOLD: Mutex<Vec<Mode>> = Mutex::new(Vec::new());
    count(&COUNTS.windows);
    windows::note_mode(mode);
    let mut told = lock(&TOLD);
    if let Some(promise) = mode.promise().filter(|_| !told.contains(&mode)) {
        told.push(mode);
        if rank == 0 {
            line(call, &format!("mode {mode} relies on a promise of the program: {promise}"));
        }
    }
}

/// The words of a window. Collective if all ranks want mode told.
fn words_of(call: &str, offers: &[Offer], rank: u32, comm: Handle<Comm>) -> Option<Words> {
    let told = offers.iter().filter(|offer| offer.mode == Mode::Told as u64).count();
    if told == offers.len() {
        let taken = pools::take(offers[0].words, comm);
        if let Err(code) = &taken {
            line(
                call,
                &format!(
                    "mode told needs a window of its own, which MPI refuses with code {code}; the window is not cached"
                ),
            );
        }
        return taken.ok();
    }
    if told > 0 && rank == 0 {
        let all = offers.len();
        line(call, &format!("{told} of {all} ranks ask for mode told, which needs all; those do not cache the window"));
    }
    if rank == 0 {
        pools::give_back(offers[0].words, comm);
    }
    None
}

/// `MPI_Win_set_info`.
pub fn set_info(handle: Handle<Win>, info: Handle<Info>, next: impl Fn() -> c_int) -> c_int {
    const CALL: &str = "MPI_Win_set_info";
    let error = next();
    let Some(window) = windows::find(handle).filter(|_| error == SUCCESS) else { return error };
    let Some(mut mode) = settings::of_info(CALL, info) else { return error };
    if mode == Mode::Told && window.words.is_none() {
        line(CALL, "mode told is to be asked for when the window is made; the window is not cached");
        mode = Mode::Off;
    }
    if mode != Mode::Off && !(store::prepare(CALL) && ffi::prepare_types()) {
        mode = Mode::Off;
    }
    if window.mode() == Mode::Off && mode != Mode::Off {
        begin(CALL, mode, window.rank);
        window.count_from_now();
        completion::leave_open(window);
    }
    windows::note_mode(mode);
    window.set_mode(mode);
    window.trial.restart(window.space, mode);
    end_phase(window);
    error
}

fn end_phase(window: &Window) {
    store::invalidate(window.space);
    news::learn();
}

/// `CLAMPI_Invalidate`.
pub fn invalidate(handle: Handle<Win>) -> c_int {
    if let Some(window) = windows::find(handle) {
        end_phase(window);
    }
    SUCCESS
}

/// `MPI_Win_free`. The handle is the window's before the call.
pub fn free(handle: Handle<Win>, next: impl Fn() -> c_int) -> c_int {
    let Some(window) = windows::remove(handle) else { return inside(next) };
    let (gets, reissues) = pending::discard_space(window.space);
    if gets > 0 {
        line("MPI_Win_free", &format!("{gets} gets of the window are not complete; end their epoch before"));
    }
    reissue(reissues, &window);
    let error = inside(next);
    if error != SUCCESS {
        windows::insert(window);
        return error;
    }
    meter::release(window.space);
    pending::forget_space(window.space);
    store::forget(window.space);
    windows::return_number(window.space);
    window.words.into_iter().for_each(Words::free);
    error
}
