//! The rendezvous of ranks that are threads of this process.

use super::*;

/// Serves until `ranks` have joined, and then closes the socket.
fn serve(mut rendezvous: Rendezvous, count: usize) -> Vec<Visit> {
    let mut joined = Vec::new();
    while joined.len() < count {
        let _ = poll(&mut [PollFd::new(rendezvous.as_fd(), PollFlags::POLLIN)], PollTimeout::from(1000_u16));
        joined.extend(rendezvous.serve().expect("room for a descriptor"));
    }
    joined
}

#[test]
fn a_rank_gets_everything_once() {
    let rendezvous = Rendezvous::open(200).expect("a small job");
    let (address, own) = (rendezvous.address().to_owned(), std::process::id());
    assert_eq!(address.len(), ADDRESS_BYTES);
    let server = std::thread::spawn(move || serve(rendezvous, 2));
    let ask = |rank, ranks| ask(address.as_bytes(), rank, ranks).map(|objects| objects.doorbells.len());
    assert_eq!(ask(3, 200), Ok(400));
    assert_eq!(ask(3, 200), Err("this process is a rank already".to_owned()));
    for (rank, ranks) in [(200, 200), (200, 201), (0, 4)] {
        let why = format!("rank {rank} of {ranks} does not exist in this job of 200 ranks");
        assert_eq!(ask(rank, ranks), Err(why));
    }
    assert_eq!(ask(199, 200), Ok(400));
    assert_eq!(server.join().expect("a thread"), [3, 199].map(|rank| Visit::Joined { rank, pid: own }));
    let why = ask(0, 200).expect_err("the job is over");
    assert!(why.starts_with("nobody answers at the socket: ") && !why.contains('\n'), "{why}");
}

#[test]
fn an_entrusted_file_is_emptied_at_the_end() {
    let mut rendezvous = Rendezvous::open(2).expect("a small job");
    let file = nix::sys::memfd::memfd_create(c"file", nix::sys::memfd::MFdFlags::empty()).expect("a file");
    ftruncate(&file, 4096).expect("room");
    entrust(rendezvous.address(), 1, 2, file.as_fd()).expect("a socket");
    assert_eq!(rendezvous.serve().expect("no error"), Some(Visit::Entrusted));
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
    let address = rendezvous.address.socket().expect("a name");
    let mut nonsense = UnixStream::connect_addr(&address).expect("a socket");
    nonsense.write_all(b"GET /").expect("room");
    let mut silent = UnixStream::connect_addr(&address).expect("a socket");
    assert_eq!(rendezvous.serve().expect("no error"), None);
    assert_eq!(nonsense.read(&mut [0]).expect("the end"), 0);
    silent.write_all(Request { pid: 7, ..taken }.as_bytes()).expect("room");
    assert_eq!(rendezvous.serve().expect("no error"), None);
    let mut why = String::new();
    silent.read_to_string(&mut why).expect("text");
    assert_eq!(why, format!("process {} is rank 1 already", u32::MAX));
}

#[test]
fn a_rank_of_another_version_gets_a_line() {
    let mut rendezvous = Rendezvous::open(2).expect("a small job");
    let address = rendezvous.address.socket().expect("a name");
    let own = Request::new(1, 2, rendezvous.address.keys()[0]);
    let other = Request { version: own.version ^ 1, ..own };
    // The layout of another version may differ behind its first fields.
    for bytes in [other.as_bytes(), &other.as_bytes()[..20], &[other.as_bytes(), &[7; 30]].concat()] {
        let mut stream = UnixStream::connect_addr(&address).expect("a socket");
        stream.write_all(bytes).expect("room");
        assert_eq!(rendezvous.serve().expect("no error"), None);
        let mut why = String::new();
        stream.read_to_string(&mut why).expect("text");
        assert_eq!(why, OTHER_VERSION);
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
        let why = asked.join().expect("no panic").expect_err("no job");
        assert!(why.starts_with(expected), "{why}");
    }
}

/// Requests, true and changed: each gets a rank, a line or nothing, and no rank is taken without the key.
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
            let (mut near, mut far) = UnixStream::pair().expect("sockets");
            bytes.truncate(REQUEST_BYTES_MAX);
            far.write_all(if bytes.is_empty() { &[0] } else { &bytes }).expect("room");
            if let Ok(Some(rank)) = rendezvous.answer(&mut near) {
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
