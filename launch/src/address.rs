//! Where agents find their supervisor.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn6, bind, listen, setsockopt, socket, sockopt,
};

use vgasnet_smp::random;

use crate::connection::Stream;
use crate::wire::Cookie;

/// The environment variable by which agents get the address.
pub const LAUNCHER_VARIABLE: &str = "VGASNET_LAUNCHER";

/// How long an agent tries each address.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// The value of [`LAUNCHER_VARIABLE`]: `COOKIE@UNIX-NAME@PORT@ADDRESS,ADDRESS…`, the cookie in hexadecimal digits, the
/// unix socket without a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) cookie: Cookie,
    unix_name: String,
    port: u16,
    hosts: Vec<IpAddr>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts.iter().map(IpAddr::to_string).collect();
        write!(f, "{:032x}@{}@{}@{}", self.cookie, self.unix_name, self.port, hosts.join(","))
    }
}

impl Address {
    /// Reads exactly the text that `Display` writes.
    pub(crate) fn parse(text: &str) -> Option<Address> {
        let mut fields = text.split('@');
        let cookie = fields.next().filter(|digits| digits.len() == 32)?;
        let cookie = u128::from_str_radix(cookie, 16).ok()?;
        let unix_name = fields.next()?.to_owned();
        let port = fields.next()?.parse().ok()?;
        let hosts = fields.next()?.split(',').filter(|host| !host.is_empty());
        let hosts = hosts.map(|host| host.parse().ok()).collect::<Option<_>>()?;
        fields.next().is_none().then_some(Address { cookie, unix_name, port, hosts })
    }

    /// Every way to the supervisor, the nearest first; each is tried when it is asked for.
    pub(crate) fn streams(&self) -> impl Iterator<Item = Stream> + '_ {
        let near = std::iter::once_with(|| {
            let address = UnixAddress::from_abstract_name(&self.unix_name)?;
            UnixStream::connect_addr(&address).map(Stream::Unix)
        });
        let far = self.hosts.iter().map(|host| {
            TcpStream::connect_timeout(&SocketAddr::new(*host, self.port), CONNECT_PATIENCE).map(Stream::Tcp)
        });
        near.chain(far).flatten()
    }

    /// The place to look at when none of them works.
    pub(crate) fn advice(&self) -> String {
        let hosts: Vec<_> = self.hosts.iter().map(IpAddr::to_string).collect();
        format!("port {} of {}", self.port, if hosts.is_empty() { "no host".to_owned() } else { hosts.join(", ") })
    }
}

/// Where the supervisor waits for agents.
pub(crate) struct Listeners {
    pub(crate) unix: UnixListener,
    pub(crate) tcp: TcpListener,
    pub(crate) address: Address,
}

impl Listeners {
    pub(crate) fn open() -> io::Result<Listeners> {
        let cookie = random()?;
        let unix_name = format!("vgasnet-launcher-{:032x}", random()?);
        let unix = UnixListener::bind_addr(&UnixAddress::from_abstract_name(&unix_name)?)?;
        // Hosts without version 6 of the protocol have version 4.
        let tcp = listen_on_both().or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        unix.set_nonblocking(true)?;
        tcp.set_nonblocking(true)?;
        let address = Address { cookie, unix_name, port: tcp.local_addr()?.port(), hosts: own_addresses() };
        Ok(Listeners { unix, tcp, address })
    }

    /// The streams that have come.
    pub(crate) fn accept(&self) -> Vec<Stream> {
        let near = std::iter::from_fn(|| self.unix.accept().ok()).map(|(stream, _)| Stream::Unix(stream));
        let far = std::iter::from_fn(|| self.tcp.accept().ok()).map(|(stream, _)| Stream::Tcp(stream));
        near.chain(far).collect()
    }
}

/// Listens by both versions of the protocol, also where the system's default is one.
fn listen_on_both() -> io::Result<TcpListener> {
    let socket = socket(AddressFamily::Inet6, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::Ipv6V6Only, &false)?;
    bind(
        std::os::fd::AsRawFd::as_raw_fd(&socket),
        &SockaddrIn6::from(std::net::SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, 0, 0, 0)),
    )?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(TcpListener::from(socket))
}

/// The addresses of this host's interfaces by which others may reach it.
fn own_addresses() -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for interface in nix::ifaddrs::getifaddrs().into_iter().flatten() {
        let Some(address) = interface.address else { continue };
        let address = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(address), _) => IpAddr::V4(address.ip()),
            (_, Some(address)) if !address.ip().is_unicast_link_local() => IpAddr::V6(address.ip()),
            _ => continue,
        };
        if !address.is_loopback() && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    // Clusters are mostly reached by version 4.
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_own_text() {
        for hosts in [vec![], vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()]] {
            let address = Address { cookie: 0xa5, unix_name: "a-name".to_owned(), port: 4711, hosts };
            assert_eq!(Address::parse(&address.to_string()), Some(address));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let cookie = "0".repeat(32);
        for text in
            ["", "@@@", &format!("{cookie}@n@1"), &format!("{cookie}@n@x@"), &format!("{cookie}@n@1@h@"), "0@n@1@"]
        {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }

    #[test]
    fn agents_get_through_by_both_ways() {
        let listeners = Listeners::open().expect("sockets");
        let near = Address { hosts: vec![], ..listeners.address.clone() };
        let far = Address { hosts: vec![Ipv4Addr::LOCALHOST.into()], unix_name: "no such".to_owned(), ..near.clone() };
        for address in [near, far] {
            let _stream = address.streams().next().expect("a stream");
            assert_eq!(listeners.accept().len(), 1);
        }
    }
}
