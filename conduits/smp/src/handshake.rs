//! The messages between a rank and the first party of its host.

use std::io::{self, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use vgasnet_protocol::PROTOCOL_VERSION;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The first byte of a [`Grant`]. No line begins with it.
pub(crate) const GRANTED: u8 = 0;

/// The first bytes of a request.
const GREETING: [u8; 8] = *b"vgasnet?";

/// Maximum request size; those of other versions may be longer than this one's.
pub(crate) const REQUEST_BYTES_MAX: usize = 1024;

/// The answer to a rank of another version.
pub(crate) const OTHER_VERSION: &str =
    "this rank runs another version of vgasnet than its job; give launcher and ranks the same one";

/// Half of a key, as hexadecimal digits.
pub(crate) type HalfKey = [u8; 16];

/// The length of a socket's name.
const NAME_BYTES: usize = 40;

/// The length of an address: a name, a dash and two halves of a key.
pub(crate) const ADDRESS_BYTES: usize = NAME_BYTES + 1 + 2 * size_of::<HalfKey>();

/// The request of a rank.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Request {
    /// [`GREETING`] and [`PROTOCOL_VERSION`], first in every version.
    pub(crate) greeting: [u8; 8],
    pub(crate) version: u64,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    /// The process number in its own namespace.
    pub(crate) pid: u32,
    /// The first half.
    pub(crate) key: HalfKey,
    /// The layout has no padding.
    pub(crate) _unused: u32,
}

impl Request {
    /// The request of this process.
    pub(crate) fn new(rank: u32, ranks: u32, key: HalfKey) -> Request {
        let (greeting, version, pid) = (GREETING, PROTOCOL_VERSION, std::process::id());
        Request { greeting, version, rank, ranks, pid, key, _unused: 0 }
    }

    /// Reads the bytes sent by a process. The error tells whether it may be a rank of another version.
    pub(crate) fn read(bytes: &[u8]) -> Result<Request, bool> {
        let request = Request::read_from_bytes(bytes).ok();
        let is_greeting = bytes.starts_with(&GREETING);
        request.filter(|request| is_greeting && request.version == PROTOCOL_VERSION).ok_or(is_greeting)
    }
}

/// The bytes sent with descriptors.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Grant {
    pub(crate) granted: u8,
    /// The second half.
    pub(crate) key: HalfKey,
}

/// The address of the first party: `NAME-KEY`, the name of the socket and the two halves of the key.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) text: String,
}

impl Address {
    /// Random, so that the address of a finished job leads to no socket.
    pub(crate) fn random() -> io::Result<Address> {
        Ok(Address { text: format!("vgasnet-{:032x}-{:032x}", random()?, random()?) })
    }

    pub(crate) fn parse(text: &[u8]) -> Result<Address, String> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() == ADDRESS_BYTES && text.is_ascii());
        text.map(|text| Address { text: text.to_owned() }).ok_or_else(|| "that is no address of a socket".to_owned())
    }

    pub(crate) fn socket(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(&self.text[..NAME_BYTES])
    }

    pub(crate) fn keys(&self) -> [HalfKey; 2] {
        let (first, second) = self.text.as_bytes()[NAME_BYTES + 1..].split_at(size_of::<HalfKey>());
        [first, second].map(|half| half.try_into().expect("half of a key"))
    }
}

/// An unpredictable number.
///
/// # Errors
/// The system has no random numbers.
pub fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}
