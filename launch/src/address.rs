//! The supervisor's address, for its agents.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn6, accept4, bind, listen, setsockopt, socket, sockopt,
};

use vgasnet_smp::{Peer, Strangers, connect_locally, listen_locally, random};

use crate::connection::Stream;
use crate::wire::Cookie;

/// The environment variable with the address, set for agents.
pub const LAUNCHER_VARIABLE: &str = "VGASNET_LAUNCHER";

/// Time-out of an agent's attempt at the local socket, which is a stranger's if the supervisor is elsewhere.
const NEAR_PATIENCE: Duration = Duration::from_secs(1);

/// Time-outs of an agent's attempts at each address. A full queue drops connections, and the system would try again only
/// after a second.
const CONNECT_PATIENCE: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_millis(1250)];

/// Time for the first bytes to arrive at the listener, in milliseconds. If the queue fills up during the handshake, only
/// the agent's end is connected, and the system repeats the bytes after ever longer times.
const ARRIVAL_PATIENCE_MS: u32 = 400;

/// Length of the queue of a listener for other hosts. A flood by strangers fills it, and agents wait behind them: a
/// longer queue takes longer to empty.
const QUEUE_MAX: i32 = 256;

/// Time-out of resolving host names.
const NAMES_PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of connections accepted at once from each listener. Agents that are known are served in between.
const ACCEPTED_MAX: usize = 16;

/// The hosts of a job, as far as known before its launcher starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This host.
    Here,
    /// These, by name or address.
    Hosts(Vec<String>),
    /// Hosts known only to the launcher.
    Unknown,
}

/// The value of [`LAUNCHER_VARIABLE`]: `COOKIE@UNIX-NAME@ADDRESS:PORT,ADDRESS:PORT…`, the cookie in hexadecimal digits, the
/// unix socket without a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) cookie: Cookie,
    unix_name: String,
    hosts: Vec<SocketAddr>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}@{}@{}", self.cookie, self.unix_name, self.name_hosts(","))
    }
}

impl Address {
    /// Parses exactly the format of `Display`.
    pub(crate) fn parse(text: &str) -> Option<Address> {
        let mut fields = text.split('@');
        let cookie = fields.next().filter(|digits| digits.len() == 32)?;
        let cookie = u128::from_str_radix(cookie, 16).ok()?;
        let unix_name = fields.next()?.to_owned();
        let hosts = fields.next()?.split(',').filter(|host| !host.is_empty());
        let hosts = hosts.map(|host| host.parse().ok()).collect::<Option<_>>()?;
        fields.next().is_none().then_some(Address { cookie, unix_name, hosts })
    }

    /// Every way to the supervisor, nearest first; each is tried when requested. On another host the socket of this
    /// name may be anybody's.
    pub(crate) fn streams(&self) -> impl Iterator<Item = Stream> + '_ {
        let near = std::iter::once_with(|| {
            let address = UnixAddress::from_abstract_name(&self.unix_name)?;
            let stream = connect_locally(&address, NEAR_PATIENCE)?;
            let is_ours = Peer::of(&stream)?.may_take_part();
            if is_ours { Ok(Stream::Unix(stream)) } else { Err(io::ErrorKind::PermissionDenied.into()) }
        });
        let far = self.hosts.iter().map(|host| connect(host).map(Stream::Tcp));
        near.chain(far).flatten()
    }

    /// A likely reason if none of them works.
    pub(crate) fn advice(&self) -> String {
        match self.hosts.as_slice() {
            [] => "from this host, since it expects all ranks on its own; name the hosts with --hosts".to_owned(),
            _ => format!("at {}; a firewall may be in the way", self.name_hosts(", ")),
        }
    }

    fn name_hosts(&self, between: &str) -> String {
        self.hosts.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(between)
    }
}

/// Connects to a supervisor, by a new connection after each time-out. The stream fails if its first bytes do not arrive
/// soon, until [`may_be_slow`].
fn connect(host: &SocketAddr) -> io::Result<TcpStream> {
    let mut attempts = CONNECT_PATIENCE.iter().map(|patience| TcpStream::connect_timeout(host, *patience));
    let is_due = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    let first = attempts.find(|attempt| !attempt.as_ref().is_err_and(is_due));
    let stream = first.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?;
    setsockopt(&stream, sockopt::TcpUserTimeout, &ARRIVAL_PATIENCE_MS)?;
    Ok(stream)
}

/// The supervisor has answered: from now on only silence tells that it is lost.
pub(crate) fn may_be_slow(stream: &TcpStream) {
    // Fails for a broken connection, whose end is read next.
    let _ = setsockopt(stream, sockopt::TcpUserTimeout, &0);
}

/// The supervisor's listening sockets.
pub(crate) struct Listeners {
    pub(crate) unix: UnixListener,
    /// Empty if all ranks are on this host.
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) address: Address,
    strangers: Strangers,
}

impl Listeners {
    pub(crate) fn open(reach: &Reach) -> io::Result<Listeners> {
        let cookie = random()?;
        let unix_name = format!("vgasnet-launcher-{:032x}", random()?);
        let unix = listen_locally(&UnixAddress::from_abstract_name(&unix_name)?)?;
        let near_hosts = match reach {
            Reach::Here => Some(Vec::new()),
            Reach::Hosts(names) => ways_to(names.clone()),
            Reach::Unknown => None,
        };
        let (tcp, hosts) = match near_hosts {
            Some(addresses) => listen_at(&addresses)?,
            None => listen_everywhere()?,
        };
        let address = Address { cookie, unix_name, hosts };
        Ok(Listeners { unix, tcp, address, strangers: Strangers::default() })
    }

    /// Accepts some of the pending streams, non-blocking. Closes local ones of other users.
    pub(crate) fn accept(&mut self) -> Vec<Stream> {
        let strangers = &mut self.strangers;
        let near = std::iter::from_fn(|| self.unix.accept().ok()).take(ACCEPTED_MAX).map(|(stream, _)| stream);
        let near = near.filter(|stream| Peer::of(stream).is_ok_and(|peer| !strangers.include(peer)));
        let near = near.filter(|stream| stream.set_nonblocking(true).is_ok()).map(Stream::Unix);
        let some = |tcp: &TcpListener| -> Vec<_> {
            std::iter::from_fn(|| accept_at_once(tcp)).take(ACCEPTED_MAX).map(Stream::Tcp).collect()
        };
        near.chain(self.tcp.iter().flat_map(some)).collect()
    }
}

/// A pending stream, by one system call: strangers can make many.
#[expect(unsafe_code)]
fn accept_at_once(tcp: &TcpListener) -> Option<TcpStream> {
    let stream = accept4(tcp.as_raw_fd(), SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK).ok()?;
    // SAFETY: the kernel has just made this descriptor for this process, and nobody else here knows of it.
    Some(unsafe { OwnedFd::from_raw_fd(stream) }.into())
}

/// The addresses by which these hosts reach this one, except those of this host itself. `None` if a name is unknown
/// here: launchers may know more names.
fn ways_to(names: Vec<String>) -> Option<Vec<IpAddr>> {
    let (sender, found) = std::sync::mpsc::channel();
    // An unresponsive name server would delay the job.
    std::thread::spawn(move || {
        let ways: Option<Vec<_>> = names.iter().map(|name| way_to(name)).collect();
        let _ = sender.send(ways);
    });
    let mut ways: Vec<_> = found.recv_timeout(NAMES_PATIENCE).ok()??.into_iter().flatten().collect();
    ways.sort();
    ways.dedup();
    Some(ways)
}

/// As [`ways_to`], for one host.
fn way_to(name: &str) -> Option<Vec<IpAddr>> {
    let mut ways = Vec::new();
    for address in (name, 9).to_socket_addrs().ok()? {
        let any: IpAddr =
            if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        // Nothing is sent: the system only selects the source address.
        let socket = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(address).map(|()| socket));
        let Ok(own) = socket.and_then(|socket| socket.local_addr()) else { continue };
        if own.ip() == address.ip() {
            // It is this host.
            return Some(Vec::new());
        }
        ways.push(own.ip());
    }
    (!ways.is_empty()).then_some(ways)
}

fn listen_at(addresses: &[IpAddr]) -> io::Result<(Vec<TcpListener>, Vec<SocketAddr>)> {
    let tcp: Vec<_> = addresses.iter().map(|address| TcpListener::bind((*address, 0))).collect::<Result<_, _>>()?;
    // The standard library's queue has 128 places, too few for agents that start together.
    tcp.iter().try_for_each(|tcp| listen(tcp, Backlog::new(QUEUE_MAX)?))?;
    tcp.iter().try_for_each(|tcp| tcp.set_nonblocking(true))?;
    let hosts = tcp.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
    Ok((tcp, hosts))
}

fn listen_everywhere() -> io::Result<(Vec<TcpListener>, Vec<SocketAddr>)> {
    // Hosts without IPv6 have IPv4.
    let tcp = listen_on_both().or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    tcp.set_nonblocking(true)?;
    let port = tcp.local_addr()?.port();
    let hosts = own_addresses().into_iter().map(|address| SocketAddr::new(address, port)).collect();
    Ok((vec![tcp], hosts))
}

/// Listens by IPv6 and IPv4, whatever the system's default.
fn listen_on_both() -> io::Result<TcpListener> {
    let socket = socket(AddressFamily::Inet6, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::Ipv6V6Only, &false)?;
    bind(
        socket.as_raw_fd(),
        &SockaddrIn6::from(std::net::SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, 0, 0, 0)),
    )?;
    listen(&socket, Backlog::new(QUEUE_MAX)?)?;
    Ok(TcpListener::from(socket))
}

/// The addresses of this host's interfaces for use by other hosts.
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
    // Clusters are mostly reached by IPv4.
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_own_text() {
        for hosts in [vec![], vec!["10.0.0.1:7".parse().unwrap(), "[fd00::1]:4711".parse().unwrap()]] {
            let address = Address { cookie: 0xa5, unix_name: "a-name".to_owned(), hosts };
            assert_eq!(Address::parse(&address.to_string()), Some(address));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let cookie = "0".repeat(32);
        for text in
            ["", "@@", &format!("{cookie}@n"), &format!("{cookie}@n@h"), &format!("{cookie}@n@10.0.0.1"), "0@n@"]
        {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }

    #[test]
    fn agents_get_through_by_both_ways() {
        let mut listeners = Listeners::open(&Reach::Unknown).expect("sockets");
        let near = Address { hosts: vec![], ..listeners.address.clone() };
        let port = listeners.tcp[0].local_addr().expect("a port").port();
        let far = vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)];
        let far = Address { hosts: far, unix_name: "no such".to_owned(), ..near.clone() };
        for address in [near, far] {
            let _stream = address.streams().next().expect("a stream");
            assert_eq!(listeners.accept().len(), 1);
        }
    }

    #[test]
    fn no_network_is_listened_to_where_all_ranks_are_here() {
        let mut own = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        own.extend(own_addresses().first().map(IpAddr::to_string));
        for reach in [Reach::Here, Reach::Hosts(own)] {
            let listeners = Listeners::open(&reach).expect("a socket");
            assert!(listeners.tcp.is_empty() && listeners.address.hosts.is_empty(), "{reach:?}");
            assert!(listeners.address.advice().contains("--hosts"));
        }
    }

    #[test]
    fn other_hosts_are_reached_by_one_address() {
        let Some(own) = own_addresses().into_iter().find(IpAddr::is_ipv4) else {
            return println!("NOT RUN: listening for other hosts: this host has no network");
        };
        // An address reserved for documentation, which no host has.
        let Some(ways) = way_to("192.0.2.1") else {
            return println!("NOT RUN: listening for other hosts: this host has no route to others");
        };
        let listeners = Listeners::open(&Reach::Hosts(vec!["192.0.2.1".to_owned(), own.to_string()])).expect("sockets");
        assert_eq!((listeners.tcp.len(), listeners.address.hosts[0].ip()), (1, ways[0]));
        assert!(!ways[0].is_unspecified());
    }
}
