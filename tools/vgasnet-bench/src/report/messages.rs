//! Results of `messages`.

use super::{Judge, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::messages::{Found, Stream};
use crate::plan::Job;
use crate::targets::judge_messages;
use serde::Serialize;

/// A job of `messages`.
#[derive(Serialize)]
pub struct MessagesRun {
    #[serde(flatten)]
    pub setting: Setting,
    processors: usize,
    pub short_round_trip_us: f64,
    pub eventfd_round_trip_us: f64,
    pub streams: Vec<Throughput>,
    #[serde(flatten)]
    verdict: Verdict,
    short_round_trip_us_each: Vec<f64>,
}

/// The throughput of a stream.
#[derive(Serialize)]
pub struct Throughput {
    pub payload_bytes: usize,
    pub bytes_per_second: f64,
    messages_per_second: f64,
    pub copy_bytes_per_second: f64,
    pub to_memcpy: f64,
    seconds_each: Vec<f64>,
}

impl Throughput {
    fn new(stream: Stream) -> Throughput {
        let seconds = median(&stream.seconds_each);
        let bytes_per_second = (stream.payload_bytes * stream.messages) as f64 / seconds;
        let copy_bytes_per_second = stream.payload_bytes as f64 / median(&stream.copy_payload_seconds_each);
        Throughput {
            payload_bytes: stream.payload_bytes,
            bytes_per_second,
            messages_per_second: stream.messages as f64 / seconds,
            copy_bytes_per_second,
            to_memcpy: bytes_per_second / copy_bytes_per_second,
            seconds_each: stream.seconds_each,
        }
    }
}

impl MessagesRun {
    pub fn new(job: &Job, found: Found) -> MessagesRun {
        let short_round_trip_us = median(&found.short_round_trip_us_each);
        let streams: Vec<_> = found.streams.into_iter().map(Throughput::new).collect();
        MessagesRun {
            setting: Setting::new(job),
            processors: found.processors,
            short_round_trip_us,
            eventfd_round_trip_us: median(&found.eventfd_round_trip_us_each),
            verdict: Verdict::new(judge_messages(found.processors, short_round_trip_us, &streams), true),
            streams,
            short_round_trip_us_each: found.short_round_trip_us_each,
        }
    }
}

impl Judge for MessagesRun {
    fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{SETTING_HEAD}\n{}\n  round trip of a short message {:.2} us; of two threads through eventfds {:.2} us; {} \
             processors\n",
            self.setting.columns(),
            self.short_round_trip_us,
            self.eventfd_round_trip_us,
            self.processors
        );
        text += &format!("  {:>8} {:>10} {:>8} {:>10} {:>10}\n", "payload", "messages/s", "GB/s", "memcpy", "ratio");
        for stream in &self.streams {
            text += &format!(
                "  {:>8} {:>10.0} {:>8.2} {:>10.2} {:>10.2}\n",
                stream.payload_bytes,
                stream.messages_per_second,
                stream.bytes_per_second / 1e9,
                stream.copy_bytes_per_second / 1e9,
                stream.to_memcpy,
            );
        }
        text
    }
}
