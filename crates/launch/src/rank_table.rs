//! The rank table: the connected agents, by the ranks of their children.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use vgasnet_protocol::RankState;

use crate::connection::Connection;
use crate::rank_view::RankView;

/// A host, as known to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: Rc<str>,
    /// Set unless the host is this one.
    address: Option<IpAddr>,
}

impl Host {
    /// The host of an agent reporting this name from this address. `own_name` is the supervisor's host.
    pub(crate) fn new(name: String, address: Option<IpAddr>, own_name: &str) -> Host {
        // Namespaces of one machine all have its name.
        let name = match address {
            Some(address) if name == own_name => address.to_string(),
            _ => name,
        };
        Host { name: name.into(), address }
    }

    /// Its name, unless it is this host.
    fn elsewhere(&self) -> Option<Rc<str>> {
        self.address.map(|_| Rc::clone(&self.name))
    }
}

/// The status of an agent's child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildStatus {
    /// It runs, or is about to.
    Running,
    /// The connection ended at this time while it ran.
    Vanished(Instant),
    /// It has ended.
    Ended,
    /// Unknown, and not awaited.
    Lost,
}

/// An entry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) connection: Connection,
    pub(crate) host: Host,
    pub(crate) pid: u32,
    pub(crate) state: RankState,
    /// Its reason to fail, if reported.
    pub(crate) why: Option<Rc<str>>,
    pub(crate) child: ChildStatus,
    /// Time of the agent's last message.
    pub(crate) heard: Instant,
}

/// All ranks. A rank without a connected agent has no entry.
#[derive(Debug)]
pub(crate) struct RankTable {
    pub(crate) entries: Vec<Option<Entry>>,
}

impl RankTable {
    pub(crate) fn new(ranks: u32) -> RankTable {
        RankTable { entries: (0..ranks).map(|_| None).collect() }
    }

    /// The entry for an agent expecting to be `rank`: that one if free, otherwise the first free one.
    pub(crate) fn place(&self, rank: Option<u32>) -> Option<usize> {
        let is_free = |at: &usize| self.entries.get(*at).is_some_and(Option::is_none);
        rank.map(|rank| rank as usize).filter(is_free).or_else(|| (0..self.entries.len()).find(is_free))
    }

    /// The connected agents, with their ranks.
    pub(crate) fn present(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().filter_map(|(rank, entry)| Some((rank, entry.as_ref()?)))
    }

    /// As [`RankTable::present`].
    pub(crate) fn present_mut(&mut self) -> impl Iterator<Item = (usize, &mut Entry)> {
        self.entries.iter_mut().enumerate().filter_map(|(rank, entry)| Some((rank, entry.as_mut()?)))
    }

    /// Number of agents not connected yet.
    pub(crate) fn missing(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_none()).count()
    }

    /// Whether some child runs, or may.
    pub(crate) fn has_running(&self) -> bool {
        self.present().any(|(_, entry)| matches!(entry.child, ChildStatus::Running | ChildStatus::Vanished(_)))
    }

    /// The ranks for the exit policy. A rank without a connected agent is about to run.
    pub(crate) fn view(&self) -> Vec<RankView> {
        let view = |entry: &Option<Entry>| match entry {
            None => {
                RankView { pid: 0, host: None, state: RankState::Fresh, why: None, shortage: None, is_running: true }
            }
            Some(entry) => RankView {
                pid: entry.pid,
                host: entry.host.elsewhere(),
                state: entry.state,
                why: entry.why.clone(),
                shortage: None,
                is_running: matches!(entry.child, ChildStatus::Running | ChildStatus::Vanished(_)),
            },
        };
        self.entries.iter().map(view).collect()
    }

    /// Excludes a period from all silences: this process was not listening.
    pub(crate) fn forgive(&mut self, time: Duration) {
        for (_, entry) in self.present_mut() {
            entry.heard += time;
        }
    }

    /// A host silent for `timeout`, and its lost ranks: silent for half as long, since ranks beat at different times.
    pub(crate) fn silent_host(&self, timeout: Duration, now: Instant) -> Option<(Host, Vec<usize>)> {
        let is_silent = |entry: &Entry, limit| entry.child == ChildStatus::Running && now >= entry.heard + limit;
        let (_, first) = self.present().find(|(_, entry)| is_silent(entry, timeout))?;
        let host = first.host.clone();
        let ranks = self.present().filter(|(_, entry)| entry.host == host && is_silent(entry, timeout / 2));
        Some((host.clone(), ranks.map(|(rank, _)| rank).collect()))
    }

    /// The host and the ranks of agents that vanished at least `patience` ago.
    pub(crate) fn vanished_host(&self, patience: Duration, now: Instant) -> Option<(Host, Vec<usize>)> {
        let since = |entry: &Entry| match entry.child {
            ChildStatus::Vanished(since) => Some(since),
            _ => None,
        };
        let (_, first) = self.present().find(|(_, entry)| since(entry).is_some_and(|at| now >= at + patience))?;
        let host = first.host.clone();
        let ranks = self.present().filter(|(_, entry)| entry.host == host && since(entry).is_some());
        Some((host.clone(), ranks.map(|(rank, _)| rank).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Stream;
    use std::os::unix::net::UnixStream;

    fn entry(host: &str, heard: Instant) -> Option<Entry> {
        let (stream, _) = UnixStream::pair().expect("sockets");
        let connection = Connection::new(Stream::Unix(stream)).expect("a connection");
        let host = Host::new(host.to_owned(), Some([10, 0, 0, 1].into()), "own");
        Some(Entry {
            connection,
            host,
            pid: 7,
            state: RankState::Attached,
            why: None,
            child: ChildStatus::Running,
            heard,
        })
    }

    #[test]
    fn agents_get_the_rank_that_they_expect_or_the_first_free_one() {
        let mut table = RankTable::new(3);
        assert_eq!(table.place(Some(1)), Some(1));
        table.entries[1] = entry("a", Instant::now());
        assert_eq!(table.place(Some(1)), Some(0));
        assert_eq!(table.place(Some(3)), Some(0));
        table.entries[0] = entry("a", Instant::now());
        assert_eq!(table.place(None), Some(2));
        table.entries[2] = entry("a", Instant::now());
        assert_eq!(table.place(None), None);
    }

    #[test]
    fn a_silent_host_is_named_with_its_silent_ranks() {
        let (timeout, begin) = (Duration::from_secs(10), Instant::now());
        let mut table = RankTable::new(5);
        table.entries[0] = entry("a", begin + timeout);
        table.entries[1] = entry("b", begin);
        table.entries[2] = entry("b", begin + Duration::from_secs(1));
        table.entries[3] = entry("b", begin + Duration::from_secs(8));
        let before = begin + Duration::from_millis(9999);
        assert!(table.silent_host(timeout, before).is_none());
        let (host, ranks) = table.silent_host(timeout, begin + timeout).expect("rank 1 is silent");
        assert_eq!((&*host.name, &ranks[..]), ("b", &[1, 2][..]));
        for rank in ranks {
            table.entries[rank].as_mut().expect("it is there").child = ChildStatus::Lost;
        }
        assert!(table.silent_host(timeout, begin + timeout).is_none());
        let late = begin + 3 * timeout;
        assert!(table.silent_host(timeout, late).is_some());
        table.forgive(2 * timeout);
        assert!(table.silent_host(timeout, late).is_none());
        assert!(table.view()[4].is_running && !table.view()[1].is_running);
    }

    #[test]
    fn hosts_have_a_name_that_tells_them_apart() {
        let address = Some(IpAddr::from([10, 77, 0, 2]));
        assert_eq!(&*Host::new("node7".to_owned(), address, "node1").name, "node7");
        assert_eq!(&*Host::new("box".to_owned(), address, "box").name, "10.77.0.2");
        assert_eq!(Host::new("box".to_owned(), None, "box").elsewhere(), None);
    }
}
