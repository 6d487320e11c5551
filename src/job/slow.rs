//! Waits at the start and the end of a job that take long are told of, once.

use super::{ATTACH, INIT, job, say};
use crate::sys::is_disturbed;
use crate::sys::leak_check::uncounted;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use vgasnet_conduit::{Rank, SLOW, blocking_signals};

/// This process's rank. It is known before there is a job.
static RANK: AtomicU32 = AtomicU32::new(0);

/// Lets lines name this rank.
pub(super) fn note_rank(rank: Rank) {
    RANK.store(rank.0, Ordering::Release);
}

/// Does something, and calls `tell` if that takes longer than [`SLOW`].
pub(super) fn watched<T>(tell: impl FnOnce() + Send + 'static, body: impl FnOnce() -> T) -> T {
    if is_disturbed() {
        return body();
    }
    let (over, is_over) = channel::<()>();
    let watch = move || {
        if is_over.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout) {
            tell();
        }
    };
    let thread = std::thread::Builder::new().name("vgasnet-watch".into());
    // Where the system has no thread left, nobody is told.
    let watcher = blocking_signals(|| uncounted(|| thread.spawn(watch)));
    let done = body();
    drop(over);
    let _ = watcher.map(|watcher| watcher.join());
    done
}

/// Tells of ranks that have not come to an exchange, in which init and attach agree.
pub(super) fn tell_of_exchange(missing: &[Rank]) {
    let call = if job().is_some() { ATTACH } else { INIT };
    tell(call, &format!("waits for {}", names(missing)));
}

/// Tells of ranks whose program is not over while this one's is.
pub(super) fn tell_of_end() {
    let Some(job) = job() else { return };
    let (own, awaited) = (job.conduit.rank(), job.conduit.awaited());
    // One tells, the first of those that wait.
    let is_first = (0..own.0).all(|rank| awaited.as_ref().is_some_and(|awaited| awaited.contains(&Rank(rank))));
    if !is_first || awaited.as_ref().is_some_and(Vec::is_empty) {
        return;
    }
    let whom = awaited.map_or("other ranks".to_owned(), |awaited| names(&awaited));
    tell("exit", &format!("waits for {whom}: the program is not over there"));
}

/// Tells that this rank has been doing something for long.
pub(super) fn tell(call: &str, what: &str) {
    say(&format!("rank {}: {call}: {what} (since {} s)", RANK.load(Ordering::Acquire), SLOW.as_secs()));
}

fn names(ranks: &[Rank]) -> String {
    const NAMED_MAX: usize = 8;
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
        assert_eq!(names(&[Rank(3)]), "rank 3");
        assert_eq!(names(&[Rank(1), Rank(3)]), "ranks 1, 3");
        assert_eq!(names(&(0..10).map(Rank).collect::<Vec<_>>()), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }

    #[test]
    fn what_is_slow_is_told_of_once() {
        let (told, is_told) = channel();
        let done = watched(move || told.send(()).expect("somebody waits"), || is_told.recv());
        assert_eq!(done, Ok(()));
        assert!(is_told.recv().is_err());
    }

    #[test]
    fn what_is_quick_is_not_told_of() {
        assert_eq!(watched(|| unreachable!("it takes no time"), || 5), 5);
    }
}
