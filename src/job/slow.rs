//! Reports of long waits at the start and the end of a job, once each.

use super::{ATTACH, INIT, job, say, threads};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use vgasnet_conduit::{Rank, SLOW};
use vgasnet_sys::is_disturbed;

/// This process's rank, known before there is a job.
static RANK: AtomicU32 = AtomicU32::new(0);

/// Sets the rank named in the lines.
pub(super) fn note_rank(rank: Rank) {
    RANK.store(rank.0, Ordering::Release);
}

/// Runs `body`. Each time [`SLOW`] has passed again, calls `tell` with the number of times, until it returns true.
pub(super) fn watched<T>(mut tell: impl FnMut(u32) -> bool + Send + 'static, body: impl FnOnce() -> T) -> T {
    if is_disturbed() {
        return body();
    }
    let (over, is_over) = channel::<()>();
    let watch = move || {
        let mut times = 1;
        while is_over.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout) && !tell(times) {
            times += 1;
        }
    };
    // Without another thread there is no report.
    let watcher = threads::start("vgasnet-watch", watch);
    let done = body();
    drop(over);
    let _ = watcher.map(|watcher| watcher.join());
    done
}

/// Reports the ranks missing in an exchange of init or attach.
pub(super) fn tell_of_exchange(missing: &[Rank], took: Duration) {
    let call = if job().is_some() { ATTACH } else { INIT };
    tell(call, &format!("waits for {}", names(missing)), took);
}

/// Reports the ranks whose programs still run after this one's end, once `times` times [`SLOW`] have passed. Returns
/// whether it did.
pub(super) fn tell_of_end(times: u32) -> bool {
    let awaited = job().and_then(|job| job.conduit.to_tell(times));
    if let Some(awaited) = &awaited {
        tell("exit", &format!("waits for {}: the program is not over there", names(awaited)), SLOW * times);
    }
    awaited.is_some()
}

/// Reports how long this rank has been in a call.
pub(super) fn tell(call: &str, what: &str, took: Duration) {
    say(&format!("rank {}: {call}: {what} (since {} s)", RANK.load(Ordering::Acquire), took.as_secs()));
}

/// An empty list stands for unknown ranks.
fn names(ranks: &[Rank]) -> String {
    const NAMED_MAX: usize = 8;
    if ranks.is_empty() {
        return "other ranks".to_owned();
    }
    let named: Vec<String> = ranks.iter().take(NAMED_MAX).map(Rank::to_string).collect();
    let more = ranks.len().saturating_sub(NAMED_MAX);
    let (s, named) = (if ranks.len() == 1 { "" } else { "s" }, named.join(", "));
    if more == 0 { format!("rank{s} {named}") } else { format!("rank{s} {named} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranks_are_named_in_short() {
        assert_eq!(names(&[]), "other ranks");
        assert_eq!(names(&[Rank(3)]), "rank 3");
        assert_eq!(names(&[Rank(1), Rank(3)]), "ranks 1, 3");
        assert_eq!(names(&(0..10).map(Rank).collect::<Vec<_>>()), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }

    #[test]
    fn what_is_slow_is_told_of_once() {
        let (told, is_told) = channel();
        let tell = move |times| told.send(times).is_ok();
        let done = watched(tell, || is_told.recv());
        assert_eq!(done, Ok(1));
        assert!(is_told.recv().is_err());
    }

    #[test]
    fn whose_turn_it_is_not_is_asked_again() {
        let (told, is_told) = channel();
        let tell = move |times| told.send(times).is_ok() && times == 2;
        let done = watched(tell, || [is_told.recv(), is_told.recv()]);
        assert_eq!(done, [Ok(1), Ok(2)]);
        assert!(is_told.recv().is_err());
    }

    #[test]
    fn what_is_quick_is_not_told_of() {
        assert_eq!(watched(|_| unreachable!("it takes no time"), || 5), 5);
    }
}
