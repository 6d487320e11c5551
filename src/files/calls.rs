//! Counts the calls in progress on a file, without a lock. A file has many words, and each thread counts its calls in
//! one of them: threads seldom write to the same cache line.
//!
//! ```text
//!  63      32    31       30    29      15 14     0
//! ┌──────────┬─────────┬───────┬──────────┬───────┐
//! │  number  │ closing │cutting│  handle  │ bytes │
//! └──────────┴─────────┴───────┴──────────┴───────┘
//! ```
//!
//! A thread that claims exclusive use marks the first word, where one of several claims wins, and then the others. It
//! waits until it has seen each word without calls. It sees every call counted before the mark. A later call finds the
//! mark and takes its count back.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// Words per file.
pub(super) const WORDS: usize = if cfg!(all(loom, test)) { 2 } else { 64 };

const NUMBER_SHIFT: u32 = 32;
const CLOSING: u64 = 1 << 31;
const CUTTING: u64 = 1 << 30;
const MARKS: u64 = CLOSING | CUTTING;
const HANDLE_CALL: u64 = 1 << 15;
const CALL: u64 = 1;
/// Mask of both counts. No process has enough threads to overflow one.
const COUNTS: u64 = CUTTING - 1;
const CALLS: u64 = HANDLE_CALL - 1;

/// The part of a file used by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Its bytes and size.
    Bytes,
    /// Only its handle: the file has to stay open.
    Handle,
}

impl Use {
    fn count(self) -> u64 {
        if self == Use::Bytes { CALL } else { HANDLE_CALL }
    }

    /// The marks that bar such a call.
    fn barred_by(self) -> u64 {
        if self == Use::Bytes { MARKS } else { CLOSING }
    }
}

/// The purpose of exclusive use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alone {
    /// The file gets another size.
    Cutting,
    Closing,
}

impl Alone {
    fn mark(self) -> u64 {
        if self == Alone::Cutting { CUTTING } else { CLOSING }
    }

    /// Mask of the calls such a claim waits for.
    fn counts(self) -> u64 {
        if self == Alone::Cutting { CALLS } else { COUNTS }
    }

    /// The marks that bar such a claim. A closing mark does not bar a cut: the cutting thread is in a [`Use::Handle`]
    /// call, which keeps the file open.
    fn barred_by(self) -> u64 {
        if self == Alone::Cutting { CUTTING } else { MARKS }
    }
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Done,
    /// Another thread has or wants exclusive use. It may wait for the count of this attempt and must be notified that
    /// it is gone.
    Barred,
    /// No file of this number is open here. Notify as for `Barred`.
    NotOpen,
}

/// The words of one file.
pub(super) struct Calls([Word; WORDS]);

#[repr(align(64))]
struct Word(AtomicU64);

impl Calls {
    /// The words of a slot without a file.
    pub(super) fn new() -> Calls {
        Calls(std::array::from_fn(|_| Word(AtomicU64::new(0))))
    }

    /// Opens the file for calls, which see everything written before.
    pub(super) fn open(&self, number: u32) {
        for Word(word) in &self.0 {
            let before = word.fetch_or(u64::from(number) << NUMBER_SHIFT, Ordering::Release);
            assert_eq!(before & !COUNTS, 0, "another file is open here");
        }
    }

    /// Starts a call.
    #[inline]
    pub(super) fn begin(&self, word: usize, number: u32, what: Use) -> Attempt {
        let before = self.0[word].0.fetch_add(what.count(), Ordering::Acquire);
        let found = found(before, number, what.barred_by());
        if found != Attempt::Done {
            self.0[word].0.fetch_sub(what.count(), Ordering::Relaxed);
        }
        found
    }

    /// Ends a call. Returns whether a thread may wait for its end.
    #[inline]
    pub(super) fn end(&self, word: usize, what: Use) -> bool {
        self.0[word].0.fetch_sub(what.count(), Ordering::Release) & MARKS != 0
    }

    /// The outcome of a [`Calls::begin`] now.
    pub(super) fn look(&self, word: usize, number: u32, what: Use) -> Attempt {
        found(self.0[word].0.load(Ordering::Acquire), number, what.barred_by())
    }

    /// Claims exclusive use. The thread has it once this is done and [`Calls::are_over`] has been true since. For
    /// [`Alone::Cutting`] the thread must be in a [`Use::Handle`] call.
    pub(super) fn claim(&self, number: u32, why: Alone) -> Attempt {
        let [Word(first), others @ ..] = &self.0;
        let mut is = first.load(Ordering::Relaxed);
        loop {
            let found = found(is, number, why.barred_by());
            if found != Attempt::Done {
                return found;
            }
            match first.compare_exchange_weak(is, is | why.mark(), Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => is = other,
            }
        }
        others.iter().for_each(|Word(word)| _ = word.fetch_or(why.mark(), Ordering::Acquire));
        Attempt::Done
    }

    /// Whether a claim would not be barred: it would succeed, or find no open file.
    pub(super) fn may_claim(&self, number: u32, why: Alone) -> bool {
        found(self.0[0].0.load(Ordering::Acquire), number, why.barred_by()) != Attempt::Barred
    }

    /// Whether all calls in the way of such a claim have ended.
    pub(super) fn are_over(&self, why: Alone) -> bool {
        self.0.iter().all(|Word(word)| word.load(Ordering::Acquire) & why.counts() == 0)
    }

    /// Ends exclusive use: calls may start again, or the file is closed.
    pub(super) fn give_back(&self, why: Alone) {
        let kept = if why == Alone::Cutting { !CUTTING } else { COUNTS };
        // The first word last: a claim marks the others after it.
        for Word(word) in self.0.iter().rev() {
            word.fetch_and(kept, Ordering::Release);
        }
    }
}

fn found(word: u64, number: u32, barred: u64) -> Attempt {
    if word >> NUMBER_SHIFT != u64::from(number) {
        return Attempt::NotOpen;
    }
    if word & barred == 0 { Attempt::Done } else { Attempt::Barred }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn open() -> Calls {
        let calls = Calls::new();
        calls.open(7);
        calls
    }

    #[test]
    fn only_the_number_that_is_open_is_found() {
        let calls = open();
        assert_eq!([6, 7, 0].map(|number| calls.begin(3, number, Use::Bytes)), {
            [Attempt::NotOpen, Attempt::Done, Attempt::NotOpen]
        });
        assert!(!calls.end(3, Use::Bytes));
        assert_eq!(calls.claim(8, Alone::Closing), Attempt::NotOpen);
        assert_eq!(calls.claim(7, Alone::Closing), Attempt::Done);
        assert!(calls.are_over(Alone::Closing), "calls that were refused left nothing");
        calls.give_back(Alone::Closing);
        assert_eq!(calls.begin(3, 7, Use::Handle), Attempt::NotOpen);
        calls.open(9);
        assert_eq!(calls.begin(3, 9, Use::Handle), Attempt::Done);
    }

    #[test]
    fn a_file_is_cut_between_calls_that_use_its_bytes() {
        let calls = open();
        assert_eq!([calls.begin(1, 7, Use::Bytes), calls.begin(2, 7, Use::Handle)], [Attempt::Done; 2]);
        assert_eq!(calls.claim(7, Alone::Cutting), Attempt::Done);
        assert!(!calls.are_over(Alone::Cutting), "a call is under way");
        assert_eq!((0..WORDS).find(|word| calls.begin(*word, 7, Use::Bytes) != Attempt::Barred), None);
        assert_eq!(
            calls.begin(4, 7, Use::Handle),
            Attempt::Done,
            "who waits for a lock does not keep it from being cut"
        );
        assert!(calls.end(1, Use::Bytes), "a thread waits for that");
        assert!(calls.are_over(Alone::Cutting) && !calls.are_over(Alone::Closing));
        assert_eq!([Alone::Cutting, Alone::Closing].map(|why| calls.claim(7, why)), [Attempt::Barred; 2]);
        assert_eq!(calls.look(5, 7, Use::Bytes), Attempt::Barred);
        calls.give_back(Alone::Cutting);
        assert_eq!(calls.look(1, 7, Use::Bytes), Attempt::Done);
        assert_eq!(calls.claim(7, Alone::Closing), Attempt::Done);
        assert_eq!(calls.begin(4, 7, Use::Handle), Attempt::Barred);
        assert!([2, 4].map(|word| calls.end(word, Use::Handle)).iter().all(|waits| *waits));
        assert!(calls.are_over(Alone::Closing));
    }

    #[test]
    fn a_file_that_is_to_be_closed_is_cut_by_a_call_that_came_before() {
        let calls = open();
        assert_eq!(calls.begin(2, 7, Use::Handle), Attempt::Done);
        assert_eq!(calls.claim(7, Alone::Closing), Attempt::Done);
        assert_eq!(calls.claim(7, Alone::Cutting), Attempt::Done);
        assert!(calls.are_over(Alone::Cutting) && !calls.are_over(Alone::Closing));
        calls.give_back(Alone::Cutting);
        assert_eq!(calls.begin(3, 7, Use::Bytes), Attempt::Barred, "another thread closes it");
        calls.end(2, Use::Handle);
        assert!(calls.are_over(Alone::Closing));
    }
}

/// `RUSTFLAGS="--cfg loom" cargo test -p vgasnet --lib --release model` runs these.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct File {
        calls: Calls,
        bytes: UnsafeCell<u32>,
    }

    // SAFETY: the model checker reports conflicting accesses to the bytes.
    unsafe impl Sync for File {}

    fn read(file: &File, word: usize, number: u32) {
        if file.calls.begin(word, number, Use::Bytes) == Attempt::Done {
            // SAFETY: the checker reports a concurrent write.
            let seen = file.bytes.with(|bytes| unsafe { *bytes });
            assert!(seen > 0, "the file is not open");
            file.calls.end(word, Use::Bytes);
        }
    }

    fn alone(file: &File, why: Alone) {
        let is_cut = why == Alone::Cutting;
        if is_cut && file.calls.begin(1, 1, Use::Handle) != Attempt::Done {
            return;
        }
        if file.calls.claim(1, why) != Attempt::Done {
            assert!(!is_cut, "nobody else cuts it");
            return;
        }
        // A thread that would have to wait ends here, with the file still claimed. Interleavings in which it looks
        // later stand for the wait.
        if !file.calls.are_over(why) {
            return;
        }
        let new = if why == Alone::Cutting { 2 } else { 0 };
        // SAFETY: the checker reports any concurrent use.
        file.bytes.with_mut(|bytes| unsafe { *bytes = new });
        file.calls.give_back(why);
        if is_cut {
            file.calls.end(1, Use::Handle);
        }
        if why == Alone::Closing {
            // SAFETY: as above. Another file is opened in the same slot.
            file.bytes.with_mut(|bytes| unsafe { *bytes = 3 });
            file.calls.open(2);
        }
    }

    fn opened() -> Arc<File> {
        let file = File { calls: Calls::new(), bytes: UnsafeCell::new(1) };
        file.calls.open(1);
        Arc::new(file)
    }

    fn spawn(file: &Arc<File>, what: impl Fn(&File) + Send + 'static) -> thread::JoinHandle<()> {
        let file = Arc::clone(file);
        thread::spawn(move || what(&file))
    }

    #[test]
    fn model_exclusive_use_excludes_other_calls() {
        for why in [Alone::Cutting, Alone::Closing] {
            loom::model(move || {
                let file = opened();
                let threads = [spawn(&file, |file| read(file, 0, 1)), spawn(&file, |file| read(file, 1, 1))];
                alone(&file, why);
                threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
            });
        }
    }

    #[test]
    fn model_one_thread_has_a_file_alone_at_a_time() {
        // Three threads with as many changes have too many interleavings for a full search.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = model.preemption_bound.or(Some(3));
        model.check(|| {
            let file = opened();
            let threads = [
                spawn(&file, |file| alone(file, Alone::Cutting)),
                spawn(&file, |file| {
                    read(file, 1, 1);
                    read(file, 1, 2);
                }),
            ];
            alone(&file, Alone::Closing);
            threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        });
    }
}
