//! The GASNet transport: Active Messages, and pages by GASNet's own put and get.
//!
//! If no two ranks share a segment, vgasnet's own memory for the pool becomes GASNet's segment; this crate asks GASNet
//! not to share, because vgasnet shares the memory of a host itself. GASNet-EX accepts such memory. Over a GASNet-1
//! conduit copying by address, such as udp and mpi, it is mapped over the segment. Otherwise, over the smp conduit and
//! over a GASNet-1 driving a network card, the pool lies in a segment of GASNet's.
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

/// The conduit's user-visible name: `gasnet-udp`.
#[cfg(feature = "link")]
pub fn conduit_name() -> String {
    format!("gasnet-{}", ffi::conduit().to_lowercase())
}
