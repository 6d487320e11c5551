//! The user's settings: environment variables and keys of infos.

use crate::ffi;
use crate::lines::line;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Once, OnceLock};
use vgasnet_getcache::MEMORY_MAX;
use vgasnet_mpi_front::kind::Info;
use vgasnet_mpi_front::{Handle, environment};
use vgasnet_settings::{Audience, parse_size_in, refusal, variables};

/// The condition on which a window's cache relies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Nothing is cached.
    Off,
    /// Nobody writes until the program ends the phase.
    Phase,
    /// Nobody writes while the window exists.
    Always,
    /// Gets share transfers in flight, until this process may have learned from another one.
    Checked,
    /// Ranks tell MPI of every write. A writer raises a word.
    Told,
}

const MODES: [Mode; 5] = [Mode::Off, Mode::Phase, Mode::Always, Mode::Checked, Mode::Told];

impl Mode {
    /// The mode of a number.
    pub fn from_number(number: u8) -> Mode {
        MODES.get(usize::from(number)).copied().unwrap_or(Mode::Off)
    }

    fn from_name(name: &str) -> Option<Mode> {
        // The former mode epoch is today's mode checked.
        let name = if name == "epoch" { "checked" } else { name };
        MODES.into_iter().find(|mode| mode.to_string() == name)
    }

    /// The program's promise by this mode, if any.
    pub fn promise(self) -> Option<&'static str> {
        match self {
            Mode::Off | Mode::Checked => None,
            Mode::Phase => {
                Some("between the first get of a phase and CLAMPI_Invalidate nobody else writes what a rank gets")
            }
            Mode::Always => Some("nobody else writes what a rank has got while there is the window"),
            Mode::Told => Some(
                "a rank that stores to its window, or receives into it, calls MPI_Win_sync, an unlock of itself, a post or a fence \
                 before others may know",
            ),
        }
    }

    /// The mode of a value of CLaMPI's key.
    fn from_clampi(value: &str) -> Option<Mode> {
        match value {
            "1" => Some(Mode::Checked),
            "2" => Some(Mode::Always),
            "3" => Some(Mode::Phase),
            _ => None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Off => "off",
            Mode::Phase => "phase",
            Mode::Always => "always",
            Mode::Checked => "checked",
            Mode::Told => "told",
        })
    }
}

/// The names of the modes, for messages about infos.
const ALLOWED: &str = "allowed are off, checked, told, phase and always";

/// The mode requested by an info. An invalid value is reported, and means off.
pub fn of_info(call: &str, info: Handle<Info>) -> Option<Mode> {
    if let Some(value) = vgasnet_mpi_front::info(info, c"vgasnet_cache") {
        return Some(Mode::from_name(&value).unwrap_or_else(|| refuse(call, "vgasnet_cache", &value, ALLOWED)));
    }
    let value = vgasnet_mpi_front::info(info, c"CLAMPI_MODE")?;
    let allowed = "allowed are 1 (checked), 2 (always) and 3 (phase)";
    Some(Mode::from_clampi(&value).unwrap_or_else(|| refuse(call, "CLAMPI_MODE", &value, allowed)))
}

/// Whether an info has a key of the library.
pub fn has_key(info: Handle<Info>) -> bool {
    [c"vgasnet_cache", c"CLAMPI_MODE"].into_iter().any(|key| vgasnet_mpi_front::info(info, key).is_some())
}

fn refuse(call: &str, key: &str, value: &str, allowed: &str) -> Mode {
    line(call, &format!("{key}={value}: {allowed}; the window is not cached"));
    Mode::Off
}

/// The mode of windows if their infos request none.
pub fn default_mode(call: &str) -> Mode {
    static MODE: OnceLock<Mode> = OnceLock::new();
    *MODE.get_or_init(|| {
        const NAME: &str = "VGASNET_MPI_CACHE";
        let Some(value) = text(NAME) else { return Mode::Off };
        Mode::from_name(&value).unwrap_or_else(|| {
            let refused = refusal(NAME, &value, "is no mode");
            line(call, &format!("{refused}; nothing is cached that no info asks for"));
            Mode::Off
        })
    })
}

/// Names the variables that no library reads, once and on the first rank. Their names may be misspelt.
pub fn tell_unknown(call: &str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| name_unknown(call));
}

fn name_unknown(call: &str) {
    let names = environment::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let known: Vec<&str> = variables(Audience::MpiPrograms).map(|variable| variable.name).collect();
    let is_unknown = |name: &String| name.starts_with("VGASNET_MPI_") && !known.contains(&name.as_str());
    let unknown: Vec<String> = names.filter(is_unknown).collect();
    if !unknown.is_empty() && ffi::world_rank().is_none_or(|rank| rank == 0) {
        let known = known.join(", ");
        line(call, &format!("{} has no effect; the variables for MPI programs are {known}", unknown.join(", ")));
    }
}

fn text(name: &str) -> Option<String> {
    environment::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

/// Whether gets of near targets are cached. Tests of the cache on one host enable it.
#[cfg(test_faults)]
pub fn are_near_cached() -> bool {
    static ARE: OnceLock<bool> = OnceLock::new();
    *ARE.get_or_init(|| text("VGASNET_TEST_MPI_CACHE_NEAR").is_some_and(|value| value == "1"))
}

/// Whether gets of near targets are cached.
#[cfg(not(test_faults))]
pub const fn are_near_cached() -> bool {
    false
}

const SIZE_DEFAULT: u64 = 64 << 20;

/// Maximum memory of the cache in bytes, or 0.
pub fn cache_bytes(call: &str) -> u64 {
    const NAME: &str = "VGASNET_MPI_CACHE_SIZE";
    let Some(value) = text(NAME) else { return SIZE_DEFAULT };
    parse_size_in(&value, 1..=MEMORY_MAX).unwrap_or_else(|why| {
        line(call, &format!("{}; nothing is cached", refusal(NAME, &value, &why)));
        0
    })
}

/// Destination of the statistics.
#[derive(Debug, PartialEq, Eq)]
pub enum Statistics {
    None,
    /// Standard error.
    Shown,
    /// A file for each rank. The rank is appended to this name.
    File(OsString),
}

/// Destination of the statistics.
pub fn statistics() -> Statistics {
    match environment::var_os("VGASNET_MPI_CACHE_STATS") {
        None => Statistics::None,
        Some(value) if value.is_empty() || value == "0" => Statistics::None,
        Some(value) if value == "1" => Statistics::Shown,
        Some(value) => Statistics::File(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_names_and_numbers() {
        for mode in MODES {
            assert_eq!(Mode::from_name(&mode.to_string()), Some(mode));
            assert_eq!(Mode::from_number(mode as u8), mode);
        }
        assert_eq!(Mode::from_name("ALWAYS"), None);
        assert_eq!(Mode::from_clampi("0"), None);
    }
}
