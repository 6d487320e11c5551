//! Addresses of the pools of all ranks, stored compactly.

use vgasnet_conduit::{ConduitError, Rank, Region, of_other_version};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A rank's description of its pool: the address in its own address space, and the offset from the start of its
/// segment.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Told {
    pub(crate) address: U64,
    pub(crate) len_bytes: U64,
    pub(crate) segment_offset_bytes: U64,
}

/// A number of bytes, a multiple of the smallest page size, up to 4 PiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole([u8; 5]);

impl Whole {
    const PAGE_BYTES: u64 = 4096;

    fn of_bytes(bytes: u64) -> Option<Whole> {
        let [a, b, c, d, e, 0, 0, 0] = (bytes / Whole::PAGE_BYTES).to_le_bytes() else { return None };
        (bytes % Whole::PAGE_BYTES == 0).then_some(Whole([a, b, c, d, e]))
    }

    fn bytes(self) -> usize {
        let [a, b, c, d, e] = self.0;
        (u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]) * Whole::PAGE_BYTES) as usize
    }
}

/// The pools of all ranks.
#[derive(Debug)]
pub(crate) struct Pools {
    /// Address and length of each pool.
    all: Vec<(Whole, Whole)>,
    /// Offsets of pools in their segments, of ranks whose memory is mapped here, in rank order.
    offsets: Vec<(Rank, usize)>,
}

impl Pools {
    /// From each rank's description, in rank order.
    ///
    /// # Errors
    /// A rank with any other description has another version.
    pub(crate) fn new(told: &[Vec<u8>], is_mapped: impl Fn(Rank) -> bool) -> Result<Pools, ConduitError> {
        let mut pools = Pools { all: Vec::with_capacity(told.len()), offsets: Vec::new() };
        for (rank, told) in told.iter().enumerate() {
            let told = Told::read_from_bytes(told).ok();
            let place = told.and_then(|told| {
                let (address, len) = (Whole::of_bytes(told.address.get())?, Whole::of_bytes(told.len_bytes.get())?);
                Some((address, len, told.segment_offset_bytes.get() as usize))
            });
            let (address, len, offset_bytes) = place.ok_or_else(|| of_other_version(rank, "the place of its pool"))?;
            pools.all.push((address, len));
            if is_mapped(Rank(rank as u32)) {
                pools.offsets.push((Rank(rank as u32), offset_bytes));
            }
        }
        Ok(pools)
    }

    /// A rank's pool, in its own address space.
    pub(crate) fn of(&self, rank: Rank) -> Region {
        let (address, len) = self.all[rank.index()];
        Region { address: address.bytes(), len_bytes: len.bytes() }
    }

    /// Offset of a rank's pool in its segment, if mapped here.
    pub(crate) fn offset_bytes(&self, rank: Rank) -> Option<usize> {
        let at = self.offsets.binary_search_by_key(&rank, |(rank, _)| *rank).ok()?;
        Some(self.offsets[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(address: u64, len_bytes: u64, segment_offset_bytes: u64) -> Vec<u8> {
        let told = Told {
            address: address.into(),
            len_bytes: len_bytes.into(),
            segment_offset_bytes: segment_offset_bytes.into(),
        };
        told.as_bytes().to_vec()
    }

    #[test]
    fn pools_are_where_their_ranks_have_told() {
        let all = [told(0x7fff_ffff_f000, 4096, 0), told(0, (1 << 52) - 4096, 8192), told(4096, 1 << 40, 1)];
        let pools = Pools::new(&all, |rank| rank == Rank(1)).expect("all have told a place");
        assert_eq!(pools.of(Rank(0)), Region { address: 0x7fff_ffff_f000, len_bytes: 4096 });
        assert_eq!(pools.of(Rank(1)), Region { address: 0, len_bytes: (1 << 52) - 4096 });
        assert_eq!(pools.of(Rank(2)), Region { address: 4096, len_bytes: 1 << 40 });
        assert_eq!([0, 1, 2].map(|rank| pools.offset_bytes(Rank(rank))), [None, Some(8192), None]);
    }

    #[test]
    fn what_is_no_place_is_of_another_version() {
        for wrong in [told(4097, 4096, 0), told(4096, 1, 0), told(1 << 52, 4096, 0), vec![0; 23]] {
            assert!(Pools::new(&[told(0, 0, 0), wrong], |_| false).is_err());
        }
    }

    #[test]
    fn a_rank_costs_ten_bytes() {
        assert_eq!(size_of::<(Whole, Whole)>(), 10);
    }
}
