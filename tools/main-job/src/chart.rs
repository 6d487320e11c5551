//! The times as bars, in a terminal and as an image.

use crate::plan::Way;
use crate::results::Results;

/// Cells in the longest bar.
const CELLS: f64 = 40.0;

/// A bar for each way that has run, labelled with its seconds and its ratio to vgasnet.
fn rows(results: &Results) -> Vec<(Way, f64, String)> {
    let own = results.seconds(Way::Vgasnet).unwrap_or(f64::NAN);
    let ran = Way::ALL.into_iter().filter_map(|way| Some((way, results.seconds(way)?)));
    ran.map(|(way, seconds)| {
        let factor = match way {
            Way::Vgasnet => String::new(),
            _ => format!(", {:.1} times as long", seconds / own),
        };
        (way, seconds, format!("{seconds:.2} s{factor}"))
    })
    .collect()
}

fn longest(rows: &[(Way, f64, String)]) -> f64 {
    rows.iter().map(|(_, seconds, _)| *seconds).fold(f64::MIN_POSITIVE, f64::max)
}

/// The chart as text, one line per way.
pub fn bars(results: &Results) -> String {
    let rows = rows(results);
    let longest = longest(&rows);
    let bar = |seconds: f64| "█".repeat(((CELLS * seconds / longest).round() as usize).max(1));
    rows.iter().map(|(way, seconds, label)| format!("  {:<8} {} {label}\n", way.name(), bar(*seconds))).collect()
}

/// The chart as an SVG image.
pub fn svg(results: &Results) -> String {
    const WIDTH: f64 = 400.0;
    const ROW: usize = 34;
    let rows = rows(results);
    let longest = longest(&rows);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {}\" font-family=\"sans-serif\" font-size=\"15\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        ROW * rows.len() + 20
    );
    for (index, (way, seconds, label)) in rows.iter().enumerate() {
        let (top, width) = (10 + ROW * index, WIDTH * seconds / longest);
        let fill = if *way == Way::Vgasnet { "#1f77b4" } else { "#9aa4ad" };
        text += &format!(
            "<text x=\"12\" y=\"{}\">{}</text>\n<rect x=\"90\" y=\"{top}\" width=\"{width:.0}\" height=\"24\" fill=\"{fill}\"/>\n\
             <text x=\"{:.0}\" y=\"{}\">{label}</text>\n",
            top + 17,
            way.name(),
            width + 98.0,
            top + 17,
        );
    }
    text + "</svg>\n"
}
