use super::*;

const EACH: usize = 2;

fn slots(own: usize) -> Slots {
    Slots::new(std::ptr::null_mut(), 5 * BLOCK_BYTES, own, EACH)
}

fn take(slots: &mut Slots, block: Block) -> usize {
    loop {
        if let Step::Takes(at) = slots.step() {
            slots.give(at, block, SlotState::Wanted);
            return at;
        }
    }
}

/// Reads the block of a slot and ends the job.
fn end(slots: &mut Slots, at: usize) -> bool {
    slots.change(at, SlotState::Wanted, SlotState::Clean);
    slots.end_use(at);
    slots.note_idle(at)
}

#[test]
fn a_slot_is_idle_when_its_block_is_clean_and_unused() {
    let mut slots = slots(2);
    let at = take(&mut slots, 70);
    slots.wait_for(at, 9);
    assert_eq!((slots.find(70), slots.idle(), slots.has_bytes(at)), (Some(at), 1, false));
    assert_eq!(slots.change(at, SlotState::Wanted, SlotState::Clean), [9]);
    slots.end_use(at);
    assert!(!slots.note_idle(at) && slots.is_idle(at) && slots.idle() == 2);
    slots.begin_use(at);
    slots.dirty(at, Some(4));
    slots.end_use(at);
    assert!(!slots.note_idle(at) && !slots.is_idle(at) && slots.mark(at) == 4);
    slots.begin_write(at);
    slots.change(at, SlotState::Writing, SlotState::Clean);
    slots.note_idle(at);
    slots.forget(at);
    assert!(slots.is_empty() && slots.idle() == 2 && slots.state(at) == SlotState::Free);
}

#[test]
fn a_failed_block_goes_with_its_last_user() {
    let mut slots = slots(2);
    let at = take(&mut slots, 70);
    slots.begin_use(at);
    slots.change(at, SlotState::Wanted, SlotState::Failed);
    slots.end_use(at);
    assert!(!slots.note_idle(at) && slots.find(70) == Some(at));
    slots.end_use(at);
    slots.note_idle(at);
    assert_eq!((slots.find(70), slots.idle()), (None, 2));
}

#[test]
fn the_hand_spares_a_used_block_once() {
    let mut slots = slots(2);
    for block in [70, 71] {
        let at = take(&mut slots, block);
        end(&mut slots, at);
    }
    slots.renew_chances();
    assert_eq!([slots.step(), slots.step(), slots.step()], [Step::Spares(0), Step::Spares(1), Step::Takes(0)]);
    slots.note_use(1);
    slots.give(0, 72, SlotState::Clean);
    assert_eq!((slots.step(), slots.step()), (Step::Spares(1), Step::Takes(1)));
    assert_eq!(slots.among(0..99).collect::<Vec<_>>(), [(71, 1), (72, 0)]);
}

#[test]
fn a_frame_leaves_when_its_slots_are_idle() {
    let mut slots = slots(1);
    slots.add_frame(FrameId(3));
    assert_eq!((slots.here(), slots.idle(), slots.frames()), (3, 3, 1));
    assert_eq!([0, 1, 2].map(|at| slots.offset_bytes(at) / BLOCK_BYTES), [5, 6, 7]);
    let ats = [70, 71, 72].map(|block| take(&mut slots, block));
    let leaving = slots.begin_leaving();
    assert_eq!((leaving, slots.begin_leaving(), slots.leaving()), (1..3, 0..0, EACH));
    assert_eq!([slots.next_leaving(), slots.next_leaving(), slots.next_leaving()], [Some(1), Some(2), Some(1)]);
    for at in ats {
        assert_eq!(end(&mut slots, at), at > 0, "only slots of the frame leave");
        if at > 0 {
            assert!(slots.take_returned().is_none());
            slots.vacate(at);
        }
    }
    assert_eq!((slots.take_returned(), slots.here(), slots.idle(), slots.frames()), (Some(FrameId(3)), 1, 1, 0));
    assert_eq!((slots.find(70), slots.find(71), slots.leaving()), (Some(0), None, 0));
    slots.add_frame(FrameId(4));
    assert_eq!((slots.len(), slots.here()), (3, 3), "it takes the place of the one that left");
}
