//! Statistics: the results of `vgasnet_stats`, and the reports of ended jobs.

use crate::support::compile::{self, Language, Linking};
use crate::support::run::{Ended, Setup, is_across_hosts, read_until, run_while, run_with, say_not_run};
use serde_json::Value;
use std::path::Path;

const ON: (&str, &str) = ("VGASNET_STATS", "1");

const fn setup(ranks: u32, peer_memory: bool) -> Setup {
    Setup { ranks, page_bytes: 64 << 10, pool_pages: 8, peer_memory, cooperative: true }
}

fn job(part: &str, setup: Setup, more: &[(&'static str, &str)]) -> Ended {
    run_with(&compile::program("stats", Language::C99, Linking::Shared), &[part], setup, more)
}

/// Runs a part of the program. Returns the job's JSON report.
fn file_of(name: &str, part: &str, setup: Setup, more: &[(&'static str, &str)]) -> (Ended, Value) {
    file_of_program(name, "stats", &[part], setup, more)
}

/// Runs a program. Returns the job's JSON report.
fn file_of_program(
    name: &str,
    program: &str,
    args: &[&str],
    setup: Setup,
    more: &[(&'static str, &str)],
) -> (Ended, Value) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stats-{name}.json"));
    let text_path = path.to_str().expect("a path in UTF-8");
    let program = compile::program(program, Language::C99, Linking::Shared);
    let ended = run_with(&program, args, setup, &[more, &[("VGASNET_STATS_FILE", text_path)]].concat());
    ended.expect(0);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{ended}\n{error}"));
    std::fs::remove_file(&path).expect("a file of ours");
    (ended, serde_json::from_str(&text).expect("JSON"))
}

/// A number of a rank.
fn of(rank: usize, name: &str, file: &Value) -> u64 {
    file["by_rank"][rank][name].as_u64().unwrap_or_else(|| panic!("{name} in {file}"))
}

/// Small gets fetch their pages also if the pool is full.
const BY_PAGES: (&str, &str) = ("VGASNET_SHIP", "0");

#[test]
fn accesses_are_counted_by_their_kind() {
    for part in ["sizes", "hits", "whole", "disk", "ahead", "joined", "faults"] {
        for setup in [setup(1, true), setup(2, true), setup(2, false)] {
            job(part, setup, &[ON, BY_PAGES]).expect(0);
        }
    }
    let cxx = compile::program("stats", Language::Cxx17, Linking::Shared);
    run_with(&cxx, &["hits"], setup(1, true), &[ON]).expect(0);
    for ranks in [2, 3] {
        job("messages", setup(ranks, true), &[ON]).expect(0);
        job("messages", setup(ranks, false), &[ON]).expect(0);
        job("under-way", setup(ranks, true), &[ON]).expect(0);
    }
}

#[test]
fn a_few_bytes_of_a_page_are_written_without_the_page() {
    let program = compile::program("blocks", Language::C99, Linking::Shared);
    for (part, ranks, page_bytes) in [("puts", 1, 4 << 20), ("puts", 2, 1 << 20), ("stores", 1, 1 << 20)] {
        let setup = Setup { ranks, page_bytes, pool_pages: 8, peer_memory: true, cooperative: true };
        // Between hosts whole pages are transferred.
        if ranks == 1 || !is_across_hosts() {
            // With small puts at the home, blocks are written one by one.
            run_with(&program, &[part], setup, &[ON, ("VGASNET_SHIP", "0")]).expect(0);
        }
    }
}

#[test]
fn small_operations_are_counted_where_they_are_carried_out() {
    let program = compile::program("scattered", Language::C99, Linking::Shared);
    let not = ("VGASNET_SHIP", "0");
    let of = |ranks, page_bytes, peer_memory, cooperative| Setup {
        ranks,
        page_bytes,
        pool_pages: 4,
        peer_memory,
        cooperative,
    };
    // Neighbours with shared memory carry out gets by themselves.
    for (ranks, peer_memory, cooperative) in [(1, true, true), (2, false, false), (4, false, true)] {
        run_with(&program, &["counted"], of(ranks, 4 << 20, peer_memory, cooperative), &[ON]).expect(0);
    }
    run_with(&program, &["counted", "0"], of(2, 256 << 10, true, true), &[ON, not]).expect(0);
    for page_bytes in [4 << 10, 64 << 10, 4 << 20] {
        run_with(&program, &["shared"], of(4, page_bytes, false, true), &[ON]).expect(0);
    }
    run_with(&program, &["shared", "0"], of(4, 64 << 10, false, true), &[ON, not]).expect(0);
    let cxx = compile::program("scattered", Language::Cxx17, Linking::Shared);
    run_with(&cxx, &["shared"], of(3, 64 << 10, false, true), &[ON]).expect(0);
}

#[test]
fn loads_and_stores_of_blocks_are_counted() {
    let program = compile::program("partly", Language::C99, Linking::Shared);
    for (page_bytes, pool_pages) in [(4 << 20, 4), (1 << 20, 16)] {
        let setup = Setup { ranks: 1, page_bytes, pool_pages, peer_memory: true, cooperative: true };
        run_with(&program, &["counted"], setup, &[ON]).expect(0);
        run_with(&program, &["counted", "0"], setup, &[ON, ("VGASNET_SHIP", "0")]).expect(0);
    }
}

/// The programs for small operations do take all ways.
#[test]
fn small_transfers_go_all_ways() {
    let setup = Setup { ranks: 2, page_bytes: 4 << 20, pool_pages: 4, peer_memory: false, cooperative: true };
    let ways = ["served_pieces", "in_blocks", "block_hits", "block_reads"];
    let moves = ["miss_own_disk", "miss_neighbour", "miss_other_host"];
    for (program, args, more) in [("small", &[][..], "overwritten"), ("scattered", &["blocks"], "block_writes")] {
        let (ended, file) = file_of_program(&format!("ways-{program}"), program, args, setup, &[]);
        for way in ways.into_iter().chain([more]) {
            assert!(file["all"][way].as_u64().is_some_and(|count| count > 0), "{way}: {ended}\n{file}");
        }
        let count = |row: &str| file["all"][row]["count"].as_u64().unwrap_or_else(|| panic!("{row}: {file}"));
        assert!(count("shipped") > 0 && moves.iter().any(|row| count(row) > 0), "{ended}\n{file}");
    }
}

/// Small gets of neighbours' pages need no message, and the homes take in the blocks that were read.
#[test]
fn small_gets_of_neighbours_are_read_by_who_asks() {
    let setup = Setup { ranks: 2, page_bytes: 4 << 20, pool_pages: 4, peer_memory: true, cooperative: true };
    let (ended, file) = file_of_program("near", "neighbours", &[], setup, &[]);
    let all = |row: &str| file["all"][row].as_u64().unwrap_or_else(|| panic!("{row}: {file}"));
    assert!(all("near_reads") > 1000 && all("block_hits") > 0, "{ended}\n{file}");
    let shipped = file["all"]["shipped"]["count"].as_u64().unwrap_or_else(|| panic!("{file}"));
    assert!(all("near_reads") > 4 * shipped, "{ended}\n{file}");
}

#[test]
fn rows_of_a_matrix_are_read_ahead_in_blocks() {
    let program = compile::program("rows", Language::C99, Linking::Shared);
    for (ranks, peer_memory) in [(2, true), (1, true), (2, false)] {
        let read_ahead = if peer_memory { "near" } else { "own" };
        let setup = Setup { ranks, page_bytes: 4 << 20, pool_pages: 8, peer_memory, cooperative: true };
        run_with(&program, &[read_ahead], setup, &[ON]).expect(0);
    }
}

#[test]
fn gets_from_read_only_ranges_are_counted_by_what_copies_had() {
    const CLASSES: [&str; 8] = ["hits", "partial", "joined", "direct", "conflicting", "capacity", "failing", "dormant"];
    let setup = Setup { ranks: 2, page_bytes: 4096, pool_pages: 7, peer_memory: false, cooperative: true };
    let (ended, file) = file_of_program("copies", "readonly", &["phases"], setup, &[ON]);
    for rank in 0..2 {
        let row = |name: &str| of(rank, &format!("copy_{name}"), &file);
        assert_eq!(CLASSES.map(row).iter().sum::<u64>(), row("gets"), "{ended}\n{file}");
        assert!(row("hits") > 0 && row("hit_bytes") > 0 && row("fetched_bytes") > 0, "{ended}\n{file}");
        assert!(row("used_bytes") > 0 && row("used_bytes") <= row("max_bytes"), "{ended}\n{file}");
    }
    assert!(ended.stderr.contains("\ngets from read-only ranges\n"), "{ended}");
    let without = job("return", setup, &[ON]);
    assert!(!without.expect(0).stderr.contains("read-only"), "{without}");
}

#[test]
fn nothing_is_counted_or_said_unless_asked() {
    let ended = job("off", setup(2, true), &[]);
    assert_eq!(ended.expect(0).stderr, "");
    assert_eq!(job("off", setup(2, true), &[("VGASNET_STATS", "0")]).expect(0).stderr, "");
}

#[test]
fn a_job_shows_a_table_and_writes_a_file_when_it_ends() {
    for (name, part) in [("exit", "disk"), ("return", "return")] {
        let (ended, file) = file_of(name, part, setup(4, true), &[ON, BY_PAGES]);
        let lines: Vec<_> = ended.stderr.lines().collect();
        assert!(lines[0].starts_with("vgasnet: statistics of 4 ranks over "), "{ended}");
        let headings: Vec<_> = lines[1].split_whitespace().collect();
        assert_eq!(headings, ["all", "rank", "0", "rank", "1", "rank", "2", "rank", "3"], "{ended}");
        assert!(lines.iter().all(|line| line.len() <= 100) || part == "disk", "{ended}");
        let last = *lines.last().expect("lines");
        assert!(last.contains(" % of the time went into ") && file["advice"] == last, "{ended}");
        assert_eq!(ended.stderr.matches("statistics of").count(), 1, "{ended}");
        let puts = (0..4).map(|rank| of(rank, "put_bytes", &file)).sum::<u64>();
        assert_eq!(file["all"]["put_bytes"], puts);
        assert_eq!((&file["ranks"], file["by_rank"].as_array().map(Vec::len)), (&4.into(), Some(4)));
    }
}

#[test]
fn a_file_alone_comes_without_a_table() {
    let (ended, file) = file_of("alone", "return", setup(2, true), &[]);
    assert_eq!((&*ended.stderr, &file["ranks"]), ("", &2.into()));
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let ended = job("return", setup(2, true), &[("VGASNET_STATS_FILE", "/nowhere/stats.json")]);
    let lines: Vec<_> = ended.expect(0).stderr.lines().collect();
    let cannot = "cannot write /nowhere/stats.json: ";
    assert!(lines[0].starts_with(&format!("vgasnet: rank 0: vgasnet_attach: warning: {cannot}")), "{ended}");
    assert!(lines[1].starts_with(&format!("vgasnet: rank 0: statistics: {cannot}")), "{ended}");
}

#[test]
fn what_a_rank_serves_after_its_program_counts() {
    let (ended, file) = file_of("serve", "serve", setup(2, false), &[BY_PAGES]);
    let served = of(1, "served_pool", &file) + of(1, "served_disk", &file);
    let name = if file["by_rank"][0]["miss_neighbour"]["count"] == 0 { "miss_other_host" } else { "miss_neighbour" };
    assert_eq!((served, &file["by_rank"][0][name]["count"]), (16, &16.into()), "{ended}\n{file}");
}

#[test]
fn a_job_that_fails_shows_nothing() {
    let ended = job("fail", setup(2, true), &[ON]);
    assert!(!ended.expect(3).stderr.contains("statistics"), "{ended}");
}

#[test]
fn a_rank_that_ends_the_job_early_shows_its_own() {
    let ended = job("early", setup(2, true), &[ON]);
    assert!(ended.stderr.starts_with("vgasnet: statistics of rank 0 so far: "), "{ended}");
}

#[test]
fn nobody_waits_for_the_statistics_of_a_rank_that_is_gone() {
    // Across hosts a process cannot see whether another one has ended.
    if is_across_hosts() {
        return;
    }
    let (ended, file) = file_of("late", "late", setup(3, true), &[ON]);
    for line in ["rank 0 is through", "rank 2 is through"] {
        assert!(ended.stdout.contains(line), "{ended}");
    }
    assert!(ended.stderr.contains("vgasnet: statistics of 3 ranks over "), "{ended}");
    assert_eq!(
        (file["not_counted"].as_array().map(Vec::len), of(1, "put_bytes", &file)),
        (Some(0), 4),
        "{ended}\n{file}"
    );
}

#[test]
fn a_running_rank_answers_sigusr2_where_the_program_does_not() {
    job("signal", setup(2, true), &[ON]).expect(0);
    let ended = job("handler", setup(2, true), &[ON]);
    assert!(!ended.expect(0).stderr.contains("so far"), "{ended}");
}

#[test]
fn a_signal_without_statistics_ends_nothing() {
    if is_across_hosts() {
        return say_not_run("SIGUSR2 to vgasnetrun", "it runs on another host");
    }
    let program = compile::program("stats", Language::C99, Linking::Shared);
    let mut said = String::new();
    let ended = run_while(&program, &["launcher"], setup(2, true), &[], |launcher| {
        read_until(launcher.stdout.as_mut().expect("piped"), "ready", 1);
        // SAFETY: the call takes numbers only, and the launcher is a child, not waited for yet.
        assert_eq!(unsafe { libc::kill(launcher.id() as i32, libc::SIGUSR2) }, 0);
        said = read_until(launcher.stderr.as_mut().expect("piped"), "VGASNET_STATS=1", 2);
        drop(launcher.stdin.take());
    });
    ended.expect(0);
    for rank in 0..2 {
        assert!(said.contains(&format!("vgasnet: rank {rank} of 2 still runs, ")), "{said}{ended}");
    }
}

#[test]
fn a_signal_to_the_launcher_reaches_all_ranks() {
    if is_across_hosts() {
        return say_not_run("SIGUSR2 to vgasnetrun", "it runs on another host");
    }
    let program = compile::program("stats", Language::C99, Linking::Shared);
    let ask = |part: &str, tables: usize| {
        let mut said = String::new();
        let ended = run_while(&program, &[part], setup(3, true), &[ON], |launcher| {
            read_until(launcher.stdout.as_mut().expect("piped"), "ready", 1);
            // SAFETY: the call takes numbers only, and the launcher is a child, not waited for yet.
            assert_eq!(unsafe { libc::kill(launcher.id() as i32, libc::SIGUSR2) }, 0);
            said = read_until(launcher.stderr.as_mut().expect("piped"), "% of the time", tables);
            drop(launcher.stdin.take());
        });
        ended.expect(0);
        (said, ended)
    };
    let (said, ended) = ask("launcher", 3);
    for rank in 0..3 {
        assert!(said.contains(&format!("vgasnet: statistics of rank {rank} so far: it still runs")), "{said}{ended}");
    }
    assert!(ended.stderr.contains("statistics of 3 ranks"), "{ended}");
    let (said, ended) = ask("handler-launcher", 0);
    assert!(!said.contains("so far") && !ended.stderr.contains("so far"), "{said}{ended}");
}
