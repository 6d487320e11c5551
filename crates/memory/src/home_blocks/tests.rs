use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const PAGE: usize = 4 * SHOWN_BLOCK_BYTES;
const SHAPE: Shape = Shape { pages: 200, frames: 256 };

fn home() -> HomeBlocks {
    let len_bytes = HomeBlocks::bytes(SHAPE, PAGE);
    let memory = vec![0_u64; (len_bytes + ALIGN_BYTES) / 8].leak();
    let address = memory.as_mut_ptr().expose_provenance().next_multiple_of(ALIGN_BYTES);
    HomeBlocks::new(Region { address, len_bytes }, SHAPE, PAGE)
}

fn place(found: Found) -> Option<usize> {
    match found {
        Found::Here(shown) => Some(shown.place),
        Found::Nowhere => None,
        Found::Unknown => panic!("nobody changes the table"),
    }
}

#[test]
fn a_page_that_ceases_to_be_plain_has_another_version() {
    let pages = home().pages;
    assert!(!pages.is_plain(7) && !pages.is_plain(SHAPE.pages));
    pages.set(7, true);
    pages.set(SHAPE.pages, true);
    let version = pages.version(7);
    assert!(pages.is_plain(7) && !pages.is_plain(6) && !pages.is_plain(SHAPE.pages), "only pages with a bit are plain");
    pages.set(7, true);
    assert_eq!(pages.version(7), version, "nothing has changed");
    pages.set(7, false);
    assert!(!pages.is_plain(7) && pages.version(7) != version);
    pages.set(7, true);
    let version = pages.version(7);
    pages.on_written(7);
    assert!(pages.is_plain(7) && pages.version(7) != version);
}

#[test]
fn blocks_are_found_until_they_are_hidden() {
    let index = home().index;
    // More blocks than there are chains at some places.
    let blocks: Vec<u64> = (0..900).map(|at| at * 1009).collect();
    assert_eq!(place(index.find(blocks[0])), None);
    blocks.iter().enumerate().for_each(|(at, block)| index.show(at, *block));
    assert!(blocks.iter().enumerate().all(|(at, block)| place(index.find(*block)) == Some(at)));
    let Found::Here(shown) = index.find(blocks[5]) else { panic!("it is shown") };
    assert!(index.is_still(shown) && !index.take_use(5));
    index.note_use(shown);
    assert!(index.take_use(5) && !index.take_use(5), "a use is told once");
    (0..900).step_by(2).chain([5]).for_each(|at| index.hide(at));
    index.hide(5);
    assert!(!index.is_still(shown));
    let is_shown = |at: usize| at % 2 == 1 && at != 5;
    assert!(blocks.iter().enumerate().all(|(at, block)| place(index.find(*block)).is_some() == is_shown(at)));
    index.show(5, blocks[0]);
    assert_eq!((place(index.find(blocks[0])), index.is_still(shown)), (Some(5), false));
}

#[test]
fn a_block_that_stays_is_found_while_others_come_and_go() {
    let (index, is_over) = (home().index, AtomicBool::new(false));
    let stays = |at: usize| 1_000_000 + at as u64;
    (0..500).for_each(|at| index.show(2 * at, stays(at)));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut round = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let at = round * 7 % 500;
                    match index.find(stays(at)) {
                        Found::Here(shown) => assert!(shown.place == 2 * at && index.is_still(shown)),
                        found => assert_eq!(found, Found::Unknown, "block {at} was shown all the time"),
                    }
                    round += 1;
                }
            });
        }
        for round in 0..200_000_u64 {
            let at = (round * 11 % 500) as usize * 2 + 1;
            index.hide(at);
            index.show(at, round);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_posted_block_is_taken_once() {
    let boxes = home().mailboxes;
    let count = mailboxes(own_blocks(SHAPE.frames, PAGE));
    assert_eq!((boxes.len(), count, boxes.has_posted()), (8, 8, false));
    let end_bytes = all_frames(SHAPE.frames, PAGE) as usize * PAGE;
    assert_eq!(boxes.offset_bytes(7) + SHOWN_BLOCK_BYTES, end_bytes, "they are the last blocks");
    let taken: Vec<usize> = std::iter::from_fn(|| boxes.take(5)).collect();
    assert_eq!(taken, [5, 6, 7, 0, 1, 2, 3, 4]);
    boxes.give_back(6);
    assert_eq!((boxes.take(0), boxes.take(0)), (Some(6), None));
    let wakes: Vec<bool> = (0..5).map(|at| boxes.post(at, 100 + at as u64, 7)).collect();
    assert_eq!(wakes, [false, false, false, true, false], "one poster of many wakes the home");
    let mut blocks = Vec::new();
    boxes.collect(|at, block, version| blocks.push((at, block, version)));
    assert_eq!(blocks, [0, 1, 2, 3, 4].map(|at| (at, 100 + at as u64, 7)));
    assert_eq!((boxes.has_posted(), boxes.take(0)), (false, Some(0)));
    boxes.collect(|at, _, _| panic!("mailbox {at} has no block"));
}

#[test]
fn a_posted_block_is_read_from_its_mailbox_until_that_is_taken_again() {
    let boxes = home().mailboxes;
    let find = |block, version| {
        let mut found = None;
        boxes.with_posted(block, version, |at| found = Some(at)).map(|is_to_wake| (found, is_to_wake))
    };
    assert_eq!((boxes.take(21), find(21, 7)), (Some(5), None));
    assert!(!boxes.post(5, 21, 7));
    assert_eq!((find(21, 8), find(13, 7)), (None, None), "another version, another block");
    assert_eq!([find(21, 7), find(21, 7)], [Some((Some(5), true)), Some((Some(5), false))], "the home is woken once");
    let taken_meanwhile = boxes.with_posted(21, 7, |_| {
        boxes.collect(|_, _, _| {});
        assert_eq!(boxes.take(21), Some(5));
    });
    assert_eq!(taken_meanwhile, None);
}

#[test]
fn a_file_is_described_once_its_home_has() {
    let offer = home().file;
    assert_eq!((offer.get(), FileOffer::default().get()), (None, None));
    offer.give([1, 2, 3, 4, 5, 6]);
    assert_eq!(offer.get(), Some([1, 2, 3, 4, 5, 6]));
}

#[test]
fn a_home_that_shows_nothing_is_left_alone() {
    let nothing = HomeBlocks::default();
    nothing.pages.set(0, true);
    nothing.index.show(0, 1);
    nothing.index.hide(0);
    assert!(!nothing.pages.is_plain(0) && nothing.index.find(1) == Found::Unknown && !nothing.index.take_use(0));
    assert!(nothing.mailboxes.take(0).is_none() && !nothing.mailboxes.has_posted() && nothing.mailboxes.is_empty());
}
