use super::*;

const LARGE: usize = 4 << 20;

fn page(index: u32) -> PageId {
    PageId::of_segment(Rank(0), index)
}

fn meters(page_bytes: usize, frames: u32) -> Meters {
    Meters::new(Rank(0), page_bytes, frames, REQUEST_BYTES)
}

fn get(offset_bytes: u32, len_bytes: u32) -> SmallOperation {
    SmallOperation { offset_bytes, len_bytes, is_put: false, is_at_hand: false, is_fill: false }
}

/// Pseudorandom numbers.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn a_page_costs_at_most_twice_the_optimum_however_often_it_is_used() {
    for (seed, page_bytes) in [(1, 64 << 10), (2, 256 << 10), (3, 1 << 20), (4, LARGE), (5, 64 << 20)] {
        let mut state = seed;
        for uses in [1, 2, 3, 10, 40, 45, 90, 1000] {
            let mut meters = meters(page_bytes, 16);
            let (mut paid, mut shipping) = (0, 0);
            let move_bytes = REQUEST_BYTES + page_bytes as u64;
            for _ in 0..uses {
                let operation = get((draw(&mut state) % 4000 * 8) as u32, 8);
                let cost = REQUEST_BYTES + 8;
                shipping += cost;
                match meters.choose(page(0), &operation, true) {
                    Choice::Ship => paid += cost,
                    Choice::Move => {
                        paid += move_bytes;
                        break;
                    }
                }
            }
            shipping = if uses == 1000 { move_bytes } else { shipping };
            let optimum = shipping.min(move_bytes);
            assert!(paid <= 2 * optimum, "{uses} uses of pages of {page_bytes}: {paid}, {optimum} at best");
        }
    }
}

#[test]
fn however_many_pages_there_are_room_for_them_costs_at_most_twice_the_moves() {
    for (page_bytes, frames) in [(LARGE, 512), (LARGE, 16_384), (256 << 10, 4_096), (128 << 10, 20_000)] {
        let (mut meters, mut state) = (meters(page_bytes, frames), 11);
        let (mut paid, mut here) = (0, vec![false; frames as usize]);
        let move_bytes = REQUEST_BYTES + page_bytes as u64;
        let mut left = frames;
        while left > 0 {
            let index = (draw(&mut state) % u64::from(frames)) as usize;
            if here[index] {
                continue;
            }
            let operation = get((draw(&mut state) % (page_bytes as u64 / 8) * 8) as u32, 8);
            here[index] = meters.choose(page(index as u32), &operation, true) == Choice::Move;
            left -= u32::from(here[index]);
            paid += if here[index] { move_bytes } else { REQUEST_BYTES + 8 };
        }
        let moves = move_bytes * u64::from(frames);
        assert!(paid * 10 <= 21 * moves, "{frames} pages of {page_bytes}: {paid}, {moves} at best");
    }
}

#[test]
fn of_pages_that_are_used_alike_none_goes_to_a_full_pool_and_a_hot_one_does() {
    let frames = 8;
    let mut meters = meters(LARGE, frames);
    let mut state = 7;
    for _ in 0..20_000 {
        let operation = get((draw(&mut state) % 500_000 * 8) as u32, 8);
        let any = page((draw(&mut state) % u64::from(8 * frames)) as u32);
        assert_eq!(meters.choose(any, &operation, false), Choice::Ship);
    }
    let moves = (0..200).position(|_| {
        let any = page((draw(&mut state) % u64::from(8 * frames)) as u32);
        meters.choose(any, &get((draw(&mut state) % 500_000 * 8) as u32, 8), false);
        meters.choose(page(1000), &get((draw(&mut state) % 500_000 * 8) as u32, 8), false) == Choice::Move
    });
    assert!(moves.is_some_and(|uses| uses < 60), "half of all operations are of one page: {moves:?}");
}

#[test]
fn what_is_read_in_order_moves_and_fields_of_a_record_do_not() {
    let mut meters = meters(LARGE, 16);
    let mut scan = (0..).map(|at| meters.choose(page(0), &get(at * 4096, 4096), true));
    assert_eq!(scan.position(|choice| choice == Choice::Move), Some(4));
    drop(scan);
    for record in 0..10 {
        for field in 0..4 {
            let operation = get(record * 100_000 + field * 8, 8);
            assert_eq!(meters.choose(page(1), &operation, true), Choice::Ship);
        }
    }
}

#[test]
fn pages_of_which_two_requests_cost_more_are_moved_at_once_if_there_is_room() {
    for (page_bytes, has_room, is_shipped) in [
        (4 << 10, true, false),
        (64 << 10, true, false),
        (256 << 10, true, true),
        (4 << 10, false, false),
        (16 << 10, false, true),
        (64 << 10, false, true),
    ] {
        let mut meters = meters(page_bytes, 16);
        let choice = meters.choose(page(0), &get(8, 8), has_room);
        assert_eq!(choice == Choice::Ship, is_shipped, "pages of {page_bytes}, room {has_room}");
    }
}

#[test]
fn small_pages_that_fit_a_full_pool_move_and_more_of_them_do_not() {
    let moves = |pages: u64| {
        let (mut meters, mut state) = (meters(64 << 10, 64), 3);
        let mut draw = || page((draw(&mut state) % pages) as u32);
        (0..10_000).filter(|_| meters.choose(draw(), &get(8, 8), false) == Choice::Move).count()
    };
    assert!(moves(8) > 4000, "every second or third use moves one of {}", moves(8));
    assert!(moves(256) < 1500, "of four times as many pages as frames most stay: {}", moves(256));
}

#[test]
fn what_loads_read_in_order_grows_until_the_page_moves() {
    for (page_bytes, expected) in
        [(LARGE, vec![4, 4, 8, 16, 32, 64]), (256 << 10, vec![4, 4, 8]), (128 << 10, vec![4, 4])]
    {
        let mut meters = meters(page_bytes, 16);
        let (mut at, mut parts) = (page_bytes as u32 / 2, Vec::new());
        loop {
            let fault = SmallOperation { is_fill: true, ..get(at, 4096) };
            let len_bytes = meters.fill_bytes(page(0), &fault);
            if meters.choose(page(0), &SmallOperation { len_bytes, ..fault }, true) == Choice::Move {
                break;
            }
            parts.push(len_bytes >> 10);
            at += len_bytes;
        }
        assert_eq!(parts, expected, "pages of {page_bytes}");
        let last = SmallOperation { is_fill: true, ..get(page_bytes as u32 - 4096, 4096) };
        assert_eq!(meters.fill_bytes(page(0), &last), 4096, "no more than the page has");
    }
}

/// The first byte of a scan by loads at which the page moves, if any; `disturb` is called before each part.
fn moved_at(meters: &mut Meters, page_bytes: usize, mut disturb: impl FnMut(&mut Meters, u32)) -> Option<u32> {
    let mut at = 0;
    while at < page_bytes as u32 {
        disturb(meters, at);
        let fault = SmallOperation { is_fill: true, ..get(at, 4096) };
        let len_bytes = meters.fill_bytes(page(0), &fault);
        if meters.choose(page(0), &SmallOperation { len_bytes, ..fault }, true) == Choice::Move {
            return Some(at);
        }
        at += len_bytes;
    }
    None
}

#[test]
fn a_page_that_others_wrote_moves_to_who_reads_it_in_order_undisturbed() {
    for (page_bytes, expected) in [(LARGE, 512 << 10), (1 << 20, 256 << 10), (256 << 10, 128 << 10)] {
        let mut meters = meters(page_bytes, 16);
        meters.on_written(page(0), Rank(1));
        assert_eq!(moved_at(&mut meters, page_bytes, |_, _| ()), Some(expected), "pages of {page_bytes}");
        meters.on_written(page(0), Rank(1));
        let half = page_bytes as u32 / 2;
        let mut is_written = false;
        let at = moved_at(&mut meters, page_bytes, |meters, at| {
            if at >= half.min(expected / 2) && !core::mem::replace(&mut is_written, true) {
                meters.on_written(page(0), Rank(2));
            }
        });
        assert!(at.is_some_and(|at| at > expected), "pages of {page_bytes}: {at:?}");
    }
}

#[test]
fn a_page_that_is_scanned_while_others_write_it_stays_where_it_is() {
    let mut meters = meters(LARGE, 16);
    let disturb = |meters: &mut Meters, at: u32| {
        if at % (256 << 10) == 0 {
            meters.on_written(page(0), Rank(1));
        }
    };
    for _ in 0..100 {
        assert_eq!(moved_at(&mut meters, LARGE, disturb), None);
    }
}

#[test]
fn what_is_at_hand_moves_no_page_for_long() {
    let mut meters = meters(LARGE, 16);
    let operation = |at: u32| SmallOperation { is_at_hand: true, ..get(at % 7 * 64, 8) };
    assert!((0..2000).all(|at| meters.choose(page(0), &operation(at), true) == Choice::Ship));
    assert!((0..200).any(|at| meters.choose(page(0), &operation(at), true) == Choice::Move));
}

#[test]
fn a_page_that_ranks_write_in_turns_stays_where_it_is() {
    let put = SmallOperation { is_put: true, ..get(0, 1) };
    let mut meters = meters(64 << 10, 16);
    assert_eq!(meters.choose(page(0), &put, true), Choice::Move);
    meters.on_lost(page(0));
    for at in 0..100 {
        assert_eq!(meters.choose(page(0), &put, true), Choice::Ship);
        meters.on_shipped(page(0), at % 4 == 0);
    }
    // No other rank writes any more.
    let mut moves = (0..).map(|_| {
        let choice = meters.choose(page(0), &put, true);
        meters.on_shipped(page(0), false);
        choice
    });
    let undisturbed = UNDISTURBED_MIN as usize;
    assert!(
        moves.position(|choice| choice == Choice::Move).is_some_and(|at| (undisturbed / 2..=undisturbed).contains(&at))
    );
}

#[test]
fn a_home_knows_who_writes_by_turns() {
    let mut meters = meters(LARGE, 16);
    let writers = [0, 0, 1, 1, 2, 0, 0].map(Rank);
    assert_eq!(writers.map(|rank| meters.on_written(page(3), rank)), [false, false, true, false, true, true, false]);
}
