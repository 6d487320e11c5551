//! Benchmarks over several sizes: of pages, and of the data.

use crate::check_targets;
use crate::folder::{Folder, list, number};
use serde_json::Value;

#[test]
fn pages_are_read_from_every_place() {
    let folder = Folder::new("page-size");
    for (page, page_bytes, names) in [
        ("64K", 64 << 10, &["third_pool_to_home_disk"][..]),
        ("1M", 1 << 20, &["third_pool_to_home_disk", "home_pool_to_raw", "third_pool_to_raw"]),
    ] {
        let args = ["page-size", "--page", page, "--size", "4M", "--pool", "16M", "--repeat", "1"];
        let (results, image) = folder.drawn(&args);
        let run = &results["runs"][0];
        assert_eq!((&run["ranks"], &run["page_bytes"]), (&3.into(), &page_bytes.into()));
        assert_eq!(run["size_bytes"], 4 << 20);
        let places = ["home_pool", "third_pool", "home_disk", "home_raw", "third_raw"];
        for place in places {
            let times: Vec<f64> =
                run[format!("{place}_seconds_each")].as_array().unwrap().iter().map(seconds).collect();
            let expected = f64::from(4 << 20) / times[0];
            assert!(times.len() == 1 && (expected / rate(run, place) - 1.0).abs() < 1e-9, "{run}");
        }
        check_targets(run, names, true);
        let to_disk = rate(run, "third_pool") / rate(run, "home_disk");
        assert!((number(&run["targets"][0], "measured") / to_disk - 1.0).abs() < 1e-9);
        assert!(image.contains("third pool GB/s; in grey third raw GB/s"));
    }
}

fn seconds(time: &Value) -> f64 {
    time.as_f64().unwrap()
}

fn rate(run: &Value, place: &str) -> f64 {
    number(run, &format!("{place}_bytes_per_second"))
}

#[test]
fn sizes_of_the_data_are_swept_with_and_without_cooperation() {
    let folder = Folder::new("sweep");
    let sizes = ["--pool", "8M", "--page", "64K", "--size", "4M,24M", "--repeat", "1"];
    let (results, image) = folder.drawn(&[&["sweep", "-n", "1,2"], &sizes[..]].concat());
    let runs = list(&results, "runs");
    let mut at = 0;
    for ranks in [1_u64, 2] {
        for is_random in [false, true] {
            for size_bytes in [4_u64 << 20, 24 << 20] {
                for cooperative in [true, false] {
                    let run = &runs[at];
                    at += 1;
                    assert_eq!((&run["ranks"], &run["is_random"]), (&ranks.into(), &is_random.into()));
                    assert_eq!((&run["size_bytes"], &run["cooperative"]), (&size_bytes.into(), &cooperative.into()));
                    assert_eq!(run["bytes_read_all_ranks"], ranks * size_bytes);
                    check_messages(run);
                }
            }
        }
    }
    assert_eq!(runs.len(), at);
    let pairs = list(&results, "cooperative");
    assert_eq!((pairs.len(), &pairs[1]["subject"]), (at / 2, &"sequential, 24M".into()));
    let is_behind = pairs.iter().any(|pair| pair["ranks"] == 2 && number(pair, "speedup") * 1.05 < 1.0);
    let reached = runs.iter().all(|run| run["reached_all"] == true);
    assert_eq!(results["reached_all"], reached && !is_behind);
    assert!(image.contains("cooperative GB/s; in grey throughput GB/s"));
}

fn check_messages(run: &Value) {
    let messages = run["messages_each_all_ranks"][0].as_f64().unwrap();
    let pages = number(run, "bytes_read_all_ranks") / number(run, "page_bytes");
    let a_page = number(run, "messages_a_page");
    assert!((messages / pages - a_page).abs() < 1e-9);
    let names: &[&str] = if run["ranks"] == 1 { &[] } else { &["messages_a_page"] };
    check_targets(run, names, true);
    assert_eq!(a_page > 0.0, run["ranks"] == 2, "a rank sends itself none: {run}");
    assert!(a_page <= 8.0, "{run}");
    let on_disk = number(run, "disk_read_bytes_all_ranks");
    if number(run, "size_to_pool") < 1.0 {
        // The home keeps a copy in either mode.
        assert!(on_disk <= 1.1 * number(run, "size_bytes"), "no page is read twice: {run}");
    }
}
