//! The paper's figures, in the model of a cluster and as far as this machine has them: one HTML page.
//!
//! The model is that of `vgasnet-sim`. This machine is measured by this program's own `sequential` and `random`, in processes of
//! their own, and modelled with what they find of its disk and its memory.

mod lines;
mod measured;
mod page;

use crate::Stop;
use crate::options::FiguresOptions;
use lines::{Chart, Line};
use measured::Measured;
use page::Page;
use std::path::Path;
use vgasnet::settings::format_size;
use vgasnet_sim::paper::{self, Choice, Figures};
use vgasnet_sim::scale::{self, Scaled};
use vgasnet_sim::{Machine, PageSize, ProtocolKind};

/// How many times smaller pools and data of the paper's machine are.
const SCALE: u64 = 64;

/// The same of the machine of today.
const SCALE_TODAY: u64 = 512;

/// What the page is made of.
struct Results {
    papers: Figures,
    ours: Figures,
    scaled: Vec<Scaled>,
    measured: Vec<Measured>,
}

/// Measures, runs the model, and writes the page. Returns the exit status.
pub fn run(options: &FiguresOptions) -> Result<u8, Stop> {
    if !options.nodes.is_sorted() {
        return Err(Stop::usage("--nodes are to be ascending: each is compared with the first"));
    }
    let unwritable = |error: std::io::Error| Stop::usage(format!("--out {}: {error}", options.out.display()));
    // Nothing long runs for a file that cannot be written.
    std::fs::File::options().append(true).create(true).open(&options.out).map_err(unwritable)?;
    let results = results(options)?;
    std::fs::write(&options.out, html(&results, options)?).map_err(unwritable)?;
    println!("{}", options.out.display());
    Ok(0)
}

fn results(options: &FiguresOptions) -> Result<Results, Stop> {
    let figures = |protocol| {
        let choice = Choice { protocol, scale: SCALE, seed: options.seed, ends_only: options.quick };
        paper::run(&Machine::paper(), choice).map_err(Stop::failure)
    };
    let nodes: &[u32] = if options.quick { &[32, 128] } else { &options.nodes };
    let choice =
        scale::Choice { scale: SCALE_TODAY, seed: options.seed, holders_are_known: false, ranks_max: scale::RANKS_MAX };
    let scaled = scale::run(&Machine::today(), nodes, choice).map_err(Stop::failure)?;
    Ok(Results {
        papers: figures(ProtocolKind::Paper)?,
        ours: figures(ProtocolKind::Ours)?,
        scaled,
        measured: measured::run(options)?,
    })
}

fn html(results: &Results, options: &FiguresOptions) -> Result<String, Stop> {
    let mut page = Page::new("vgasnet: the paper's figures");
    let command = format!("vgasnet-bench figures --out {}", file_name(&options.out));
    let quick = if options.quick { " --quick" } else { "" };
    page.paragraph(&format!(
        "Matsumiya and Endo, \u{201c}vGASNet\u{201d} (2017), measured 32 nodes with an SSD of 510 MB/s and InfiniBand FDR. This page has \
         their Figures 4 to 7 in a model of that machine, which runs this library's own code in virtual time, then a machine of today, \
         and this machine, measured beside its model. It was made by {command}{quick} --seed {}.",
        options.seed
    ));
    page.head("What the paper says");
    claims(&mut page, results);
    page.head("Figure 4: pages by their size and by where they are");
    page_sizes(&mut page, results);
    for (figure, order) in [(5, "in order"), (6, "at random")] {
        page.head(&format!("Figure {figure}: all data of one rank, read by all, {order}"));
        page.chart(&throughput(results, figure, order).map_err(Stop::failure)?);
    }
    page.paragraph(&format!("Pools and data are {SCALE} times smaller than the machine's; pools are empty at first."));
    page.head("Figure 7: false sharing");
    sharing(&mut page, results);
    page.head("More nodes: a machine of today");
    page.paragraph(&format!(
        "NVMe of 7 GB/s, 400 Gb/s, 64 GiB of pools a node; a node is one rank with all its pools, {SCALE_TODAY} times smaller, as is \
         the data. The last column is the throughput of a node as a part of that with the fewest nodes."
    ));
    scaled(&mut page, &results.scaled);
    page.head("This machine, measured and modelled");
    measured::show(&mut page, &results.measured);
    Ok(page.end())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn claims(page: &mut Page, results: &Results) {
    let mut rows = Vec::new();
    for (papers, ours) in results.papers.claims.iter().zip(&results.ours.claims) {
        let sign = if papers.is_bound { "at least " } else { "" };
        rows.push(vec![
            papers.what.to_string(),
            format!("{sign}{}", number(papers.paper)),
            number(papers.model),
            format!("{:+.0} %", papers.error() * 100.0),
            number(ours.model),
        ]);
    }
    page.table(&["", "the paper", "its protocol, modelled", "off by", "this library, modelled"], &rows);
    let reasons =
        results.papers.claims.iter().filter_map(|claim| Some(format!("{}: {}", claim.what, claim.because.as_ref()?)));
    page.list("Where its protocol in the model is off by more than a third:", reasons);
}

fn page_sizes(page: &mut Page, results: &Results) {
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
        "the paper's: home's pool",
        "third rank's pool",
        "home's disk",
    ];
    page.table(&heads, &pairs.map(row).collect::<Vec<_>>());
    page.paragraph(
        "MB/s of one rank that gets pages, none twice and in no order, from another rank's pool, from a third rank's, and from the disk of \
         another rank. The link of the paper's machine does 3560.",
    );
}

/// Lines of the throughput of 32 ranks together by data, in GB/s.
fn throughput(results: &Results, figure: u32, order: &str) -> Result<String, String> {
    let line = |name: &str, figures: &Figures, cooperative| Line {
        name: name.into(),
        points: figures.rates(figure, 32, cooperative).into_iter().map(|(data, rate)| (data, rate / 1e3)).collect(),
    };
    let one = results.ours.rates(figure, 1, true).into_iter().map(|(data, rate)| (data, 32.0 * rate / 1e3)).collect();
    let chart = Chart {
        title: format!("32 ranks, {order}"),
        x: "data, in pools of a rank",
        y: "GB/s, all ranks together",
        lines: vec![
            line("this library", &results.ours, true),
            line("the paper's protocol", &results.papers, true),
            line("the paper's protocol, without cooperation", &results.papers, false),
            Line { name: "32 times one rank".into(), points: one },
        ],
    };
    chart.draw()
}

fn sharing(page: &mut Page, results: &Results) {
    let mut rows = Vec::new();
    for ranks in paper::RANKS {
        let us = |figures: &Figures, cooperative| figures.sharing_us(ranks, cooperative).map(|us| format!("{us:.0}"));
        let all = [us(&results.ours, true), us(&results.papers, true), us(&results.papers, false)];
        if let [Some(ours), Some(with), Some(without)] = all {
            rows.push(vec![ranks.to_string(), ours, with, without]);
        }
    }
    let heads = ["ranks", "this library, us", "the paper's protocol, us", "without cooperation, us"];
    page.table(&heads, &rows);
    page.paragraph("Ten puts of a byte by each rank to one page, and a barrier.");
}

fn scaled(page: &mut Page, all: &[Scaled]) {
    let row = |one: &Scaled| {
        vec![
            one.what.to_string(),
            one.nodes.to_string(),
            format!("{} {}", number(one.rate), one.unit.name()),
            number(one.outcome.miss_us),
            format!("{:.2}", one.outcome.messages_a_miss),
            format!("{:.2}", one.part),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    page.table(&["", "nodes", "of a node", "us a miss", "messages a miss", "part"], &rows);
}

/// A number with about three digits.
fn number(number: f64) -> String {
    match number {
        _ if number >= 100.0 => format!("{number:.0}"),
        _ if number >= 10.0 => format!("{number:.1}"),
        _ if number >= 0.1 => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}
