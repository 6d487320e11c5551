use std::time::Instant;
use vgasnet::barrier::Name;
use vgasnet::ops::{Client, Remote};
fn main() {
    let job = vgasnet::job::init().unwrap_or_else(|e| {
        eprintln!("{e:?}");
        std::process::exit(1)
    });
    let mb: usize = std::env::args().nth(1).map_or(256, |s| s.parse().unwrap());
    let size = mb << 20;
    let rt = vgasnet::job::attach(size as u64).unwrap_or_else(|e| {
        eprintln!("{e:?}");
        std::process::exit(1)
    });
    let me = job.conduit().rank().0;
    let n = job.conduit().ranks();
    let bar = || {
        rt.barrier_notify(Name::Anonymous).unwrap();
        assert!(rt.barrier_wait(Name::Anonymous).unwrap());
    };
    let chunk = 4usize << 20;
    let mut buf = vec![0u64; chunk / 8];
    let base = rt.space().segments[0].base;
    let t = Instant::now();
    for c in (0..size / chunk).filter(|c| c % n as usize == me as usize) {
        for (i, w) in buf.iter_mut().enumerate() {
            *w = (c * chunk + i) as u64;
        }
        unsafe {
            rt.transfer(
                Client::Put(buf.as_ptr().cast()),
                Remote { rank: 0, address: base + c * chunk, len_bytes: chunk },
            )
            .unwrap();
        }
    }
    bar();
    if me == 0 {
        eprintln!("write {:.2} GB/s", size as f64 / t.elapsed().as_secs_f64() / 1e9);
    }
    for round in 0..2 {
        let t = Instant::now();
        for c in 0..size / chunk {
            unsafe {
                rt.transfer(
                    Client::Get(buf.as_mut_ptr().cast()),
                    Remote { rank: 0, address: base + c * chunk, len_bytes: chunk },
                )
                .unwrap();
            }
            for i in [0, 77, chunk / 8 - 1] {
                assert_eq!(buf[i], (c * chunk + i) as u64);
            }
        }
        bar();
        if me == 0 {
            eprintln!("read {round} {:.2} GB/s", n as f64 * size as f64 / t.elapsed().as_secs_f64() / 1e9);
        }
    }
    let t = Instant::now();
    let mut x = 0u64;
    for _ in 0..1_000_000 {
        unsafe {
            rt.transfer(Client::Get((&raw mut x).cast()), Remote { rank: 0, address: base + 8, len_bytes: 8 }).unwrap();
        }
    }
    if me == 0 {
        eprintln!("8-byte hit {:.1} ns", t.elapsed().as_nanos() as f64 / 1e6);
    }
    bar();
    vgasnet::job::exit(0);
}
