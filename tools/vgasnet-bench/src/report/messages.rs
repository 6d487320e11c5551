//! Results of `messages`.

use super::{Figures, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::messages::{Found, Stream};
use crate::plan::Job;
use crate::targets::judge_messages;
use serde::Serialize;

#[derive(Serialize)]
pub struct MessageFigures {
    processors: usize,
    pub short_round_trip_us: f64,
    pub eventfd_round_trip_us: f64,
    pub streams: Vec<Throughput>,
    pub short_round_trip_us_each: Vec<f64>,
    pub page_get_us_each: Vec<f64>,
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

impl MessageFigures {
    pub fn new(_job: &Job, found: Found) -> MessageFigures {
        MessageFigures {
            processors: found.processors,
            short_round_trip_us: median(&found.short_round_trip_us_each),
            eventfd_round_trip_us: median(&found.eventfd_round_trip_us_each),
            streams: found.streams.into_iter().map(Throughput::new).collect(),
            short_round_trip_us_each: found.short_round_trip_us_each,
            page_get_us_each: found.page_get_us_each,
        }
    }
}

impl Figures for MessageFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_messages(self.processors, self.short_round_trip_us, &self.streams), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let mut text = format!(
            "{SETTING_HEAD}\n{}\n  round trip of a short message {:.2} us; of two threads through eventfds {:.2} us; {} \
             processors\n",
            setting.columns(),
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
