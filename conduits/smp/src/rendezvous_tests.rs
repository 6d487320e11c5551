//! The rendezvous with ranks as threads of this process.

use super::*;
use crate::handshake::ADDRESS_BYTES;
use crate::joining::{Refusal, ask, ask_within, entrust};
use crate::visitor::SILENCE;
use std::io::{Read, Write};

/// Connects as an unidentified process.
fn visit(rendezvous: &Rendezvous) -> UnixStream {
    UnixStream::connect_addr(&rendezvous.address.socket().expect("a name")).expect("a socket")
}

/// Serves until `ranks` have joined, and then closes the socket. Each must be this process, known before it joins.
fn serve(mut rendezvous: Rendezvous, count: usize) -> Vec<Visit> {
    let (mut joined, mut known) = (Vec::new(), Vec::new());
    while joined.len() < count {
        let _ = poll(&mut [PollFd::new(rendezvous.as_fd(), PollFlags::POLLIN)], PollTimeout::from(1000_u16));
        let adopt = &mut |rank, pid| {
            known.push((rank, pid));
            Ok(())
        };
        joined.extend(rendezvous.serve(adopt).expect("room for a descriptor"));
    }
    for visit in &joined {
        let Visit::Joined { rank } = visit else { panic!("{visit:?} is no rank") };
        assert!(known.contains(&(*rank, std::process::id())), "{visit:?}: {known:?}");
    }
    joined
}

/// Serves until this visitor is finished.
fn serve_until_closed(rendezvous: &mut Rendezvous, visitor: &mut UnixStream) -> Vec<u8> {
    visitor.set_nonblocking(true).expect("a socket");
    let (mut said, late) = (Vec::new(), Instant::now() + Duration::from_secs(20));
    while visitor.read_to_end(&mut said).is_err() {
        assert!(Instant::now() < late, "it stays open");
        rendezvous.sleep_until(late);
        assert_eq!(rendezvous.serve(&mut |_, _| Ok(())).expect("no error"), []);
    }
    said
}

/// A rank the first party cannot watch would outlive the job.
#[test]
fn a_rank_that_is_not_adopted_gets_nothing() {
    let mut rendezvous = Rendezvous::open(2).expect("a small job");
    let address = rendezvous.address().to_owned();
    let rank = std::thread::spawn(move || ask(address.as_bytes(), 1, 2).map(drop));
    let late = Instant::now() + Duration::from_secs(20);
    let refused = loop {
        rendezvous.sleep_until(late);
        match rendezvous.serve(&mut |_, _| Err(ErrorKind::OutOfMemory.into())) {
            Ok(visits) => assert!(visits.is_empty() && Instant::now() < late, "{visits:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::OutOfMemory);
    drop(rendezvous);
    assert!(matches!(rank.join().expect("a thread"), Err(Refusal::Misled(_))));
}

#[test]
fn a_rank_gets_everything_once() {
    let rendezvous = Rendezvous::open(200).expect("a small job");
    let address = rendezvous.address().to_owned();
    assert_eq!(address.len(), ADDRESS_BYTES);
    let server = std::thread::spawn(move || serve(rendezvous, 2));
    let ask = |rank, ranks| ask(address.as_bytes(), rank, ranks).map(|(objects, _)| objects.doorbells.len());
    assert_eq!(ask(3, 200), Ok(400));
    assert_eq!(ask(3, 200), Err(Refusal::Misled("this process is a rank already".to_owned())));
    for (rank, ranks) in [(200, 200), (200, 201), (0, 4)] {
        let why = format!("rank {rank} of {ranks} does not exist in this job of 200 ranks");
        assert_eq!(ask(rank, ranks), Err(Refusal::Misled(why)));
    }
    assert_eq!(ask(199, 200), Ok(400));
    assert_eq!(server.join().expect("a thread"), [3, 199].map(|rank| Visit::Joined { rank }));
    let why = ask(0, 200).expect_err("the job is over").to_string();
    assert!(why.starts_with("nobody answers at the socket: ") && !why.contains('\n'), "{why}");
}

#[test]
fn an_entrusted_file_is_emptied_at_the_end() {
    let mut rendezvous = Rendezvous::open(2).expect("a small job");
    let file = nix::sys::memfd::memfd_create(c"file", nix::sys::memfd::MFdFlags::empty()).expect("a file");
    ftruncate(&file, 4096).expect("room");
    entrust(rendezvous.address(), 1, 2, file.as_fd()).expect("a socket");
    assert_eq!(rendezvous.serve(&mut |_, _| Ok(())).expect("no error"), [Visit::Entrusted]);
    assert_eq!(rendezvous.state(1), RankState::Fresh);
    let len_bytes = || nix::sys::stat::fstat(&file).expect("a file").st_size;
    assert_eq!(len_bytes(), 4096);
    rendezvous.give_space_back();
    assert_eq!(len_bytes(), 0);
}

#[test]
fn another_process_is_named_and_nonsense_is_not_answered() {
    let mut rendezvous = Rendezvous::open(2).expect("a small job");
    let key = rendezvous.address.keys()[0];
    let taken = Request { pid: u32::MAX, ..Request::new(1, 2, key) };
    assert_eq!(rendezvous.grant(taken), Ok(()));
    assert_eq!(rendezvous.state(1), RankState::Initialised);
    let (mut violation, mut silent) = (visit(&rendezvous), visit(&rendezvous));
    violation.write_all(b"GET /").expect("room");
    assert_eq!(serve_until_closed(&mut rendezvous, &mut violation), []);
    silent.write_all(Request { pid: 7, ..taken }.as_bytes()).expect("room");
    let why = String::from_utf8(serve_until_closed(&mut rendezvous, &mut silent)).expect("text");
    assert_eq!(why, format!("process {} is rank 1 already", u32::MAX));
}

#[test]
fn a_rank_of_another_version_gets_a_line() {
    let mut rendezvous = Rendezvous::open(2).expect("a small job");
    let own = Request::new(1, 2, rendezvous.address.keys()[0]);
    let other = Request { version: own.version ^ 1, ..own };
    // The layout of another version may differ after its first fields.
    for bytes in [other.as_bytes(), &other.as_bytes()[..20], &[other.as_bytes(), &[7; 30]].concat()] {
        let mut stream = visit(&rendezvous);
        stream.write_all(bytes).expect("room");
        assert_eq!(serve_until_closed(&mut rendezvous, &mut stream), OTHER_VERSION.as_bytes());
    }
    assert_eq!(rendezvous.state(1), RankState::Fresh);
}

#[test]
fn a_launcher_that_answers_otherwise_is_told() {
    let address = Address::random().expect("random numbers");
    let listener = UnixListener::bind_addr(&address.socket().expect("a name")).expect("a socket");
    for (said, expected) in [
        (OTHER_VERSION.as_bytes(), OTHER_VERSION),
        (&[GRANTED][..], "somebody else answers at the socket"),
        (&[][..], "no shared memory came through the socket: "),
    ] {
        let text = address.text.clone();
        let asked = std::thread::spawn(move || ask(text.as_bytes(), 0, 2).map(drop));
        let (mut stream, _) = listener.accept().expect("a rank");
        stream.read_exact(&mut [0; size_of::<Request>()]).expect("a request");
        stream.write_all(said).expect("somebody listens");
        drop(stream);
        let why = asked.join().expect("no panic").expect_err("no job").to_string();
        assert!(why.starts_with(expected), "{why}");
    }
}

/// A first party that is stopped: at first its socket has room for a rank, then none.
#[test]
fn a_rank_that_waits_in_vain_says_for_what() {
    let address = Address::random().expect("random numbers");
    let listener = UnixListener::bind_addr(&address.socket().expect("a name")).expect("a socket");
    // Room for one.
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).expect("small")).expect("a listener");
    let ask = || ask_within(Duration::from_secs(1), address.text.as_bytes(), 0, 2).map(drop).expect_err("no job");
    let begin = Instant::now();
    let (pid, why) = (std::process::id(), ask());
    let vain = format!(
        "waited 1 s in vain for its shared memory from vgasnetrun or the first rank of this host, pid {pid}; see whether \
         that process is stopped"
    );
    assert_eq!(why, Refusal::Late(vain));
    assert!(begin.elapsed() >= Duration::from_secs(1));
    // The first rank's connection still waits to be accepted.
    assert_eq!(ask(), Refusal::Late("its socket had no room for this rank within 1 s".to_owned()));
}

/// A silent visitor, one with half a request, and a rank stopped before taking its descriptors delay no rank.
#[test]
fn visitors_are_served_side_by_side() {
    let mut rendezvous = Rendezvous::open(4).expect("a small job");
    let key = rendezvous.address.keys()[0];
    let (mut silent, mut stopped) = (visit(&rendezvous), visit(&rendezvous));
    stopped.write_all(Request::new(1, 4, key).as_bytes()).expect("room");
    let begin = Instant::now();
    assert_eq!(rendezvous.serve(&mut |_, _| Ok(())).expect("no error"), []);
    assert_eq!(rendezvous.state(1), RankState::Initialised);
    let address = rendezvous.address().to_owned();
    let ranks = [0, 2].map(|rank| {
        let address = address.clone();
        std::thread::spawn(move || ask(address.as_bytes(), rank, 4).map(drop))
    });
    let mut joined = 0;
    while joined < 2 {
        rendezvous.sleep_until(begin + SILENCE);
        joined += rendezvous.serve(&mut |_, _| Ok(())).expect("no error").len();
        assert!(begin.elapsed() < SILENCE, "{joined} have joined");
    }
    assert!(ranks.into_iter().all(|rank| rank.join().expect("no panic") == Ok(())));
    assert_eq!(serve_until_closed(&mut rendezvous, &mut silent), []);
    assert!(begin.elapsed() >= SILENCE);
    assert_eq!(rendezvous.deadline(), None);
    let missing = rendezvous.name_missing(&[1, 3]);
    let named = format!("1 (pid {}, stopped?), 3", std::process::id());
    assert!(missing.contains(&named) && missing.contains("60 s"), "{missing}");
    stopped.write_all(&[GRANTED]).expect("it is still open");
    let visits = rendezvous.serve(&mut |_, _| Ok(())).expect("no error");
    assert_eq!(visits, [Visit::Joined { rank: 1 }]);
}

/// With any number of silent visitors, others wait in the queue of the socket, and descriptors do not run out.
#[test]
fn silent_visitors_are_bounded() {
    let mut rendezvous = Rendezvous::open(2).expect("a small job");
    let (address, socket) = (rendezvous.address().to_owned(), rendezvous.address.socket().expect("a name"));
    // More than the queue holds: they connect while the others are served.
    let silent = std::thread::spawn(move || -> Vec<UnixStream> {
        (0..100).map(|_| UnixStream::connect_addr(&socket).expect("a socket")).collect()
    });
    let rank = std::thread::spawn(move || ask(address.as_bytes(), 1, 2).map(drop));
    let begin = Instant::now();
    let mut visits = Vec::new();
    while visits.is_empty() || !silent.is_finished() {
        rendezvous.sleep_until(Instant::now() + SILENCE / 10);
        visits.extend(rendezvous.serve(&mut |_, _| Ok(())).expect("no error"));
        assert!(rendezvous.unknown() <= UNKNOWN_MAX && begin.elapsed() < 5 * SILENCE);
    }
    assert_eq!(visits, [Visit::Joined { rank: 1 }]);
    assert_eq!(rank.join().expect("no panic"), Ok(()));
    silent.join().expect("all have connected");
}

#[test]
fn a_rank_that_stood_still_comes_again() {
    let address = Address::random().expect("random numbers");
    let listener = UnixListener::bind_addr(&address.socket().expect("a name")).expect("a socket");
    let text = address.text.clone();
    let asked = std::thread::spawn(move || ask(text.as_bytes(), 0, 2).map(drop));
    let (first, _) = listener.accept().expect("a rank");
    std::thread::sleep(SILENCE);
    drop(first);
    let (mut second, _) = listener.accept().expect("the rank again");
    second.read_exact(&mut [0; size_of::<Request>()]).expect("a request");
    second.write_all(OTHER_VERSION.as_bytes()).expect("somebody listens");
    drop(second);
    assert_eq!(asked.join().expect("no panic"), Err(Refusal::Misled(OTHER_VERSION.to_owned())));
}

/// Requests, valid and altered: each gets a rank, a line or nothing, and no rank is taken without the key.
#[test]
fn requests_may_be_anything() {
    vgasnet_fuzzing::run("-p vgasnet-smp --lib requests_may_be", 20_000, |random| {
        let mut rendezvous = Rendezvous::open(3).expect("a small job");
        let key = rendezvous.address.keys()[0];
        const REQUESTS: u64 = 1000;
        for _ in 0..REQUESTS {
            let rank = if random.bool() { random.u32(0..4) } else { vgasnet_fuzzing::odd_number(random) as u32 };
            let mut bytes = Request { pid: random.u32(1..4), ..Request::new(rank, 3, key) }.as_bytes().to_vec();
            if random.u32(0..4) > 0 {
                vgasnet_fuzzing::mutate(random, &mut bytes);
            }
            let (near, mut far) = UnixStream::pair().expect("sockets");
            bytes.truncate(REQUEST_BYTES_MAX);
            far.write_all(if bytes.is_empty() { &[0] } else { &bytes }).expect("room");
            if let Ok(Some(rank)) = rendezvous.answer(&near) {
                assert!(rank < 3 && bytes.windows(key.len()).any(|half| half == key));
            }
            drop(near);
            let mut line = String::new();
            let _ = far.read_to_string(&mut line);
            assert!(!line.contains('\n'));
        }
        REQUESTS
    });
}

/// The variable of a job, and the address in it.
#[test]
fn variables_may_be_anything() {
    vgasnet_fuzzing::run("-p vgasnet-smp --lib variables_may_be", 200_000, |random| {
        let address = format!("vgasnet-{:032x}-{:032x}", random.u128(..), random.u128(..));
        let words = ["rank=", "ranks=", "socket=", "1", "4", ",", &address];
        let text = vgasnet_fuzzing::text(random, &words);
        if let Ok(variable) = JobVariable::parse(&text) {
            assert!(variable.rank < variable.ranks && variable.ranks <= crate::RANKS_MAX);
            assert_eq!(JobVariable::parse(&variable.to_string()), Ok(variable.clone()));
        }
        let mut bytes = address.into_bytes();
        vgasnet_fuzzing::mutate(random, &mut bytes);
        if let Ok(address) = Address::parse(&bytes) {
            let _ = (address.keys(), address.socket());
        }
        1
    });
}
