//! Discovery of the ranks of a host.

use std::collections::HashMap;

use vgasnet_conduit::{ConduitError, Rank, agree, check_versions, greet};
use vgasnet_smp::{Rendezvous, SmpConduit, join};
use xxhash_rust::xxh3::xxh3_128;

use crate::network::Network;

/// Prefix of a rank's host: whether it shares memory.
const SHARES: u8 = b'+';
const SHARES_NOT: u8 = b' ';

/// Equal for two ranks if and only if they can share memory.
type Identity = [u8; 16];

/// The hosts of all ranks.
pub(crate) struct Hosts {
    /// The host of each rank, numbered from 0 in the order of their first ranks.
    pub(crate) of_rank: Box<[u32]>,
    /// The ranks that share memory with this one, in rank order.
    pub(crate) members: Box<[Rank]>,
}

impl Hosts {
    /// Collects every rank's host and version. If `share` is unset on one rank, nobody shares memory.
    ///
    /// # Errors
    /// The ranks have different versions.
    pub(crate) fn find(network: &dyn Network, share: bool) -> Result<Self, ConduitError> {
        let told = [&[if share { SHARES } else { SHARES_NOT }][..], &identity()].concat();
        let all = check_versions(network.exchange(&greet(&told), &mut || {})?)?;
        let share = all.iter().all(|told| told.first() == Some(&SHARES));
        let mut numbers = HashMap::new();
        let of_rank: Box<[u32]> = all
            .into_iter()
            .map(|told| {
                let host = told.get(1..).unwrap_or_default().to_vec();
                let next = numbers.len() as u32;
                *numbers.entry(host).or_insert(next)
            })
            .collect();
        let own = network.rank();
        let is_here = |rank: &Rank| share && of_rank[rank.index()] == of_rank[own.index()];
        let members = (0..network.ranks()).map(Rank).filter(|rank| *rank == own || is_here(rank)).collect();
        Ok(Hosts { of_rank, members })
    }
}

/// A hash of the running system and its network namespace, the scope in which ranks of a host find each other. Every
/// rank receives all ranks' hashes.
fn identity() -> Identity {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let text = read("/proc/sys/kernel/random/boot_id") + &read("/proc/sys/kernel/hostname");
    xxh3_128((text + &namespace.to_string_lossy()).as_bytes()).to_ne_bytes()
}

/// Makes or joins the shared memory of `members`.
pub(crate) fn meet(network: &dyn Network, members: &[Rank]) -> Result<SmpConduit, ConduitError> {
    let own = network.rank();
    let count = members.len() as u32;
    let refused = |error| ConduitError(format!("cannot make shared memory for {count} ranks: {error}"));
    // All ranks take part in both exchanges, also ranks alone on their hosts.
    let opened = (members[0] == own && count > 1).then(|| Rendezvous::open(count).map_err(refused)).transpose();
    let address = opened.as_ref().ok().and_then(Option::as_ref).map_or("", Rendezvous::address);
    let all = agree(|told| network.exchange(told, &mut || {}), &opened, address.as_bytes())?;
    let joined = match opened? {
        Some(rendezvous) => rendezvous.admit(),
        None if count == 1 => SmpConduit::alone(),
        None => {
            let place = members.iter().position(|rank| *rank == own).expect("this rank is on its host");
            join(&all[members[0].index()], place as u32, count)
        }
    };
    agree(|told| network.exchange(told, &mut || {}), &joined, &[])?;
    joined
}
