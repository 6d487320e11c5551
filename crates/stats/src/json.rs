//! The statistics of a job in JSON.

use super::advice::advice;
use super::histogram::Times;
use super::rows::ROWS;
use super::snapshot::Snapshot;
use std::fmt::Write;

/// The statistics of a job as one JSON object, with a newline at its end. `ranks` has all ranks, in order; the
/// `lacking` ones have reported nothing.
pub fn json(ranks: &[Snapshot], lacking: &[u32]) -> String {
    let sum = Snapshot::sum(ranks);
    let mut text = format!("{{\n\"version\": 1,\n\"ranks\": {},\n\"advice\": \"{}\",\n", ranks.len(), advice(ranks));
    // Writing to a string does not fail.
    let _ = writeln!(text, "\"not_counted\": {lacking:?},");
    write_rows(&mut text, "\"all\": ", &sum);
    text += ",\n\"by_rank\": [";
    for (rank, snapshot) in ranks.iter().enumerate() {
        text += if rank > 0 { ",\n" } else { "\n" };
        write_rows(&mut text, "", snapshot);
    }
    text + "\n]\n}\n"
}

fn write_rows(text: &mut String, before: &str, snapshot: &Snapshot) {
    let fields: Vec<String> = ROWS
        .iter()
        .map(|declared| {
            let value =
                snapshot.times_of(declared.row).map_or_else(|| snapshot.get(declared.row).to_string(), of_times);
            format!("\"{}\": {value}", declared.name)
        })
        .collect();
    // Writing to a string does not fail.
    let _ = write!(text, "{before}{{{}}}", fields.join(", "));
}

fn of_times(times: &Times) -> String {
    let [p50, p90, p99] = [50, 90, 99].map(|percent| times.percentile_ns(percent));
    format!(
        "{{\"count\": {}, \"sum_ns\": {}, \"p50_ns\": {p50}, \"p90_ns\": {p90}, \"p99_ns\": {p99}, \"max_ns\": {}}}",
        times.count(),
        times.sum_ns,
        times.max_ns
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;

    #[test]
    fn the_file_has_every_row_of_all_and_of_each_rank() {
        let mut ranks = [Snapshot::default(), Snapshot::default()];
        ranks[0].set(Row::HitGets, 3);
        ranks[1].set(Row::HitGets, 4);
        ranks[1].times[Row::WaitPage.timed_index()].sum_ns = 9;
        let text = json(&ranks, &[1]);
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&read["ranks"], &read["all"]["hit_gets"]), (&2.into(), &7.into()));
        assert_eq!((&read["by_rank"][0]["hit_gets"], &read["by_rank"][1]["hit_gets"]), (&3.into(), &4.into()));
        assert_eq!(read["by_rank"][1]["wait_page"]["sum_ns"], 9);
        assert_eq!(read["not_counted"], serde_json::json!([1]));
        assert!(ROWS.iter().all(|declared| !read["all"][declared.name].is_null()), "{text}");
        assert!(read["advice"].as_str().is_some_and(|advice| !advice.is_empty()));
    }
}
