//! A chart of lines, as data.

use serde::Serialize;

/// The picture's data.
#[derive(Default, Serialize)]
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
#[derive(Default, Serialize)]
pub struct Line {
    pub name: String,
    /// Numbers of the paper, which are no line of ours.
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
