//! Charts of the results: bars, and lines if sizes span orders of magnitude.

mod files;
mod gasnet_ex;
mod gets;
mod programs;
mod small;

pub use files::files;
pub use gasnet_ex::gasnet_ex;
pub use gets::gets;
pub use programs::programs;
pub use small::small;

use crate::faults::{Found, Latency};
use crate::report::{
    CollectiveFigures, MessageFigures, PageSizeFigures, Rate, ReadFigures, Run, Setting, SharingFigures, SweepFigures,
    ThreadFigures, Throughput, TriadFigures,
};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Display;
use vgasnet_settings::format_size;

/// Throughputs, each next to plain reads.
pub fn reads(runs: &[Run<ReadFigures>]) -> Result<String, String> {
    let bars = runs.iter().map(|run| Bar {
        label: label(&run.setting),
        value: run.figures.throughput_bytes_per_second / 1e9,
        reference: run.figures.plain_read_bytes_per_second / 1e9,
    });
    let title = "Throughput of all ranks; in grey one process with plain reads".into();
    draw(&[Chart { title, unit: "GB/s", bars: bars.collect() }])
}

/// A chart for each location of pages: throughput by page size, next to copies.
pub fn page_sizes(runs: &[Run<PageSizeFigures>]) -> Result<String, String> {
    type Speed = fn(&PageSizeFigures) -> f64;
    let chart = |(place, rate, copy): (&str, Speed, Speed)| {
        let bars = runs.iter().map(|run| Bar {
            label: format_size(run.setting.page_bytes),
            value: rate(&run.figures) / 1e6,
            reference: copy(&run.figures) / 1e6,
        });
        let title = format!("Pages {place}, read by one rank; in grey a copy out of a pool");
        Chart { title, unit: "MB/s", bars: bars.collect() }
    };
    let home: Speed = |figures| figures.home_raw_bytes_per_second;
    let third: Speed = |figures| figures.third_raw_bytes_per_second;
    let places: [(&str, Speed, Speed); 3] = [
        ("in the home's pool", |figures| figures.home_pool_bytes_per_second, home),
        ("in the pool of a third rank", |figures| figures.third_pool_bytes_per_second, third),
        ("on the home's disk", |figures| figures.home_disk_bytes_per_second, home),
    ];
    draw(&places.map(chart))
}

/// A chart for each number of ranks and each order: throughput by size, next to the throughput without cooperative
/// caching.
pub fn sweeps(runs: &[Run<SweepFigures>]) -> Result<String, String> {
    let mut charts: Vec<Chart> = Vec::new();
    for pair in runs.chunks_exact(2) {
        let [with, without] = [&pair[0], &pair[1]];
        let order = with.figures.order();
        let title = format!("Throughput, {order}, {}; in grey without cooperative caching", label(&with.setting));
        let bar = Bar {
            label: format_size(with.figures.size_bytes),
            value: with.figures.throughput_bytes_per_second / 1e9,
            reference: without.figures.throughput_bytes_per_second / 1e9,
        };
        match charts.last_mut().filter(|chart| chart.title == title) {
            Some(chart) => chart.bars.push(bar),
            None => charts.push(Chart { title, unit: "GB/s", bars: vec![bar] }),
        }
    }
    draw(&charts)
}

/// Times of a round, each next to a barrier.
pub fn sharing(runs: &[Run<SharingFigures>]) -> Result<String, String> {
    let bars = runs.iter().map(|run| Bar {
        label: label(&run.setting),
        value: run.figures.round_seconds * 1e6,
        reference: run.figures.barrier_seconds * 1e6,
    });
    let title = "Ten puts a rank into one page, and a barrier; in grey the barrier alone".into();
    draw(&[Chart { title, unit: "us", bars: bars.collect() }])
}

/// A chart for each size: the throughput of the own segment next to each baseline.
pub fn triads(runs: &[Run<TriadFigures>]) -> Result<String, String> {
    let chart = |run: &Run<TriadFigures>| {
        let (segment, others) = run.figures.throughputs();
        let bar = |(label, reference): (String, f64)| Bar { label, value: segment / 1e9, reference: reference / 1e9 };
        let size = format_size(run.figures.array_bytes);
        let title = format!("Triad over three arrays of {size} in the own segment; in grey what it is compared with");
        Chart { title, unit: "GB/s", bars: others.into_iter().map(bar).collect() }
    };
    draw(&runs.iter().map(chart).collect::<Vec<_>>())
}

/// A chart for each page size: the median of each kind of fault, next to the copy of a page.
pub fn faults(runs: &[Run<Found>]) -> Result<String, String> {
    let chart = |run: &Run<Found>| {
        let bar = |latency: &Latency| Bar {
            label: latency.kind.replace('_', " "),
            value: latency.median_us,
            reference: run.figures.copy_page_us,
        };
        let title = format!(
            "First access to a page of {}, median, {}; in grey a copy of it",
            format_size(run.setting.page_bytes),
            label(&run.setting),
        );
        Chart { title, unit: "us", bars: run.figures.faults.iter().map(bar).collect() }
    };
    draw(&runs.iter().map(chart).collect::<Vec<_>>())
}

/// Bytes received by all ranks, by collective, next to a copy of the same size.
pub fn collectives(runs: &[Run<CollectiveFigures>]) -> Result<String, String> {
    let bars = runs.iter().flat_map(|run| {
        run.figures.collectives.iter().map(|one| Bar {
            label: format!("{}, {}", one.name, label(&run.setting)),
            value: one.bytes_per_second / 1e9,
            reference: one.copy_bytes_per_second / 1e9,
        })
    });
    let title = "Bytes that come to all ranks in collectives; in grey memcpy by one thread".into();
    draw(&[Chart { title, unit: "GB/s", bars: bars.collect() }])
}

/// A chart for each page size: pages a second by the number of threads, next to plain reads.
pub fn threads(runs: &[Run<ThreadFigures>]) -> Result<String, String> {
    let chart = |run: &Run<ThreadFigures>| {
        let bar = |rate: &Rate| Bar {
            label: format!("{} {}", rate.threads, if rate.threads == 1 { "thread" } else { "threads" }),
            value: rate.pages_per_second,
            reference: run.figures.plain_pages_per_second,
        };
        let page = format_size(run.setting.page_bytes);
        let title = format!("Loads from pages of {page} in no order; in grey plain reads, many in flight");
        Chart { title, unit: "pages/s", bars: run.figures.threads.iter().map(bar).collect() }
    };
    draw(&runs.iter().map(chart).collect::<Vec<_>>())
}

/// Two charts: round trips, and throughputs of medium messages by the size of their payload.
pub fn messages(runs: &[Run<MessageFigures>]) -> Result<String, String> {
    let round_trip = |run: &Run<MessageFigures>| Bar {
        label: label(&run.setting),
        value: run.figures.short_round_trip_us,
        reference: run.figures.eventfd_round_trip_us,
    };
    let stream = |stream: &Throughput| Bar {
        label: format!("payload of {}", format_size(stream.payload_bytes as u64)),
        value: stream.bytes_per_second / 1e9,
        reference: stream.copy_bytes_per_second / 1e9,
    };
    let title = "Round trip of a short message; in grey two threads through eventfds".into();
    let round_trips = Chart { title, unit: "us", bars: runs.iter().map(round_trip).collect() };
    let title = "Medium messages in a stream; in grey memcpy".into();
    let bars = runs.iter().flat_map(|run| &run.figures.streams).map(stream).collect();
    draw(&[round_trips, Chart { title, unit: "GB/s", bars }])
}

struct Chart {
    title: String,
    unit: &'static str,
    bars: Vec<Bar>,
}

struct Bar {
    label: String,
    value: f64,
    reference: f64,
}

fn label(setting: &Setting) -> String {
    let mut label = format!("{} {}", setting.ranks, if setting.ranks == 1 { "rank" } else { "ranks" });
    if !setting.cooperative {
        label += ", not cooperative";
    }
    if !setting.peer_memory {
        label += ", no peer memory";
    }
    label
}

/// Width of a bar, relative to the distance between runs.
const WIDTH: f64 = 0.35;

/// Width of a letter of a label.
const LETTER_WIDTH: u32 = 7;

/// Height of a chart.
const HEIGHT: u32 = 420;

/// Draws the charts, one below another.
fn draw(charts: &[Chart]) -> Result<String, String> {
    let mut image = String::new();
    let bars_max = charts.iter().map(|chart| chart.bars.len()).max().unwrap_or(0) as u32;
    let labels = charts.iter().flat_map(|chart| &chart.bars).map(|bar| bar.label.len() as u32);
    let distance = labels.map(|len| len * LETTER_WIDTH).max().unwrap_or(0).max(190);
    let width = (200 + distance * bars_max).max(640);
    let area = SVGBackend::with_string(&mut image, (width, HEIGHT * charts.len() as u32)).into_drawing_area();
    area.fill(&WHITE).map_err(text)?;
    for (area, chart) in area.split_evenly((charts.len(), 1)).iter().zip(charts) {
        draw_chart(area, chart)?;
    }
    area.present().map_err(text)?;
    drop(area);
    Ok(image)
}

fn draw_chart(area: &DrawingArea<SVGBackend<'_>, Shift>, Chart { title, unit, bars }: &Chart) -> Result<(), String> {
    let top = bars.iter().map(|bar| bar.value.max(bar.reference)).fold(0.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(34)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.5..bars.len() as f64 - 0.5, 0.0..top)
        .map_err(text)?;
    // A label stands at a whole number, in the middle of a run.
    let name = |at: &f64| {
        let is_whole = (at - at.round()).abs() < 1e-6;
        bars.get(at.round() as usize)
            .filter(|_| is_whole && *at > -0.1)
            .map_or_else(String::new, |bar| bar.label.clone())
    };
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh().x_labels(2 * bars.len() + 1).x_label_formatter(&name).y_desc(*unit).draw().map_err(text)?;
    for (at, bar) in bars.iter().enumerate() {
        let middle = at as f64;
        let rectangles = [
            Rectangle::new([(middle - WIDTH, 0.0), (middle, bar.value)], RGBColor(31, 119, 180).filled()),
            Rectangle::new([(middle, 0.0), (middle + WIDTH, bar.reference)], RGBColor(190, 190, 190).filled()),
        ];
        chart.draw_series(rectangles).map_err(text)?;
    }
    Ok(())
}

fn text(error: impl Display) -> String {
    error.to_string()
}
