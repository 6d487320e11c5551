//! Peers and conduits without room: what waits for one holds up nothing else.

use crate::client::{Range, What};
use crate::directed::{LINE, far_apart};
use crate::job::{Job, PAGE_BYTES};
use fastrand::Rng;
use vgasnet::engine::{TAG_ABOVE, Work};
use vgasnet_conduit::{Token, Transfer, Urgency};
use vgasnet_protocol::Rank;

/// Lets ranks 0 and 1 do all they can; rank 2 takes nothing.
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
    // Until messages of the protocol for it wait, too.
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
