//! Pages evicted from their last pool stay in the pools of waiting ranks.

use crate::support::compile::{self, Language, Linking};
use crate::support::run::{Setup, run_with};

const fn setup(ranks: u32, peer_memory: bool) -> Setup {
    Setup { ranks, page_bytes: 64 << 10, pool_pages: 32, peer_memory, cooperative: true }
}

/// Pages move whole, so that each miss is one read.
const WHOLE: (&str, &str) = ("VGASNET_SHIP", "0");

const KEPT: (&str, &str) = ("VGASNET_IDLE_POOLS", "1");

const COUNTED: (&str, &str) = ("VGASNET_STATS", "1");

#[test]
fn pools_of_ranks_that_wait_are_a_cache_for_others() {
    let program = compile::program("idle_pools", Language::C99, Linking::Shared);
    for (ranks, peer_memory) in [(2, false), (2, true), (4, true), (4, false)] {
        for way in ["gets", "loads"] {
            run_with(&program, &[way], setup(ranks, peer_memory), &[WHOLE, COUNTED, KEPT]).expect(0);
        }
    }
    run_with(&program, &["gets"], setup(2, false), &[WHOLE, COUNTED]).expect(0);
}

#[test]
fn what_others_keep_is_written_and_read_by_all() {
    let program = compile::program("idle_pools", Language::C99, Linking::Shared);
    for (ranks, peer_memory) in [(2, true), (3, false), (4, true)] {
        run_with(&program, &["mixed"], setup(ranks, peer_memory), &[KEPT]).expect(0);
        run_with(&program, &["mixed"], setup(ranks, peer_memory), &[WHOLE, KEPT]).expect(0);
    }
}
