//! The C programs of `examples/`, in jobs with pools much smaller than their data.

use crate::support::compile::{self, Language, Linking};
use crate::support::run::{Ended, Setup, fresh_dir, run};
use std::path::PathBuf;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn example(name: &str, language: Language) -> PathBuf {
    compile::build(&compile::source_dir().join("examples").join(name).with_extension("c"), language, Linking::Shared)
}

const fn setup(ranks: u32, page_bytes: u64, pool_bytes: u64) -> Setup {
    Setup { ranks, page_bytes, pool_pages: pool_bytes / page_bytes, peer_memory: true, cooperative: true }
}

/// Runs an example, with several ranks also as C++, and checks that it prints one line with all of `parts`.
fn says(name: &str, args: &[&str], setup: Setup, parts: &[&str]) {
    for language in [Language::C99, Language::Cxx17] {
        let ended = run(&example(name, language), args, setup);
        let lines: Vec<_> = ended.expect(0).stdout.lines().collect();
        assert!(lines.len() == 1 && parts.iter().all(|part| lines[0].contains(part)), "{ended}");
        println!("{}", lines[0]);
        if setup.ranks == 1 {
            return;
        }
    }
}

/// One rank prints the usage of an example, on the stream that fits the status.
fn explains(name: &str, args: &[&str], status: i32) {
    let ended = run(&example(name, Language::C99), args, setup(3, 64 * KIB, MIB));
    let Ended { stdout, stderr, .. } = ended.expect(status);
    let told = if status == 0 { stdout } else { stderr };
    assert_eq!(told.matches(&format!("usage: {name} ")).count(), 1, "{ended}");
}

#[test]
fn triad() {
    // Arrays of four times the pool.
    says("triad", &["16", "2"], setup(2, 256 * KIB, 4 * MIB), &["2 ranks", "3 x 16 MiB", "GB/s"]);
    says("triad", &[], setup(1, 4 * MIB, 64 * MIB), &["1 ranks", "3 x 64 MiB", "GB/s"]);
    explains("triad", &["--help"], 0);
    for args in [&["0"][..], &["16", "-1"], &["16M"], &["16", "2", "3"]] {
        explains("triad", args, 2);
    }
}

#[test]
fn larger_than_memory() {
    let name = "larger_than_memory";
    // Segments of eight pools.
    says("larger_than_memory", &["32"], setup(1, 256 * KIB, 4 * MIB), &["rank 0 of 1: 32 MiB", "every word is right"]);
    let ended = run(&example(name, Language::Cxx17), &["8", "3"], setup(3, 64 * KIB, MIB));
    let lines: Vec<_> = ended.expect(0).stdout.lines().collect();
    assert!(
        lines.len() == 3 && lines.iter().all(|line| line.contains("8 MiB stored and loaded, as many got")),
        "{ended}"
    );
    assert!((0..3).all(|rank| ended.stderr.contains(&format!("rank {rank} is process "))), "{ended}");
    explains(name, &["--help"], 0);
    for args in [&["0"][..], &["6"], &["8", "x"], &["8", "1", "2"]] {
        explains(name, args, 2);
    }
}

#[test]
fn sort() {
    says("sort", &["8", "1"], setup(3, 64 * KIB, 2 * MIB), &["3 x 8 MiB"]);
    says("sort", &[], setup(1, 64 * KIB, 4 * MIB), &["1 x 16 MiB"]);
    explains("sort", &["--help"], 0);
    for args in [&["0"][..], &["1", "x"], &["1", "2", "3"]] {
        explains("sort", args, 2);
    }
}

#[test]
fn stencil() {
    // Two blocks of 2.7 MiB a rank.
    says("stencil", &["1001", "1024", "5"], setup(3, 64 * KIB, MIB), &["3 ranks", "1001 x 1024", "as in memory"]);
    says("stencil", &[], setup(1, 64 * KIB, 2 * MIB), &["1 ranks", "1024 x 1024", "as in memory"]);
    says("stencil", &["700", "300", "4", "nocheck"], setup(1, 64 * KIB, MIB), &["points/s"]);
    explains("stencil", &["--help"], 0);
    for args in [&["5"][..], &["2", "8", "1"], &["8", "2", "1"], &["8", "8", "0"], &["8", "8", "1", "check"]] {
        explains("stencil", args, 2);
    }
}

#[test]
fn hash_table() {
    // Parts of four times the pool and more.
    says("hash_table", &["8192", "puts"], setup(1, 4 * KIB, 64 * KIB), &["1 ranks, by puts", "8192 keys"]);
    says("hash_table", &["8192", "stores"], setup(2, 4 * KIB, 64 * KIB), &["2 ranks, by stores", "16384 keys"]);
    says("hash_table", &["8192"], setup(4, 4 * KIB, 64 * KIB), &["4 ranks, by puts", "32768 keys", "lookups/s"]);
    says("hash_table", &["8192", "mmap"], setup(1, 4 * KIB, 64 * KIB), &["1 ranks, by mmap", "8192 keys"]);
    explains("hash_table", &["--help"], 0);
    for args in [&["0"][..], &["2147483648"], &["8M"], &["8", "loads"], &["8", "mmap"], &["8", "puts", "1"]] {
        explains("hash_table", args, 2);
    }
}

#[test]
fn graph_search() {
    // Edges of 2 MiB on all ranks together. The graph does not depend on the number of ranks.
    for (ranks, pool_bytes) in [(1, 256 * KIB), (2, 256 * KIB), (4, 128 * KIB)] {
        let parts =
            [&*format!("{ranks} ranks, scale 14, seed 1: "), "12483 of 16384 vertices in 5 levels, 261800 edges"];
        says("graph_search", &[], setup(ranks, 16 * KIB, pool_bytes), &parts);
    }
    says("graph_search", &["3", "7"], setup(4, 4 * KIB, 64 * KIB), &["4 ranks, scale 3, seed 7: "]);
    says("graph_search", &["14", "1", "mmap"], setup(1, 4 * KIB, 64 * KIB), &["by mmap", "12483 of 16384 vertices"]);
    explains("graph_search", &["--help"], 0);
    for args in
        [&["0"][..], &["32"], &["1"], &["8", "0"], &["8", "1", "mmap"], &["8", "1", "map"], &["8", "1", "mmap", "1"]]
    {
        explains("graph_search", args, 2);
    }
}

#[test]
fn lcc() {
    // Lists of 90 KiB on all ranks together. The graph does not depend on the number of ranks.
    let found = "scale 10, seed 1: mean coefficient 0.364248, checksum 37046b72b2fb162b, ";
    for (ranks, pool_bytes) in [(1, 64 * KIB), (2, 64 * KIB), (4, 32 * KIB)] {
        for args in [&[][..], &["--cached"], &["--cached", "--weighted", "--batch", "8"]] {
            let args = [&["--scale", "10"], args].concat();
            says("lcc", &args, setup(ranks, 4 * KIB, pool_bytes), &[&*format!("lcc on {ranks} ranks"), found]);
        }
    }
    let apart = Setup { peer_memory: false, ..setup(2, 4 * KIB, 64 * KIB) };
    says("lcc", &["--scale", "10", "--cached"], apart, &[" % hits"]);
    says("lcc", &["--scale", "4", "--seed", "7", "--json"], apart, &["{\"program\":\"lcc\",\"ranks\":2,\"scale\":4,"]);
    explains("lcc", &["--help"], 0);
    for args in [&["--scale", "0"][..], &["--scale", "29"], &["--scale", "1"], &["--scale"], &["--batch", "0"], &["8"]]
    {
        explains("lcc", args, 2);
    }
}

#[test]
fn barnes_hut() {
    // Forces are bitwise equal to the result of one rank, and close to the sums over all pairs.
    for (ranks, pool_bytes) in [(1, 64 * KIB), (2, 64 * KIB), (4, 32 * KIB)] {
        for args in [&[][..], &["--cached"], &["--cached", "--batch"], &["--direct-mapped", "20000"]] {
            let args = [&["--bodies", "200"], args].concat();
            let parts = [&*format!("barnes_hut on {ranks} ranks"), "200 bodies, 2 steps, seed 1: checksum "];
            says("barnes_hut", &args, setup(ranks, 4 * KIB, pool_bytes), &parts);
        }
    }
    let apart = Setup { peer_memory: false, ..setup(2, 4 * KIB, 64 * KIB) };
    says("barnes_hut", &["--bodies", "100", "--uniform", "--cached"], apart, &[" % hits"]);
    says("barnes_hut", &["--bodies", "2", "--json"], apart, &["{\"program\":\"barnes_hut\",\"ranks\":2,\"bodies\":2,"]);
    explains("barnes_hut", &["--help"], 0);
    for args in [
        &["--bodies", "2"][..],
        &["--bodies", "x"],
        &["--steps", "0"],
        &["--direct-mapped", "1"],
        &["--cached", "--direct-mapped", "4096"],
        &["--theta"],
    ] {
        explains("barnes_hut", args, 2);
    }
}

#[test]
fn every_example_is_run() {
    let tests = include_str!("examples.rs");
    let entries = std::fs::read_dir(compile::source_dir().join("examples")).expect("a directory").flatten();
    let sources: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|its| its == "c")).collect();
    assert!(sources.len() >= 7);
    for source in sources {
        let name = source.file_stem().expect("a name").to_string_lossy();
        assert!(tests.contains(&format!("says(\"{name}\"")), "no test runs examples/{name}.c");
    }
}

#[test]
fn shared_log() {
    let dir = fresh_dir();
    let log = dir.join("log");
    let log = log.to_str().expect("paths of tests are text");
    for of in [setup(1, 64 * KIB, MIB), setup(4, 256 * KIB, 2 * MIB), setup(3, 4 * KIB, 64 * KIB)] {
        says("shared_log", &[log, "300"], of, &[&format!("300 records of {} ranks, 0 wrong", of.ranks)]);
    }
    std::fs::remove_dir_all(&dir).expect("a directory of ours");
    explains("shared_log", &["--help"], 0);
    for args in [&[][..], &["/tmp/log", "0"], &["/tmp/log", "1x"], &["/tmp/log", "1", "2"]] {
        explains("shared_log", args, 2);
    }
}

#[test]
fn checkpoint() {
    let dir = fresh_dir();
    let table = dir.join("table");
    let table = table.to_str().expect("paths of tests are text");
    let words = 24 * MIB / 8;
    let (writers, readers) = (setup(4, 256 * KIB, 4 * MIB), setup(3, 64 * KIB, 2 * MIB));
    says("checkpoint", &["write", table, "24"], writers, &[&format!("{words} words written by 4 ranks")]);
    assert_eq!(std::fs::metadata(table).expect("it was written").len(), 16 + 24 * MIB);
    says("checkpoint", &["read", table], readers, &[&format!("{words} words read by 3 ranks")]);
    std::fs::remove_dir_all(&dir).expect("a directory of ours");
    explains("checkpoint", &["--help"], 0);
    for args in [&[][..], &["copy", "/tmp/x"], &["write", "/tmp/x", "0"], &["read", "/tmp/x", "1"]] {
        explains("checkpoint", args, 2);
    }
}
