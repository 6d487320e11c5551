//! Hints for files, and vgasnet's settings for cached files.

use crate::{ffi, say};
use std::ffi::CStr;
use vgasnet_mpi_front::kind::Info;
use vgasnet_mpi_front::{Handle, environment};

/// vgasnet's settings if the user has set none: pages as large as the blocks of parallel file systems, and a pool small
/// enough for programs unaware of it.
const DEFAULTS: [(&str, &str); 3] =
    [("VGASNET_PAGE_SIZE", "256K"), ("VGASNET_POOL_SIZE", "128M"), ("VGASNET_CONDUIT", "mpi")];

/// Prefixes of paths accepted by ROMIO, followed by a colon.
const FILE_SYSTEMS: [&str; 8] = ["ufs", "nfs", "xfs", "gpfs", "lustre", "panfs", "daos", "pvfs2"];

/// ROMIO's hints for its two-phase I/O and data sieving.
const FOR_MPI: [&CStr; 9] = [
    c"cb_buffer_size",
    c"cb_config_list",
    c"ind_rd_buffer_size",
    c"ind_wr_buffer_size",
    c"romio_cb_read",
    c"romio_cb_write",
    c"romio_ds_read",
    c"romio_ds_write",
    c"romio_no_indep_rw",
];

/// Sets environment variables not set by the user.
///
/// # Safety
/// No other thread accesses the environment.
pub unsafe fn set_defaults() {
    for (name, value) in DEFAULTS {
        if environment::var_os(name).is_none_or(|value| value.is_empty()) {
            // SAFETY: no other thread accesses the environment, as the caller promises.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

/// Bytes of vgasnet's pages, by the environment: vgasnet has started, so the value is valid.
fn page_bytes() -> Option<usize> {
    parse_bytes(&environment::var("VGASNET_PAGE_SIZE")?)
}

/// A size in vgasnet's format: digits, then at most one of K and M.
fn parse_bytes(text: &str) -> Option<usize> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_shl(shift)
}

/// The possible paths of a name. ROMIO strips the prefix of a file system. Open MPI has ROMIO and also its own
/// component, which does not strip it.
pub fn paths_of(name: &[u8]) -> Vec<&[u8]> {
    let at = name.iter().position(|byte| *byte == b':');
    let path =
        at.filter(|at| FILE_SYSTEMS.iter().any(|known| known.as_bytes() == &name[..*at])).map(|at| &name[at + 1..]);
    match path {
        Some(path) if cfg!(open_mpi) => vec![name, path],
        Some(path) => vec![path],
        None => vec![name],
    }
}

/// Whether the user wants reports of things vgasnet would otherwise ignore.
fn is_checked() -> bool {
    environment::var_os("VGASNET_CHECK").is_some_and(|value| value == "1")
}

/// The hints of an info about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Whether it is cached, if set.
    pub is_cached: Option<bool>,
    /// Contiguous bytes for one rank; 0 if not set.
    pub stripe_bytes: usize,
    /// Number of ranks that read and write it; 0 if not set.
    pub io_ranks: u32,
    /// Hints for MPI's own I/O, which have no effect on a cached file; with commas between them.
    pub ignored: String,
    /// Invalid hints, as `KEY=VALUE: WHAT IS ALLOWED`.
    pub wrong: Vec<String>,
}

impl Hints {
    /// Reports the hints without effect, if requested.
    pub fn tell_ignored(&self, path: &CStr) {
        if !self.ignored.is_empty() && is_checked() {
            let (rank, path, keys) = (ffi::world_rank(), path.to_string_lossy(), &self.ignored);
            say(format_args!(
                "rank {rank}: MPI_File_open: {path} is cached, so hints for MPI's own I/O do nothing: {keys}"
            ));
        }
    }

    /// Reports the invalid hints.
    pub fn tell(&self) {
        let rank = ffi::world_rank();
        self.wrong.iter().for_each(|line| say(format_args!("rank {rank}: MPI_File_open: hint {line}; ignored")));
    }
}

/// Reads a file's hints from the keys of an info.
pub fn hints(value: impl Fn(&CStr) -> Option<String>) -> Hints {
    let mut wrong = Vec::new();
    let [stripe_bytes, io_ranks] = [c"striping_unit", c"cb_nodes"].map(|key| {
        let Some(text) = value(key) else { return 0 };
        text.trim().parse::<u32>().unwrap_or_else(|_| {
            wrong.push(format!("{}={text}: a number up to {} is allowed", key.to_string_lossy(), u32::MAX));
            0
        })
    });
    let is_cached = [c"vgasnet_cache", c"romio_caching"].into_iter().find_map(|key| {
        let text = value(key)?;
        match text.as_str() {
            "enable" | "true" => Some(true),
            "disable" | "false" => Some(false),
            _ => {
                wrong.push(format!("{}={text}: enable and disable are allowed", key.to_string_lossy()));
                None
            }
        }
    });
    let ignored = FOR_MPI.iter().filter(|key| value(key).is_some()).map(|key| key.to_string_lossy());
    let ignored = ignored.collect::<Vec<_>>().join(",");
    Hints { is_cached, stripe_bytes: stripe_bytes as usize, io_ranks, ignored, wrong }
}

/// The hints of an info.
pub fn hints_of(info: Handle<Info>) -> Hints {
    let hints = hints(|key| vgasnet_mpi_front::info(info, key));
    // A stripe consists of whole pages.
    let stripe_bytes = page_bytes().map_or(0, |page_bytes| hints.stripe_bytes.next_multiple_of(page_bytes));
    Hints { stripe_bytes, ..hints }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_system_is_no_part_of_a_path() {
        let either =
            |name: &'static [u8], path: &'static [u8]| if cfg!(open_mpi) { vec![name, path] } else { vec![path] };
        assert_eq!(paths_of(b"ufs:/a/b"), either(b"ufs:/a/b", b"/a/b"));
        assert_eq!(paths_of(b"nfs:x:y"), either(b"nfs:x:y", b"x:y"));
        assert_eq!(paths_of(b"c:x"), [b"c:x"]);
        assert_eq!(paths_of(b"plain"), [b"plain"]);
    }

    #[test]
    fn hints_say_what_is_cached() {
        let of = |pairs: &'static [(&CStr, &str)]| {
            hints(|key| pairs.iter().find(|(its, _)| *its == key).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[]), Hints::default());
        assert_eq!(of(&[(c"romio_caching", "enable")]).is_cached, Some(true));
        assert_eq!(of(&[(c"vgasnet_cache", "disable"), (c"romio_caching", "enable")]).is_cached, Some(false));
        assert_eq!(of(&[(c"vgasnet_cache", "x")]).is_cached, None);
        assert_eq!(
            ["4096", "64K", "4m", "x", "K"].map(parse_bytes),
            [Some(4096), Some(1 << 16), Some(4 << 20), None, None]
        );
        let numbers = of(&[(c"striping_unit", "1048576"), (c"cb_nodes", "2")]);
        assert_eq!((numbers.stripe_bytes, numbers.io_ranks), (1 << 20, 2));
        let wrong = of(&[(c"striping_unit", "nonsense"), (c"cb_nodes", "-1")]);
        assert_eq!((wrong.stripe_bytes, wrong.io_ranks, wrong.wrong.len()), (0, 0, 2));
        assert_eq!(wrong.wrong[0], "striping_unit=nonsense: a number up to 4294967295 is allowed");
    }
}
