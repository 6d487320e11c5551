//! Start-up: ranks, hosts, exchange, attach.

use super::{EXCHANGE_BYTES_MAX, Suite, check, memory, pattern};
use crate::{Rank, Region, RegionSizes};

/// Minimum alignment of a region.
const PAGE_BYTES: usize = 4096;

/// Minimum size of pools: room for every test; see [`super::transfers`].
pub(super) const POOL_BYTES_MIN: usize = 16 << 20;

/// The sizes for `rank`: different for adjacent ranks.
pub(super) fn sizes(rank: Rank) -> RegionSizes {
    let step = rank.index() % 3;
    RegionSizes { pool_bytes: POOL_BYTES_MIN + step * (3 << 20), table_bytes: (1 + 2 * step) * PAGE_BYTES }
}

pub(super) fn ranks_and_hosts(suite: &mut Suite<'_>) -> Result<(), String> {
    check(suite.rank().0 < suite.ranks(), || "the own rank is out of range".to_owned())?;
    check(!suite.conduit.name().is_empty(), || "it has no name".to_owned())?;
    let hosts: Vec<u32> = suite.all_ranks().map(|rank| suite.conduit.host_of(rank)).collect();
    let count = hosts.iter().max().map_or(0, |&host| host + 1);
    check((0..count).all(|host| hosts.contains(&host)), || format!("gaps in the numbers of hosts {hosts:?}"))?;
    let view: Vec<u8> = hosts.iter().flat_map(|host| host.to_le_bytes()).take(EXCHANGE_BYTES_MAX).collect();
    let views = suite.conduit.exchange(&view).map_err(|error| error.to_string())?;
    check(views.iter().all(|other| *other == view), || "ranks see different hosts".to_owned())
}

pub(super) fn exchange(suite: &mut Suite<'_>) -> Result<(), String> {
    // Rounds with empty contributions, with maximum contributions, and with different ones.
    let contribution = |round: usize, rank: Rank| match round {
        0 => Vec::new(),
        1 => pattern(rank, rank, EXCHANGE_BYTES_MAX),
        _ => pattern(rank, Rank(round as u32), (rank.index() * 37 + round * 101) % (EXCHANGE_BYTES_MAX + 1)),
    };
    for round in 0..50 {
        let all = suite.conduit.exchange(&contribution(round, suite.rank())).map_err(|error| error.to_string())?;
        let expected: Vec<_> = suite.all_ranks().map(|rank| contribution(round, rank)).collect();
        check(all == expected, || format!("round {round} gave {all:?}, not {expected:?}"))?;
    }
    Ok(())
}

pub(super) fn attach(suite: &mut Suite<'_>) -> Result<(), String> {
    let own = suite.rank();
    check(suite.conduit.pool(own).is_none() && suite.conduit.table(own).is_none(), || {
        "there are regions before attach".to_owned()
    })?;
    suite.conduit.attach(sizes(own)).map_err(|error| error.to_string())?;
    for rank in suite.all_ranks() {
        let same_host = suite.conduit.host_of(rank) == suite.conduit.host_of(own);
        let is_mapped = rank == own || (suite.conduit.capabilities().peer_memory && same_host);
        let regions = [
            ("pool", suite.conduit.pool(rank), sizes(rank).pool_bytes),
            ("table", suite.conduit.table(rank), sizes(rank).table_bytes),
        ];
        for (name, region, wanted_bytes) in regions {
            check(region.is_some() == is_mapped, || format!("{name} of rank {rank}: {region:?}"))?;
            let fits = |region: Region| region.len_bytes >= wanted_bytes && region.address % PAGE_BYTES == 0;
            check(region.is_none_or(fits), || format!("{name} of rank {rank}: {region:?} for {wanted_bytes} bytes"))?;
        }
    }
    let table = suite.conduit.table(own).ok_or("no own table")?;
    let bytes = memory::read(table, 0, table.len_bytes);
    check(bytes.iter().all(|&byte| byte == 0), || "the table is not zero at first".to_owned())
}
