//! The processes of `tests/hostile_start.rs`: a launcher, its ranks, and interfering processes of another user.

use std::io::{Read, Write};
use std::net::TcpStream;
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
        "supervise" => supervise_agents(argument(2), argument(3), Reach::Here),
        "supervise-hosts" => supervise_agents(argument(2), argument(3), Reach::Unknown),
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

/// Runs a job of agents, started by a shell once a FIFO has data. Agents of other hosts connect by TCP, to an address
/// strangers do not use: they would otherwise take its ports.
fn supervise_agents(ranks: &str, gate: &str, reach: Reach) {
    let own = std::env::current_exe().expect("this program has a path");
    let by_tcp = r#"export VGASNET_LAUNCHER="${VGASNET_LAUNCHER%%@*}@none@127.0.0.2:${VGASNET_LAUNCHER##*:}"; "#;
    let agents = r#"cat "$1" > /dev/null; for rank in $(seq "$2"); do "$0" agent & done; wait"#;
    let script = if reach == Reach::Here { agents.to_owned() } else { by_tcp.to_owned() + agents };
    let mut launcher = Command::new("sh");
    launcher.arg("-c").arg(script).arg(own).args([gate, ranks]);
    let (ranks, host_timeout) = (ranks.parse().expect("a number"), Duration::from_secs(30));
    let (is_dispensable, is_noise) = (false, None);
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
    if let Some(place) = name.strip_prefix("tcp:") {
        return attack_by(kind, || TcpStream::connect(place));
    }
    let address = SocketAddr::from_abstract_name(name).expect("a name");
    attack_by(kind, || UnixStream::connect_addr(&address));
}

fn attack_by<S: Read + Write>(kind: &str, connect: impl Fn() -> std::io::Result<S>) {
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
        // The beginning of a request of ranks, or of a message of agents.
        "half" => loop {
            let Ok(mut stream) = connect() else { continue };
            let _ = stream.write_all(b"vgasnet?").and_then(|()| stream.read(&mut [0; 64]));
        },
        other => panic!("no attack is called \"{other}\""),
    }
}
