//! A chart of lines, as SVG.

use plotters::prelude::*;
use std::fmt::Display;

/// What is drawn.
pub struct Chart {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    pub lines: Vec<Line>,
}

/// A line through points.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

const SIZE: (u32, u32) = (860, 420);

/// Colours that are told apart in grey, too.
const COLOURS: [RGBColor; 4] =
    [RGBColor(31, 119, 180), RGBColor(214, 39, 40), RGBColor(150, 150, 150), RGBColor(44, 44, 44)];

impl Chart {
    /// The image.
    ///
    /// # Errors
    /// What the drawing says.
    pub fn draw(&self) -> Result<String, String> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let right = points().map(|(x, _)| *x).fold(0.0, f64::max);
        let top = points().map(|(_, y)| *y).fold(0.0, f64::max) * 1.1;
        let mut image = String::new();
        let area = SVGBackend::with_string(&mut image, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(text)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..right, 0.0..top)
            .map_err(text)?;
        chart.configure_mesh().x_desc(self.x).y_desc(self.y).light_line_style(TRANSPARENT).draw().map_err(text)?;
        for (line, colour) in self.lines.iter().zip(COLOURS) {
            let style = colour.stroke_width(2);
            let drawn = chart.draw_series(LineSeries::new(line.points.iter().copied(), style)).map_err(text)?;
            drawn.label(&line.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            let circles = line.points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
            chart.draw_series(circles).map_err(text)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::MiddleRight)
            .background_style(WHITE.mix(0.85))
            .draw()
            .map_err(text)?;
        area.present().map_err(text)?;
        drop(chart);
        drop(area);
        Ok(image)
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}
