//! Loads from and stores to a rank's own segment: C programs of `tests/c/`, as jobs.

use crate::support::compile::{self, Language, Linking};
use crate::support::gasnet::{self, Compiler, Mode};
use crate::support::run::{Ended, Setup, conduit, is_across_hosts, run, run_with, say_not_run, some_of};
use nix::sys::statvfs::statvfs;
use std::path::Path;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Every value of each setting, with pools from the smallest one that permits loads and stores.
const SETUPS: [Setup; 7] = [
    small(1, 4, true, true),
    small(2, 4, false, true),
    small(2, 9, true, false),
    small(3, 5, false, false),
    small(4, 5, true, true),
    small(4, 9, false, true),
    tiny(2, 5),
];

/// With and without the use of neighbours' pages in place, and a rank that is alone.
const MAIN_SETUPS: [Setup; 3] = [SETUPS[0], SETUPS[1], SETUPS[4]];

const fn small(ranks: u32, pool_pages: u64, peer_memory: bool, cooperative: bool) -> Setup {
    Setup { ranks, page_bytes: 64 * KIB, pool_pages, peer_memory, cooperative }
}

/// A setup with the smallest pages.
const fn tiny(ranks: u32, pool_pages: u64) -> Setup {
    Setup { ranks, page_bytes: 4 * KIB, pool_pages, peer_memory: true, cooperative: true }
}

/// A setup with pages of the default size.
const fn large(ranks: u32, pool_pages: u64) -> Setup {
    Setup { ranks, page_bytes: 4 * MIB, pool_pages, peer_memory: true, cooperative: true }
}

fn program(name: &str) -> std::path::PathBuf {
    compile::program(name, Language::C99, Linking::Shared)
}

/// Runs a program in these setups.
fn run_in(name: &str, args: &[&str], setups: impl IntoIterator<Item = Setup>) {
    for setup in some_of(setups) {
        run(&program(name), args, setup).expect(0);
    }
}

#[test]
fn programs_run_as_cxx_too() {
    let programs: [(&str, &[&str]); 15] = [
        ("loads_stores", &[]),
        ("c_library", &[]),
        ("instructions", &[]),
        ("stores_seen", &[]),
        ("faults_in_threads", &[]),
        ("signals", &["after", "masked"]),
        ("masks", &["threads"]),
        ("interrupts", &["none", "none"]),
        ("jumps", &[]),
        ("children", &[]),
        ("forks", &[]),
        ("contention", &[]),
        ("pins", &[]),
        ("advice", &[]),
        ("wild", &["first-load"]),
    ];
    for (name, args) in some_of(programs) {
        run(&compile::program(name, Language::Cxx17, Linking::Shared), args, small(2, 7, true, true)).expect(0);
    }
    compile::program("many_pages", Language::Cxx17, Linking::Shared);
}

#[test]
fn loads_and_stores_among_gets_and_puts() {
    run_in("loads_stores", &[], SETUPS);
    run_in("loads_stores", &[], [large(2, 4)]);
}

#[test]
fn lists_that_lie_in_segments() {
    run_in("lists_in_segments", &[], MAIN_SETUPS);
}

#[test]
fn the_c_library_on_a_segment() {
    run_in("c_library", &[], MAIN_SETUPS);
}

#[test]
fn instructions_that_use_many_pages() {
    run_in("instructions", &[], MAIN_SETUPS);
}

#[test]
fn stores_are_neither_lost_nor_torn() {
    run_in("stores_seen", &[], SETUPS);
}

#[test]
fn loads_of_pages_that_neighbours_hold() {
    run_in("loans", &["seen"], SETUPS);
    // With 0, a rank gets the page of a small put.
    let on = [("VGASNET_STATS", "1"), ("VGASNET_SHIP", "0")];
    let setups = [small(2, 4, true, true), small(4, 8, true, true), large(2, 4)];
    // Between processes without shared memory nothing is lent.
    let setups = if conduit() == "smp" { &setups[..] } else { &[] };
    for &setup in setups {
        run_with(&program("loans"), &["stopped"], setup, &on).expect(0);
        run_with(&program("loans"), &["killed"], setup, &on).expect(128 + 9);
        run_with(&program("loans"), &["fork"], setup, &on).expect(0);
    }
    if conduit() == "smp" {
        run_with(&program("loans"), &["pinned"], small(2, 16, true, true), &on).expect(0);
    }
}

#[test]
fn threads_that_fault_all_at_once() {
    run_in("faults_in_threads", &[], SETUPS);
}

#[test]
fn a_clients_handler_gets_the_other_faults() {
    for when in ["before", "after"] {
        for how in ["plain", "siginfo", "signal", "masked", "nodefer"] {
            run_in("signals", &[when, how], [small(2, 5, true, true)]);
        }
    }
}

#[test]
fn blocked_signals_and_other_stacks() {
    let of_threads = ["threads", "before-attach", "only-client-threads", "own-stack", "small-stacks"];
    let of_handlers = ["handlers", "waiting", "changes"];
    for part in of_threads.into_iter().chain(of_handlers) {
        run_in("masks", &[part], [small(2, 5, false, true)]);
    }
}

#[test]
fn signal_handlers_that_store_interrupt_anything() {
    for (setup, args) in [
        (small(1, 4, true, true), ["none", "none"]),
        (small(2, 5, true, true), ["restart", "none"]),
        (small(2, 4, false, true), ["none", "all"]),
        (small(3, 5, false, false), ["restart", "all"]),
        (small(2, 6, true, true), ["sigset", "none"]),
    ] {
        run_in("interrupts", &args, [setup]);
    }
}

#[test]
fn signal_handlers_store_to_the_page_of_the_copy_that_they_interrupt() {
    let ways = ["put", "get", "started", "few", "list", "values"];
    if is_across_hosts() {
        return say_not_run("handlers that interrupt copies", "pages are not used in place between hosts");
    }
    for (at, way) in ways.into_iter().enumerate() {
        // A neighbour has the page and lends it, or wants it.
        for setup in [small(2, 6, true, true), small(2 + at as u32 % 2, 8, false, at % 3 != 0)] {
            let ended = run(&program("interrupted_copies"), &[way], setup);
            ended.expect(0).stderr.lines().filter(|line| line.contains("NOT RUN")).for_each(|line| eprintln!("{line}"));
        }
    }
}

/// The page of such a copy stays in use. Another rank that wants it would wait for ever.
#[test]
fn handlers_that_a_copy_raises_return_or_end_the_process() {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return say_not_run("handlers that copies raise", "this processor's copies are not watched");
    }
    let setups = [small(2, 6, true, true), small(2, 8, false, true)];
    for (setup, side) in setups.into_iter().flat_map(|setup| [(setup, "get"), (setup, "put")]) {
        run_in("raised_copies", &["returns", side], [setup]);
        run(&program("raised_copies"), &["exits", side], setup).expect(3);
        for way in ["calls", "jumps"] {
            let ended = run(&program("raised_copies"), &[way, side], setup);
            let line = "vgasnet: rank 0: get or put: SIGSEGV or SIGBUS was raised at the program's address, and the program's handler";
            assert_eq!(ended.expect(1).stderr.matches(line).count(), 1, "{ended}");
        }
    }
}

#[test]
fn misses_while_malloc_is_interrupted() {
    if is_across_hosts() {
        return say_not_run("misses while malloc is interrupted", "between hosts, MPI and GASNet allocate by malloc");
    }
    for setup in [small(1, 6, true, true), small(2, 8, true, true), small(2, 8, true, false)] {
        run_in("malloc_faults", &[], [setup]);
    }
    run_in("malloc_faults", &["ordinary"], [small(2, 8, true, true)]);
}

#[test]
fn misses_beside_a_thread_that_drives_and_sleeps() {
    run_in("fault_beside_sleeper", &[], [small(2, 8, true, true), small(2, 8, false, true)]);
}

#[test]
fn signal_handlers_that_jump_out_of_an_access() {
    run_in("jumps", &[], [small(1, 7, true, true), small(2, 8, false, true)]);
}

#[test]
fn single_steps_whose_trap_has_another_code() {
    if !cfg!(target_arch = "x86_64") {
        return say_not_run("codes of single steps", "this processor has none");
    }
    for setup in [small(1, 4, true, true), small(2, 5, false, true)] {
        let ended = run(&program("trap_codes"), &[], setup);
        if ended.expect(0).stdout.contains("the system allows no tracing") {
            say_not_run("codes of single steps", "the system allows no tracing");
        }
    }
}

#[test]
fn handlers_run_while_a_load_waits_for_long() {
    for args in [&["jumps"][..], &["jumps", "alternate"], &["returns"], &["returns", "alternate"]] {
        run_in("waits", args, [small(2, 7, true, true), small(2, 7, false, true)]);
    }
}

/// Of threads, and of contexts that the program switches by itself.
#[test]
fn stacks_in_the_segment() {
    for part in ["contexts", "moving", "threads", "signals", "own", "others", "c11", "forked"] {
        run_in("stacks", &[part], [small(1, 8, true, true), small(2, 8, false, true), small(3, 16, true, true)]);
    }
    run_in("stacks", &["remote"], [small(2, 8, true, true), small(2, 8, false, true), small(4, 16, true, false)]);
}

/// The C library ends a process that waits for a lock on a page that has left.
#[test]
fn locks_in_the_segment() {
    for part in ["mutexes", "conditions", "rwlocks", "semaphores", "barriers", "futexes", "cancelled"] {
        run_in("locks", &[part], [small(1, 4, true, true), small(2, 5, true, true)]);
    }
}

#[test]
fn handlers_of_forks_may_create_threads_and_wait_for_others() {
    run_in("fork_handlers", &[], [small(1, 8, true, true), small(2, 8, false, true)]);
}

#[test]
fn forked_children_are_no_ranks() {
    let args: &[&str] = if conduit() == "smp" { &["descriptors"] } else { &[] };
    run_in("forks", args, MAIN_SETUPS);
}

#[test]
fn children_that_end_or_execute() {
    run_in("children", &[], MAIN_SETUPS);
}

#[test]
fn ranks_that_fight_over_a_page_or_wait_for_a_word() {
    run_in("contention", &[], SETUPS);
}

/// Checks that the library writes as many error lines as a rank's program expects.
fn check_error_lines(ended: &Ended, ranks: u32) {
    let expected: usize =
        ended.stdout.lines().filter_map(|line| line.strip_prefix("errors ")?.parse::<usize>().ok()).sum();
    assert!(expected >= 40 * ranks as usize, "{ended}");
    let calls = ["vgasnet_pin", "vgasnet_unpin", "vgasnet_advise"];
    // A network's launcher reads a rank's pipe in pieces, so lines of two ranks may be mixed.
    let are_whole = ranks == 1 || conduit() == "smp";
    for line in ended.stderr.lines().filter(|_| are_whole) {
        let (rank, rest) = line.strip_prefix("vgasnet: rank ").and_then(|rest| rest.split_once(": ")).expect(line);
        let (call, what) = rest.split_once(": ").expect(line);
        assert!(
            rank.parse::<u32>().is_ok_and(|rank| rank < ranks) && calls.contains(&call) && !what.is_empty(),
            "{line}"
        );
    }
    assert_eq!(ended.stderr.lines().count(), expected, "{ended}");
}

#[test]
fn threads_are_cancelled_outside_of_the_library() {
    run_in("cancellation", &[], SETUPS);
}

#[test]
fn input_and_output_of_segments() {
    run_in("files", &[], SETUPS);
    // A message is as large as several of the smallest pages.
    for setup in some_of(SETUPS.into_iter().filter(|setup| setup.page_bytes > 4 * KIB)) {
        if run(&program("sockets"), &[], setup).expect(0).stdout.contains("no SO_ZEROCOPY") {
            say_not_run("sends whose memory the kernel keeps", "the system has no SO_ZEROCOPY");
        }
    }
    let cxx = compile::program("files", Language::Cxx11, Linking::Shared);
    run(&cxx, &[], SETUPS[1]).expect(0);
    let alone = compile::program("sockets", Language::C99, Linking::Static);
    run(&alone, &[], SETUPS[1]).expect(0);
}

#[test]
fn pinned_ranges_are_there_for_system_calls() {
    for setup in [small(1, 7, true, true), small(2, 8, false, true), small(3, 20, true, false)] {
        check_error_lines(run(&program("pins"), &[], setup).expect(0), setup.ranks);
    }
}

#[test]
fn hints_change_no_byte() {
    run_in("advice", &[], SETUPS);
    run_in("advice", &[], [large(2, 4)]);
}

/// Checks the line of the last rank's library before the rank ends by SIGSEGV, and the launcher's line after it.
fn dies_saying(part: &str, setup: Setup) -> (String, Ended) {
    let ended = run(&program("wild"), &[part], setup);
    ended.expect(128 + 11);
    let lines: Vec<_> = ended.stderr.lines().collect();
    let rank = setup.ranks - 1;
    assert_eq!(lines.len(), 2, "{ended}");
    assert!(lines[0].starts_with(&format!("vgasnet: rank {rank}: ")), "{ended}");
    assert!(lines[1].contains(&format!("rank {rank} ")) && lines[1].contains("SIGSEGV"), "{ended}");
    (lines[0].to_owned(), ended)
}

#[test]
fn a_wild_access_says_where_and_ends_the_rank() {
    let setup = small(2, 5, true, true);
    for (part, setup) in [
        ("store", setup),
        ("load", small(1, 4, true, true)),
        ("across", setup),
        ("in-library", setup),
        ("far", large(2, 4)),
    ] {
        let (line, ended) = dies_saying(part, setup);
        // "touches ADDRESS beyond BASE to END"
        // MPI's launcher may write lines, too.
        let touched = ended.stdout.lines().find(|line| line.starts_with("touches ")).expect("a line");
        let touched: Vec<_> = touched.split_whitespace().collect();
        let [_, address, _, base, _, end] = touched[..] else { panic!("{ended}") };
        assert!(line.contains(base) && line.contains(end), "{ended}");
        // An address in a function of the library has no fixed value.
        assert!(part == "in-library" || line.contains(address), "{ended}");
    }
}

#[test]
fn a_client_with_a_handler_may_survive_a_wild_access() {
    run_in("wild", &["handled"], [small(2, 5, true, true)]);
}

#[test]
fn a_pool_of_fewer_than_four_pages_is_refused_at_attach() {
    let [gasnet1, ex] = [gasnet::program, gasnet::ex_program];
    let programs = [
        program("values"),
        gasnet1("values", Compiler::GccC99, Mode::Par, &[]),
        ex("ex_rma", Compiler::GccC99, Mode::Par, &[]),
    ];
    for (page_bytes, least) in [(4 * KIB, "16K"), (64 * KIB, "256K"), (4 * MIB, "16M")] {
        for (program, pool_pages) in programs.iter().flat_map(|program| (1..4).map(move |pages| (program, pages))) {
            let ended = run(program, &[], Setup { page_bytes, ..small(1, pool_pages, true, true) });
            let lines: Vec<_> = ended.stderr.lines().filter(|line| line.contains("VGASNET_POOL_SIZE")).collect();
            let says = format!("set VGASNET_POOL_SIZE to at least {least}, or lower VGASNET_PAGE_SIZE");
            assert!(ended.status != Some(0) && lines.len() == 1 && lines[0].contains(&says), "{ended}");
            assert!(lines[0].starts_with("vgasnet: rank 0: "), "{ended}");
        }
    }
    run_in("wild", &["first-load"], [small(2, 4, true, true), tiny(2, 4), large(2, 4)]);
}

#[test]
fn the_static_library_does_as_well() {
    let linked = |name| compile::program(name, Language::C99, Linking::Static);
    let setup = small(2, 5, true, true);
    run(&linked("loads_stores"), &[], setup).expect(0);
    run(&linked("signals"), &["before", "masked"], setup).expect(0);
    run(&linked("signals"), &["after", "plain"], setup).expect(0);
    run(&linked("masks"), &["threads"], setup).expect(0);
    run(&linked("fork_handlers"), &[], setup).expect(0);
}

fn available_memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("it exists");
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * KIB
}

fn free_disk_bytes() -> u64 {
    let disk = statvfs(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("a directory");
    disk.blocks_available() * disk.fragment_size()
}

#[test]
fn a_pool_of_more_pages_than_the_system_has_mappings() {
    let (memory_bytes, disk_bytes) = (available_memory_bytes(), free_disk_bytes());
    if memory_bytes < 12 * GIB || disk_bytes < 20 * GIB {
        let there_are = format!("{} and {} GiB", memory_bytes / GIB, disk_bytes / GIB);
        let why = format!("it needs 12 GiB of memory and 20 GiB of disk space; there are {there_are}");
        return say_not_run("a_pool_of_more_pages_than_the_system_has_mappings", &why);
    }
    let setup = Setup { pool_pages: 8 * GIB / (64 * KIB), ..small(1, 0, true, true) };
    print!("{}", run(&program("many_pages"), &[], setup).expect(0).stdout);
}

#[test]
fn small_pages_take_as_many_mappings_as_there_are() {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("it exists");
    let limit: u64 = limit.trim().parse().expect("a number");
    if limit > 300_000 {
        let why = format!("the system allows {limit} mappings, more than fits the test's pool");
        return say_not_run("small_pages_take_as_many_mappings_as_there_are", &why);
    }
    let setup = tiny(if is_across_hosts() { 1 } else { 2 }, limit / 2);
    for how in ["beside", "apart"] {
        let ended = run(&program("mappings"), &[how], setup);
        let lines: Vec<_> = ended.expect(0).stderr.lines().collect();
        assert_eq!(lines.iter().filter(|line| line.contains("sysctl -w vm.max_map_count=")).count(), 1, "{ended}");
        assert!(lines[0].starts_with("vgasnet: rank 0: vgasnet_attach: warning: a pool has "), "{ended}");
        print!("{}", ended.stdout);
    }
}
