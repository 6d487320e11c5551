//! Times of small accesses by size: a line per location, both axes logarithmic.

use super::text;
use crate::options::Access;
use crate::report::{Run, SmallFigures};
use crate::small::{Place, SIZES_BYTES};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::ops::Range;
use vgasnet_settings::format_size;

/// Width and height of a chart.
const SIZE: (u32, u32) = (900, 460);

const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(174, 199, 232),
    RGBColor(214, 39, 40),
    RGBColor(255, 152, 150),
    RGBColor(44, 160, 44),
    RGBColor(152, 223, 138),
    RGBColor(148, 103, 189),
    RGBColor(197, 176, 213),
];

/// Room for the legend, right of the largest size.
const LEGEND: f64 = 60.0;

const GREY: RGBColor = RGBColor(120, 120, 120);

/// Sizes and microseconds.
struct Line {
    label: String,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// A chart for each access and page size.
pub fn small(runs: &[Run<SmallFigures>]) -> Result<String, String> {
    let mut charts: Vec<(String, Vec<Line>)> = Vec::new();
    for run in runs {
        for access in Access::ALL {
            let page = format_size(run.setting.page_bytes);
            let title =
                format!("A {} at random places, pages of {page}; in grey what it is compared with", access.name());
            let lines = lines(&run.figures, access);
            charts.extend((!lines.is_empty()).then_some((title, lines)));
        }
    }
    let mut image = String::new();
    let area = SVGBackend::with_string(&mut image, (SIZE.0, SIZE.1 * charts.len() as u32)).into_drawing_area();
    area.fill(&WHITE).map_err(text)?;
    for (area, (title, lines)) in area.split_evenly((charts.len(), 1)).iter().zip(&charts) {
        draw(area, title, lines)?;
    }
    area.present().map_err(text)?;
    drop(area);
    Ok(image)
}

fn lines(figures: &SmallFigures, access: Access) -> Vec<Line> {
    let mut lines = Vec::new();
    for ((place, in_flight), colour) in figures.lines(access).into_iter().zip(COLOURS.into_iter().cycle()) {
        let at = |size_bytes| Some((size_bytes as f64, figures.row(access, place, size_bytes, in_flight)?.us));
        let side_by_side = if in_flight > 1 { format!(", {in_flight} at once") } else { String::new() };
        let label = format!("{}{side_by_side}", place.name());
        lines.push(Line { label, colour, points: SIZES_BYTES.into_iter().filter_map(at).collect() });
    }
    let at = |size_bytes| {
        let row = figures.row(access, Place::OwnDisk, size_bytes, 1)?;
        Some((size_bytes as f64, row.reference_us?))
    };
    let points: Vec<_> = SIZES_BYTES.into_iter().filter_map(at).collect();
    if !points.is_empty() {
        let label = if access.is_by_instruction() { "mmap in as much memory" } else { "raw I/O, 4 KiB at least" };
        lines.push(Line { label: label.into(), colour: GREY, points });
    }
    lines
}

/// The range of the values, with room at either end.
fn range(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let (least, most) = (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
    least / 2.0..most * 2.0
}

fn draw(area: &DrawingArea<SVGBackend<'_>, Shift>, title: &str, lines: &[Line]) -> Result<(), String> {
    let points = lines.iter().flat_map(|line| &line.points);
    let sizes = range(points.clone().map(|point| point.0));
    let sizes = (sizes.start..sizes.end * LEGEND).log_scale();
    let times = range(points.map(|point| point.1)).log_scale();
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d(sizes, times)
        .map_err(text)?;
    let number = |value: &f64| value.to_string();
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("bytes").y_desc("us").x_label_formatter(&number).y_label_formatter(&number).draw().map_err(text)?;
    for Line { label, colour, points } in lines {
        let style = colour.stroke_width(2);
        let drawn = chart.draw_series([PathElement::new(points.clone(), style)]).map_err(text)?;
        drawn.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled()))).map_err(text)?;
    }
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE.mix(0.8)).draw().map_err(text)
}
