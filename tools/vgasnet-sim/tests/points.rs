//! Jobs on the paper's machine: deterministic, near the paper's numbers, and as fast as the protocol promises.

use std::path::Path;
use std::process::Command;
use vgasnet_sim::{
    Hints, Homes, Machine, Order, Outcome, PageSize, Pattern, Point, ProtocolKind, Spread, paper, short,
};

const PAGE_BYTES: usize = 4 << 20;

fn machine() -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/paper.toml");
    Machine::read(&path).expect("it is well-formed")
}

fn first(point: &Point) -> Outcome {
    point.run(&machine()).expect("the job ends")[0]
}

/// The throughput of 32 ranks relative to one.
fn speedup(order: Order, data_pools: f64) -> f64 {
    let rate = |ranks| first(&Point::reads(ranks, order, data_pools, PAGE_BYTES)).megabytes_a_second_each;
    32.0 * rate(32) / rate(1)
}

#[test]
fn known_holders_save_time_and_no_messages() {
    let point = Point { homes: Homes::All, ..Point::reads(8, Order::Random, 4.0, PAGE_BYTES) };
    let [asked, known] = [Hints::None, Hints::All].map(|hints| first(&Point { hints, ..point }));
    assert!(known.seconds < asked.seconds && known.seconds > 0.7 * asked.seconds, "{known:?}, {asked:?}");
    assert!((known.messages_a_miss - asked.messages_a_miss).abs() < 0.1, "{known:?}, {asked:?}");
}

#[test]
fn a_seed_has_one_outcome() {
    let point = Point { passes: 2, ..Point::reads(8, Order::Random, 2.0, PAGE_BYTES) };
    let run = |point: &Point| point.run(&machine()).expect("the job ends");
    assert_eq!(run(&point), run(&point));
    assert_ne!(run(&point), run(&Point { seed: 2, ..point }));
}

#[test]
fn in_order_32_ranks_read_28_times_as_much_as_one() {
    let [below, past] = [0.9, 1.1].map(|pools| speedup(Order::Sequential, pools));
    assert!(below >= 28.0 && past >= 28.0, "{below} and {past}");
    assert!(past >= 0.8 * below, "{past} just past a pool, {below} just below it");
}

#[test]
fn at_random_one_disk_is_the_limit_and_not_the_pool() {
    // The disk reads each page once for 32 ranks, and also for one rank, which needs only 1 - 1/e of the pages.
    let limit = 32.0 * (1.0 - (-1.0_f64).exp());
    let [below, past] = [0.9, 1.1].map(|pools| speedup(Order::Random, pools));
    assert!(below >= 0.8 * limit && past >= 0.8 * below, "{below} and {past} of {limit}");
}

#[test]
fn a_page_that_all_ask_for_spreads_as_a_tree() {
    let point = Point::reads(32, Order::Sequential, 0.5, PAGE_BYTES);
    let (tree, none) = (first(&point), first(&Point { spread: Spread::AtOnce, ..point }));
    assert!(tree.seconds * 4.0 <= none.seconds, "{} and {} s", tree.seconds, none.seconds);
    // From the disk once.
    assert_eq!((tree.disk_reads, tree.transfers), (32, 31 * 32));
}

#[test]
fn a_read_takes_four_messages_however_many_ranks_there_are() {
    for ranks in [8, 32, 128] {
        // Random order, because a page in read-ahead can become urgent, which costs one more message.
        let point = Point { passes: 2, ..Point::reads(ranks, Order::Random, 1.5, PAGE_BYTES) };
        let passes = point.run(&machine()).expect("the job ends");
        let messages = passes.iter().map(|pass| pass.messages_a_miss).fold(0.0, f64::max);
        assert!(messages <= 4.1, "{messages} messages a miss of {ranks} ranks");
    }
}

#[test]
fn the_papers_protocol_is_near_what_the_paper_says() {
    let choice = paper::Choice { protocol: ProtocolKind::Paper, scale: 64, seed: 1, ends_only: true };
    let figures = paper::run(&machine(), choice).expect("the jobs end");
    for claim in &figures.claims {
        assert_eq!(claim.is_off(), claim.because.is_some(), "{claim:?}");
    }
    let near = figures.claims.iter().filter(|claim| claim.because.is_none()).count();
    assert!(near >= 5, "{near} claims are near");
    // Ranks in step are served by one link.
    assert!(figures.claims[0].error().abs() < 0.1, "{:?}", figures.claims[0]);
    check_page_sizes(&figures.page_sizes);
}

#[test]
fn reasons_have_the_numbers_of_runs_that_come_nearer() {
    let choice = paper::Choice { protocol: ProtocolKind::Paper, scale: 64, seed: 1, ends_only: true };
    let plain = paper::run(&machine(), choice).expect("the jobs end");
    let reasons = [
        ("sequential, 32 ranks against 1, most", 50.0),
        ("sequential, 32 ranks, with cooperation against without, most", 200.0),
        ("random, 32 ranks against 1, least", 500.0),
    ];
    for (what, message_us) in reasons {
        let mut machine = machine();
        machine.node.message_us = message_us;
        let dearer = paper::run(&machine, choice).expect("the jobs end");
        let of = |figures: &paper::Figures| figures.claims.iter().find(|claim| claim.what == what).expect(what).clone();
        let (plain, dearer) = (of(&plain), of(&dearer));
        assert!(dearer.error().abs() < plain.error().abs(), "{dearer:?}, {plain:?}");
        let because = plain.because.expect("it is off");
        let parts = [format!("{message_us} us"), format!(" {}.", short(dearer.model))];
        assert!(parts.iter().all(|part| because.contains(part)), "{because:?} lacks one of {parts:?}");
        // The reasons are about one machine.
        assert!(dearer.because.is_none(), "{dearer:?}");
    }
    let today = paper::run(&Machine::today(), paper::Choice { scale: 16, ..choice }).expect("the jobs end");
    assert!(today.dearer.is_empty() && today.claims.iter().all(|claim| claim.because.is_none()), "{:?}", today.claims);
    // A deviation from the paper is defined only for the paper's machine.
    assert!(plain.claims_table().contains(" %") && !today.claims_table().contains(" %"), "{}", today.claims_table());
}

/// Pages in pools arrive at the rate of one link, pages on a disk at the rate of the disk, and large pages faster than
/// small ones.
fn check_page_sizes(sizes: &[PageSize]) {
    assert_eq!(sizes.iter().map(|size| size.page_bytes).collect::<Vec<_>>(), [8 << 10, 256 << 10, 4 << 20]);
    for PageSize { home_pool, third_pool, home_disk, .. } in sizes {
        assert!(*home_disk < 510.0 && third_pool > home_disk && *third_pool <= home_pool * 1.01 && *home_pool < 3560.0);
    }
    assert!(
        sizes.windows(2).all(|pair| pair[0].home_pool < pair[1].home_pool && pair[0].home_disk < pair[1].home_disk)
    );
}

#[test]
fn false_sharing_ends_and_moves_no_page_where_puts_are_shipped() {
    let pattern = Pattern::FalseSharing { rounds: 3, puts: 10 };
    let point = Point { pattern, ..Point::reads(8, Order::Sequential, 0.25, PAGE_BYTES) };
    let ours = first(&point);
    assert_eq!((ours.hits + ours.misses, ours.transfers), (8 * 3 * 10, 0));
    let papers = first(&Point { protocol: ProtocolKind::Paper, ..point });
    assert!(papers.transfers > 8, "{papers:?}");
}

#[test]
fn a_write_waits_little_longer_the_more_ranks_have_the_page() {
    let write = |holders, spread| {
        let point = Point {
            passes: 2,
            pattern: Pattern::Rewrite,
            spread,
            ..Point::reads(holders, Order::Sequential, 0.25, PAGE_BYTES)
        };
        let write = point.run(&machine()).expect("the job ends")[1];
        assert_eq!((write.misses, write.transfers), (1, 0), "{write:?}");
        write.miss_us
    };
    // Most of the time the put fills the page.
    let alone = write(2, Spread::TreeOfNodes);
    let [told_by_each_other, told_by_home] =
        [Spread::TreeOfNodes, Spread::AtOnce].map(|spread| write(512, spread) - alone);
    assert!(5.0 * told_by_each_other < told_by_home, "{told_by_each_other} and {told_by_home} us");
    assert_eq!(write(17, Spread::TreeOfNodes), write(17, Spread::AtOnce), "16 are told by the home");
}

#[test]
fn a_write_does_not_wait_for_what_the_home_does_about_the_reads_before_it() {
    // Ranks of a host receive a small page before the home has handled their messages.
    let mut machine = machine();
    (machine.node.ranks, machine.node.page) = (8, 64 << 10);
    let write_us = |ranks| {
        let reads = Point::reads(ranks, Order::Sequential, 0.25, machine.node.page as usize);
        let point = Point { passes: 2, scale: machine.scale_max(), pattern: Pattern::Rewrite, ..reads };
        point.run(&machine).expect("the job ends")[1].miss_us
    };
    let [alone, few, many] = [2, 257, 1025].map(write_us);
    assert!(many - alone < 2.0 * (few - alone), "{alone}, {few} and {many} us");
}

#[test]
fn the_program_prints_tables_and_json_and_nothing_else_to_a_pipe() {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/paper.toml");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_vgasnet-sim")).arg("run").arg(&paper).args(arguments).output();
        output.expect("it starts")
    };
    let table = run(&["-n", "4", "--data", "0.5"]);
    let text = String::from_utf8(table.stdout).expect("it is text");
    assert!(table.status.success() && table.stderr.is_empty() && text.lines().count() == 4, "{text}");
    let json = run(&["-n", "4", "--data", "0.5", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!((value["machine"].as_str(), value["passes"].as_array().map(Vec::len)), (Some("paper"), Some(2)));
    let refused = run(&["--bytes", "3"]);
    let line = String::from_utf8(refused.stderr).expect("it is text");
    assert!(
        !refused.status.success() && line.starts_with("vgasnet-sim: --bytes is 3;") && line.lines().count() == 1,
        "{line}"
    );
}

#[test]
fn data_of_half_of_all_pools_stays_in_them() {
    let point = Point { scale: 128, passes: 2, ..Point::reads(32, Order::Random, 16.0, PAGE_BYTES) };
    let [ours, any] =
        [point, Point { spares: false, ..point }].map(|point| point.run(&machine()).expect("the job ends")[1]);
    assert!(ours.disk_reads * 8 < any.disk_reads, "{} and {} pages from the disk", ours.disk_reads, any.disk_reads);
    // One rank has a 16th of the data in its pool.
    let one = first(&Point { scale: 128, ..Point::reads(1, Order::Random, 16.0, PAGE_BYTES) });
    let times = 32.0 * ours.megabytes_a_second_each / one.megabytes_a_second_each;
    assert!(times >= 28.0, "{times} times one rank");
}
