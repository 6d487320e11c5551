//! Active Messages between two ranks: the round trip of a short message, and the throughput of a stream of medium ones.

use crate::Stop;
use crate::prelude::*;
use nix::sys::eventfd::EventFd;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use vgasnet::am::{Destination, Entry, Envelope, PAYLOAD_BYTES_MAX, Token};
use vgasnet::job;
use vgasnet_protocol::active_message::Args as Arguments;

/// Payload sizes of the streams.
const PAYLOADS_BYTES: [usize; 3] = [512, 8 << 10, PAYLOAD_BYTES_MAX];

/// Bytes of a stream.
const STREAM_BYTES: usize = 128 << 20;

/// Maximum number of messages in a stream.
const STREAM_MESSAGES_MAX: usize = 1 << 16;

/// Memory of the payloads. It is used round robin, so the payloads are in no cache.
const SOURCES_BYTES: usize = 64 << 20;

/// Gets of a page.
const PAGES: u32 = 16;

/// Round trips through the kernel, as a baseline.
const SWITCHES: u32 = 4096;

const SHORT: u8 = 128;
const MEDIUM: u8 = 129;
const DONE: u8 = 130;

/// Replies to this rank.
static REPLIES: AtomicU64 = AtomicU64::new(0);
/// Bytes of the payloads received by this rank.
static ARRIVED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Active Messages between two ranks: the round trip of short ones, and the throughput of medium ones
#[derive(Args, Serialize, Deserialize)]
pub struct Messages {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of round trips
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 20_000, value_parser = within(1..=10_000_000))]
    pub messages: u32,

    #[command(flatten)]
    pub judging: Judging,
}

impl Benchmark for Messages {
    const NAME: &'static str = "messages";

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        Ok(vec![Job::new(self, 2, &self.setup)?])
    }

    fn handlers() -> Vec<Entry> {
        let entry = |index, function: *const ()| {
            // SAFETY: the table keeps the function, and it is called with its real type.
            let function = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn()>(function) };
            Entry { index, function: Some(function) }
        };
        vec![
            entry(SHORT, on_short as *const ()),
            entry(MEDIUM, on_medium as *const ()),
            entry(DONE, on_done as *const ()),
        ]
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let rounds = 1 + PAYLOADS_BYTES.len() as u64;
        let bar = progress::bar(rank.is_first(), "messages", rounds * u64::from(spec.repeat));
        let mut row = Row::default().show("processors", processors());
        for _ in 0..spec.repeat {
            if let Some(seconds) = exchange(rank, || round_trips(rank, self.messages)) {
                row.add("short_round_trip_us", seconds * 1e6 / f64::from(self.messages));
                row.add("eventfd_round_trip_us", eventfd_round_trip_us());
            }
            bar.inc(1);
        }
        let sources = Memory::allocated(SOURCES_BYTES, true);
        let streams = PAYLOADS_BYTES.map(|payload_bytes| stream(rank, spec, &sources, payload_bytes, || bar.inc(1)));
        let page_get_us: Vec<f64> = (0..PAGES).map(|_| page_get_us(rank)).collect();
        let row = row.ratio("short_to_eventfd", "short_round_trip_us", "eventfd_round_trip_us");
        let row = row.keep("page_get_us_each", page_get_us);
        // Each of the two ranks needs a processor.
        let round_trip = (processors() >= 2).then_some(row.number("short_round_trip_us"));
        let largest = streams.last().map(|stream| stream.number("to_memcpy"));
        Figures::of(row.rows("streams", streams.into()))
            .target("short_round_trip_us", "round trip of a short message, us", round_trip, Bound::AtMost, 3.0)
            .target("medium_to_memcpy", "largest medium messages to memcpy", largest, Bound::AtLeast, 0.5)
    }
}

/// Successive Medium requests with payloads of one size, and `memcpy` of a payload between uncached places.
fn stream(rank: &Rank, spec: &Spec, sources: &Memory, payload_bytes: usize, step: impl Fn()) -> Row {
    let messages = (STREAM_BYTES / payload_bytes).min(STREAM_MESSAGES_MAX);
    let label = format!("payload of {}", format_size(payload_bytes as u64));
    let mut row = Row::labelled(label).keep("payload_bytes", payload_bytes);
    let mut copies = PageCopies::new(payload_bytes);
    for _ in 0..spec.repeat {
        if let Some(seconds) = exchange(rank, || send(rank, sources, payload_bytes, messages)) {
            let copy_seconds: f64 = (0..messages).map(|_| copies.run()).sum();
            row.add("seconds", seconds);
            row.add("copy_seconds", copy_seconds);
        }
        check_arrived(rank, (payload_bytes * messages) as u64);
        step();
    }
    let [own, copy] = ["seconds", "copy_seconds"].map(|name| messages as f64 / row.number(name));
    row.hide(&["seconds", "copy_seconds"])
        .show("messages_per_second", own)
        .show("bytes_per_second", payload_bytes as f64 * own)
        .show("copy_bytes_per_second", payload_bytes as f64 * copy)
        .ratio("to_memcpy", "bytes_per_second", "copy_bytes_per_second")
}

extern "C" fn on_short(token: *mut c_void) {
    reply(token);
}

extern "C" fn on_medium(token: *mut c_void, _payload: *const u8, len_bytes: usize, is_last: i32) {
    ARRIVED_BYTES.fetch_add(len_bytes as u64, Ordering::Relaxed);
    if is_last != 0 {
        reply(token);
    }
}

extern "C" fn on_done(_token: *mut c_void) {
    REPLIES.fetch_add(1, Ordering::Relaxed);
}

fn reply(token: *mut c_void) {
    let runtime = job::runtime().expect("a handler runs after attach");
    // SAFETY: it is the handler's own token, and there is no payload.
    let replied = unsafe { Token::of_handler(token).map(|token| runtime.am().reply(token, &message(DONE, &[], &[]))) };
    if let Some(Err(error)) = replied {
        fail(error.to_string());
    }
}

fn message(handler: u8, payload: &[u8], args: &[i32]) -> Envelope {
    let destination = if payload.is_empty() { Destination::Nowhere } else { Destination::Buffer };
    let args = Arguments::new(args).expect("they are few");
    Envelope { handler, payload: payload.as_ptr(), payload_bytes: payload.len(), destination, args }
}

/// Rank 0 changes its page, then rank 1 gets the page.
fn page_get_us(rank: &Rank) -> f64 {
    if rank.is_first() {
        rank.put(0, 0, &[1]);
    }
    rank.barrier();
    let mut page = Memory::allocated(rank.page_bytes, false);
    page.bytes().fill(0);
    let start = Instant::now();
    if rank.me == 1 {
        rank.get(0, 0, page.bytes());
    }
    let us = start.elapsed().as_secs_f64() * 1e6;
    f64::from_bits(rank.gather([us.to_bits(), 0, 0, 0]).get(1).map_or(0, |told| told[0]))
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Rank 0 sends and the other rank runs handlers. Returns seconds.
fn exchange(rank: &Rank, send: impl FnOnce()) -> Option<f64> {
    rank.barrier();
    let start = Instant::now();
    if rank.is_first() {
        send();
    }
    let seconds = start.elapsed().as_secs_f64();
    // Handlers run in the barrier, too.
    rank.barrier();
    rank.is_first().then_some(seconds)
}

fn round_trips(rank: &Rank, count: u32) {
    for _ in 0..count {
        let before = REPLIES.load(Ordering::Relaxed);
        request(rank, &message(SHORT, &[], &[]));
        rank.runtime.driver().wait_until(&|| REPLIES.load(Ordering::Relaxed) != before);
    }
}

fn send(rank: &Rank, sources: &Memory, payload_bytes: usize, messages: usize) {
    let before = REPLIES.load(Ordering::Relaxed);
    for number in 0..messages {
        let offset = number % (SOURCES_BYTES / payload_bytes) * payload_bytes;
        // SAFETY: the payload lies inside the memory, which is not written.
        let payload = unsafe { std::slice::from_raw_parts(sources.start().wrapping_add(offset), payload_bytes) };
        request(rank, &message(MEDIUM, payload, &[i32::from(number + 1 == messages)]));
    }
    rank.runtime.driver().wait_until(&|| REPLIES.load(Ordering::Relaxed) != before);
}

fn request(rank: &Rank, outgoing: &Envelope) {
    // SAFETY: the payload outlives the call.
    if let Err(error) = unsafe { rank.runtime.am().request(1, outgoing) } {
        fail(error.to_string());
    }
}

fn check_arrived(rank: &Rank, expected: u64) {
    if rank.me == 1 {
        let arrived = ARRIVED_BYTES.swap(0, Ordering::Relaxed);
        if arrived != expected {
            fail(format!("{arrived} bytes arrived where {expected} were sent"));
        }
    }
}

fn eventfd_round_trip_us() -> f64 {
    let bell = || Arc::new(EventFd::new().unwrap_or_else(|error| fail(format!("eventfd: {error}"))));
    let (there, back) = (bell(), bell());
    let others = (Arc::clone(&there), Arc::clone(&back));
    let (wake, sleep) = (|bell: &EventFd| bell.write(1).is_ok(), |bell: &EventFd| bell.read().is_ok());
    let other = thread::spawn(move || (0..SWITCHES).all(|_| sleep(&others.0) && wake(&others.1)));
    let start = Instant::now();
    let is_done = (0..SWITCHES).all(|_| wake(&there) && sleep(&back));
    let microseconds = start.elapsed().as_secs_f64() * 1e6 / f64::from(SWITCHES);
    if !is_done || !other.join().is_ok_and(|is_done| is_done) {
        fail("eventfds cannot be read and written");
    }
    microseconds
}
