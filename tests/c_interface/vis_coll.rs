//! Transfers of many pieces, and collectives, in jobs with segments several times their pools.

use crate::support::compile::{self, Language, Linking};
use crate::support::run::{Setup, run, run_with, some_of};

const KIB: u64 = 1 << 10;

const fn small(ranks: u32, pool_pages: u64, peer_memory: bool, cooperative: bool) -> Setup {
    Setup { ranks, page_bytes: 64 * KIB, pool_pages, peer_memory, cooperative }
}

/// Numbers of ranks with different trees, with each value of the other settings.
const SETUPS: [Setup; 11] = [
    small(1, 4, true, true),
    small(2, 4, false, true),
    small(2, 7, true, false),
    small(3, 5, true, true),
    small(4, 4, true, true),
    small(4, 7, false, false),
    small(5, 5, false, true),
    small(7, 4, true, true),
    small(7, 7, false, true),
    small(8, 5, true, false),
    Setup { page_bytes: 4096 * KIB, ..small(4, 4, true, true) },
];

/// Runs a program in all setups, in one of them also as C++.
fn run_everywhere(program: &str) {
    let c = compile::program(program, Language::C99, Linking::Shared);
    let cxx = compile::program(program, Language::Cxx17, Linking::Shared);
    for setup in some_of(SETUPS) {
        run(&c, &[], setup).expect(0);
    }
    run(&cxx, &[], SETUPS[3]).expect(0);
}

#[test]
fn transfers_of_many_pieces() {
    run_everywhere("vis");
}

#[test]
fn collectives_in_teams_of_all_shapes() {
    run_everywhere("collectives");
}

/// With and without access to other ranks' memory.
#[test]
fn collectives_of_more_than_a_rank_reads_at_a_time() {
    let program = compile::program("large_collectives", Language::C99, Linking::Shared);
    for setup in [small(2, 9, true, true), small(4, 32, true, true), small(3, 9, false, true)] {
        run(&program, &[], setup).expect(0);
    }
}

#[test]
fn a_client_that_spins_gives_way_and_does_not_sleep() {
    let program = compile::program("tries", Language::C99, Linking::Shared);
    run(&program, &[], small(2, 7, true, true)).expect(0);
}

#[test]
fn programs_manage_memory_of_large_collectives_by_faults() {
    let program = compile::program("large_collectives", Language::C99, Linking::Shared);
    for peer_memory in [true, false] {
        for part in ["managed-source", "managed"] {
            run(&program, &[part], small(2, 9, peer_memory, true)).expect(0);
        }
        // The owner of the memory ends by a fault of its own.
        for part in ["unreadable", "unwritable"] {
            run(&program, &[part], small(2, 9, peer_memory, true)).expect(128 + 11);
        }
    }
}

/// Errors of the programs: program, argument, the function that reports the error, and its message.
const ERRORS: [(&str, &str, &str, &str); 22] = [
    ("vis", "unequal", "vgasnet_putv_bulk", "the destination list has 9 bytes and the source list 8"),
    ("vis", "endless", "vgasnet_geti_bulk", "more than 2^64"),
    ("vis", "no-list", "vgasnet_getv_nb_bulk", "the source list of 2 entries is a null pointer"),
    ("vis", "no-rank", "vgasnet_putv_nbi_bulk", "there is no rank 2"),
    ("vis", "outside", "vgasnet_puts_bulk", "are not inside the segment of rank 0"),
    ("vis", "null-local", "vgasnet_gets_bulk", "the destination of 8 bytes is a null pointer"),
    ("vis", "huge", "vgasnet_gets_bulk", "more than 2^64 bytes"),
    ("collectives", "image", "vgasnet_coll_init", "image 2 of rank 0; the images of this rank are 0 to 1"),
    ("collectives", "no-image", "vgasnet_coll_init", "rank 1 has 0 images"),
    ("collectives", "image-thread", "vgasnet_coll_broadcast", "this thread is no image"),
    ("collectives", "image-root", "vgasnet_coll_broadcast", "there is no image 3 in this team; its images are 0 to 2"),
    ("collectives", "image-differs", "vgasnet_coll_broadcast", "image 1 calls another collective"),
    ("collectives", "image-memory", "vgasnet_coll_exchange", "the images of this rank need 17592186044416 bytes"),
    ("collectives", "images-change", "vgasnet_coll_init", "other numbers of images while"),
    ("collectives", "no-team", "vgasnet_coll_team_size", "does not exist"),
    ("collectives", "no-root", "vgasnet_coll_scatter", "there is no rank 2 in this team"),
    ("collectives", "flags", "vgasnet_coll_gather_all", "flags 0x200"),
    ("collectives", "function", "vgasnet_coll_reduce", "function 7 of 2"),
    ("collectives", "null", "vgasnet_coll_exchange", "the source is a null pointer"),
    ("collectives", "list", "vgasnet_coll_gatherM", "a list of addresses is a null pointer"),
    ("collectives", "free-all", "vgasnet_coll_team_free", "VGASNET_TEAM_ALL"),
    ("collectives", "wait", "vgasnet_coll_barrier_wait", "has not notified"),
];

#[test]
fn misuse_ends_the_job_with_one_line() {
    for (program, error, function, text) in some_of(ERRORS) {
        let program = compile::program(program, Language::C99, Linking::Shared);
        let ended = run_with(&program, &[error], small(2, 4, true, true), &[("VGASNET_CHECK", "1")]);
        ended.expect(1);
        let lines: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with("vgasnet: ")).collect();
        assert_eq!(lines.len(), 1, "{ended}");
        assert!(lines[0].starts_with(&format!("vgasnet: rank 0: {function}: ")) && lines[0].contains(text), "{ended}");
    }
}
