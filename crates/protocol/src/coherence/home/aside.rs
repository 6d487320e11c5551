//! The reads of a page set aside until a rank near them has it; `neighbours.rs` decides.

use super::request::Request;
use crate::Rank;
use alloc::collections::BTreeMap;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// The ranks of a host.
pub(super) type Host = Range<Rank>;

/// The reads of a page set aside, by the first rank of their host.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Aside {
    pub by_host: BTreeMap<Rank, VecDeque<Request>>,
    /// Hosts possibly without a rank able to serve their reads; the front gets the page first.
    pub without: VecDeque<Rank>,
    /// Ranks whose ability to serve has changed.
    pub stirred: Vec<Rank>,
}

impl Aside {
    pub fn is_empty(&self) -> bool {
        self.by_host.is_empty()
    }

    /// The copy or the reads of this rank have changed.
    pub fn stir(&mut self, rank: Rank) {
        if !self.is_empty() {
            self.stirred.push(rank);
        }
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        self.by_host.values_mut().flatten()
    }

    /// A read was to be served and was not: it becomes the next of its host, and its host the next to get the page.
    pub fn put_first(&mut self, host: &Host, request: Request) {
        debug_assert!(host.contains(&request.from), "{:?} is of the host", request.from);
        self.without.push_front(host.start);
        self.by_host.entry(host.start).or_default().push_front(request);
    }

    /// All reads, in the order in which their hosts were to get the page.
    pub fn into_requests(mut self) -> Vec<Request> {
        let firsts: Vec<Rank> = self.without.into_iter().chain(self.by_host.keys().copied()).collect();
        let all = firsts.into_iter().filter_map(|first| self.by_host.remove(&first)).flatten().collect();
        debug_assert!(self.by_host.is_empty(), "no read is lost");
        all
    }

    pub fn has(&self, host: &Host) -> bool {
        self.by_host.contains_key(&host.start)
    }

    pub fn take(&mut self, host: &Host) -> Option<Request> {
        let requests = self.by_host.get_mut(&host.start)?;
        let request = requests.pop_front();
        debug_assert!(request.is_some(), "a host is listed while reads of it wait");
        if requests.is_empty() {
            self.by_host.remove(&host.start);
        }
        request
    }
}
