//! All-gather of contributions by messages: Bruck's algorithm.
//!
//! In round `k` a rank sends its blocks, at most `2^k`, to the rank `2^k` below and receives as many from the rank
//! `2^k` above, so all have everything after `log2(ranks)` rounds. A rank's own block comes first; block `i` is the one
//! of the rank `i` above.

use std::collections::HashMap;

use vgasnet_conduit::{EXCHANGE_BYTES_MAX, Rank};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The header of a part.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Header {
    epoch: U32,
    round: U32,
    offset_bytes: U32,
    /// Total length of all parts.
    whole_bytes: U32,
}

const HEADER_BYTES: usize = size_of::<Header>();

/// A contribution with its length.
const BLOCK_BYTES_MAX: usize = 2 + EXCHANGE_BYTES_MAX;

/// The blocks of one round of one exchange, arriving in parts.
#[derive(Debug, Default)]
struct Arriving {
    bytes: Vec<u8>,
    missing: Option<usize>,
}

/// One rank's side of all exchanges. A peer may be one exchange ahead, so early parts are kept.
#[derive(Debug)]
pub struct Gather {
    own: u32,
    ranks: u32,
    epoch: u32,
    arriving: HashMap<(u32, u32), Arriving>,
}

/// A started exchange.
#[derive(Debug)]
pub struct Exchange {
    round: u32,
    /// Encoded, starting with this rank's own.
    blocks: Vec<u8>,
    /// Number of blocks.
    count: u32,
}

/// The next step of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Send these messages.
    Send(Rank, Vec<Vec<u8>>),
    /// Wait for messages.
    Wait,
    /// All contributions, in rank order.
    Done(Vec<Vec<u8>>),
}

impl Gather {
    /// For rank `own` of `ranks`, before the first exchange.
    pub fn new(own: Rank, ranks: u32) -> Gather {
        Gather { own: own.0, ranks, epoch: 0, arriving: HashMap::new() }
    }

    /// Starts an exchange. The messages are the first round's.
    pub fn begin(&mut self, mine: &[u8], message_bytes_max: usize) -> (Exchange, Next) {
        let mut exchange = Exchange { round: 0, blocks: Vec::new(), count: 1 };
        push_block(&mut exchange.blocks, mine);
        self.epoch = self.epoch.wrapping_add(1);
        let step = self.send(&exchange, message_bytes_max);
        (exchange, step)
    }

    /// Continues an exchange if the parts of its round have arrived. `None` if they are not valid blocks of the round.
    pub fn advance(&mut self, exchange: &mut Exchange, message_bytes_max: usize) -> Option<Next> {
        let key = (self.epoch, exchange.round);
        if self.arriving.get(&key).is_none_or(|arriving| arriving.missing != Some(0)) {
            return Some(Next::Wait);
        }
        let arrived = self.arriving.remove(&key).unwrap_or_default();
        if !are_blocks(&arrived.bytes, self.travelling(exchange.round)) {
            return None;
        }
        exchange.blocks.extend_from_slice(&arrived.bytes);
        exchange.count += self.travelling(exchange.round);
        exchange.round += 1;
        Some(self.send(exchange, message_bytes_max))
    }

    /// Accepts a message. Returns whether it is valid.
    pub fn receive(&mut self, message: &[u8]) -> bool {
        let Ok((Header { epoch, round, offset_bytes, whole_bytes }, part)) = Header::read_from_prefix(message) else {
            return false;
        };
        let (offset, whole) = (offset_bytes.get() as usize, whole_bytes.get() as usize);
        // A peer may be one exchange ahead.
        let is_due = epoch.get().wrapping_sub(self.epoch) <= 1 && round.get() < self.rounds();
        if !is_due || part.is_empty() || whole > self.travelling(round.get()) as usize * BLOCK_BYTES_MAX {
            return false;
        }
        let arriving = self.arriving.entry((epoch.get(), round.get())).or_default();
        if arriving.missing.is_some() && arriving.bytes.len() != whole {
            return false;
        }
        arriving.bytes.resize(whole, 0);
        let (Some(place), Some(missing)) = (
            arriving.bytes.get_mut(offset..offset + part.len()),
            arriving.missing.unwrap_or(whole).checked_sub(part.len()),
        ) else {
            return false;
        };
        place.copy_from_slice(part);
        arriving.missing = Some(missing);
        true
    }

    /// Number of rounds of an exchange.
    fn rounds(&self) -> u32 {
        self.ranks.next_power_of_two().trailing_zeros()
    }

    /// Number of blocks sent in a round.
    fn travelling(&self, round: u32) -> u32 {
        let distance = 1 << round;
        distance.min(self.ranks - distance)
    }

    fn send(&self, exchange: &Exchange, message_bytes_max: usize) -> Next {
        if exchange.count == self.ranks {
            return Next::Done(self.in_rank_order(&exchange.blocks));
        }
        let to = (self.own + self.ranks - (1 << exchange.round)) % self.ranks;
        let mut end = 0;
        for _ in 0..self.travelling(exchange.round) {
            end += 2 + block_bytes(&exchange.blocks[end..]);
        }
        let whole = &exchange.blocks[..end];
        let parts = whole.chunks(message_bytes_max - HEADER_BYTES).enumerate().map(|(at, part)| {
            let offset = at * (message_bytes_max - HEADER_BYTES);
            let [epoch, round, offset_bytes, whole_bytes] =
                [self.epoch, exchange.round, offset as u32, whole.len() as u32].map(U32::new);
            [Header { epoch, round, offset_bytes, whole_bytes }.as_bytes(), part].concat()
        });
        Next::Send(Rank(to), parts.collect())
    }

    fn in_rank_order(&self, mut blocks: &[u8]) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new(); self.ranks as usize];
        for above in 0..self.ranks {
            let end = 2 + block_bytes(blocks);
            all[((self.own + above) % self.ranks) as usize] = blocks[2..end].to_vec();
            blocks = &blocks[end..];
        }
        all
    }
}

fn push_block(blocks: &mut Vec<u8>, block: &[u8]) {
    blocks.extend_from_slice(&(block.len() as u16).to_le_bytes());
    blocks.extend_from_slice(block);
}

/// Whether these bytes are `count` blocks.
fn are_blocks(mut bytes: &[u8], count: u32) -> bool {
    for _ in 0..count {
        let Some((len, tail)) = bytes.split_first_chunk() else { return false };
        let len_bytes = usize::from(u16::from_le_bytes(*len));
        let Some(tail) = tail.get(len_bytes..).filter(|_| len_bytes <= EXCHANGE_BYTES_MAX) else { return false };
        bytes = tail;
    }
    bytes.is_empty()
}

/// The length of the first block, excluding its two-byte length.
fn block_bytes(blocks: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([blocks[0], blocks[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE_BYTES_MAX: usize = 300;

    fn contribution(rank: u32, epoch: u32) -> Vec<u8> {
        (0..(rank * 97 + epoch * 31) % 513).map(|at| (at * 7 + rank + epoch) as u8).collect()
    }

    /// All ranks exchange several times; messages are delivered from alternate ends of a queue.
    fn all_exchange(ranks: u32) {
        const EPOCHS: u32 = 3;
        let mut gathers: Vec<_> = (0..ranks).map(|rank| Gather::new(Rank(rank), ranks)).collect();
        let mut exchanges: Vec<(u32, Option<Exchange>)> = (0..ranks).map(|_| (0, None)).collect();
        let mut wire = std::collections::VecDeque::new();
        let mut messages = 0;
        while exchanges.iter().any(|(done, _)| *done < EPOCHS) {
            for (rank, (gather, (done, exchange))) in (0..).zip(gathers.iter_mut().zip(&mut exchanges)) {
                if *done == EPOCHS {
                    continue;
                }
                let step = match exchange {
                    Some(exchange) => gather.advance(exchange, MESSAGE_BYTES_MAX).expect("parts of the round"),
                    None => {
                        let (begun, step) = gather.begin(&contribution(rank, *done), MESSAGE_BYTES_MAX);
                        *exchange = Some(begun);
                        step
                    }
                };
                match step {
                    Next::Send(to, parts) => wire.extend(parts.into_iter().map(|part| (to, part))),
                    Next::Wait => {}
                    Next::Done(all) => {
                        let expected: Vec<_> = (0..ranks).map(|rank| contribution(rank, *done)).collect();
                        assert_eq!(all, expected);
                        (*done, *exchange) = (*done + 1, None);
                    }
                }
            }
            let next = if messages % 2 == 0 { wire.pop_front() } else { wire.pop_back() };
            if let Some((to, message)) = next {
                messages += 1;
                assert!(message.len() <= MESSAGE_BYTES_MAX);
                assert!(gathers[to.index()].receive(&message));
            }
        }
        assert!(wire.is_empty() && gathers.iter().all(|gather| gather.arriving.is_empty()));
    }

    #[test]
    fn every_rank_gets_every_contribution() {
        for ranks in [1, 2, 3, 4, 5, 7, 8, 13] {
            all_exchange(ranks);
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let mut gather = Gather::new(Rank(0), 2);
        assert!(!gather.receive(b"short"));
        let (mut exchange, _) = gather.begin(b"own", MESSAGE_BYTES_MAX);
        let part = |words: [u32; 4], bytes: &[u8]| {
            let header: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            [header, bytes.to_vec()].concat()
        };
        assert!(!gather.receive(&part([1, 0, 5, 6], b"too long")));
        assert!(!gather.receive(&part([3, 0, 0, 8], b"epoch 3.")) && !gather.receive(&part([0, 0, 0, 8], b"epoch 0.")));
        assert!(!gather.receive(&part([1, 1, 0, 8], b"round 1.")), "two ranks need one round");
        assert!(!gather.receive(&part([1, 0, 0, u32::MAX], b"whole")), "more than a block");
        let mut gather = Gather::new(Rank(0), 2);
        let (_, _) = gather.begin(b"own", MESSAGE_BYTES_MAX);
        assert!(gather.receive(&part([1, 0, 0, 4], b"\x09\x00")));
        assert!(!gather.receive(&part([1, 0, 2, 5], b"ab")), "another whole");
        assert!(gather.receive(&part([1, 0, 2, 4], b"ab")));
        assert_eq!(gather.advance(&mut exchange, MESSAGE_BYTES_MAX), None, "9 bytes in a block of 2");
    }

    /// Parts, valid and altered, reach a rank during exchanges: they are refused, or it goes on.
    #[test]
    fn parts_may_be_anything() {
        vgasnet_fuzzing::run("-p vgasnet-hybrid --lib parts_may_be", 50_000, |random| {
            let ranks = random.u32(1..9);
            let mut gather = Gather::new(Rank(random.u32(0..ranks)), ranks);
            let (mut exchange, mut step) = gather.begin(b"own", MESSAGE_BYTES_MAX);
            let mut inputs = 0;
            while inputs < 40 {
                inputs += 1;
                if matches!(step, Next::Done(_)) {
                    (exchange, step) = gather.begin(b"again", MESSAGE_BYTES_MAX);
                }
                let mut blocks = Vec::new();
                let round = exchange.round;
                (0..gather.travelling(round.min(gather.rounds().saturating_sub(1))).min(ranks)).for_each(|_| {
                    push_block(&mut blocks, &vgasnet_fuzzing::bytes(random, 20));
                });
                let [epoch, round, offset_bytes, whole_bytes] =
                    [gather.epoch, round, 0, blocks.len() as u32].map(U32::new);
                let header = Header { epoch, round, offset_bytes, whole_bytes };
                let mut message = [header.as_bytes(), &blocks].concat();
                if random.bool() {
                    vgasnet_fuzzing::mutate(random, &mut message);
                }
                if !gather.receive(&message) {
                    continue;
                }
                let Some(next) = gather.advance(&mut exchange, MESSAGE_BYTES_MAX) else { break };
                step = next;
            }
            inputs
        });
    }
}
