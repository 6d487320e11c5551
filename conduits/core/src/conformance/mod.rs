//! The conformance suite: the contract of every conduit, as programs.
//!
//! All ranks of a fresh job call [`run`]. It uses the contract only. A test is skipped if and only if the conduit's
//! [`Capabilities`] lack its subject. The suite is deterministic: contents are computed from sender, receiver and size,
//! so a failure shows the same bytes every time.
//!
//! [`Capabilities`]: crate::Capabilities

mod memory;
mod messages;
mod sleeping;
mod start;
mod transfers;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::{Arrival, Conduit, EXCHANGE_BYTES_MAX, Rank, Sleeper, Token, Urgency};

/// An expected arrival counts as lost after this time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Polling interval of waiting ranks. Far below [`PATIENCE`]: only the tests of sleeping detect lost wake-ups.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The path of an example of the tested package, to run as ranks. Cargo builds it next to the test.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("tests are two below their profile");
    let path = profile.join("examples").join(name);
    assert!(path.is_file(), "{} is missing; `cargo test` of the whole package builds it", path.display());
    path
}

/// Runs the suite as one rank of a job fresh after start-up. An error names the broken rule.
pub fn run(conduit: &dyn Conduit) -> Result<(), String> {
    let mut suite = Suite { conduit, messages: Vec::new(), completions: Vec::new() };
    let tests: [(&str, Test); 11] = [
        ("ranks and hosts", start::ranks_and_hosts),
        ("exchange", start::exchange),
        ("attach", start::attach),
        ("messages of every size", messages::of_every_size),
        ("flood", messages::flood),
        ("put", transfers::put),
        ("get", transfers::get),
        ("many transfers in flight", transfers::many_in_flight),
        ("peer memory", transfers::peer_memory),
        ("second mapping", transfers::second_mapping),
        ("sleeping", sleeping::all),
    ];
    conduit.set_driving(true);
    for (name, test) in tests {
        test(&mut suite).map_err(|what| suite.blame(name, &what))?;
        suite.meet().map_err(|what| suite.blame(name, &what))?;
        suite.poll();
        if !suite.messages.is_empty() || !suite.completions.is_empty() {
            let what = format!("left over: {:?} {:?}", suite.messages, suite.completions);
            return Err(suite.blame(name, &what));
        }
        // No rank may start the next test, and send, while another still awaits arrivals of this one.
        suite.meet()?;
    }
    conduit.set_driving(false);
    Ok(())
}

type Test = fn(&mut Suite<'_>) -> Result<(), String>;

/// One rank's view of the run: the conduit, and unconsumed arrivals.
struct Suite<'a> {
    conduit: &'a dyn Conduit,
    messages: Vec<(Rank, Vec<u8>)>,
    completions: Vec<Token>,
}

impl Suite<'_> {
    fn rank(&self) -> Rank {
        self.conduit.rank()
    }

    fn ranks(&self) -> u32 {
        self.conduit.ranks()
    }

    fn all_ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.ranks()).map(Rank)
    }

    fn blame(&self, test: &str, what: &str) -> String {
        format!("{} conduit, rank {} of {}, {test}: {what}", self.conduit.name(), self.rank(), self.ranks())
    }

    /// Waits for all ranks. Their messages stay in the conduit meanwhile.
    fn meet(&self) -> Result<(), String> {
        self.conduit.exchange(&[]).map(drop).map_err(|error| error.to_string())
    }

    /// Collects arrivals. Returns whether there were any.
    fn poll(&mut self) -> bool {
        let (messages, completions) = (&mut self.messages, &mut self.completions);
        self.conduit.poll(&mut |arrival| match arrival {
            Arrival::Message { from, bytes } => messages.push((from, bytes.to_vec())),
            Arrival::Complete(token) => completions.push(token),
            Arrival::Corrupt(what) => panic!("{what}"),
        })
    }

    /// Polls and sleeps until `done` accepts the arrivals.
    fn wait(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Result<bool, String>) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            let found = self.poll();
            if done(self)? {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("{what} did not come within {PATIENCE:?}"));
            }
            if !found {
                self.conduit.sleep(Sleeper::Caller, None, Some(LOOK_AGAIN), &|| false);
            }
        }
    }

    /// Retries a call while it is refused, collecting arrivals.
    fn insist(&mut self, what: &str, start: impl Fn(&dyn Conduit) -> Result<(), crate::Busy>) -> Result<(), String> {
        let begin = Instant::now();
        while start(self.conduit).is_err() {
            if begin.elapsed() > PATIENCE {
                return Err(format!("{what}: busy for {PATIENCE:?}"));
            }
            if !self.poll() {
                self.conduit.sleep(Sleeper::Caller, None, Some(Duration::from_millis(1)), &|| false);
            }
        }
        Ok(())
    }

    fn send(&mut self, to: Rank, message: &[u8]) -> Result<(), String> {
        self.insist("send", |conduit| {
            let (head, body) = message.split_at(message.len() / 3);
            conduit.send(to, head, body, Urgency::Now)
        })
    }
}

/// `len_bytes` bytes specific to the sender, the receiver and the length.
fn pattern(from: Rank, to: Rank, len_bytes: usize) -> Vec<u8> {
    let mut state = (u64::from(from.0) << 40) ^ (u64::from(to.0) << 20) ^ len_bytes as u64;
    let mut next = || {
        // splitmix64: short, and every bit of the seed counts.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as u8
    };
    (0..len_bytes).map(|_| next()).collect()
}

/// An error unless `holds`.
fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
