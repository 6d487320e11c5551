//! The C programs of `tests/c/`, as jobs of several ranks, with pools much smaller than their working sets.

use crate::support::compile::{self, Language, Linking};
use crate::support::run::{Ended, Setup, fresh_dir, run, run_with, some_of};
use std::path::Path;
use std::path::PathBuf;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Every value of each setting with every value of each other setting, but not all combinations.
const SETUPS: [Setup; 16] = [
    small(1, 4, true, true),
    small(1, 7, false, false),
    small(2, 4, false, true),
    small(2, 5, true, false),
    small(2, 7, true, true),
    small(4, 4, true, true),
    small(4, 4, false, false),
    small(4, 5, false, true),
    small(4, 7, true, false),
    small(7, 4, false, true),
    small(7, 5, true, true),
    small(7, 7, false, false),
    tiny(2, 7, true),
    tiny(4, 5, false),
    large(2, true, true),
    large(4, false, false),
];

pub const fn small(ranks: u32, pool_pages: u64, peer_memory: bool, cooperative: bool) -> Setup {
    Setup { ranks, page_bytes: 64 * KIB, pool_pages, peer_memory, cooperative }
}

/// A setup with the smallest pages.
const fn tiny(ranks: u32, pool_pages: u64, peer_memory: bool) -> Setup {
    Setup { ranks, page_bytes: 4 * KIB, pool_pages, peer_memory, cooperative: true }
}

const fn large(ranks: u32, peer_memory: bool, cooperative: bool) -> Setup {
    Setup { ranks, page_bytes: 4 * MIB, pool_pages: 16, peer_memory, cooperative }
}

/// Without and with small operations at the rank with the page.
const SHIPS: [(&str, &str); 2] = [("VGASNET_SHIP", "0"), ("VGASNET_SHIP", "1")];

/// A setup with pages of this size, in which a program with threads may load and store.
const fn pages_of(kib: u64, ranks: u32, pool_pages: u64, peer_memory: bool, cooperative: bool) -> Setup {
    Setup { ranks, page_bytes: kib * KIB, pool_pages, peer_memory, cooperative }
}

/// Runs a program in these setups, in the first one also as C++.
fn run_in(program: &str, setups: impl IntoIterator<Item = Setup>) {
    run_each(program, &[], setups.into_iter().map(|setup| (setup, None)));
}

/// As [`run_in`], each with one more variable in the environment.
fn run_each(
    program: &str,
    args: &[&str],
    setups: impl IntoIterator<Item = (Setup, Option<(&'static str, &'static str)>)>,
) {
    let c = compile::program(program, Language::C99, Linking::Shared);
    let cxx = compile::program(program, Language::Cxx17, Linking::Shared);
    for (at, (setup, variable)) in some_of(setups).enumerate() {
        let more: Vec<_> = variable.into_iter().collect();
        run_with(&c, args, setup, &more).expect(0);
        if at == 0 {
            run_with(&cxx, args, setup, &more).expect(0);
        }
    }
}

fn job(args: &[&str], setup: Setup) -> Ended {
    run(&compile::program("job", Language::C99, Linking::Shared), args, setup)
}

/// The files of a directory with this extension.
fn files(dir: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(compile::source_dir().join(dir)).expect("a directory").flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|its| its == extension)).collect()
}

#[test]
fn every_program_is_run() {
    let tests: String =
        files("tests/c_interface", "rs").iter().map(|path| std::fs::read_to_string(path).expect("a test")).collect();
    for program in files("tests/c", "c") {
        let name = program.file_stem().expect("a name").to_string_lossy();
        assert!(tests.contains(&format!("\"{name}\"")), "no test names tests/c/{name}.c");
    }
}

#[test]
fn blocking_transfers_of_all_lengths_and_alignments() {
    run_in("blocking", SETUPS);
}

#[test]
fn active_messages_of_all_kinds() {
    // The handlers store to their segment, so the pool has room for any instruction.
    let enough = |setup: Setup| Setup { pool_pages: setup.pool_pages + 4, ..setup };
    run_in("messages_active", SETUPS.map(enough));
}

#[test]
fn what_bindings_use() {
    run_in("bindings", [small(1, 4, true, true), small(3, 4, false, true)]);
}

#[test]
fn segments_of_sixteen_times_the_pool() {
    let is_small = |setup: &Setup| setup.page_bytes < MIB;
    run_in("larger_than_memory", SETUPS.into_iter().filter(is_small));
    // Pages of the default size. The time depends on the disk.
    run_in("larger_than_memory", [Setup { pool_pages: 4, ..large(2, true, true) }]);
}

#[test]
fn many_operations_in_flight_synced_in_any_order() {
    run_in("handles", SETUPS);
}

#[test]
fn implicit_operations_and_access_regions() {
    run_in("implicit", SETUPS);
}

#[test]
fn values_and_memsets_in_all_forms() {
    run_in("values", SETUPS);
}

#[test]
fn several_threads_on_shared_pages() {
    run_in("threads", SETUPS);
}

#[test]
fn barriers_match_names_and_make_puts_visible() {
    run_in("barriers", SETUPS);
}

#[test]
fn ranks_that_do_not_all_share_memory_share_none() {
    let program = compile::program("barriers", Language::C99, Linking::Shared);
    for setup in some_of([small(2, 8, true, true), small(4, 8, true, true)]) {
        let dir = fresh_dir();
        let made = dir.join("made");
        run_with(&program, &[made.to_str().expect("a path of ours")], setup, &[]).expect(0);
        std::fs::remove_dir_all(&dir).expect("a directory of ours");
    }
}

#[test]
fn flags_in_segments_pass_messages() {
    run_in("messages", SETUPS);
}

#[test]
fn local_addresses_in_the_own_segment() {
    run_in("own_segment", SETUPS);
}

#[test]
fn transfers_between_segments_wait_for_no_page_when_they_begin() {
    run_in("own_segment_at_once", SETUPS);
}

#[test]
fn writers_that_fight_over_a_page_lose_nothing() {
    run_in("counters", SETUPS);
}

#[test]
fn atomics_of_all_kinds_on_shared_words() {
    let setups = [
        pages_of(4, 1, 5, true, true),
        pages_of(4, 2, 4, false, false),
        pages_of(4, 4, 8, true, false),
        pages_of(64, 1, 4, false, false),
        pages_of(64, 2, 5, true, true),
        pages_of(64, 4, 5, false, true),
        pages_of(4096, 1, 4, true, true),
        pages_of(4096, 2, 4, true, false),
        pages_of(4096, 4, 8, true, true),
    ];
    run_each("atomics", &[], setups.iter().flat_map(|setup| SHIPS.map(|ships| (*setup, Some(ships)))));
    // Pages of this size take long to move between ranks.
    let [_, ships] = SHIPS;
    let others = [(false, true), (false, false)].map(|(peer, cooperative)| pages_of(4096, 4, 4, peer, cooperative));
    run_each("atomics", &[], others.map(|setup| (setup, Some(ships))));
}

#[test]
fn small_transfers_at_random_places() {
    let setups = [
        pages_of(4096, 1, 16, true, true),
        pages_of(4096, 2, 4, true, true),
        pages_of(4096, 4, 4, false, true),
        pages_of(4096, 4, 8, true, false),
        pages_of(4096, 4, 8, false, false),
        pages_of(256, 2, 4, false, false),
        pages_of(256, 4, 8, false, true),
        pages_of(256, 4, 16, true, true),
        pages_of(64, 2, 16, true, false),
        pages_of(64, 4, 4, true, true),
        pages_of(64, 4, 5, false, true),
    ];
    run_in("small", setups);
}

#[test]
fn small_transfers_of_more_blocks_than_a_home_keeps() {
    let setups = [
        pages_of(4096, 1, 4, true, true),
        pages_of(4096, 2, 4, true, true),
        pages_of(4096, 4, 8, true, false),
        pages_of(256, 2, 4, false, false),
    ];
    run_each("scattered", &["blocks"], setups.map(|setup| (setup, None)));
}

#[test]
fn small_gets_of_neighbours_pages_beside_their_writers() {
    let setups = [
        pages_of(4096, 4, 4, true, true),
        pages_of(1024, 3, 8, true, true),
        pages_of(256, 2, 8, true, true),
        pages_of(64, 4, 32, true, true),
        pages_of(16, 2, 64, true, false),
        pages_of(4, 3, 512, true, true),
        pages_of(256, 2, 8, false, true),
    ];
    run_in("neighbours", setups);
    run_each("neighbours", &[], [(pages_of(256, 4, 8, true, true), Some(("VGASNET_HOMES", "cyclic")))]);
}

#[test]
fn copies_of_blocks_are_never_old() {
    let setups = [
        pages_of(4096, 1, 6, true, true),
        pages_of(256, 2, 16, true, true),
        pages_of(64, 3, 64, true, true),
        pages_of(16, 2, 256, true, false),
    ];
    run_in("copied_blocks", setups);
    run_each("copied_blocks", &["refused"], [(pages_of(256, 2, 16, true, true), Some(("VGASNET_STATS", "1")))]);
    run_each("copied_blocks", &["counted"], [(pages_of(64, 2, 64, true, true), Some(("VGASNET_STATS", "1")))]);
}

#[test]
fn loads_and_stores_of_blocks_of_large_pages() {
    let setups = [
        pages_of(4096, 1, 4, true, true),
        pages_of(4096, 2, 4, true, true),
        pages_of(1024, 4, 8, false, true),
        pages_of(256, 2, 8, true, false),
        pages_of(256, 3, 16, true, true),
    ];
    run_each("partly", &["all"], setups.map(|setup| (setup, None)));
    run_each("partly", &["all"], [(pages_of(256, 2, 4, true, true), Some(("VGASNET_SHIP", "0")))]);
}

#[test]
fn gets_of_read_only_ranges() {
    let setups = [
        small(2, 7, false, true),
        small(1, 7, true, true),
        small(4, 7, false, false),
        small(3, 7, true, true),
        tiny(2, 7, false),
        large(2, false, true),
    ];
    run_each("readonly", &["phases"], setups.map(|setup| (setup, None)));
    run_each("readonly", &["phases"], [(small(2, 7, false, true), Some(("VGASNET_SHIP", "0")))]);
    let checked = [small(2, 7, true, true), small(3, 7, false, false), large(2, false, true)];
    run_each("readonly", &["phases"], checked.map(|setup| (setup, Some(("VGASNET_CHECK_READONLY", "1")))));
}

#[test]
fn copies_of_pages_that_nobody_has_written_are_kept() {
    // So large that a few gets do not move a page.
    let setups =
        [pages_of(256, 2, 7, false, true), pages_of(256, 2, 30, false, false), pages_of(256, 2, 30, false, true)];
    run_each("readonly", &["kept"], setups.map(|setup| (setup, None)));
}

#[test]
fn who_writes_to_a_read_only_range_is_named() {
    let program = compile::program("readonly", Language::C99, Linking::Shared);
    let setups = [small(3, 7, true, true), small(3, 7, false, true), small(3, 30, false, false), large(3, false, true)];
    let ways = [("1", "put"), ("2", "store"), ("1", "atomic"), ("2", "list"), ("1", "value"), ("2", "set")];
    let places = [("inside", "the page at 0x"), ("start", "the byte at 0x")];
    for (at, setup) in some_of(setups).enumerate() {
        for (nth, (rank, way)) in ways.into_iter().enumerate() {
            let (place, what) = places[(at + nth) % places.len()];
            let ended = run_with(&program, &["broken", rank, way, place], setup, &[("VGASNET_CHECK_READONLY", "1")]);
            let line = format!("vgasnet: rank 0: vgasnet_readonly_end: rank {rank} has written to {what}");
            assert!(ended.expect(1).stderr.contains(&line), "{ended}");
        }
    }
    // The rank's own addresses are refused at once, without the check.
    for way in ["put", "atomic", "list", "value", "set"] {
        let ended = run(&program, &["broken", "0", way, "inside"], small(2, 7, true, true));
        assert!(ended.expect(1).stderr.contains(": 8 bytes at 0x"), "{ended}");
    }
}

#[test]
fn a_list_with_an_error_ends_the_job_though_a_get_has_joined() {
    let program = compile::program("readonly", Language::C99, Linking::Shared);
    let ended = run(&program, &["list"], small(2, 7, false, true));
    assert!(ended.expect(1).stderr.contains("vgasnet: rank 0: vgasnet_getv_bulk: "), "{ended}");
}

#[test]
fn ranges_that_cannot_be_read_only_are_refused() {
    let program = compile::program("readonly", Language::C99, Linking::Shared);
    let ended = run(&program, &["misuse"], small(1, 5, true, true));
    let lines: Vec<_> = ended.expect(0).stderr.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("vgasnet: rank 0: vgasnet_readonly_")), "{ended}");
    assert_eq!(lines.len(), 22, "{ended}");
}

#[test]
fn small_puts_of_whole_blocks_are_seen_whole() {
    run_in("overwritten", [pages_of(4096, 4, 4, false, true), pages_of(4096, 3, 4, true, true)]);
}

/// Compiles the C program of a document.
fn program_in(document: &str) -> PathBuf {
    let name = Path::new(document).file_stem().expect("it has a name").to_ascii_lowercase();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("c");
    std::fs::write(&source, compile::program_text(document)).expect("a file of ours");
    compile::build(&source, Language::C99, Linking::Shared)
}

#[test]
fn the_program_about_shared_files_runs() {
    let (program, dir) = (program_in("docs/reference/files.md"), fresh_dir());
    let file = dir.join("rows");
    for setup in [large(2, true, true), small(4, 7, false, true), small(1, 7, true, true)] {
        let ended = run(&program, &[file.to_str().expect("paths of tests are text")], setup);
        let mut lines: Vec<_> = ended.expect(0).stdout.lines().collect();
        lines.sort_unstable();
        let sum_of = |rank: u32| 100 * (0..1000).map(|row| u64::from(row + (rank + 1) % setup.ranks)).sum::<u64>();
        let expected = (0..setup.ranks).map(|rank| format!("rank {rank}: sum {}", sum_of(rank)));
        assert_eq!(lines, expected.collect::<Vec<_>>(), "{ended}");
    }
    std::fs::remove_dir_all(&dir).expect("a directory of ours");
}

#[test]
fn the_program_about_read_only_ranges_runs() {
    let program = program_in("docs/reference/cached-gets.md");
    for setup in [large(2, true, true), small(4, 7, false, true)] {
        let ended = run(&program, &[], setup);
        let mut lines: Vec<_> = ended.expect(0).stdout.lines().collect();
        lines.sort_unstable();
        let sum_of = |rank: u32| {
            let step =
                |state: &u64| state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let states = std::iter::successors(Some(u64::from(rank)), |state| Some(step(state)));
            states.skip(1).take(1_000_000).map(|state| (state >> 33) % 1000).sum::<u64>()
        };
        let expected = (0..setup.ranks).map(|rank| format!("rank {rank}: sum {}", sum_of(rank)));
        assert_eq!(lines, expected.collect::<Vec<_>>(), "{ended}");
        assert_eq!(ended.stderr.lines().filter(|line| line.contains(" hits")).count(), setup.ranks as usize, "{ended}");
    }
}

#[test]
fn the_program_in_the_readme_runs() {
    let program = program_in("README.md");
    let ended = run(&program, &[], large(4, true, true));
    let mut lines: Vec<_> = ended.expect(0).stdout.lines().collect();
    lines.sort_unstable();
    let expected = (0..4).map(|rank| format!("rank {rank} of 4 got {}", 100 + (rank + 3) % 4));
    assert_eq!(lines, expected.collect::<Vec<_>>(), "{ended}");
}

#[test]
fn a_rank_that_computes_serves_and_an_idle_one_sleeps() {
    for setup in [large(2, true, true), large(3, false, true)] {
        let program = compile::program("progress", Language::C99, Linking::Shared);
        print!("{}", run(&program, &[], setup).expect(0).stdout);
    }
}

#[test]
fn the_static_library_does_as_well() {
    for program in ["threads", "implicit"] {
        let program = compile::program(program, Language::C99, Linking::Static);
        run(&program, &[], small(2, 5, true, true)).expect(0);
    }
}

#[test]
fn job_control_answers() {
    for ranks in [1, 2, 4, 7] {
        let ended = job(&["answers"], small(ranks, 4, true, true));
        ended.expect(0);
        let lines: Vec<_> = ended.stderr.lines().filter(|line| line.contains("handler table")).collect();
        assert_eq!(lines.len(), 2 * ranks as usize, "{ended}");
        assert!(lines[0].contains(": vgasnet_attach: "), "{ended}");
        job(&["different-sizes"], small(ranks, 4, ranks % 2 == 0, ranks > 2)).expect(0);
    }
}

#[test]
fn a_rank_that_is_through_still_serves_the_others() {
    for setup in some_of(SETUPS.iter().filter(|setup| setup.page_bytes < MIB)) {
        job(&["one-leaves"], *setup).expect(0);
    }
}

#[test]
fn the_exit_status_is_that_of_the_rank_that_ended_the_job() {
    for ranks in [1, 4] {
        for end in ["returns", "exits"] {
            for status in [1, 7, 255] {
                job(&[end, &status.to_string()], small(ranks, 4, true, true)).expect(status);
            }
            let ended = job(&[end, "0"], small(ranks, 4, true, true));
            let mut lines: Vec<_> = ended.expect(0).stdout.lines().collect();
            lines.sort_unstable();
            let expected: Vec<_> = (0..ranks).map(|rank| format!("out of {rank}")).collect();
            assert_eq!(lines, expected, "{ended}");
        }
    }
}
