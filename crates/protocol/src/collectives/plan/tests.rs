use super::*;
use std::collections::HashMap;

const KINDS: [CollectiveKind; 7] = [
    CollectiveKind::Broadcast,
    CollectiveKind::Scatter,
    CollectiveKind::Gather,
    CollectiveKind::GatherAll,
    CollectiveKind::Exchange,
    CollectiveKind::Reduce,
    CollectiveKind::ReduceToAll,
];

fn plan(kind: CollectiveKind, ranks: u32, me: u32, root: u32, block_bytes: usize) -> Plan {
    let shape = Shape { kind, me, ranks, root, block_bytes, element_bytes: 8 };
    Plan { shape, all_in: true, all_out: true, for_images: false }
}

fn rounds(plan: &Plan) -> impl Iterator<Item = Round> {
    (0..).map_while(|at| plan.round(at))
}

#[test]
fn what_one_rank_sends_another_receives() {
    let ranks_end = if cfg!(miri) { 3 } else { 20 };
    for (kind, ranks) in KINDS.into_iter().flat_map(|kind| (1..ranks_end).map(move |ranks| (kind, ranks))) {
        for (root, block_bytes) in [(0, 8), (ranks - 1, 8), (ranks / 2, 200_000), (0, 4 * SEGMENT_BYTES), (0, 0)] {
            let mut open = HashMap::new();
            for me in 0..ranks {
                for round in rounds(&plan(kind, ranks, me, root, block_bytes)) {
                    let sent = round.sends.iter().map(|send| ((me, send.peer, send.tag), send, 1));
                    let received = round.receives.iter().map(|receive| ((receive.peer, me, receive.tag), receive, -1));
                    for (name, transfer, side) in sent.chain(received) {
                        assert!(transfer.peer != me && transfer.peer < ranks, "{kind:?} {ranks} {name:?}");
                        let entry = open.entry(name).or_insert((transfer.len_bytes, 0));
                        assert_eq!(entry.0, transfer.len_bytes, "{kind:?} of {block_bytes} {ranks} {name:?}");
                        entry.1 += side;
                    }
                }
            }
            // Each name is used once by either side.
            assert!(open.values().all(|(_, sum)| *sum == 0), "{kind:?} of {block_bytes} among {ranks} from {root}");
        }
    }
}

#[test]
fn scratch_has_a_bound_and_is_kept_to() {
    let most = if cfg!(miri) { 8 } else { 4096 };
    for (kind, ranks) in KINDS.into_iter().flat_map(|kind| [1, 2, 7, 64, most].map(move |ranks| (kind, ranks))) {
        for block_bytes in [8, 1000, 8192, SMALL_BYTES, 1 << 20] {
            let plan = plan(kind, ranks, 0, 0, block_bytes);
            let scratch_bytes = plan.scratch_bytes();
            assert!(scratch_bytes <= SMALL_BYTES * 13, "{kind:?} of {block_bytes} among {ranks}: {scratch_bytes}");
            for round in rounds(&plan).take(40) {
                let ends = round.sends.iter().chain(&round.receives).map(|part| (part.place, part.len_bytes));
                let local = |local: &LocalStep| match *local {
                    LocalStep::Copy { from, to, len_bytes } => [(from, len_bytes), (to, len_bytes)],
                    LocalStep::Combine { into, with, len_bytes } => [(into, len_bytes), (with, len_bytes)],
                    LocalStep::Collect | LocalStep::Deliver => unreachable!("a rank is one image"),
                };
                for (place, len_bytes) in ends.chain(round.local_steps.iter().flat_map(local)) {
                    let is_inside = place.offset_bytes + len_bytes <= scratch_bytes;
                    assert!(place.buffer != Buffer::Scratch || is_inside, "{kind:?} of {block_bytes} among {ranks}");
                }
            }
        }
    }
}

#[test]
fn images_give_after_all_are_in_and_get_before_all_are_out() {
    for (kind, block_bytes) in KINDS.into_iter().flat_map(|kind| [(kind, 8), (kind, 1 << 20), (kind, 0)]) {
        let of_rank = plan(kind, 5, 2, 1, block_bytes);
        let of_images = Plan { for_images: true, ..of_rank };
        let step = |step: &LocalStep| Round { local_steps: vec![*step], ..Round::default() };
        let mut expected: Vec<Round> = rounds(&of_rank).collect();
        if block_bytes > 0 {
            let signals = |round: &Round| round.sends.iter().any(|send| send.tag >= TAG_OUT);
            let out = expected.iter().position(signals).expect("all are out");
            expected.insert(out, step(&LocalStep::Deliver));
            expected.insert(3, step(&LocalStep::Collect));
        }
        assert_eq!(rounds(&of_images).collect::<Vec<_>>(), expected, "{kind:?} of {block_bytes}");
    }
}
