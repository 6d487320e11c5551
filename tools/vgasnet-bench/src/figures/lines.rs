//! A chart of lines, as SVG.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::fmt::Display;

/// What is drawn.
#[derive(Default)]
pub struct Chart {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    /// Equal steps are equal factors.
    pub x_is_log: bool,
    pub y_is_log: bool,
    pub lines: Vec<Line>,
}

/// A line through points.
#[derive(Default)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    pub style: Style,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Points, and lines between them.
    #[default]
    Joined,
    /// What the paper says: triangles, and between them dashes.
    Papers,
}

impl Line {
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { name: name.into(), points, style: Style::Joined }
    }

    pub fn papers(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { style: Style::Papers, ..Line::new(name, points) }
    }
}

const SIZE: (u32, u32) = (980, 420);

/// Room for the names of lines, right of what is drawn.
const NAMES_WIDTH: u32 = 300;

const MARGIN: u32 = 12;
const NAME_HEIGHT: i32 = 18;
const Y_LABELS_WIDTH: u32 = 60;

/// Colours that are told apart in grey, too.
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(150, 150, 150),
    RGBColor(44, 44, 44),
    RGBColor(255, 160, 60),
    RGBColor(120, 190, 120),
];

/// A point that the paper has.
const TRIANGLE_SIZE: u32 = 6;

impl Chart {
    /// The image.
    ///
    /// # Errors
    /// What the drawing says.
    pub fn draw(&self) -> Result<String, String> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let [x, y] = [points().map(|point| point.0).collect(), points().map(|point| point.1).collect()];
        let (x, y) = (Range::of(x, self.x_is_log, 1.0), Range::of(y, self.y_is_log, 1.1));
        let mut image = String::new();
        let area = SVGBackend::with_string(&mut image, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(text)?;
        match (self.x_is_log, self.y_is_log) {
            (false, false) => self.draw_on(&area, x.linear(), y.linear()),
            (false, true) => self.draw_on(&area, x.linear(), y.linear().log_scale()),
            (true, false) => self.draw_on(&area, x.linear().log_scale(), y.linear()),
            (true, true) => self.draw_on(&area, x.linear().log_scale(), y.linear().log_scale()),
        }?;
        area.present().map_err(text)?;
        drop(area);
        Ok(image)
    }

    fn draw_on<X, Y>(&self, area: &Area<'_>, x: X, y: Y) -> Result<(), String>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(MARGIN)
            .margin_right(NAMES_WIDTH)
            .x_label_area_size(40)
            .y_label_area_size(Y_LABELS_WIDTH)
            .build_cartesian_2d(x, y)
            .map_err(text)?;
        let label = |value: &f64| label(*value);
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .light_line_style(TRANSPARENT)
            .draw()
            .map_err(text)?;
        let mut colours = COLOURS.into_iter().cycle();
        let left = (SIZE.0 - NAMES_WIDTH + MARGIN) as i32;
        for (number, line) in self.lines.iter().enumerate() {
            let points = line.points.iter().copied();
            let at = (left, MARGIN as i32 + NAME_HEIGHT * (number as i32 + 1));
            if line.style == Style::Papers {
                let triangle = |point| TriangleMarker::new(point, TRIANGLE_SIZE, BLACK.filled());
                let triangles = points.clone().map(|point| TriangleMarker::new(point, TRIANGLE_SIZE, BLACK.filled()));
                chart.draw_series(triangles).map_err(text)?;
                chart.draw_series(DashedLineSeries::new(points, 6, 5, BLACK.stroke_width(1))).map_err(text)?;
                area.draw(&triangle((at.0 + 9, at.1))).map_err(text)?;
            } else {
                let style = colours.next().expect("they come again").stroke_width(2);
                let circles = points.clone().map(|point| Circle::new(point, 3, style.filled()));
                chart.draw_series(circles).map_err(text)?;
                chart.draw_series(LineSeries::new(points, style)).map_err(text)?;
                area.draw(&PathElement::new([at, (at.0 + 18, at.1)], style)).map_err(text)?;
            }
            let name = Text::new(line.name.as_str(), (at.0 + 26, at.1 - 7), ("sans-serif", 13));
            area.draw(&name).map_err(text)?;
        }
        Ok(())
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// What an axis shows.
#[derive(Clone, Copy)]
struct Range {
    least: f64,
    most: f64,
}

impl Range {
    /// Of these values, and some room beyond.
    fn of(values: Vec<f64>, is_log: bool, room: f64) -> Range {
        let most = values.iter().copied().fold(0.0, f64::max) * room;
        let least = if is_log { values.iter().copied().fold(f64::INFINITY, f64::min) / room } else { 0.0 };
        Range { least, most: if most > least { most } else { least + 1.0 } }
    }

    fn linear(self) -> std::ops::Range<f64> {
        self.least..self.most
    }
}

/// A number at an axis.
fn label(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".into(),
        _ if value >= 0.01 => format!("{:.*}", usize::from(value < 10.0 && value.fract() > 1e-9) * 2, value),
        _ => format!("{value:.4}"),
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_axis_may_be_logarithmic_and_the_papers_points_are_triangles() {
        let lines =
            || vec![Line::new("ours", vec![(1.0, 2.0), (100.0, 300.0)]), Line::papers("paper", vec![(10.0, 5.0)])];
        let mut images: Vec<String> = Vec::new();
        for (x_is_log, y_is_log) in [(false, false), (false, true), (true, false), (true, true)] {
            let chart = Chart { title: "t".into(), x: "x", y: "y", x_is_log, y_is_log, lines: lines() };
            let image = chart.draw().unwrap();
            assert!(image.contains("<polygon") && image.contains("paper") && !image.contains("NaN"), "{image}");
            assert!(!images.contains(&image), "{x_is_log} {y_is_log}");
            images.push(image);
        }
    }
}
