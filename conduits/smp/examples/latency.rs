//! The time of a small message between two ranks that sleep in the kernel, against a byte through two pipes between two
//! processes: the least that two sleepers need.

use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vgasnet_conduit::{Arrival, Conduit, Rank, Seat, Urgency};
use vgasnet_launch::Launch;
use vgasnet_smp::{JOB_VARIABLE, SmpConduit};

const ROUNDS: u32 = 50_000;

fn main() {
    let program = std::env::current_exe().expect("this program has a path");
    if std::env::args().nth(1).as_deref() == Some("echo") {
        return echo();
    }
    if std::env::var_os(JOB_VARIABLE).is_none() {
        std::process::exit(Launch::new(2, program).time_limit(Duration::from_secs(120)).run().status);
    }
    let conduit = SmpConduit::start().expect("start");
    conduit.occupy(true);
    conduit.exchange(&[]).expect("exchange");
    let message = messages_round_trip(&conduit);
    conduit.exchange(&[]).expect("exchange");
    if conduit.rank() == Rank(0) {
        let pipe = pipes_round_trip(&program);
        let ratio = message.as_secs_f64() / pipe.as_secs_f64();
        println!("round trip of 32 bytes {message:?}, of a byte through pipes {pipe:?}, ratio {ratio:.2}");
        println!("send and poll alone, to the own rank: {:?}", own_message(&conduit));
    }
    conduit.exchange(&[]).expect("exchange");
}

fn messages_round_trip(conduit: &SmpConduit) -> Duration {
    let peer = Rank(1 - conduit.rank().0);
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        if conduit.rank() == Rank(0) {
            conduit.send(peer, &[1; 32], &[], Urgency::Now).expect("the inbox is empty");
            receive(conduit);
        } else {
            receive(conduit);
            conduit.send(peer, &[1; 32], &[], Urgency::Now).expect("the inbox is empty");
        }
    }
    begin.elapsed() / ROUNDS
}

fn receive(conduit: &SmpConduit) {
    let mut arrived = false;
    while !arrived {
        let found = conduit.poll(&mut |arrival| arrived |= matches!(arrival, Arrival::Message { .. }));
        if !found {
            conduit.sleep(Seat::Caller, None, None, &|| false);
        }
    }
}

fn own_message(conduit: &SmpConduit) -> Duration {
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        conduit.send(conduit.rank(), black_box(&[1; 32]), &[], Urgency::Now).expect("the inbox is empty");
        receive(conduit);
    }
    begin.elapsed() / ROUNDS
}

fn pipes_round_trip(program: &std::path::Path) -> Duration {
    let mut command = Command::new(program);
    command.arg("echo").env_remove(JOB_VARIABLE).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("echo");
    let (mut to, mut from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        to.write_all(&[1]).expect("echo reads");
        from.read_exact(&mut [0]).expect("echo writes");
    }
    let round_trip = begin.elapsed() / ROUNDS;
    drop(to);
    child.wait().expect("echo ends with its input");
    round_trip
}

fn echo() {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut byte = [0];
    while input.read_exact(&mut byte).is_ok() {
        output.write_all(&byte).and_then(|()| output.flush()).expect("the parent reads");
    }
}
