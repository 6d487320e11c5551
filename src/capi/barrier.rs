//! The barrier.

use super::boundary::{Refusal, attached, entry_points};
use super::sync::not_ready;
use super::{ERR_BARRIER_MISMATCH, OK};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicBool;
use vgasnet_protocol::barrier::{Misuse, Name};
use vgasnet_settings::UserError;

/// `VGASNET_BARRIERFLAG_ANONYMOUS`.
const ANONYMOUS: c_int = 1;
/// `VGASNET_BARRIERFLAG_MISMATCH`.
const MISMATCH: c_int = 2;
/// `VGASNET_BARRIERFLAG_UNNAMED`, which includes [`ANONYMOUS`].
const UNNAMED: c_int = 5;
/// `VGASNET_BARRIERFLAG_IMAGES`.
pub(super) const IMAGES: c_int = 8;

entry_points! {
    fn vgasnet_barrier_notify(id: c_int, flags: c_int) {
        let notified = attached()?.driver().barrier_notify(name(id, flags)?);
        notified.or_else(|misuse| tolerate("vgasnet_barrier_notify", misuse, ()))
    }

    fn vgasnet_barrier_wait(id: c_int, flags: c_int) -> c_int {
        let answer = attached()?.driver().barrier_wait(name(id, flags)?).map(code);
        answer.or_else(|misuse| tolerate("vgasnet_barrier_wait", misuse, OK))
    }

    fn vgasnet_barrier_try(id: c_int, flags: c_int) -> c_int {
        let name = name(id, flags)?;
        let answer = attached()?.driver().barrier_try(name).map(|matched| matched.map_or_else(not_ready, code));
        answer.or_else(|misuse| tolerate("vgasnet_barrier_try", misuse, OK))
    }

    fn vgasnet_barrier(id: c_int, flags: c_int) -> c_int {
        let (name, driver) = (name(id, flags)?, attached()?.driver());
        driver.barrier_notify(name).or_else(|misuse| tolerate("vgasnet_barrier", misuse, ()))?;
        driver.barrier_wait(name).map(code).map_err(misuse)
    }
}

/// GASNet checks the order of calls only if built with checks, and clients rely on this. A second notify is ignored,
/// and a wait without a notify returns at once.
fn tolerate<T>(call: &str, found: Misuse, answer: T) -> Result<T, Refusal> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let refusal = misuse(found);
    let is_mild = matches!(found, Misuse::NotifiedTwice | Misuse::NotNotified);
    if is_mild { refusal.tolerate(call, &WARNED).map(|()| answer) } else { Err(refusal) }
}

entry_points! {
    unsafe fn vgasnet_barrier_result(id: *mut c_int) -> c_int {
        let place = place(id)?;
        Ok(answer(attached()?.driver().barrier_result().map_err(misuse)?, place))
    }
}

/// The client's place for a barrier's id.
///
/// # Safety
/// `id` is null, or valid for writes of an int during the call, and nothing else uses its memory meanwhile.
pub(super) unsafe fn place<'a>(id: *mut c_int) -> Result<&'a mut MaybeUninit<c_int>, UserError> {
    // SAFETY: the pointer is null or valid for writes. This is the only reference to its memory, and nothing reads it.
    let place = unsafe { id.cast::<MaybeUninit<c_int>>().as_mut() };
    place.ok_or_else(|| UserError::new("the place for the id is a null pointer"))
}

/// Writes the id, if the barrier had one. Returns 0 if it had one, otherwise 1.
pub(super) fn answer(of_all: Name, place: &mut MaybeUninit<c_int>) -> c_int {
    match of_all {
        Name::Id(id) => {
            place.write(id);
            0
        }
        Name::Anonymous | Name::Mismatch => 1,
    }
}

pub(super) fn code(matched: bool) -> c_int {
    if matched { OK } else { ERR_BARRIER_MISMATCH }
}

pub(super) fn name(id: c_int, flags: c_int) -> Result<Name, UserError> {
    match flags & !IMAGES {
        0 => Ok(Name::Id(id)),
        ANONYMOUS | UNNAMED => Ok(Name::Anonymous),
        // `MISMATCH` also combines with `ANONYMOUS` and `UNNAMED`.
        MISMATCH | 3 | 7 => Ok(Name::Mismatch),
        _ => Err(UserError::new(format!(
            "flags {flags:#x} are unknown; allowed are 0 and VGASNET_BARRIERFLAG_ANONYMOUS (1), _MISMATCH (2), \
             _UNNAMED (5) and _IMAGES (8)"
        ))),
    }
}

pub(super) fn misuse(misuse: Misuse) -> Refusal {
    let line = match misuse {
        Misuse::NotifiedTwice => "this rank has notified already; wait for that barrier before you notify again",
        Misuse::NotNotified => "this rank has not notified; call vgasnet_barrier_notify first",
        Misuse::NoResult => {
            "no barrier has just ended with VGASNET_OK; call it between such a barrier and the next notify"
        }
    };
    UserError::new(line).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_the_barrier() {
        assert_eq!(name(7, 0), Ok(Name::Id(7)));
        assert_eq!(name(7, ANONYMOUS), Ok(Name::Anonymous));
        assert_eq!(name(7, MISMATCH), Ok(Name::Mismatch));
        assert_eq!(name(7, ANONYMOUS | MISMATCH), Ok(Name::Mismatch));
        assert_eq!(name(7, UNNAMED | IMAGES), Ok(Name::Anonymous));
        assert_eq!(name(7, IMAGES), Ok(Name::Id(7)));
        assert_eq!(name(7, UNNAMED | MISMATCH), Ok(Name::Mismatch));
        for flags in [4, 6, 12, 16, -1, c_int::MIN] {
            assert!(name(7, flags).is_err(), "{flags}");
        }
    }
}
