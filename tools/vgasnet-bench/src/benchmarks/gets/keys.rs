//! The distinct gets, and draws of them.

use super::{Gets, RANKS, Ranges, SIZE_POWERS, Sampling};
use crate::prelude::*;
use std::f64::consts::TAU;
use std::ops::Range;

/// The sizes of the published overlapping gets: from 4 bytes to 64 KiB. Their starts in a page are 4 bytes apart.
const OVERLAPPING_POWERS: Range<u32> = 2..17;

/// A get.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub home: u32,
    pub offset: u64,
    pub size_bytes: usize,
}

/// The places of gets: the pages of the homes, round robin, without the pages in rank 0's pool.
pub struct Places {
    homes: u64,
    pages: u64,
    first_page: u64,
    page_bytes: u64,
}

impl Places {
    pub fn new(rank: &Rank, spec: &Spec) -> Places {
        let page_bytes = rank.page_bytes as u64;
        // The first pages of the last home are in rank 0's pool.
        let first_page = (rank.pool_bytes - spec.data_bytes).div_ceil(page_bytes);
        Places { homes: u64::from(RANKS - 1), pages: spec.data_bytes / page_bytes - first_page, first_page, page_bytes }
    }

    /// A key at an offset in a page, with the pages of all homes numbered together.
    fn key(&self, page: u64, in_page: u64, size_bytes: usize) -> Key {
        let home = 1 + (page % self.homes) as u32;
        let offset = (self.first_page + page / self.homes % self.pages) * self.page_bytes + in_page;
        Key { home, offset, size_bytes }
    }

    fn count(&self) -> u64 {
        self.homes * self.pages
    }

    /// `count` gets of one size, all of different bytes, in random order.
    pub fn scan(&self, size_bytes: usize, count: usize, random: &mut fastrand::Rng) -> Vec<Key> {
        let of_page = self.page_bytes / size_bytes as u64;
        let all = self.count() * of_page;
        let mut places: Vec<u64> = (0..all).collect();
        random.shuffle(&mut places);
        let key = |place: u64| self.key(place % self.count(), place / self.count() * size_bytes as u64, size_bytes);
        places.into_iter().take(count).map(key).collect()
    }

    /// The gets to draw from. Each page has a mix of all sizes: otherwise some pages would be used so much that they
    /// move to rank 0.
    pub fn keys(&self, orders: &Gets, random: &mut fastrand::Rng) -> Vec<Key> {
        let powers = if orders.ranges == Ranges::Disjoint { 0..SIZE_POWERS } else { OVERLAPPING_POWERS };
        let mut sizes: Vec<usize> = (0..orders.distinct).map(|_| 1 << random.u32(powers.clone())).collect();
        sizes.sort_unstable();
        let mut next_in_page = vec![0; self.count() as usize];
        let key = |(index, size_bytes): (u64, usize)| {
            let page = index % self.count();
            let in_page = next_in_page[page as usize];
            let distance = if orders.ranges == Ranges::Disjoint { (size_bytes as u64).next_multiple_of(64) } else { 4 };
            next_in_page[page as usize] = in_page + distance;
            (in_page + size_bytes as u64 <= self.page_bytes).then(|| self.key(page, in_page, size_bytes))
        };
        let mut keys: Vec<Key> = (0..).zip(sizes).filter_map(key).collect();
        random.shuffle(&mut keys);
        keys
    }
}

/// Indices of keys in the order of the draws.
pub fn draws(orders: &Gets, keys: usize, random: &mut fastrand::Rng) -> Vec<usize> {
    let (middle, sigma) = (keys as f64 / 2.0, keys as f64 / f64::from(orders.sigma));
    let mut draw = || match orders.sampling {
        Sampling::Uniform => random.usize(0..keys),
        Sampling::Normal => loop {
            // The Box-Muller transform.
            let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
            let at = middle + sigma * radius * (TAU * random.f64()).cos();
            if at >= 0.0 && at < keys as f64 {
                break at as usize;
            }
        },
    };
    (0..orders.draws).map(|_| draw()).collect()
}

/// Fills a page with words that encode their own positions.
pub fn fill_page(rank: u32, offset: u64, page: &mut [u8]) {
    for (word, to) in page.chunks_exact_mut(8).enumerate() {
        to.copy_from_slice(&word_at(rank, offset / 8 + word as u64).to_le_bytes());
    }
}

fn word_at(rank: u32, word: u64) -> u64 {
    (word ^ u64::from(rank) << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Whether the bytes are right for a key.
pub fn is_right(key: &Key, bytes: &[u8]) -> bool {
    let byte_at = |at: u64| word_at(key.home, at / 8).to_le_bytes()[(at % 8) as usize];
    (key.offset..).zip(bytes).all(|(at, byte)| byte_at(at) == *byte)
}
