//! Benchmarks of cached gets.

use crate::check_targets;
use crate::folder::{BENCH, Folder, list, number, say_not_run, text};
use serde_json::Value;
use std::path::Path;

const SMALL: [&str; 7] = ["gets", "--pool", "8M", "--page", "256K", "--repeat", "1"];

#[test]
fn gets_are_measured_by_size_and_by_memory() {
    let folder = Folder::new("gets");
    for more in [&[][..], &["--ranges", "overlapping", "--sampling", "uniform", "--seed", "9"]] {
        let few = ["--no-mpi", "--distinct", "200", "--draws", "2000", "--cache", "64K,1M"];
        let (results, image) = folder.drawn(&[&SMALL, &few[..], more].concat());
        let runs = list(&results, "runs");
        assert_eq!((runs.len(), &results["benchmark"]), (3, &"gets".into()));
        assert_eq!((&runs[0]["ranks"], &runs[0]["peer_memory"]), (&8.into(), &false.into()));
        let sizes = &runs[0]["sizes"];
        assert_eq!(sizes["mpi_not_run"], "--no-mpi");
        for row in list(sizes, "rows") {
            let to_hit = number(row, "uncached_us") * 1e3 / number(row, "hit_ns");
            assert!((to_hit / number(row, "uncached_to_hit") - 1.0).abs() < 1e-9, "{row}");
        }
        for (run, cache_bytes) in runs[1..].iter().zip([64 << 10, 1 << 20]) {
            check_draws(&run["drawn"], cache_bytes);
        }
        // A missing measurement counts as a missed target.
        assert_eq!(results["reached_all"], false);
        assert!(image.contains("hit ns; in grey copy ns") && image.contains("1M for copies"));
    }
}

fn check_draws(drawn: &Value, cache_bytes: u64) {
    assert_eq!(drawn["cache_bytes"], cache_bytes);
    let stats = &drawn["stats"];
    let classes = ["hits", "partial", "joined", "direct", "conflicting", "capacity", "failing"];
    let counted: u64 = classes.iter().map(|class| stats[class].as_u64().unwrap()).sum();
    assert!(counted > 0 && counted <= stats["gets"].as_u64().unwrap(), "{stats}");
    assert!((number(stats, "hits") / number(stats, "gets") - number(drawn, "hit_ratio")).abs() < 1e-9);
    let occupancy = list(drawn, "occupancy");
    assert_eq!(occupancy.len(), 20);
    assert!(occupancy.iter().all(|part| (0.0..=1.0).contains(&part.as_f64().unwrap())), "{drawn}");
}

/// The bench runs with the library and the launcher next to it, if they were built.
pub fn has_library() -> bool {
    let dir = Path::new(BENCH).parent().unwrap();
    let has = ["libvgasnet.so", "vgasnetrun"].iter().all(|name| dir.join(name).is_file());
    if !has {
        say_not_run("libvgasnet.so and vgasnetrun are not beside the bench");
    }
    has
}

#[test]
fn examples_are_run_in_all_their_ways() {
    if !has_library() {
        return;
    }
    let folder = Folder::new("programs");
    let common = ["--repeat", "1", "-n", "2", "--mpicc", "none/mpicc", "--parts", "0.5,1"];
    let lcc = ["uncached", "page_cache", "cached", "both"];
    let barnes_hut = ["uncached", "direct_mapped", "page_cache", "cached", "both"];
    for (args, ways, names) in [
        (&["lcc", "--scale", "8", "--weighted"][..], &lcc[..], &["uncached_to_cached", "half_to_faster"][..]),
        (&["barnes-hut", "--bodies", "200"], &barnes_hut, &["uncached_to_cached", "direct_mapped_to_cached"]),
    ] {
        let (results, image) = folder.drawn(&[args, &common].concat());
        let rows = list(&results, "rows");
        let found: Vec<&str> = rows.iter().map(|row| row["way"].as_str().unwrap()).collect();
        let expected = ways.iter().flat_map(|way| vec![*way; if *way == "uncached" { 1 } else { 2 }]);
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert!(rows.iter().all(|row| number(row, "seconds") > 0.0 && number(row, "gets") > 0.0), "{results}");
        assert!(results["not_run"][0].as_str().unwrap().contains("none/mpicc"), "{results}");
        check_targets(&results, names, false);
        assert!(image.contains("page and get cache, 0.5"));
    }
}

#[test]
fn without_an_mpi_a_line_says_so_and_no_target_is_reached() {
    let folder = Folder::new("gets-no-mpi");
    let few = ["--distinct", "100", "--draws", "100", "--cache", "1M", "--mpicc", "none/mpicc", "--check"];
    let output = folder.run(&[&SMALL, &few[..]].concat());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("NOT RUN: MPI_Get and MPI_Win_flush: none/mpicc: "), "{said}");
}
