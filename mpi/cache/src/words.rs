//! Entries of a target are stale once this process may have learned from another one ([`crate::news`]). In mode checked
//! they are dropped then. In mode told each rank has a word, which is raised after its memory was written. Readers read
//! the word once per interval, before the first get, and keep the entries while it is unchanged.
//!
//! A word is raised after the data have arrived, and before any process able to tell of them goes on: before an unlock,
//! or within a flush. If it were raised earlier, a reader could file old bytes under the new number.

use crate::lines::line;
use crate::pools::Words;
use crate::report::{COUNTS, count};
use crate::settings::Mode;
use crate::window::{Mark, Window};
use crate::{news, store};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Makes sure that no stale entry of a target is served, once per interval. Returns whether the cache may be asked.
#[inline]
pub fn look(window: &Window, number: u32) -> bool {
    let interval = news::interval();
    window.targets[number as usize].looked_at.load(Ordering::Relaxed) == interval || renew(window, number, interval)
}

#[cold]
fn renew(window: &Window, number: u32, interval: u64) -> bool {
    let target = &window.targets[number as usize];
    match &window.words {
        Some(words) if window.mode() == Mode::Told && words.is_stopped() => {
            give_up(window, "could not be raised by another rank");
            return false;
        }
        Some(words) if window.mode() == Mode::Told => {
            let Some(word) = words.read(number) else {
                give_up(window, "cannot be read");
                return false;
            };
            count(&COUNTS.words_read);
            if target.word.swap(word, Ordering::AcqRel) != word {
                count(&COUNTS.words_changed);
                store::drop_target(window.space, number);
            }
        }
        _ => store::drop_target(window.space, number),
    }
    target.looked_at.store(interval, Ordering::Relaxed);
    true
}

fn give_up(window: &Window, what: &str) {
    if window.mode() == Mode::Told {
        line("mode told", &format!("the word of a rank {what}; this rank does not cache the window any more"));
        window.set_mode(Mode::Off);
    }
}

/// The word of a rank cannot be raised, so its readers would not find out. All ranks stop caching the window.
#[cold]
fn stop_all(window: &Window, words: &Words, number: u32) {
    let all = 0..window.targets.len() as u32;
    let missed: Vec<String> = all.filter(|rank| !words.stop(*rank)).map(|rank| rank.to_string()).collect();
    if !missed.is_empty() {
        let missed = missed.join(", ");
        line(
            "mode told",
            &format!("rank {number} was written, and MPI cannot tell ranks {missed}, which may read old bytes"),
        );
    }
    give_up(window, "cannot be raised");
}

fn raise(window: &Window, number: u32) {
    let Some(words) = &window.words else { return };
    // This process's stores become visible before the word.
    fence(Ordering::SeqCst);
    count(&COUNTS.words_raised);
    if !words.raise(number) {
        stop_all(window, words, number);
    }
}

/// Whether a target's word does not tell yet of all writes up to the mark.
pub fn is_untold(window: &Window, mark: &Mark) -> bool {
    let told = &window.targets[mark.target as usize].writes_told;
    window.words.is_some() && told.load(Ordering::Relaxed) < mark.writes()
}

/// The writes to a target up to the mark are complete there. Its word tells of them.
pub fn tell(window: &Window, mark: &Mark) {
    if is_untold(window, mark) {
        raise(window, mark.target);
        set_told(window, mark);
    }
}

/// Another rank tells of the writes to a target: the target itself, or all ranks together.
pub fn set_told(window: &Window, mark: &Mark) {
    let told: &AtomicU64 = &window.targets[mark.target as usize].writes_told;
    told.fetch_max(mark.writes(), Ordering::Relaxed);
    window.targets[mark.target as usize].fetches_told.fetch_max(mark.fetches(), Ordering::Relaxed);
}

/// Fetching operations are complete here, so they were applied at the target. Other writes may still be in flight.
pub fn tell_fetches(window: &Window, mark: &Mark) {
    let told = &window.targets[mark.target as usize].fetches_told;
    if window.words.is_some() && told.load(Ordering::Relaxed) < mark.fetches() {
        raise(window, mark.target);
        told.fetch_max(mark.fetches(), Ordering::Relaxed);
    }
}

/// As [`tell_fetches`], for one operation with a complete request.
pub fn tell_one_fetch(window: &Window, number: u32) {
    raise(window, number);
}

/// This rank's memory may have been written, by itself or by others.
pub fn tell_own(window: &Window) {
    raise(window, window.rank);
}

/// A fence tells all ranks of all writes before it: each drops its entries of the window.
pub fn end_at_fence(window: &Window, marks: &[Mark]) {
    if window.words.is_some() {
        marks.iter().for_each(|mark| set_told(window, mark));
        store::invalidate(window.space);
    }
}
