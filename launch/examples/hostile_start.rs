//! The processes of `tests/hostile_start.rs`: a launcher, its ranks, and interfering processes of another user.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::Command;
use std::time::Duration;

use vgasnet_conduit::Conduit;
use vgasnet_launch::{Launch, Plan, Reach, run_agent, supervise};
use vgasnet_smp::SmpConduit;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
    match argument(1) {
        "launch" => launch(argument(2), argument(3)),
        "rank" => rank(argument(2)),
        "supervise" => supervise_agents(argument(2), argument(3)),
        "agent" => std::process::exit(run_agent(&["true".into()])),
        "attack" => attack(argument(2), argument(3)),
        other => panic!("no part is called \"{other}\""),
    }
}

/// Runs a job of `ranks` ranks, waiting for a line on a FIFO before they start.
fn launch(ranks: &str, gate: &str) {
    let own = std::env::current_exe().expect("this program has a path");
    let job = Launch::new(ranks.parse().expect("a number"), own).args(["rank", gate]);
    std::process::exit(job.time_limit(Duration::from_secs(60)).run().status);
}

/// Runs a job of agents, started by a shell once a FIFO has data.
fn supervise_agents(ranks: &str, gate: &str) {
    let own = std::env::current_exe().expect("this program has a path");
    let script = r#"cat "$1" > /dev/null; for rank in $(seq "$2"); do "$0" agent & done; wait"#;
    let mut launcher = Command::new("sh");
    launcher.args(["-c", script]).arg(own).args([gate, ranks]);
    let (ranks, host_timeout) = (ranks.parse().expect("a number"), Duration::from_secs(30));
    let (reach, is_dispensable, is_noise) = (Reach::Here, false, None);
    std::process::exit(supervise(Plan { ranks, reach, launcher, is_dispensable, host_timeout, is_noise }));
}

fn rank(gate: &str) {
    // Returns when the test opens the gate for all ranks.
    std::fs::read(gate).expect("a FIFO");
    let conduit = SmpConduit::start().expect("start");
    conduit.exchange(&[]).expect("exchange");
    conduit.exit(0);
}

/// Connects to a socket as a stranger of this kind, until it is killed.
fn attack(kind: &str, name: &str) {
    let address = SocketAddr::from_abstract_name(name).expect("a name");
    let connect = || UnixStream::connect_addr(&address);
    match kind {
        "silent" => {
            let held: Vec<_> = (0..200).map(|_| connect()).collect();
            println!("{}", held.len());
            std::thread::sleep(Duration::from_secs(60));
        }
        "flooding" => loop {
            drop(connect());
        },
        "garbage" => loop {
            let Ok(mut stream) = connect() else { continue };
            let _ = stream.write_all(&[0x5a; 4096]);
        },
        // The beginning of a request.
        "half" => loop {
            let Ok(mut stream) = connect() else { continue };
            let _ = stream.write_all(b"vgasnet?").and_then(|()| stream.read(&mut [0; 64]));
        },
        other => panic!("no attack is called \"{other}\""),
    }
}
