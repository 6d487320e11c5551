//! Puts and gets, and shared memory.
//!
//! The lower half of a pool is the remote end of others' transfers, with a slot for each peer. The upper half is the
//! local end of this rank's transfers, with a slot for each peer. Slots are as large as the number of ranks allows.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use super::start::POOL_BYTES_MIN;
use super::{Suite, check, memory, pattern};
use crate::{Rank, Region, Token, Transfer};

const HALF_BYTES: usize = POOL_BYTES_MIN / 2;

/// A byte behind every transfer; it must not change.
const GUARD: u8 = 0xa5;

impl Suite<'_> {
    fn slot_bytes(&self) -> usize {
        (HALF_BYTES / self.ranks() as usize) & !63
    }

    fn shared_slot(&self, rank: Rank) -> usize {
        rank.index() * self.slot_bytes()
    }

    fn private_slot(&self, rank: Rank) -> usize {
        HALF_BYTES + self.shared_slot(rank)
    }

    fn own_pool(&self) -> Result<Region, String> {
        self.conduit.pool(self.rank()).ok_or_else(|| "no own pool".to_owned())
    }

    fn sizes(&self) -> impl Iterator<Item = usize> + use<> {
        [0, 1, 7, 8, 63, 4096, 4097, 65_536, (1 << 20) + 3, 4 << 20].into_iter().filter({
            let slot_bytes = self.slot_bytes();
            move |&len_bytes| len_bytes < slot_bytes
        })
    }

    /// The transfer between this rank's private slot for `peer` and `peer`'s slot for this rank.
    fn transfer(&self, peer: Rank, len_bytes: usize) -> Transfer {
        Transfer {
            peer,
            peer_offset_bytes: self.shared_slot(self.rank()),
            own_offset_bytes: self.private_slot(peer),
            len_bytes,
            token: Token((u64::from(peer.0) << 32) | len_bytes as u64),
        }
    }

    /// Waits for all of these completions, rejecting duplicate and unknown ones.
    fn wait_complete(&mut self, mut tokens: HashSet<Token>) -> Result<(), String> {
        self.wait("a completion", |suite| {
            for token in suite.completions.drain(..) {
                check(tokens.remove(&token), || format!("{token:?} is complete twice, or was never started"))?;
            }
            Ok(tokens.is_empty())
        })
    }
}

/// Every rank puts to every rank; the receiver checks the bytes on a message sent after completion.
pub(super) fn put(suite: &mut Suite<'_>) -> Result<(), String> {
    let (own, pool) = (suite.rank(), suite.own_pool()?);
    for len_bytes in suite.sizes() {
        for peer in suite.all_ranks() {
            memory::write(pool, suite.private_slot(peer), &pattern(own, peer, len_bytes));
            memory::write(pool, suite.shared_slot(peer) + len_bytes, &[GUARD]);
        }
        suite.meet()?;
        let transfers: Vec<_> = suite.all_ranks().map(|peer| suite.transfer(peer, len_bytes)).collect();
        for transfer in &transfers {
            suite.insist("put", |conduit| conduit.put(transfer))?;
        }
        suite.wait_complete(transfers.iter().map(|transfer| transfer.token).collect())?;
        for peer in suite.all_ranks() {
            suite.send(peer, b"put")?;
        }
        let mut waiting: HashSet<Rank> = suite.all_ranks().collect();
        suite.wait("word of a put", |suite| {
            for (from, _) in std::mem::take(&mut suite.messages) {
                check(waiting.remove(&from), || format!("{from} sent word twice"))?;
                let bytes = memory::read(pool, suite.shared_slot(from), len_bytes + 1);
                let (put, guard) = bytes.split_at(len_bytes);
                check(put == pattern(from, own, len_bytes), || format!("put of {len_bytes} bytes by {from} is wrong"))?;
                check(guard == [GUARD], || format!("put of {len_bytes} bytes by {from} wrote too much"))?;
            }
            Ok(waiting.is_empty())
        })?;
        suite.meet()?;
    }
    Ok(())
}

/// Every rank gets from every rank.
pub(super) fn get(suite: &mut Suite<'_>) -> Result<(), String> {
    let (own, pool) = (suite.rank(), suite.own_pool()?);
    for len_bytes in suite.sizes() {
        for peer in suite.all_ranks() {
            memory::write(pool, suite.shared_slot(peer), &pattern(own, peer, len_bytes));
            memory::write(pool, suite.private_slot(peer), &vec![!GUARD; len_bytes]);
            memory::write(pool, suite.private_slot(peer) + len_bytes, &[GUARD]);
        }
        suite.meet()?;
        let transfers: Vec<_> = suite.all_ranks().map(|peer| suite.transfer(peer, len_bytes)).collect();
        for transfer in &transfers {
            suite.insist("get", |conduit| conduit.get(transfer))?;
        }
        suite.wait_complete(transfers.iter().map(|transfer| transfer.token).collect())?;
        for peer in suite.all_ranks() {
            let bytes = memory::read(pool, suite.private_slot(peer), len_bytes + 1);
            let (got, guard) = bytes.split_at(len_bytes);
            check(got == pattern(peer, own, len_bytes), || format!("get of {len_bytes} bytes from {peer} is wrong"))?;
            check(guard == [GUARD], || format!("get of {len_bytes} bytes from {peer} wrote too much"))?;
        }
        suite.meet()?;
    }
    Ok(())
}

/// More small puts and gets than a conduit accepts, started without waiting, each completed once.
pub(super) fn many_in_flight(suite: &mut Suite<'_>) -> Result<(), String> {
    const COUNT: u64 = 10_000;
    const LEN_BYTES: usize = 64;
    let (own, pool) = (suite.rank(), suite.own_pool()?);
    let peer = Rank((own.0 + 1) % suite.ranks());
    let before = Rank((own.0 + suite.ranks() - 1) % suite.ranks());
    memory::write(pool, suite.private_slot(peer), &pattern(own, peer, LEN_BYTES));
    let mut transfer = suite.transfer(peer, LEN_BYTES);
    for n in 0..COUNT {
        transfer.token = Token(n);
        let direction = |conduit: &dyn crate::Conduit| {
            // Gets return the bytes of earlier puts, or older ones; they are not checked.
            let get = Transfer { own_offset_bytes: transfer.own_offset_bytes + LEN_BYTES, ..transfer };
            if n % 3 == 2 { conduit.get(&get) } else { conduit.put(&transfer) }
        };
        suite.insist("put or get", direction)?;
    }
    suite.wait_complete((0..COUNT).map(Token).collect())?;
    suite.meet()?;
    let bytes = memory::read(pool, suite.shared_slot(before), LEN_BYTES);
    check(bytes == pattern(before, own, LEN_BYTES), || "the last put's bytes are wrong".to_owned())
}

/// If the conduit maps neighbours' memory, it is their actual memory, and atomics work on it.
pub(super) fn peer_memory(suite: &mut Suite<'_>) -> Result<(), String> {
    if !suite.conduit.capabilities().peer_memory {
        return Ok(());
    }
    let (own, conduit) = (suite.rank(), suite.conduit);
    let neighbours = || suite.all_ranks().filter(|&rank| conduit.host_of(rank) == conduit.host_of(own));
    let table = |rank| conduit.table(rank).ok_or_else(|| format!("no table of {rank}"));
    let pool = |rank| conduit.pool(rank).ok_or_else(|| format!("no pool of {rank}"));
    memory::write(pool(own)?, 0, &pattern(own, own, 64));
    memory::word(table(own)?, 0).store(u64::from(own.0) + 1, Ordering::Relaxed);
    suite.meet()?;
    for rank in neighbours() {
        let word = memory::word(table(rank)?, 0).load(Ordering::Relaxed);
        check(word == u64::from(rank.0) + 1, || format!("the table of {rank} is not its own: {word}"))?;
        check(memory::read(pool(rank)?, 0, 64) == pattern(rank, rank, 64), || format!("nor is the pool of {rank}"))?;
    }
    suite.meet()?;
    for rank in neighbours() {
        for _ in 0..1_000 {
            memory::word(table(rank)?, 8).fetch_add(1, Ordering::Relaxed);
        }
    }
    suite.meet()?;
    let (sum, expected) = (memory::word(table(own)?, 8).load(Ordering::Relaxed), 1_000 * neighbours().count() as u64);
    check(sum == expected, || format!("atomics on shared memory gave {sum}, not {expected}"))
}

/// If the conduit allows a second mapping of the pool, it works, and both are the same memory.
pub(super) fn second_mapping(suite: &mut Suite<'_>) -> Result<(), String> {
    let (own, pool) = (suite.rank(), suite.own_pool()?);
    let (second, is_possible) = (pool.second(), suite.conduit.capabilities().second_mapping);
    check(second.is_ok() == is_possible, || format!("{second:?}, and the conduit says {is_possible}"))?;
    let Ok(address) = second else { return Ok(()) };
    let second = Region { address, ..pool };
    let expected = pattern(own, own, 5_000);
    memory::write(pool, 12_345, &expected);
    let seen = memory::read(second, 12_345, expected.len());
    check(seen == expected, || "the second mapping does not have the pool's bytes".to_owned())
}
