//! Numbers of the paper and its Figures 4 to 7, compared with the model.

use super::Results;
use super::lines::{Chart, Line};
use super::page::Page;
use vgasnet_settings::format_size;
use vgasnet_sim::paper::{Figures, RANKS};
use vgasnet_sim::{Machine, PageSize, short};

/// Throughput of 32 ranks relative to one, minimum and maximum over sizes, by figure, from the paper.
const SPEEDUPS: [(u32, &str, [f64; 2]); 2] = [(5, "in order", [6.78, 17.9]), (6, "at random", [4.52, 17.7])];

/// Time of false sharing relative to put_bulk, from the paper: for one rank (a lower bound) and for 32.
const SHARING: [(f64, f64); 2] = [(1.0, 1000.0), (32.0, 2.59)];

/// Adds all sections.
pub fn show(page: &mut Page, results: &Results) {
    page.section("claims");
    claims(page, results);
    page.section("figure-4");
    page_sizes(page, results);
    for (figure, order, papers) in SPEEDUPS {
        page.section(format!("figure-{figure}"));
        page.chart(throughput(results, figure, order));
        page.chart(speedup(results, figure, order, papers));
    }
    page.section("figure-7");
    sharing(page, results);
}

fn claims(page: &mut Page, results: &Results) {
    let mut rows = Vec::new();
    for (papers, ours) in results.papers.claims.iter().zip(&results.ours.claims) {
        rows.push(vec![
            papers.what.to_string(),
            papers.paper_cell(),
            short(papers.model),
            short(1.0 + papers.error()),
            short(ours.model),
        ]);
    }
    let heads = ["", "the paper", "its protocol, modelled", "modelled / paper", "this library, modelled"];
    page.table("Numbers of the paper beside the model", &heads, rows);
    let reasons = results.papers.claims.iter().filter_map(|claim| Some((claim.what, claim.because.as_ref()?)));
    let reasons = reasons.map(|(what, why)| format!("{what}: {why}"));
    page.list("Reasons where the modelled protocol differs by more than a third", reasons);
    page.sim_table("Slower messages in the model", &results.papers.dearer_table());
    page.note(results.papers.dearer_says());
}

fn page_sizes(page: &mut Page, results: &Results) {
    let line = |name: &str, rate: fn(&PageSize) -> f64| {
        let point = |one: &PageSize| (one.page_bytes as f64 / 1024.0, rate(one));
        Line::new(name, results.ours.page_sizes.iter().map(point).collect())
    };
    let sizes = &results.ours.page_sizes;
    let link = Machine::paper().link.bandwidth as f64 / 1e6;
    let ends = [sizes.first(), sizes.last()].into_iter().flatten().map(|one| (one.page_bytes as f64 / 1024.0, link));
    let lines = vec![
        line("home's pool", |one| one.home_pool),
        line("third rank's pool", |one| one.third_pool),
        line("home's disk", |one| one.home_disk),
        Line::papers("the paper's link", ends.collect()),
    ];
    let title = "One rank gets pages of another".to_owned();
    let chart = Chart { title, x: "page size, KiB", y: "MB/s", x_is_log: true, y_is_log: false, lines };
    page.chart(chart);
    let rates = |one: &PageSize| [one.home_pool, one.third_pool, one.home_disk].map(|rate| format!("{rate:.0}"));
    let pairs = results.ours.page_sizes.iter().zip(&results.papers.page_sizes);
    let row = |(ours, papers): (&PageSize, &PageSize)| {
        [format_size(ours.page_bytes)].into_iter().chain(rates(ours)).chain(rates(papers)).collect()
    };
    let heads = [
        "page",
        "home's pool",
        "third rank's pool",
        "home's disk",
        "paper's protocol: home's pool",
        "third rank's pool",
        "home's disk",
    ];
    page.table("MB/s by page size", &heads, pairs.map(row).collect());
}

/// Total throughput of 32 ranks by size of data, in GB/s.
fn throughput(results: &Results, figure: u32, order: &str) -> Chart {
    let line = |name: &str, figures: &Figures, ranks, times, cooperative| {
        let rates = figures.rates(figure, ranks, cooperative).into_iter();
        Line::new(name, rates.map(|(data, rate)| (data, times * rate / 1e3)).collect())
    };
    let lines = vec![
        line("this library", &results.ours, 32, 1.0, true),
        line("this library, without cooperation", &results.ours, 32, 1.0, false),
        line("the paper's protocol", &results.papers, 32, 1.0, true),
        line("the paper's protocol, without cooperation", &results.papers, 32, 1.0, false),
        line("32 times one rank", &results.ours, 1, 32.0, true),
    ];
    let (x, y) = ("data, in pools of a rank", "GB/s, all ranks together");
    Chart { title: format!("32 ranks, {order}"), x, y, lines, ..Chart::default() }
}

/// Throughput relative to one rank, by ranks, for data of half a pool and of two pools.
fn speedup(results: &Results, figure: u32, order: &str, papers: [f64; 2]) -> Chart {
    let line = |name: &str, figures: &Figures, pools: f64| {
        let rate = |ranks| {
            let rates = figures.rates(figure, ranks, true).into_iter();
            rates.filter(|(data, _)| (data - pools).abs() < 1e-9).map(|(_, rate)| rate).next()
        };
        let one = rate(1).unwrap_or(f64::NAN);
        let points = RANKS.into_iter().filter_map(|ranks| Some((f64::from(ranks), rate(ranks)? / one)));
        Line::new(format!("{name}, data of {pools} pools"), points.collect())
    };
    let [least, most] = papers.map(|times| vec![(1.0, times), (32.0, times)]);
    let lines = vec![
        line("this library", &results.ours, 0.5),
        line("this library", &results.ours, 2.0),
        line("the paper's protocol", &results.papers, 0.5),
        line("the paper's protocol", &results.papers, 2.0),
        Line::papers("the paper, 32 ranks, least", least),
        Line::papers("the paper, 32 ranks, most", most),
    ];
    let (x, y) = ("ranks", "times as much as one rank");
    Chart { title: format!("More ranks, {order}"), x, y, x_is_log: true, y_is_log: true, lines }
}

fn sharing(page: &mut Page, results: &Results) {
    let machine = Machine::paper();
    let line = |name: &str, figures: &Figures| {
        let times = |ranks| Some((f64::from(ranks), figures.sharing_times(&machine, ranks)?));
        Line::new(name, RANKS.into_iter().filter_map(times).collect())
    };
    let lines = vec![
        line("this library", &results.ours),
        line("the paper's protocol", &results.papers),
        Line::papers("the paper (one rank: at least)", SHARING.to_vec()),
    ];
    let title = "False sharing".to_owned();
    let (x, y) = ("ranks", "times the time of as many puts by RDMA");
    page.chart(Chart { title, x, y, x_is_log: true, y_is_log: true, lines });
    let mut rows = Vec::new();
    for ranks in RANKS {
        let us = |figures: &Figures, cooperative| figures.sharing_us(ranks, cooperative).map(|us| format!("{us:.0}"));
        let all = [us(&results.ours, true), us(&results.papers, true), us(&results.papers, false)];
        if let [Some(ours), Some(with), Some(without)] = all {
            rows.push(vec![ranks.to_string(), ours, with, without]);
        }
    }
    let heads = ["ranks", "this library, us", "the paper's protocol, us", "without cooperation, us"];
    page.table("Time of a round", &heads, rows);
}
