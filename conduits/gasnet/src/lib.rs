//! The GASNet transport: Active Messages, and pages by GASNet's own put and get.
//!
//! The pool is memory of vgasnet's that is made GASNet's segment, where no two ranks share a segment; this crate asks
//! GASNet not to share, because vgasnet shares the memory of a host itself. GASNet-EX can be given such memory. With a
//! GASNet-1 whose conduit copies by address, as udp and mpi do, it is mapped over the segment. Elsewhere, over the smp
//! conduit and over a GASNet-1 that drives a network card, the pool lies in a segment of GASNet's.
//!
//! Handlers of GASNet run inside its calls, in any thread. Ours puts the message into the inbox and returns.
//!
//! Without the feature `link` this crate is empty, and needs no GASNet.

#[cfg(feature = "link")]
mod arguments;
#[cfg(feature = "link")]
mod exit_hooks;
#[cfg(feature = "link")]
mod ffi;
#[cfg(any(feature = "link", test))]
mod inbox;
#[cfg(feature = "link")]
mod network;
#[cfg(any(feature = "link", test))]
mod pools;
#[cfg(feature = "link")]
mod transfers;

#[cfg(feature = "link")]
pub use arguments::Arguments;
#[cfg(feature = "link")]
pub use ffi::{attach_both, is_attached};
#[cfg(feature = "link")]
pub use network::GasnetNetwork;

#[cfg(feature = "link")]
pub use gasnet_sys::{COMPILE, LIBRARIES, MPIEXEC, PROGRAMS};

/// The conduit's name as users write it: `gasnet-udp`.
#[cfg(feature = "link")]
pub fn conduit_name() -> String {
    format!("gasnet-{}", ffi::conduit().to_lowercase())
}
