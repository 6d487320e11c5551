//! Reads of a page by hosts of several ranks: a host gets the page over its link once, then its ranks from each other.
//!
//! A read without a free holder is set aside. It proceeds when a holder on its own host is free. It proceeds with any
//! holder if no rank of its host has the page or is being served. Hosts without the page come first: each gets one
//! copy, and each free holder serves one of them. All hosts have the page after about log2(hosts) page times; the ranks
//! of each host then get it from memory.

use super::super::{Action, PageId};
use super::Home;
use super::aside::Host;
use super::entry::{Entry, Transaction};
use super::holders::{Holder, Holders};
use super::readers::Readers;
use super::request::{Request, RequestKind};
use crate::{Rank, Violation};
use alloc::vec::Vec;
use core::mem;

impl Home {
    /// Sets aside a read that cannot be served now. Returns whether it did: not if its rank is being served or is still
    /// listed as a holder.
    pub(super) fn put_aside(&mut self, page: PageId, request: Request) -> bool {
        let Some(host) = self.hosts.around(request.from).filter(|_| self.is_cooperative(page)) else { return false };
        let Entry { holders, transaction, .. } = self.entry_mut(page);
        let Transaction::Reads(readers) = transaction else { return false };
        let is_read = matches!(request.kind, RequestKind::Read { .. });
        if !is_read || readers.has(request.from) || holders.of(request.from).is_some() {
            return false;
        }
        if !readers.aside.has(&host) && !has_page(holders, readers, &host) {
            readers.aside.without.push_back(host.start);
        }
        debug_assert!(host.contains(&request.from), "{:?} is of the host", request.from);
        readers.aside.by_host.entry(host.start).or_default().push_back(request);
        true
    }

    /// The rank told to serve a read has no copy. The read goes before all later ones, wherever they wait.
    pub(super) fn wait_again(&mut self, page: PageId, request: Request) {
        debug_assert!(matches!(request.kind, RequestKind::Read { .. }), "only reads are served by holders");
        let host = self.hosts.around(request.from);
        let entry = self.entry_mut(page);
        let aside = entry.readers_mut().map(|readers| &mut readers.aside).filter(|aside| !aside.is_empty());
        match (aside, host) {
            (Some(aside), Some(host)) => aside.put_first(&host, request),
            _ => entry.waiting.push_front(request),
        }
    }

    /// Starts the reads set aside that may proceed. If no rank is left to serve them, they return to the queue.
    pub(super) fn start_aside(&mut self, page: PageId, actions: &mut Vec<Action>) -> Result<(), Violation> {
        let Some(readers) = self.entry_mut(page).readers_mut() else { return Ok(()) };
        let stirred = mem::take(&mut readers.aside.stirred);
        let hosts: Vec<Host> = stirred.into_iter().filter_map(|rank| self.hosts.around(rank)).collect();
        let Entry { holders, transaction: Transaction::Reads(readers), .. } = self.entry_mut(page) else {
            return Ok(());
        };
        for host in &hosts {
            // Otherwise its reads would wait for one of its own ranks for ever.
            if readers.aside.has(host) && !has_page(holders, readers, host) {
                readers.aside.without.push_back(host.start);
            }
        }
        while let Some(request) = self.next_without(page) {
            self.start(page, request, actions)?;
        }
        for host in hosts {
            while let Some(request) = self.next_of(page, &host) {
                self.start(page, request, actions)?;
            }
        }
        self.entry_mut(page).end_reads_of_nobody();
        Ok(())
    }

    /// The next read of a host without the page, if some holder can serve it.
    fn next_without(&mut self, page: PageId) -> Option<Request> {
        loop {
            let entry = self.entry(page);
            let readers = entry.readers()?;
            let first = *readers.aside.without.front()?;
            let host = self.hosts.around(first)?;
            debug_assert_eq!(host.start, first, "a host is listed by its first rank");
            let is_without = readers.aside.has(&host) && !has_page(&entry.holders, readers, &host);
            if is_without && self.free_holder(page, first, readers).is_none() {
                return None;
            }
            let aside = &mut self.entry_mut(page).readers_mut()?.aside;
            aside.without.pop_front();
            if is_without {
                return aside.take(&host);
            }
        }
    }

    /// The next read of a host, if a holder there can serve it.
    fn next_of(&mut self, page: PageId, host: &Host) -> Option<Request> {
        let entry = self.entry(page);
        let readers = entry.readers().filter(|readers| readers.aside.has(host))?;
        entry.holders.among(host).find(|holder| readers.served_by(holder) < self.readers_each)?;
        self.entry_mut(page).readers_mut()?.aside.take(host)
    }

    /// The holder to serve a read alongside others when the hosts of ranks are known: preferably one of the reader's
    /// host. While reads wait, holders of other hosts are excluded if the reader's host has the page or is about to.
    pub(super) fn source_among_hosts(
        &self,
        page: PageId,
        requester: Rank,
        readers: &Readers,
        host: &Host,
    ) -> Option<Holder> {
        debug_assert!(host.contains(&requester), "{requester:?} is of the host");
        let holders = &self.entry(page).holders;
        let mut own = holders.among(host).filter(|holder| holder.rank != requester);
        let free = own.find(|holder| readers.served_by(holder) < self.readers_each);
        if free.is_some() || !readers.aside.is_empty() && has_page(holders, readers, host) {
            return free;
        }
        self.free_holder(page, requester, readers)
    }
}

/// Whether a rank of a host has the page or is being served.
fn has_page(holders: &Holders, readers: &Readers, host: &Host) -> bool {
    readers.has_among(host) || holders.among(host).next().is_some()
}

impl Entry {
    /// Returns reads set aside to the queue if none is being served: they arrived before the queued ones.
    fn end_reads_of_nobody(&mut self) {
        let Some(readers) = self.readers_mut().filter(|readers| readers.is_empty()) else { return };
        let aside = mem::take(&mut readers.aside);
        self.transaction = Transaction::Idle;
        for request in aside.into_requests().into_iter().rev() {
            self.waiting.push_front(request);
        }
    }
}
