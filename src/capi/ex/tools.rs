//! GASNet-EX's tools: numbers as text, environment variables, the process. They work without a job.

use crate::capi::boundary::{Refusal, entry_points};
use crate::job;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use std::sync::{LazyLock, Mutex};
use vgasnet_conduit::{environment, say};
use vgasnet_settings::UserError;
use vgasnet_settings::{
    GASNET_VERBOSEENV, format_quantity, parse_answer, parse_fraction, parse_integer, parse_quantity,
};

fn parse(text: &str, unit: u64) -> Result<i64, String> {
    if unit == 0 { parse_integer(text) } else { parse_quantity(text, unit) }
}

fn format(value: i64, is_size: bool) -> String {
    if is_size { format_quantity(value) } else { value.to_string() }
}

/// The text of a C pointer, which must not be null.
///
/// # Safety
/// `text` is null, or a C string outliving the answer.
unsafe fn text_of<'a>(text: *const c_char, what: &str) -> Result<Cow<'a, str>, Refusal> {
    if text.is_null() {
        return Err(UserError::new(format!("{what} is a null pointer; give a text")).into());
    }
    // SAFETY: it is a C string outliving the answer.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Whether this rank prints the variables it reads.
fn shows_variables() -> bool {
    let is_first = job::job().is_some_and(|job| job.conduit().rank().0 == 0);
    is_first && environment::var(GASNET_VERBOSEENV).is_some_and(|text| parse_answer(&text) == Some(true))
}

/// Prints a variable, once.
fn show(name: &str, value: &str, is_default: bool) {
    static SHOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if !shows_variables() {
        return;
    }
    let mut shown = SHOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if shown.insert(name.to_owned()) {
        say(&format!("ENV parameter: {name} = {value:<20}{}", if is_default { " (default)" } else { "" }));
    }
}

/// The value of a variable, parsed by `read`. It is `otherwise` if the variable is unset or empty.
///
/// # Safety
/// As for [`text_of`].
unsafe fn variable<T: Copy>(
    name: *const c_char,
    otherwise: T,
    read: impl FnOnce(&str) -> Result<T, String>,
    write: impl FnOnce(T) -> String,
) -> Result<T, Refusal> {
    // SAFETY: the caller's promise.
    let name = unsafe { text_of(name, "the name of the variable")? };
    let text = environment::var_os(&name).map(|text| text.to_string_lossy().into_owned());
    let text = text.filter(|text| !text.trim().is_empty());
    let value = match &text {
        Some(text) => {
            read(text).map_err(|why| UserError::new(format!("{name}={text} {why}; unset it or change it")))?
        }
        None => otherwise,
    };
    show(&name, &write(value), text.is_none());
    Ok(value)
}

/// Writes a text and its zero byte to a place, unless the place is null. Returns the bytes needed.
///
/// # Safety
/// `place` is null, or valid for writes of the text and a byte.
unsafe fn put_text(place: *mut c_char, text: &str) -> usize {
    if !place.is_null() {
        // SAFETY: the place has room for the text and a byte.
        unsafe {
            place.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
            place.add(text.len()).write(0);
        }
    }
    text.len() + 1
}

/// The names of the bits in a mask, such as `GEX_DT_I32|GEX_DT_U32`.
fn bits(prefix: &str, names: &[(u32, &str)], mask: u32) -> String {
    let known = names.iter().fold(0, |known, (bit, _)| known | 1 << bit);
    let named = names.iter().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, name)| format!("{prefix}{name}"));
    let unknown = (mask & !known != 0).then(|| format!("{:#x}", mask & !known));
    let all: Vec<_> = named.chain(unknown).collect();
    if all.is_empty() { "0".into() } else { all.join("|") }
}

const TYPES: [(u32, &str); 7] = [(0, "I32"), (1, "U32"), (2, "I64"), (3, "U64"), (4, "FLT"), (5, "DBL"), (6, "USER")];
const FIELDS: [(u32, &str); 5] = [(0, "SRCRANK"), (1, "ENTRY"), (2, "IS_REQ"), (3, "IS_LONG"), (4, "EP")];
const OPERATIONS: [(u32, &str); 27] = [
    (0, "AND"),
    (1, "OR"),
    (2, "XOR"),
    (3, "ADD"),
    (4, "SUB"),
    (5, "MULT"),
    (6, "MIN"),
    (7, "MAX"),
    (8, "INC"),
    (9, "DEC"),
    (10, "SET"),
    (11, "CAS"),
    (15, "FAND"),
    (16, "FOR"),
    (17, "FXOR"),
    (18, "FADD"),
    (19, "FSUB"),
    (20, "FMULT"),
    (21, "FMIN"),
    (22, "FMAX"),
    (23, "FINC"),
    (24, "FDEC"),
    (25, "SWAP"),
    (26, "FCAS"),
    (27, "GET"),
    (30, "USER"),
    (31, "USER_NC"),
];

entry_points! {
    unsafe fn vgasnet_ex_tool_parse_int(text: *const c_char, unit: u64) -> i64 {
        let text = text_of(text, "the number")?;
        parse(&text, unit).map_err(|why| UserError::new(format!("\"{text}\" {why}")).into())
    }

    unsafe fn vgasnet_ex_tool_format_number(
        value: i64, text: *mut c_char [room], room: usize, is_size: c_int,
    ) -> *mut c_char {
        if text.is_null() {
            return Err(UserError::new("the buffer is a null pointer; give one of 30 bytes").into());
        }
        let written = format(value, is_size != 0);
        if let Some(most) = room.checked_sub(1) {
            put_text(text, &written[..written.len().min(most)]);
        }
        Ok(text)
    }

    unsafe fn vgasnet_ex_tool_getenv_withdefault(name: *const c_char, otherwise: *const c_char) -> *mut c_char {
        let shown = text_of(name, "the name of the variable")?;
        let value = environment::c_value(CStr::from_ptr(name)).cast_const();
        let (answer, is_default) = if value.is_null() { (otherwise, true) } else { (value, false) };
        let text = if answer.is_null() { "*not set*".into() } else { CStr::from_ptr(answer).to_string_lossy() };
        show(&shown, &text, is_default);
        Ok(answer.cast_mut())
    }

    unsafe fn vgasnet_ex_tool_getenv_yesno_withdefault(name: *const c_char, otherwise: c_int) -> c_int {
        let read = |text: &str| parse_answer(text).map(c_int::from).ok_or_else(|| "is neither yes nor no".to_owned());
        variable(name, otherwise, read, |value| if value == 0 { "NO" } else { "YES" }.to_owned())
    }

    unsafe fn vgasnet_ex_tool_getenv_int_withdefault(name: *const c_char, otherwise: i64, unit: u64) -> i64 {
        variable(name, otherwise, |text| parse(text, unit), |value| format(value, unit != 0))
    }

    unsafe fn vgasnet_ex_tool_getenv_dbl_withdefault(name: *const c_char, otherwise: f64) -> f64 {
        variable(name, otherwise, parse_fraction, |value| value.to_string())
    }

    unsafe fn vgasnet_ex_tool_envstr_display(name: *const c_char, value: *const c_char, is_default: c_int) {
        show(&text_of(name, "the name of the variable")?, &text_of(value, "its value")?, is_default != 0);
        Ok(())
    }

    unsafe fn vgasnet_ex_tool_envint_display(name: *const c_char, value: i64, is_default: c_int, is_size: c_int) {
        show(&text_of(name, "the name of the variable")?, &format(value, is_size != 0), is_default != 0);
        Ok(())
    }

    unsafe fn vgasnet_ex_tool_envdbl_display(name: *const c_char, value: f64, is_default: c_int) {
        show(&text_of(name, "the name of the variable")?, &value.to_string(), is_default != 0);
        Ok(())
    }

    unsafe fn vgasnet_ex_tool_maximize_rlimit(resource: c_int, name: *const c_char) -> c_int {
        let variable = format!("GASNET_MAXIMIZE_{}", text_of(name, "the name of the limit")?);
        Ok(c_int::from(is_left_alone(&variable) || maximize(resource)))
    }

    unsafe fn vgasnet_ex_tool_format_dt(text: *mut c_char, types: u32) -> usize {
        Ok(put_text(text, &bits("GEX_DT_", &TYPES, types)))
    }

    unsafe fn vgasnet_ex_tool_format_op(text: *mut c_char, operations: u32) -> usize {
        Ok(put_text(text, &bits("GEX_OP_", &OPERATIONS, operations)))
    }

    unsafe fn vgasnet_ex_tool_format_ti(text: *mut c_char, fields: u32) -> usize {
        Ok(put_text(text, &bits("GEX_TI_", &FIELDS, fields)))
    }
}

entry_points! {
    fn vgasnet_ex_tool_verboseenv() -> c_int {
        Ok(c_int::from(shows_variables()))
    }

    fn vgasnet_ex_tool_exe_name() -> *const c_char {
        static NAME: LazyLock<CString> = LazyLock::new(|| {
            let path = std::env::current_exe().unwrap_or_default();
            CString::new(path.into_os_string().into_vec()).unwrap_or_default()
        });
        Ok(NAME.as_ptr())
    }

    fn vgasnet_ex_tool_set_affinity(processor: c_int) -> c_int {
        Ok(c_int::from(!bind(processor)))
    }

    fn vgasnet_ex_tool_maximize_rlimits() -> c_int {
        let limits = [
            ("RLIMIT_CPU", libc::RLIMIT_CPU),
            ("RLIMIT_DATA", libc::RLIMIT_DATA),
            ("RLIMIT_STACK", libc::RLIMIT_STACK),
            ("RLIMIT_RSS", libc::RLIMIT_RSS),
            ("RLIMIT_AS", libc::RLIMIT_AS),
        ];
        let raise = |(name, resource): &(&str, _)| is_left_alone(&format!("GASNET_MAXIMIZE_{name}")) || maximize(*resource as c_int);
        // Raises each limit even if others fail.
        Ok(c_int::from(limits.iter().filter(|limit| !raise(limit)).count() == 0))
    }
}

/// Whether a variable is set to "no".
fn is_left_alone(variable: &str) -> bool {
    environment::var(variable).is_some_and(|text| parse_answer(&text) == Some(false))
}

fn maximize(resource: c_int) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let resource = resource as _;
    // SAFETY: the structure is valid for the calls, which refuse an unknown resource.
    unsafe {
        if libc::getrlimit(resource, &raw mut limit) != 0 {
            return false;
        }
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(resource, &raw const limit) == 0
    }
}

/// Binds the calling thread to a processor. The number wraps at the machine's processor count.
fn bind(processor: c_int) -> bool {
    // SAFETY: the call takes a number and returns one.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    if processors <= 0 {
        return false;
    }
    let mut set = nix::sched::CpuSet::new();
    let place = i64::from(processor).rem_euclid(processors);
    set.set(place as usize).is_ok() && nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_named_bit_by_bit() {
        assert_eq!(bits("GEX_DT_", &TYPES, 0b101), "GEX_DT_I32|GEX_DT_I64");
        assert_eq!(bits("GEX_OP_", &OPERATIONS, 1 << 31 | 1 << 12), "GEX_OP_USER_NC|0x1000");
        assert_eq!(bits("GEX_TI_", &FIELDS, 0), "0");
    }

    #[test]
    fn yes_and_no_are_read_in_all_spellings() {
        for (text, answer) in [("Y", true), ("yes", true), ("1", true), ("NO", false), ("n", false), ("0", false)] {
            assert_eq!(parse_answer(text), Some(answer), "{text}");
        }
        assert_eq!((parse_answer(""), parse_answer("maybe")), (None, None));
    }
}
