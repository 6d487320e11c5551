//! Peers and conduits without room: a message waiting for one of them holds up no other.

use crate::client::{Range, What};
use crate::directed::{LINE, far_apart, settle};
use crate::job::{Job, PAGE_BYTES};
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vgasnet_conduit::{Arrival, Token, Transfer, Urgency};
use vgasnet_engine::request::{Completions, Fault};
use vgasnet_engine::{Driver, TAG_ABOVE, Work};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, CoherenceBody, CoherenceMessage, ToCache};

/// Far longer than a message needs once there is room.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lets ranks 0 and 1 do all they can. Rank 2 takes no message.
fn settle_but_rank_2(job: &mut Job) {
    for _ in 0..100 {
        for rank in 0..2 {
            job.drive(rank).expect("the disks are whole");
            while job.take(rank) {}
            while !job.nodes[rank].tasks.is_empty() {
                job.go_on(rank, 0);
            }
            for at in (0..job.nodes[rank].operations.len()).rev() {
                job.advance(rank, at);
            }
        }
    }
}

/// Fills the inbox of rank 2 with a client's messages, and keeps one more at rank 0.
fn fill_rank_2(job: &mut Job) {
    let node = &mut job.nodes[0];
    while node.conduit.send(Rank(2), &[TAG_ABOVE], &[], Urgency::WhenCalled).is_ok() {}
    node.engine.keep_message(Rank(2), [TAG_ABOVE].into());
}

#[test]
fn a_peer_that_takes_nothing_holds_up_no_message_to_others() {
    let mut job = far_apart(3, 2, 2);
    fill_rank_2(&mut job);
    // Until messages of the protocol to rank 2 wait, too.
    while job.nodes[0].conduit.send(Rank(2), &[0], &[], Urgency::Now).is_ok() {}
    job.start(0, What::Get, Range { home: 2, ..LINE }, &mut Rng::with_seed(2));
    settle_but_rank_2(&mut job);
    assert_eq!(job.nodes[0].engine.pending().messages, 2);
    job.start(0, What::Get, Range { home: 1, ..LINE }, &mut Rng::with_seed(2));
    settle_but_rank_2(&mut job);
    assert_eq!(job.nodes[0].operations.len(), 1, "the get from rank 1 is done");
    assert_eq!(job.nodes[0].engine.pending().messages, 2);
}

#[test]
fn a_message_of_the_protocol_does_not_wait_behind_those_of_clients() {
    let mut job = far_apart(3, 2, 2);
    fill_rank_2(&mut job);
    let before = job.hub.traffic().messages;
    job.start(0, What::Get, Range { home: 2, ..LINE }, &mut Rng::with_seed(2));
    settle_but_rank_2(&mut job);
    assert_eq!(job.hub.traffic().messages, before + 1, "the request is on its way");
    assert_eq!(job.nodes[0].engine.pending().messages, 1, "the client's message waits");
}

#[test]
fn a_transfer_without_room_holds_up_no_other_work() {
    let mut job = far_apart(3, 2, 2);
    let engine = &mut job.nodes[0].engine;
    let (own_offset_bytes, peer_offset_bytes) = (0, 0);
    let transfer = |len_bytes, peer| Transfer { peer, peer_offset_bytes, own_offset_bytes, len_bytes, token: Token(0) };
    let is_for = |work: Option<Work>, rank| matches!(work, Some(Work::Put(transfer)) if transfer.peer == Rank(rank));
    engine.put_back(Work::Put(transfer(PAGE_BYTES, Rank(1))));
    assert!(engine.take_work().is_none() && engine.is_held_up(), "it is not tried again at once");
    assert_eq!(engine.pending().work, 1);
    engine.drive().expect("the disks are whole");
    assert!(is_for(engine.take_work(), 1) && engine.take_work().is_none() && !engine.is_held_up());
}

/// This job has no helper, so only the driving thread tries again.
#[test]
fn a_fault_whose_message_finds_no_room_wakes_the_thread_that_drives() {
    let mut job = far_apart(2, 2, 2);
    job.start(1, What::Put, Range { home: 0, ..LINE }, &mut Rng::with_seed(2));
    settle(&mut job).expect("the disks are whole");
    let (holder, node) = (job.nodes.remove(1).conduit, job.nodes.remove(0));
    while node.conduit.send(Rank(1), &[TAG_ABOVE], &[], Urgency::Now).is_ok() {}
    let driver = Driver::new(node.engine, Arc::new(Completions::default()), true, |_, error| panic!("{error}"));
    let (looks, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    // The engine keeps a pointer to a request until it is served: the request must never be freed.
    let fault: &Fault = Box::leak(Box::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            driver.wait_until(&|| {
                looks.fetch_add(1, Ordering::SeqCst);
                is_over.load(Ordering::SeqCst)
            });
        });
        // The thread looks twice before it drives, once afterwards, and once when it goes to sleep.
        while looks.load(Ordering::SeqCst) < 4 {
            thread::yield_now();
        }
        assert!(fault.begin((LINE.start_bytes / PAGE_BYTES) as u32, Access::Read, true) && !driver.fetch(fault));
        let (begin, mut has_come) = (Instant::now(), false);
        while !has_come && begin.elapsed() < PATIENCE {
            holder.poll(&mut |arrival| has_come |= is_forward(&arrival));
            thread::yield_now();
        }
        is_over.store(true, Ordering::SeqCst);
        driver.notify();
        assert!(has_come, "the message waits, and nobody tries again");
    });
}

fn is_forward(arrival: &Arrival<'_>) -> bool {
    let Arrival::Message { bytes, .. } = arrival else { return false };
    let message = CoherenceMessage::decode(bytes);
    message.is_ok_and(|message| matches!(message.body, CoherenceBody::Cache(ToCache::Forward(_))))
}
