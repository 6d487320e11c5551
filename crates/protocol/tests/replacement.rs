//! Properties of the policies, on seeded random pools: frames are pinned, used, read ahead and freed.

use FillKind::{Ahead, AsGuest, ForUse};
use fastrand::Rng;
use std::collections::{HashSet, VecDeque};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{FrameId, PageId};
use vgasnet_protocol::replacement::{FillKind, FrameState, FrameUse, Need, PolicyKind, Replacement};

const KINDS: [PolicyKind; 2] = [PolicyKind::ClockPro, PolicyKind::Clock];

/// Maximum average number of frames examined per victim.
const STEPS_PER_VICTIM: u64 = 40;

/// The driver's state of each frame.
struct Frames(Vec<Known>);

#[derive(Clone, Copy)]
struct Known {
    state: FrameState,
    ahead: bool,
    used: bool,
    is_filled: bool,
    /// Number of `will_go` reports since the page arrived.
    told: u32,
}

impl Known {
    /// Initial state of an arrived page.
    fn of(fill_kind: FillKind) -> Known {
        Known {
            state: FrameState::Idle,
            ahead: fill_kind == Ahead,
            used: fill_kind == ForUse,
            is_filled: true,
            told: 0,
        }
    }
}

fn any_fill_kind(random: &mut Rng) -> FillKind {
    [Ahead, AsGuest, ForUse][random.usize(0..3)]
}

impl FrameUse for Frames {
    fn state(&self, frame: FrameId) -> FrameState {
        self.0[frame.0 as usize].state
    }

    fn is_ahead(&self, frame: FrameId) -> bool {
        self.0[frame.0 as usize].ahead
    }

    fn take_used(&mut self, frame: FrameId) -> bool {
        std::mem::take(&mut self.0[frame.0 as usize].used)
    }

    fn will_go(&mut self, frame: FrameId) {
        self.0[frame.0 as usize].told += 1;
    }
}

struct Pool {
    replacement: Replacement,
    frames: Frames,
    pages: u32,
}

impl Pool {
    /// A pool that is full.
    fn new(kind: PolicyKind, frames: u32, fill_kind: FillKind) -> Pool {
        let empty = Known { state: FrameState::Idle, ahead: false, used: false, is_filled: false, told: 0 };
        let replacement = Replacement::new(kind.make(frames), frames);
        let mut pool = Pool { replacement, frames: Frames(vec![empty; frames as usize]), pages: 0 };
        (0..frames).for_each(|frame| pool.fill(FrameId(frame), fill_kind));
        pool
    }

    /// Fills a frame with another page.
    fn fill(&mut self, frame: FrameId, fill_kind: FillKind) {
        self.pages += 1;
        self.replacement.on_freed(frame);
        self.replacement.on_filled(frame, PageId::of_segment(Rank(0), self.pages), fill_kind);
        *self.known(frame) = Known::of(fill_kind);
    }

    fn known(&mut self, frame: FrameId) -> &mut Known {
        &mut self.frames.0[frame.0 as usize]
    }

    fn victim(&mut self, need: Need) -> Option<FrameId> {
        let victim = self.replacement.victim(&mut self.frames, need)?;
        assert!(self.known(victim).is_filled, "{victim:?} is named twice, or has no page");
        self.known(victim).is_filled = false;
        Some(victim)
    }

    /// Finds `count` victims, and fills their frames.
    fn turn_over(&mut self, count: u64, fill_kind: FillKind) -> u64 {
        let before = self.replacement.steps();
        for _ in 0..count {
            let victim = self.victim(Need::Now).expect("some frame suits");
            self.fill(victim, fill_kind);
        }
        self.replacement.steps() - before
    }
}

#[test]
fn victims_suit_and_are_named_once() {
    for seed in 0..if cfg!(miri) { 2 } else { 60 } {
        for kind in KINDS {
            let mut random = Rng::with_seed(seed);
            let frames = random.u32(1..40);
            let mut pool = Pool::new(kind, frames, any_fill_kind(&mut random));
            for _ in 0..if cfg!(miri) { 100 } else { 2000 } {
                act(&mut pool, &mut random, frames, &format!("{kind:?}, seed {seed}"));
            }
        }
    }
}

/// Executes a random step on a pool.
fn act(pool: &mut Pool, random: &mut Rng, frames: u32, run: &str) {
    const STATES: [FrameState; 4] = [FrameState::Idle, FrameState::Idle, FrameState::InUse, FrameState::Held];
    let frame = FrameId(random.u32(0..frames));
    match random.u32(0..6) {
        0 => {
            *pool.known(frame) = Known { used: true, ahead: false, ..*pool.known(frame) };
        }
        1 if pool.known(frame).is_filled => {
            pool.known(frame).state = STATES[random.usize(0..4)];
            if random.bool() {
                pool.replacement.retry_all()
            } else {
                pool.replacement.on_released(frame)
            }
            pool.replacement.retry();
        }
        2 if pool.known(frame).is_filled => {
            pool.replacement.on_freed(frame);
            pool.known(frame).is_filled = false;
        }
        3 if !pool.known(frame).is_filled => pool.fill(frame, any_fill_kind(random)),
        _ => {
            let need = if random.bool() { Need::Now } else { Need::Later };
            match pool.victim(need) {
                Some(victim) => {
                    let state = pool.known(victim).state;
                    let may_be_in_use = need == Need::Now;
                    assert_ne!(state, FrameState::Held, "{run}");
                    assert!(state == FrameState::Idle || may_be_in_use, "{run}: the reserve takes a frame in use");
                }
                None if need == Need::Now => {
                    let suits = |known: &Known| known.is_filled && known.state != FrameState::Held;
                    assert!(!pool.frames.0.iter().any(suits), "{run}: a frame suits, and is not found");
                }
                None => {}
            }
        }
    }
}

#[test]
fn a_victim_costs_the_same_whatever_the_others_are() {
    const FRAMES: u32 = 4000;
    for kind in KINDS {
        let steps = |what: &str, make: &dyn Fn(&mut Pool), fill_kind: FillKind| {
            let mut pool = Pool::new(kind, FRAMES, fill_kind);
            make(&mut pool);
            let warm_up = pool.turn_over(u64::from(FRAMES), fill_kind);
            let steps = pool.turn_over(4 * u64::from(FRAMES), fill_kind);
            let most = STEPS_PER_VICTIM * u64::from(FRAMES);
            assert!(warm_up <= most && steps <= 4 * most, "{kind:?}, {what}: {warm_up} steps, then {steps}");
        };
        steps("used once", &|_| {}, ForUse);
        steps("read ahead", &|_| {}, Ahead);
        steps("kept for others", &|_| {}, AsGuest);
        let most_pinned = |pool: &mut Pool| {
            (0..FRAMES - 8).for_each(|frame| pool.known(FrameId(frame)).state = FrameState::Held);
        };
        steps("pinned by the client", &most_pinned, ForUse);
        steps("pinned by the client, and the others read ahead", &most_pinned, Ahead);
        let in_use = |pool: &mut Pool| {
            (0..FRAMES - 8).for_each(|frame| pool.known(FrameId(frame)).state = FrameState::InUse);
        };
        steps("in use", &in_use, ForUse);
    }
}

#[test]
fn a_victim_costs_the_same_where_all_frames_are_used_all_the_time() {
    const FRAMES: u32 = 2000;
    for kind in KINDS {
        let mut pool = Pool::new(kind, FRAMES, ForUse);
        let mut steps = 0;
        for _ in 0..FRAMES {
            pool.frames.0.iter_mut().for_each(|known| known.used = true);
            steps += pool.turn_over(1, ForUse);
        }
        assert!(steps <= STEPS_PER_VICTIM * u64::from(FRAMES), "{kind:?}: {steps}");
    }
}

#[test]
fn a_search_that_finds_nothing_is_not_repeated_until_something_changes() {
    for kind in KINDS {
        let mut pool = Pool::new(kind, 1000, ForUse);
        pool.frames.0.iter_mut().for_each(|known| known.state = FrameState::Held);
        assert_eq!(pool.victim(Need::Now), None);
        let before = pool.replacement.steps();
        assert!((0..100).all(|_| pool.victim(Need::Now).is_none()));
        assert_eq!(pool.replacement.steps(), before);
        pool.known(FrameId(700)).state = FrameState::Idle;
        pool.replacement.retry_all();
        assert_eq!(pool.victim(Need::Now), Some(FrameId(700)));
        pool.known(FrameId(300)).state = FrameState::Idle;
        assert_eq!(pool.victim(Need::Now), None, "nobody has said so");
        pool.replacement.on_released(FrameId(300));
        assert_eq!(pool.victim(Need::Now), Some(FrameId(300)));
    }
}

/// More pages await frames than frames are not held: the next frame released is the next victim.
#[test]
fn frames_that_are_held_cost_nothing_where_each_page_that_comes_is_the_next_victim() {
    const HELD: u32 = 20_000;
    for kind in KINDS {
        let mut pool = Pool::new(kind, HELD + 64, ForUse);
        (0..HELD).for_each(|frame| pool.known(FrameId(frame)).state = FrameState::Held);
        let mut arriving = VecDeque::new();
        let take_all = |pool: &mut Pool, arriving: &mut VecDeque<FrameId>| {
            pool.replacement.retry();
            while let Some(victim) = pool.victim(Need::Now) {
                pool.replacement.on_freed(victim);
                arriving.push_back(victim);
            }
        };
        take_all(&mut pool, &mut arriving);
        let (before, pages) = (pool.replacement.steps(), 1000);
        for _ in 0..pages {
            let frame = arriving.pop_front().expect("64 are not held");
            pool.fill(frame, ForUse);
            take_all(&mut pool, &mut arriving);
        }
        let steps = pool.replacement.steps() - before;
        assert!(arriving.len() == 64 && steps <= STEPS_PER_VICTIM * pages, "{kind:?}: {steps}");
    }
}

#[test]
fn pages_kept_for_others_go_first_but_for_those_that_are_used() {
    for kind in KINDS {
        let mut pool = Pool::new(kind, 64, ForUse);
        let guests: Vec<FrameId> = (0..8).map(|frame| FrameId(8 * frame)).collect();
        guests.iter().for_each(|frame| pool.fill(*frame, AsGuest));
        assert_eq!(pool.replacement.guests(), 8);
        (pool.known(guests[0]).used, pool.known(guests[1]).state) = (true, FrameState::Held);
        // To make room for another guest, a used guest stays a guest.
        let gone = pool.replacement.first_guest(&mut pool.frames);
        assert_eq!((gone, pool.replacement.guests()), (None, 8), "{kind:?}: none of the first two can go");
        assert_eq!(pool.replacement.first_guest(&mut pool.frames), Some(guests[2]));
        pool.fill(guests[2], ForUse);
        pool.known(guests[3]).used = true;
        let gone: Vec<FrameId> = (0..5).map(|_| pool.victim(Need::Later).expect("most are idle")).collect();
        assert_eq!(gone, [4, 5, 6, 7, 0].map(|at| guests[at]), "{kind:?}: those that nobody has used since");
        gone.into_iter().for_each(|frame| pool.fill(frame, ForUse));
        assert_eq!(pool.replacement.guests(), 1, "one is held");
    }
}

#[test]
fn pages_that_wait_for_their_first_use_stay_while_others_can_go() {
    for kind in KINDS {
        let mut pool = Pool::new(kind, 64, ForUse);
        let ahead: HashSet<FrameId> = (0..8).map(|frame| FrameId(8 * frame)).collect();
        ahead.iter().for_each(|frame| pool.fill(*frame, Ahead));
        for _ in 0..8 {
            let victim = pool.victim(Need::Later).expect("56 pages are idle");
            assert!(!ahead.contains(&victim), "{kind:?}");
            pool.fill(victim, ForUse);
        }
        // A page never used is evicted in the end.
        let gone = (0..1000).filter(|_| {
            let victim = pool.victim(Need::Now).expect("all are idle");
            let was_ahead = pool.known(victim).ahead;
            pool.fill(victim, ForUse);
            was_ahead
        });
        assert_eq!(gone.count(), 8, "{kind:?}");
    }
}

/// The hit ratio of the last round of a cyclic scan, with the next pages read ahead whenever the last one has been
/// used, as for a program's loads with computation in between.
fn kept_of_scan(frames: u32, window: u32) -> f64 {
    const ROUNDS: u32 = 6;
    let pages = 2 * frames;
    let mut pool = Pool::new(PolicyKind::ClockPro, frames, ForUse);
    let (mut frame_of, mut page_in, mut fetched) = (vec![None; pages as usize], vec![None; frames as usize], 0);
    for at in 0..ROUNDS * pages {
        let page = at % pages;
        if frame_of[page as usize].is_none() {
            for wanted in (page..=page + window).filter(|page| *page < pages) {
                if frame_of[wanted as usize].is_some() {
                    continue;
                }
                let victim = pool.victim(Need::Now).expect("all are idle");
                if let Some(gone) = page_in[victim.0 as usize].replace(wanted) {
                    frame_of[gone as usize] = None;
                }
                frame_of[wanted as usize] = Some(victim);
                let fill_kind = if wanted == page { ForUse } else { Ahead };
                pool.replacement.on_filled(victim, PageId::of_segment(Rank(1), wanted), fill_kind);
                *pool.known(victim) = Known::of(fill_kind);
                fetched += u32::from(at >= (ROUNDS - 1) * pages);
            }
        }
        let frame: FrameId = frame_of[page as usize].expect("it was fetched");
        *pool.known(frame) = Known { ahead: false, used: true, ..*pool.known(frame) };
    }
    1.0 - f64::from(fetched) / f64::from(pages)
}

#[test]
fn a_scan_that_is_read_ahead_keeps_four_tenths_of_twice_the_pool() {
    for (frames, window) in [(16, 2), (32, 2), (64, 4), (128, 5), (512, 21), (2048, 85)] {
        let kept = kept_of_scan(frames, window);
        assert!(kept >= 0.4, "{kept:.3} with {frames} frames, {window} pages ahead");
    }
}

#[test]
fn pages_are_told_of_one_by_one_and_long_before_they_go() {
    const FRAMES: u32 = 1000;
    const COLD: usize = 100;
    let mut pool = Pool::new(PolicyKind::ClockPro, FRAMES, ForUse);
    pool.turn_over(u64::from(2 * FRAMES), ForUse);
    let waiting = |pool: &Pool| pool.frames.0.iter().filter(|known| known.is_filled && known.told > 0).count();
    for _ in 0..FRAMES {
        let before = waiting(&pool);
        assert!((COLD / 4..=COLD).contains(&before), "{before} pages were told of and are still here");
        let victim = pool.victim(Need::Now).expect("all are idle");
        assert_eq!(pool.known(victim).told, 1);
        assert!(waiting(&pool) <= before + 4, "many at once keep the disk busy at once and idle before");
        pool.fill(victim, ForUse);
    }
}
