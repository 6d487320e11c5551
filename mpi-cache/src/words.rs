//! Mode checked: each rank has a word that is raised after its memory was written. Readers look at it once an interval, before the first
//! get, and keep entries while it is the same.
//!
//! A word is raised after the data are there and before whoever could tell of them goes on: before an unlock, within a flush. Were it
//! raised before the data, a reader could file old bytes under the new number.

use crate::report::{COUNTS, count, line};
use crate::settings::Mode;
use crate::store;
use crate::window::{Mark, Window};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Looks at the word of a target, unless that was done in this interval. Returns whether the cache may be asked.
#[inline]
pub fn look(window: &Window, number: u32) -> bool {
    let target = &window.targets[number as usize];
    let interval = window.interval(target);
    target.looked_at.load(Ordering::Relaxed) == interval || read(window, number, interval)
}

#[cold]
fn read(window: &Window, number: u32, interval: u64) -> bool {
    let target = &window.targets[number as usize];
    let Some(word) = window.words.as_ref().and_then(|words| words.read(number)) else {
        give_up(window, "cannot be read");
        return false;
    };
    count(&COUNTS.words_read);
    window.worth.on_word();
    if target.word.swap(word, Ordering::AcqRel) != word {
        count(&COUNTS.words_changed);
        store::drop_target(window.space, number);
    }
    target.looked_at.store(interval, Ordering::Relaxed);
    true
}

fn give_up(window: &Window, what: &str) {
    if window.mode() == Mode::Checked {
        line("mode checked", &format!("the word of a rank {what}; this rank does not cache the window any more"));
        window.set_mode(Mode::Off);
    }
}

fn raise(window: &Window, number: u32) {
    let Some(words) = &window.words else { return };
    // What this process has stored is seen before the word is.
    fence(Ordering::SeqCst);
    count(&COUNTS.words_raised);
    if !words.raise(number) {
        give_up(window, "cannot be raised");
    }
}

/// Whether operations have written to a target that its word does not tell yet.
pub fn is_untold(window: &Window, mark: &Mark) -> bool {
    let told = &window.targets[mark.target as usize].writes_told;
    window.words.is_some() && told.load(Ordering::Relaxed) < mark.writes()
}

/// What was written to a target is there. Its word tells that.
pub fn tell(window: &Window, mark: &Mark) {
    if is_untold(window, mark) {
        raise(window, mark.target);
        set_told(window, mark);
    }
}

/// Somebody else tells what was written to a target: the target itself, or all ranks together.
pub fn set_told(window: &Window, mark: &Mark) {
    let told: &AtomicU64 = &window.targets[mark.target as usize].writes_told;
    told.fetch_max(mark.writes(), Ordering::Relaxed);
}

/// This rank's memory may have been written, by itself or by others.
pub fn tell_own(window: &Window) {
    raise(window, window.rank);
}

/// Collective, in a fence: drops the entries of all ranks that were written, or have stored to their memory.
pub fn exchange(window: &Window, marks: &[Mark], has_stored: bool) {
    let Some(words) = &window.words else { return };
    let mut bits = vec![0; window.targets.len().div_ceil(64)];
    let written = marks.iter().filter(|mark| is_untold(window, mark)).map(|mark| mark.target);
    for number in written.chain(has_stored.then_some(window.rank)) {
        bits[number as usize / 64] |= 1_u64 << (number % 64);
    }
    if !words.reduce(&mut bits) {
        return give_up(window, "cannot be asked for");
    }
    marks.iter().for_each(|mark| set_told(window, mark));
    let is_set = |number: &u32| bits[*number as usize / 64] & 1 << (number % 64) != 0;
    (0..window.targets.len() as u32).filter(is_set).for_each(|number| store::drop_target(window.space, number));
}
