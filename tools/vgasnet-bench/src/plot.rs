//! Charts of the results: bars, and lines if sizes span orders of magnitude.

use crate::report::Run;
use crate::rows::{Row, Unit};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Display;
use std::ops::Range;
use vgasnet_settings::format_size;

/// Values of rows, each next to a value of the same row to compare with.
pub struct Chart {
    /// Placeholders are `{page}`, `{by}` and `{label}`, the label of the row that has the rows.
    pub title: &'static str,
    /// The list of rows in each job, as `streams` or `cases.rows`. Empty: a row for each job.
    pub rows: &'static str,
    /// If not empty, a chart for each value of this name.
    pub by: &'static str,
    pub value: &'static str,
    pub reference: &'static str,
    /// If not empty, lines over the values of this name, with both axes logarithmic.
    pub over: &'static str,
}

impl Chart {
    pub const fn bars(title: &'static str, rows: &'static str, value: &'static str, reference: &'static str) -> Chart {
        Chart { title, rows, by: "", value, reference, over: "" }
    }
}

/// A chart with its rows.
struct Drawn<'a> {
    chart: &'a Chart,
    title: String,
    /// Labels and rows.
    rows: Vec<(String, &'a Row)>,
}

/// Width and height of a chart of lines, and the least width of a chart of bars.
const SIZE: (u32, u32) = (900, 440);
const WIDTH_MIN: u32 = 640;

/// Width of a bar, relative to the distance between pairs.
const BAR: f64 = 0.35;

/// Width of a letter of a label.
const LETTER_WIDTH: u32 = 7;

const GREY: RGBColor = RGBColor(150, 150, 150);

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

/// Draws the charts, one below another.
pub fn draw(charts: &[Chart], runs: &[Run]) -> Result<String, String> {
    let mut all: Vec<Drawn<'_>> = Vec::new();
    charts.iter().for_each(|chart| add_rows(chart, runs, &mut all));
    let width = all.iter().map(Drawn::width).max().unwrap_or(0).max(WIDTH_MIN);
    let mut image = String::new();
    let size = (width, SIZE.1 * all.len().max(1) as u32);
    let area = SVGBackend::with_string(&mut image, size).into_drawing_area();
    area.fill(&WHITE).map_err(text)?;
    for (area, drawn) in area.split_evenly((all.len().max(1), 1)).iter().zip(&all) {
        if drawn.chart.over.is_empty() { drawn.bars(area) } else { drawn.lines(area) }?;
    }
    area.present().map_err(text)?;
    drop(area);
    Ok(image)
}

/// Adds the rows of all runs. Those with the same title are in one chart.
fn add_rows<'a>(chart: &'a Chart, runs: &'a [Run], all: &mut Vec<Drawn<'a>>) {
    for run in runs {
        let (setting, row) = (label(run, runs), &run.figures.row);
        let page = format_size(run.setting.number("page_bytes") as u64);
        let title = chart.title.replace("{page}", &page);
        if chart.rows.is_empty() {
            // Labelled jobs of the same setting are together.
            let (title, bar) = if row.label.is_empty() {
                (title, setting)
            } else {
                (format!("{title}; {setting}"), row.label.clone())
            };
            add(chart, all, title, bar, row);
            continue;
        }
        let (name, below) = chart.rows.split_once('.').unwrap_or((chart.rows, ""));
        let setting = if row.label.is_empty() { setting } else { format!("{setting}, {}", row.label) };
        let title = if runs.len() > 1 { format!("{title}; {setting}") } else { title };
        let groups = if below.is_empty() { std::slice::from_ref(row) } else { row.list(name) };
        for group in groups {
            let title = title.replace("{label}", &group.label);
            for row in group.list(if below.is_empty() { name } else { below }) {
                let by = if row.text(chart.by).is_empty() {
                    row.number(chart.by).to_string()
                } else {
                    row.text(chart.by).into()
                };
                add(chart, all, title.replace("{by}", &by), row.label.clone(), row);
            }
        }
    }
}

/// Adds a row to the chart with this title.
fn add<'a>(chart: &'a Chart, all: &mut Vec<Drawn<'a>>, title: String, label: String, row: &'a Row) {
    if row.number(chart.value).is_nan() {
        return;
    }
    match all.iter_mut().find(|drawn| drawn.title == title) {
        Some(drawn) => drawn.rows.push((label, row)),
        None => all.push(Drawn { chart, title, rows: vec![(label, row)] }),
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

impl Drawn<'_> {
    fn width(&self) -> u32 {
        if !self.chart.over.is_empty() {
            return SIZE.0;
        }
        let distance = self.rows.iter().map(|(label, _)| label.len() as u32 * LETTER_WIDTH).max().unwrap_or(0);
        200 + distance.max(190) * self.rows.len() as u32
    }

    /// The name of the unit, and a value in it.
    fn unit(&self) -> (&'static str, f64) {
        Unit::of(self.chart.value).0.map_or(("", 1.0), |unit| (unit.name, unit.size))
    }

    fn bars(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
        let (unit, size) = self.unit();
        let number =
            |row: &Row, name: &str| Some(row.number(name) / size).filter(|value| value.is_finite()).unwrap_or(0.0);
        let pairs: Vec<[f64; 2]> = self
            .rows
            .iter()
            .map(|(_, row)| [self.chart.value, self.chart.reference].map(|name| number(row, name)))
            .collect();
        let top = pairs.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max) * 1.1;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(34)
            .y_label_area_size(70)
            .build_cartesian_2d(-0.5..pairs.len() as f64 - 0.5, 0.0..top)
            .map_err(text)?;
        // A label stands at a whole number, in the middle of a pair.
        let name = |at: &f64| {
            let is_whole = (at - at.round()).abs() < 1e-6 && *at > -0.1;
            let row = self.rows.get(at.round() as usize).filter(|_| is_whole);
            row.map_or_else(String::new, |(label, _)| label.clone())
        };
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .x_labels(2 * pairs.len() + 1)
            .x_label_formatter(&name)
            .y_desc(unit)
            .draw()
            .map_err(text)?;
        for (at, [value, reference]) in pairs.into_iter().enumerate() {
            let middle = at as f64;
            let rectangles = [
                Rectangle::new([(middle - BAR, 0.0), (middle, value)], COLOURS[0].filled()),
                Rectangle::new([(middle, 0.0), (middle + BAR, reference)], GREY.filled()),
            ];
            chart.draw_series(rectangles).map_err(text)?;
        }
        Ok(())
    }

    /// The points of each label, and in grey the references of the first.
    fn series(&self) -> Vec<(String, RGBColor, Vec<(f64, f64)>)> {
        let mut all: Vec<(String, RGBColor, Vec<(f64, f64)>)> = Vec::new();
        let mut references = Vec::new();
        for (label, row) in &self.rows {
            let at = all.iter().position(|(other, ..)| other == label).unwrap_or(all.len());
            if at == all.len() {
                all.push((label.clone(), COLOURS[at % COLOURS.len()], Vec::new()));
            }
            let point = |name: &str| (row.number(self.chart.over), row.number(name));
            all[at].2.push(point(self.chart.value));
            references.extend((at == 0).then(|| point(self.chart.reference)));
        }
        references.retain(|point| !point.1.is_nan());
        if !references.is_empty() {
            all.push((Unit::of(self.chart.reference).1, GREY, references));
        }
        all
    }

    fn lines(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
        /// Room for the legend, right of the largest size.
        const LEGEND: f64 = 60.0;
        let all = self.series();
        let points = all.iter().flat_map(|(_, _, points)| points);
        let sizes = range(points.clone().map(|point| point.0));
        let sizes = (sizes.start..sizes.end * LEGEND).log_scale();
        let values = range(points.map(|point| point.1)).log_scale();
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(sizes, values)
            .map_err(text)?;
        let number = |value: &f64| value.to_string();
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(self.chart.over.replace('_', " ")).y_desc(self.unit().0);
        mesh.x_label_formatter(&number).y_label_formatter(&number).draw().map_err(text)?;
        for (label, colour, points) in all {
            let style = colour.stroke_width(2);
            let drawn = chart.draw_series([PathElement::new(points.clone(), style)]).map_err(text)?;
            drawn.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled()))).map_err(text)?;
        }
        let mut labels = chart.configure_series_labels();
        labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE.mix(0.8)).draw().map_err(text)
    }
}

/// The range of the values, with room at either end.
fn range(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let (least, most) = (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
    least / 2.0..most * 2.0
}

fn text(error: impl Display) -> String {
    error.to_string()
}
