//! Lines for the user.

use std::fmt::Display;
use vgasnet_conduit::environment;

/// Shows a line to the user, prefixed with the library's name.
pub fn say(library: &str, line: impl Display) {
    vgasnet_conduit::say(&format!("{library}: {line}"));
}

/// Shows a line on the launcher's first rank, or on all ranks if the launcher sets no rank. MPI is not asked.
pub fn say_by_launcher(library: &str, line: impl Display) {
    let rank = ["PMIX_RANK", "PMI_RANK"].iter().find_map(|name| environment::var(name));
    match rank.as_deref() {
        None => say(library, line),
        Some("0") => say(library, format_args!("rank 0: {line}")),
        Some(_) => {}
    }
}

/// Says that the program has another MPI than this library, so that `consequence`.
pub fn say_other_mpi(library: &str, call: &str, consequence: &str) {
    let own = if cfg!(open_mpi) { "Open MPI" } else { "MPICH" };
    say_by_launcher(
        library,
        format_args!(
            "{call}: the program has another MPI than this library, which was built for {own}; preload the one for its MPI; {consequence}"
        ),
    );
}
