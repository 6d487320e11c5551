//! Runs with pins and an outcome known in advance: operations that do not wait for a page pinned by the client.

use crate::client::{Range, What};
use crate::directed::{LINE, cost, cost_of, far_apart, settle};
use crate::job::PAGE_BYTES;
use crate::touch::Instruction;
use vgasnet_engine::request::{Completion, Copy, Part};
use vgasnet_memory::{FRAMES_MIN, Piece};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, PageId};

const FRAMES: u32 = FRAMES_MIN + 1;

#[test]
fn a_flush_leaves_a_pinned_page_for_later() {
    let mut job = far_apart(2, 2, FRAMES);
    cost_of(&mut job, |job| job.spawn(0, vec![Instruction::store(LINE)]));
    let engine = &mut job.nodes[0].engine;
    engine.add_pins(1..=1).expect("one page may be pinned");
    assert!(engine.pin_now(1, Access::Write), "it was stored to just now");
    engine.flush();
    assert!(engine.is_flushed(), "a pinned page is written back when it is unpinned");
    assert!(engine.remove_pins(1..=1));
    assert!(!engine.is_flushed());
    job.unpin_page(0, 1);
    job.rouse(0);
    settle(&mut job).expect("the disks are whole");
    assert!(job.nodes[0].engine.is_flushed());
    job.check_disks();
}

#[test]
fn a_page_waits_for_the_frame_of_one_in_use_rather_than_of_one_pinned_by_the_client() {
    let mut job = far_apart(2, FRAMES + 1, FRAMES);
    // Out of order, so that nothing is fetched ahead.
    for index in [0, 2, 4, 1, 3] {
        cost(&mut job, 0, What::Set(1), Range { start_bytes: index * PAGE_BYTES, ..LINE });
    }
    let node = &mut job.nodes[0];
    let page = |index| PageId::of_segment(Rank(0), index);
    node.engine.add_pins(0..=0).expect("one page may be pinned");
    assert!(node.engine.pin_now(0, Access::Write), "it is in the pool");
    for index in 1..FRAMES {
        let pinned = node.space.own.table.pin(page(index), Access::Read);
        node.space.own.pool.touch(pinned.expect("it is in the pool").frame);
    }
    let piece = Piece { page: page(FRAMES), offset_bytes: 0, len_bytes: 1, start_bytes: 0 };
    let completion = Completion::Counted(node.completions.begin());
    node.engine.submit(Part { piece, copy: Copy::Set(2), completion });
    assert_eq!(node.engine.pending().closing, 1, "page 0 was used the longest time ago, but may stay pinned for ever");
}
