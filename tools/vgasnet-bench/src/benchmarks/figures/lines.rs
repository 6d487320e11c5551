//! A line chart, as data.

use serde::Serialize;

/// The data of the chart.
#[derive(Default, Serialize)]
pub struct Chart {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    /// Logarithmic axes.
    pub x_is_log: bool,
    pub y_is_log: bool,
    pub lines: Vec<Line>,
}

/// A line through points.
#[derive(Default, Serialize)]
pub struct Line {
    pub name: String,
    /// Numbers from the paper instead of results of ours.
    pub is_papers: bool,
    pub points: Vec<(f64, f64)>,
}

impl Line {
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { name: name.into(), points, is_papers: false }
    }

    pub fn papers(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { is_papers: true, ..Line::new(name, points) }
    }
}
