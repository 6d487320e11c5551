//! Charts of values next to their baselines, from the same rows as the tables: bars, or lines for the rows of a matrix.

use crate::report::Run;
use crate::rows::{Row, Unit, head};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Display;
use vgasnet_settings::format_size;

/// Rows with the same two values.
struct Chart<'a> {
    title: String,
    value: &'a str,
    baseline: &'a str,
    /// Labels and rows.
    rows: Vec<(String, &'a Row)>,
}

/// Width of a chart of lines, height of each chart, and the least width of a chart of bars.
const SIZE: (u32, u32) = (900, 440);
const WIDTH_MIN: u32 = 640;

/// Width of a bar, relative to the distance between pairs.
const BAR: f64 = 0.35;

/// Width of a letter of a label.
const LETTER_WIDTH: u32 = 7;

const GREY: RGBColor = RGBColor(150, 150, 150);

/// Times and rates as bars next to their baselines, one chart below another.
pub fn draw(benchmark: &str, runs: &[Run]) -> Result<String, String> {
    let mut all: Vec<Chart<'_>> = Vec::new();
    for run in runs {
        let setting = if run.setting.number("ranks").is_nan() { String::new() } else { label(run, runs) };
        collect(&mut all, benchmark, &run.figures.row, &setting);
    }
    let width = all.iter().map(Chart::width).max().unwrap_or(0).max(WIDTH_MIN);
    let mut image = String::new();
    let size = (width, SIZE.1 * all.len().max(1) as u32);
    let area = SVGBackend::with_string(&mut image, size).into_drawing_area();
    area.fill(&WHITE).map_err(text)?;
    for (area, chart) in area.split_evenly((all.len().max(1), 1)).iter().zip(&all) {
        if chart.is_matrix() { chart.lines(area) } else { chart.bars(area) }?;
    }
    area.present().map_err(text)?;
    drop(area);
    Ok(image)
}

/// Adds the values of a row, and of the rows in it. A row without a label is labelled by its setting.
fn collect<'a>(all: &mut Vec<Chart<'a>>, subject: &str, row: &'a Row, setting: &str) {
    let parts = |parts: &[&str]| parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(", ");
    let (label, setting) = if row.label.is_empty() { (setting, "") } else { (&*row.label, setting) };
    for (value, baseline) in row.compared().iter().filter(|(value, _)| !row.number(value).is_nan()) {
        let subject = parts(&[subject, &row.group, setting]);
        let title = format!("{subject}: {}; in grey {}", head(value), head(baseline));
        match all.iter_mut().find(|chart| chart.title == title) {
            Some(chart) => chart.rows.push((label.to_owned(), row)),
            None => all.push(Chart { title, value, baseline, rows: vec![(label.to_owned(), row)] }),
        }
    }
    for (name, rows) in row.lists() {
        let (subject, setting) =
            (parts(&[subject, &name.replace('_', " ")]), if setting.is_empty() { label } else { setting });
        rows.iter().for_each(|row| collect(all, &subject, row, setting));
    }
}

/// A run among others: its ranks, and in what else they differ.
fn label(run: &Run, runs: &[Run]) -> String {
    let number = |run: &Run, name: &str| run.setting.number(name) as u64;
    let ranks = number(run, "ranks");
    let mut label = format!("{ranks} {}", if ranks == 1 { "rank" } else { "ranks" });
    for (name, words) in [("page_bytes", "pages"), ("pool_bytes", "pool")] {
        if runs.iter().any(|other| number(other, name) != number(run, name)) {
            label += &format!(", {words} of {}", format_size(number(run, name)));
        }
    }
    for (name, words) in [("cooperative", "not cooperative"), ("peer_memory", "no peer memory")] {
        label += &if run.setting.is(name, false) { format!(", {words}") } else { String::new() };
    }
    label
}

impl Chart<'_> {
    fn is_matrix(&self) -> bool {
        self.rows.iter().any(|(_, row)| !row.column.is_empty())
    }

    fn width(&self) -> u32 {
        if self.is_matrix() {
            return SIZE.0;
        }
        let distance = self.rows.iter().map(|(label, _)| label.len() as u32 * LETTER_WIDTH).max().unwrap_or(0);
        200 + distance.max(190) * self.rows.len() as u32
    }

    /// The name of the unit, and a value in it.
    fn unit(&self) -> (&'static str, f64) {
        Unit::of(self.value).0.map_or(("", 1.0), |unit| (unit.name, unit.size))
    }

    fn bars(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
        let (unit, size) = self.unit();
        let pair = |(_, row): &(String, &Row)| {
            let number = |name: &str| Some(row.number(name) / size).filter(|value| value.is_finite());
            [self.value, self.baseline].map(|name| number(name).unwrap_or(0.0))
        };
        let pairs: Vec<[f64; 2]> = self.rows.iter().map(pair).collect();
        let top = pairs.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max) * 1.1;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(34)
            .y_label_area_size(70)
            .build_cartesian_2d(-0.5..pairs.len() as f64 - 0.5, 0.0..top)
            .map_err(text)?;
        let name = |at: &f64| whole(*at, &self.rows).map_or_else(String::new, |(label, _)| label.clone());
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .x_labels(2 * pairs.len() + 1)
            .x_label_formatter(&name)
            .y_desc(unit)
            .draw()
            .map_err(text)?;
        for (at, [value, baseline]) in pairs.into_iter().enumerate() {
            let middle = at as f64;
            let rectangles = [
                Rectangle::new([(middle - BAR, 0.0), (middle, value)], RGBColor(31, 119, 180).filled()),
                Rectangle::new([(middle, 0.0), (middle + BAR, baseline)], GREY.filled()),
            ];
            chart.draw_series(rectangles).map_err(text)?;
        }
        Ok(())
    }

    /// A line for each label over the columns, and in grey the baselines of the first.
    fn lines(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
        let mut columns: Vec<&str> = Vec::new();
        let mut series: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
        let mut baselines = Vec::new();
        for (label, row) in &self.rows {
            let column = position(&mut columns, |column| *column == row.column, || &row.column) as f64;
            let line = position(&mut series, |(other, _)| other == label, || (label, Vec::new()));
            series[line].1.push((column, row.number(self.value)));
            baselines.extend(Some((column, row.number(self.baseline))).filter(|point| line == 0 && !point.1.is_nan()));
        }
        let colours = (0..series.len()).map(|line| Palette99::pick(line).to_rgba().to_backend_color());
        let mut colours: Vec<RGBColor> =
            colours.map(|colour| RGBColor(colour.rgb.0, colour.rgb.1, colour.rgb.2)).collect();
        if !baselines.is_empty() {
            series.push((self.baseline, baselines));
            colours.push(GREY);
        }
        let values = series.iter().flat_map(|(_, points)| points).map(|point| point.1);
        let (least, most) = (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
        // The legend has room right of the last column.
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(-0.5..columns.len() as f64 * 1.6, (least / 2.0..most * 2.0).log_scale())
            .map_err(text)?;
        let name = |at: &f64| whole(*at, &columns).map_or_else(String::new, ToString::to_string);
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(4 * columns.len()).x_label_formatter(&name).y_desc(self.unit().0);
        mesh.y_label_formatter(&|value: &f64| value.to_string()).draw().map_err(text)?;
        for ((label, points), colour) in series.into_iter().zip(colours) {
            let style = colour.stroke_width(2);
            let drawn = chart.draw_series([PathElement::new(points.clone(), style)]).map_err(text)?;
            drawn.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled()))).map_err(text)?;
        }
        let mut labels = chart.configure_series_labels();
        labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE.mix(0.8)).draw().map_err(text)
    }
}

/// The item at a whole number of an axis.
fn whole<T>(at: f64, items: &[T]) -> Option<&T> {
    let is_whole = (at - at.round()).abs() < 1e-6 && at > -0.1;
    items.get(at.round() as usize).filter(|_| is_whole)
}

/// The position of an item, added if it is missing.
fn position<T>(items: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    items.iter().position(is_it).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    })
}

fn text(error: impl Display) -> String {
    error.to_string()
}
