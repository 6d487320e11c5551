//! A thousand ranks send requests to one rank: no request is lost, and the queue at the target is bounded.

use crate::runtimes::start;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, Builder};
use std::time::Duration;
use vgasnet::am::{Backlog, Destination, Entry, Envelope, Token, WINDOW_COST, WINDOW_REQUESTS};
use vgasnet::job::Runtime;
use vgasnet_protocol::active_message::Args;
use vgasnet_sim_conduit::Settings;

/// Fewer under AddressSanitizer, which makes everything slow.
const RANKS: usize = if cfg!(asan) { 201 } else { 1001 };
const REQUESTS: usize = 80;
const REQUEST: u8 = 200;
const REPLY: u8 = 201;

/// Payloads of the senders in rotation, in bytes. The largest ones fill a window by bytes before its count of requests.
const SIZES: [usize; 4] = [0, 100, 700, 4096];

/// A run without any progress for this long hangs. A busy machine may need minutes for all of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// One bit for each handled request of each sender.
static SEEN: [[AtomicU64; 2]; RANKS] = [const { [const { AtomicU64::new(0) }; 2] }; RANKS];
/// Requests handled by the target so far.
static HANDLED: AtomicUsize = AtomicUsize::new(0);
static REPLIES: [AtomicUsize; RANKS] = [const { AtomicUsize::new(0) }; RANKS];
/// The target, whose handlers reply.
static TARGET: std::sync::OnceLock<Runtime> = std::sync::OnceLock::new();

fn size_of_payloads(sender: usize) -> usize {
    SIZES[sender % SIZES.len()]
}

fn envelope(handler: u8, payload: &[u8], args: &[i32]) -> Envelope {
    let destination = if payload.is_empty() { Destination::Nowhere } else { Destination::Buffer };
    let args = Args::new(args).expect("they are few");
    Envelope { handler, payload: payload.as_ptr(), payload_bytes: payload.len(), destination, args }
}

/// Notes a request, and replies to every other one.
fn handle(token: *mut c_void, sender: i32, number: i32) {
    let (sender, number) = (sender as usize, number as usize);
    let bit = 1 << (number % 64);
    assert_eq!(SEEN[sender][number / 64].fetch_or(bit, Ordering::Relaxed) & bit, 0, "{sender} {number} came twice");
    HANDLED.fetch_add(1, Ordering::Relaxed);
    if number % 2 == 1 {
        // SAFETY: the token is the first argument of the handler that this thread runs, and there is no payload.
        unsafe {
            let token = Token::of_handler(token).expect("a token");
            let target = TARGET.get().expect("it runs");
            target.am().reply(token, &envelope(REPLY, &[], &[sender as i32])).expect("the one reply");
        }
    }
}

extern "C" fn on_short(token: *mut c_void, sender: i32, number: i32) {
    handle(token, sender, number);
}

extern "C" fn on_medium(token: *mut c_void, bytes: *const u8, len_bytes: usize, sender: i32, number: i32) {
    // SAFETY: the payload of the message is valid for its length while the handler runs.
    let payload = unsafe { std::slice::from_raw_parts(bytes, len_bytes) };
    assert_eq!(len_bytes, size_of_payloads(sender as usize));
    assert!(payload.iter().all(|byte| *byte == (sender + number) as u8), "{sender} {number}");
    handle(token, sender, number);
}

extern "C" fn on_reply(_token: *mut c_void, sender: i32) {
    REPLIES[sender as usize].fetch_add(1, Ordering::Relaxed);
}

/// A function in the form of the handler table.
fn erased(function: *const ()) -> Option<unsafe extern "C" fn()> {
    // SAFETY: the table keeps the function under this type, and it is called with its own type.
    Some(unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn()>(function) })
}

fn send_all(runtime: &Runtime, sender: usize) {
    let handler = if size_of_payloads(sender) == 0 { REQUEST } else { REQUEST + 2 };
    for number in 0..REQUESTS {
        let payload = vec![(sender + number) as u8; size_of_payloads(sender)];
        // SAFETY: the payload outlives the call.
        unsafe { runtime.am().request(0, &envelope(handler, &payload, &[sender as i32, number as i32])) }
            .expect("rank 0");
    }
    runtime.driver().wait_until(&|| REPLIES[sender].load(Ordering::Relaxed) == REQUESTS / 2);
}

/// The most requests of a sender that may wait at the target.
fn window(sender: usize) -> usize {
    let by_cost = (WINDOW_COST as usize).checked_div(size_of_payloads(sender)).unwrap_or(usize::MAX);
    by_cost.min(WINDOW_REQUESTS as usize)
}

/// Handles nothing until every sender has to wait, then everything. The waiting requests never exceed the windows.
fn receive_all(target: &Runtime) {
    let senders = 1..RANKS;
    let most: usize = senders.clone().map(window).sum();
    let most_bytes: usize = senders.clone().map(|sender| window(sender) * size_of_payloads(sender)).sum();
    while target.am().messages().backlog().messages < most {
        thread::sleep(Duration::from_millis(1));
    }
    let all = senders.count() * REQUESTS;
    target.driver().wait_until(&|| {
        let waiting = target.am().messages().backlog();
        assert!(waiting.messages <= most && waiting.payload_bytes <= most_bytes, "{waiting:?}");
        HANDLED.load(Ordering::Relaxed) == all
    });
}

fn play() {
    let settings = Settings {
        hosts: (0..RANKS as u32).collect(),
        peer_memory: false,
        seed: 1,
        delay_percent: 10,
        delay_polls_max: 4,
        busy_percent: 5,
    };
    let mut runtimes = start(&settings, true, 1);
    for runtime in &runtimes {
        let entry = |index, function: *const ()| Entry { index, function: erased(function) };
        let table = &mut [
            entry(REQUEST, on_short as *const ()),
            entry(REPLY, on_reply as *const ()),
            entry(REQUEST + 2, on_medium as *const ()),
        ];
        runtime.am().messages().handlers().register(table).expect("it makes sense");
    }
    let senders = runtimes.split_off(1);
    let target = TARGET.get_or_init(|| runtimes.pop().expect("rank 0"));
    thread::scope(|scope| {
        let start = |(at, runtime): (usize, &'static Runtime)| {
            let body = move || send_all(runtime, at + 1);
            Builder::new().stack_size(256 << 10).spawn_scoped(scope, body).expect("a thread is left")
        };
        let threads: Vec<_> = Box::leak(senders.into_boxed_slice()).iter().enumerate().map(start).collect();
        receive_all(target);
        // Credit and replies in flight need no call at the target.
        threads.into_iter().for_each(|thread| thread.join().expect("a sender is content"));
    });
    assert_eq!(target.am().messages().backlog(), Backlog::default());
}

/// Messages handled so far, at the target and at the senders, and those that wait.
fn progress() -> [usize; 3] {
    let replies = REPLIES.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    let waiting = TARGET.get().map_or(0, |target| target.am().messages().backlog().messages);
    [HANDLED.load(Ordering::Relaxed), replies, waiting]
}

#[test]
fn a_thousand_ranks_send_to_one() {
    let (done, watch) = channel();
    // A hanging rank would keep the test from ending, so its thread is not joined.
    let player = thread::spawn(move || {
        play();
        done.send(()).expect("the test waits");
    });
    let mut before = None;
    loop {
        match watch.recv_timeout(PATIENCE) {
            Ok(()) => break,
            Err(RecvTimeoutError::Timeout) => {
                let now = Some(progress());
                assert_ne!(now, before, "hangs: {now:?} requests handled, replies, requests that wait");
                before = now;
            }
            Err(RecvTimeoutError::Disconnected) => std::panic::resume_unwind(player.join().expect_err("it failed")),
        }
    }
}
