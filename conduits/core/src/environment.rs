//! Environment variables of this library, as far as the user may set them.
//!
//! A program with more rights than its user (setuid, setgid, file capabilities: `AT_SECURE`, getauxval(3)) must not let
//! the user name files or sizes. In such a program the variables of vgasnet and GASNet count as unset. All of vgasnet
//! reads them through this module.
#![allow(unsafe_code, reason = "getauxval and getenv")]

use std::ffi::{CStr, OsString, c_char};
use std::sync::Once;

use crate::say;

/// Prefixes of these variables.
const PREFIXES: [&str; 2] = ["VGASNET_", "GASNET_"];

/// The value of a variable, unless the user may not set it.
pub fn var_os(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name)?;
    may_set(name, is_secure()).then_some(value)
}

/// As [`var_os`], with the result of C's `getenv`: null if there is none.
pub fn c_value(name: &CStr) -> *mut c_char {
    // SAFETY: the name is a C string.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() || may_set(&name.to_string_lossy(), is_secure()) { value } else { std::ptr::null_mut() }
}

/// As [`var_os`]; `None` if the value is not text.
pub fn var(name: &str) -> Option<String> {
    var_os(name)?.into_string().ok()
}

/// All variables the user may set.
pub fn vars_os() -> impl Iterator<Item = (OsString, OsString)> {
    let is_secure = is_secure();
    std::env::vars_os().filter(move |(name, _)| may_set(&name.to_string_lossy(), is_secure))
}

/// Whether this program has rights its user lacks.
fn is_secure() -> bool {
    // SAFETY: the call takes a number, and reads memory the kernel filled at the program's start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn may_set(name: &str, is_secure: bool) -> bool {
    static TOLD: Once = Once::new();
    let may = !is_secure || !PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if !may {
        TOLD.call_once(|| {
            say(&format!(
                "vgasnet: this program has rights that its user lacks (setuid, setgid or file capabilities), so {name} and all other \
                 variables of vgasnet and GASNet are ignored; run a program without such rights to set them"
            ));
        });
    }
    may
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_library_are_ignored_with_more_rights_only() {
        for (name, is_ours) in [("VGASNET_STATS_FILE", true), ("GASNET_MAX_SEGSIZE", true), ("HOME", false)] {
            assert!(may_set(name, false));
            assert_eq!(may_set(name, true), !is_ours, "{name}");
        }
        assert!(!is_secure());
        assert_eq!(var_os("PATH"), std::env::var_os("PATH"));
        assert!(c_value(c"NO_SUCH_VARIABLE").is_null() && !c_value(c"PATH").is_null());
        assert_eq!(vars_os().count(), std::env::vars_os().count());
    }
}
