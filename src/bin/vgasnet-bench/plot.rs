//! A bar for each run.

use crate::report::{ReadRun, Setting, SharingRun};
use plotters::prelude::*;
use std::fmt::Display;

/// Throughputs, and beside each what plain reads reach.
pub fn reads(runs: &[ReadRun]) -> Result<String, String> {
    let bars = runs.iter().map(|run| Bar {
        label: label(&run.setting),
        value: run.throughput_bytes_per_second / 1e9,
        reference: run.plain_read_bytes_per_second / 1e9,
    });
    draw("Throughput of all ranks; in grey one process with plain reads", "GB/s", &bars.collect::<Vec<_>>())
}

/// Times of a round, and beside each that of a barrier.
pub fn sharing(runs: &[SharingRun]) -> Result<String, String> {
    let bars = runs.iter().map(|run| Bar {
        label: label(&run.setting),
        value: run.round_seconds * 1e6,
        reference: run.barrier_seconds * 1e6,
    });
    draw("Ten puts a rank into one page, and a barrier; in grey the barrier alone", "us", &bars.collect::<Vec<_>>())
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

/// Width of a bar where 1 is the distance between runs.
const WIDTH: f64 = 0.35;

fn draw(title: &str, unit: &str, bars: &[Bar]) -> Result<String, String> {
    fn text(error: impl Display) -> String {
        error.to_string()
    }
    let mut image = String::new();
    let width = (200 + 190 * bars.len() as u32).max(640);
    let area = SVGBackend::with_string(&mut image, (width, 420)).into_drawing_area();
    area.fill(&WHITE).map_err(text)?;
    let top = bars.iter().map(|bar| bar.value.max(bar.reference)).fold(0.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(34)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.5..bars.len() as f64 - 0.5, 0.0..top)
        .map_err(text)?;
    // A label stands at a whole number, which is in the middle of a run.
    let name = |at: &f64| {
        let is_whole = (at - at.round()).abs() < 1e-6;
        bars.get(at.round() as usize)
            .filter(|_| is_whole && *at > -0.1)
            .map_or_else(String::new, |bar| bar.label.clone())
    };
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh().x_labels(2 * bars.len() + 1).x_label_formatter(&name).y_desc(unit).draw().map_err(text)?;
    for (at, bar) in bars.iter().enumerate() {
        let middle = at as f64;
        let rectangles = [
            Rectangle::new([(middle - WIDTH, 0.0), (middle, bar.value)], RGBColor(31, 119, 180).filled()),
            Rectangle::new([(middle, 0.0), (middle + WIDTH, bar.reference)], RGBColor(190, 190, 190).filled()),
        ];
        chart.draw_series(rectangles).map_err(text)?;
    }
    area.present().map_err(text)?;
    drop(chart);
    drop(area);
    Ok(image)
}
