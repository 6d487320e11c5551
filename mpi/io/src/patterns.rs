//! The files named by `VGASNET_MPI_FILES`.

use crate::ffi::{self, Comm};
use crate::say;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_mpi_front::environment;

/// Maximum number of patterns tracked for matches.
const WATCHED: usize = u32::BITS as usize;

/// Patterns, with colons or newlines between them. A pattern without a slash is matched against the last part of a
/// path, a pattern with a slash against the path as given and against the absolute path.
#[derive(Debug)]
pub struct Patterns {
    patterns: Vec<CString>,
    /// A bit for each of the first [`WATCHED`] patterns with a match.
    matched: AtomicU32,
}

impl Patterns {
    fn new(text: &OsString) -> Patterns {
        let parts = parts_of(text.as_bytes()).into_iter().filter(|part| !part.is_empty());
        Patterns { patterns: parts.filter_map(|part| CString::new(part).ok()).collect(), matched: AtomicU32::new(0) }
    }

    /// The patterns of `VGASNET_MPI_FILES`.
    pub fn of_environment() -> &'static Patterns {
        static PATTERNS: OnceLock<Patterns> = OnceLock::new();
        PATTERNS.get_or_init(|| Patterns::new(&environment::var_os("VGASNET_MPI_FILES").unwrap_or_default()))
    }

    /// Whether the user names no files.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a pattern matches a path.
    pub fn match_path(&self, path: &CStr) -> bool {
        let whole = absolute(path);
        let mut is_meant = false;
        for (index, pattern) in self.patterns.iter().enumerate() {
            if matches(pattern, path, whole.as_deref()) {
                is_meant = true;
                self.matched.fetch_or(1_u32.checked_shl(index as u32).unwrap_or(0), Ordering::Relaxed);
            }
        }
        is_meant
    }

    /// Reports at the end the patterns that matched no file on any rank. Collective over all ranks.
    pub fn tell_unmatched(&self) {
        let Some(world) = Comm::world() else { return };
        let matched = self.matched.load(Ordering::Relaxed);
        // Ranks may have different patterns.
        let unmatched: [bool; WATCHED] = std::array::from_fn(|index| matched >> index & 1 == 0);
        let unmatched = world.agree(unmatched);
        if world.rank != 0 {
            return;
        }
        for (pattern, _) in self.patterns.iter().zip(unmatched).filter(|(_, is_unmatched)| *is_unmatched) {
            say(format_args!(
                "rank {}: MPI_Finalize: VGASNET_MPI_FILES: {}: no file that was opened matches this pattern; without a slash it is for the \
                 last part of a name, with one for the whole path",
                ffi::world_rank(),
                pattern.to_string_lossy()
            ));
        }
    }
}

/// Splits a text at its newlines or, if it has none, at its colons. A backslash in front escapes either.
fn parts_of(text: &[u8]) -> Vec<Vec<u8>> {
    let separator = if text.contains(&b'\n') { b'\n' } else { b':' };
    let (mut parts, mut is_escaped) = (vec![Vec::new()], false);
    for byte in text {
        if *byte == separator && !is_escaped {
            parts.push(Vec::new());
        } else {
            // The backslash is kept: the pattern syntax treats it the same way.
            parts.last_mut().expect("there is one").push(*byte);
        }
        is_escaped = *byte == b'\\' && !is_escaped;
    }
    parts
}

fn matches(pattern: &CStr, path: &CStr, whole: Option<&CStr>) -> bool {
    let matches = |text: &CStr| {
        // SAFETY: both are strings.
        unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), 0) == 0 }
    };
    if pattern.to_bytes().contains(&b'/') {
        return matches(path) || whole.is_some_and(matches);
    }
    let last = Path::new(OsStr::from_bytes(path.to_bytes())).file_name();
    last.and_then(|last| CString::new(last.as_bytes()).ok()).is_some_and(|last| matches(&last))
}

/// The absolute path, with `.` and `..` resolved by name.
fn absolute(path: &CStr) -> Option<CString> {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    path.file_name()?;
    let whole = std::env::current_dir().ok()?.join(path);
    let mut plain = PathBuf::new();
    for part in whole.components() {
        // Symbolic links are not resolved.
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    CString::new(plain.into_os_string().into_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_for_names_and_for_paths() {
        let patterns = Patterns::new(&OsString::from("*.nc::check?:/data/*.h5"));
        let is = |path: &CStr| patterns.match_path(path);
        assert!(is(c"a.nc") && is(c"/x/y/a.nc") && is(c"dir/check1") && is(c"/data/deep/a.h5"));
        assert!(!is(c"a.ncx") && !is(c"check") && !is(c"data/a.h5") && !is(c"a.h5") && !is(c""));
        assert_eq!(patterns.matched.load(Ordering::Relaxed), 0b111);
        assert!(!Patterns::new(&OsString::new()).match_path(c"a"));
    }

    #[test]
    fn names_with_colons_can_be_named() {
        let is = |text: &str, path: &CStr| Patterns::new(&OsString::from(text)).match_path(path);
        assert!(is(r"run\:1.dat:*.nc", c"run:1.dat") && is(r"run\:1.dat:*.nc", c"a.nc"));
        assert!(is("run:1.dat\n", c"run:1.dat") && is("*.nc\n/d/run:*", c"/d/run:2"));
        assert!(!is("run:1.dat", c"run:1.dat") && !is("run:1.dat\n", c"1.dat"));
        assert!(is(r"a\\:b", c"b"), "a backslash behind another is itself");
    }

    #[test]
    fn a_relative_name_is_matched_by_its_whole_path() {
        let dir = std::env::current_dir().expect("there is one");
        let pattern = format!("{}/out/*", dir.display());
        let patterns = Patterns::new(&OsString::from(format!("{pattern}\n")));
        let is = |path: &CStr| patterns.match_path(path);
        assert!(is(c"out/a") && is(c"./out/a") && is(c"out/../out/a") && is(c".//out/a"));
        assert!(!is(c"a") && !is(c"out") && !is(c"../out/a"));
        let relative = Patterns::new(&OsString::from("out/*"));
        assert!(relative.match_path(c"out/a") && !relative.match_path(c"./out/a"));
    }
}
