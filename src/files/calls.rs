//! The calls under way about a file, counted without a lock: a call counts itself in a word of the file, and looks at what that was. A file
//! has many words, and each thread uses one of them, so that threads which use a file at once seldom write to the same cache line.
//!
//! ```text
//!  63      32    31       30    29      15 14     0
//! ┌──────────┬─────────┬───────┬──────────┬───────┐
//! │  number  │ closing │cutting│  beside  │ calls │
//! └──────────┴─────────┴───────┴──────────┴───────┘
//! ```
//!
//! Who wants a file alone claims it by a mark in the first word, marks the others, and waits until it has seen each word without calls. A
//! call that has counted itself before the mark is seen there; one that comes later finds the mark, and counts itself out again.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a file.
pub(super) const WORDS: usize = if cfg!(all(loom, test)) { 2 } else { 64 };

const NUMBER_SHIFT: u32 = 32;
const CLOSING: u64 = 1 << 31;
const CUTTING: u64 = 1 << 30;
const MARKS: u64 = CLOSING | CUTTING;
const BESIDE: u64 = 1 << 15;
const CALL: u64 = 1;
/// All calls of both kinds; no process has as many threads.
const COUNTS: u64 = CUTTING - 1;
const CALLS: u64 = BESIDE - 1;

/// What a call needs of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Its bytes and its size.
    Bytes,
    /// That it is open.
    Beside,
}

impl Use {
    fn count(self) -> u64 {
        if self == Use::Bytes { CALL } else { BESIDE }
    }

    /// What keeps such a call waiting.
    fn barred_by(self) -> u64 {
        if self == Use::Bytes { MARKS } else { CLOSING }
    }
}

/// Why a thread wants a file alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alone {
    /// It is to have another size.
    Cutting,
    Closing,
}

impl Alone {
    fn mark(self) -> u64 {
        if self == Alone::Cutting { CUTTING } else { CLOSING }
    }

    /// The calls that it waits for.
    fn counts(self) -> u64 {
        if self == Alone::Cutting { CALLS } else { COUNTS }
    }

    /// What keeps such a claim waiting. Who has the file cut does that in a call beside it, which keeps it open.
    fn barred_by(self) -> u64 {
        if self == Alone::Cutting { CUTTING } else { MARKS }
    }
}

/// What comes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Done,
    /// Another thread has the file alone, or wants it so. Who waits for this one's count is to be told that it is gone.
    Barred,
    /// No file of this number is open here. As for `Barred`.
    NotOpen,
}

/// The words of a file.
pub(super) struct Calls([Word; WORDS]);

#[repr(align(64))]
struct Word(AtomicU64);

impl Calls {
    /// No file is open.
    pub(super) fn new() -> Calls {
        Calls(std::array::from_fn(|_| Word(AtomicU64::new(0))))
    }

    /// A file is open from now on. What was written before is there for its calls.
    pub(super) fn open(&self, number: u32) {
        for Word(word) in &self.0 {
            let before = word.fetch_or(u64::from(number) << NUMBER_SHIFT, Ordering::Release);
            assert_eq!(before & !COUNTS, 0, "another file is open here");
        }
    }

    /// A call begins.
    #[inline]
    pub(super) fn begin(&self, word: usize, number: u32, what: Use) -> Attempt {
        let before = self.0[word].0.fetch_add(what.count(), Ordering::Acquire);
        let found = found(before, number, what.barred_by());
        if found != Attempt::Done {
            self.0[word].0.fetch_sub(what.count(), Ordering::Relaxed);
        }
        found
    }

    /// A call ends. Returns whether a thread may wait for that.
    #[inline]
    pub(super) fn end(&self, word: usize, what: Use) -> bool {
        self.0[word].0.fetch_sub(what.count(), Ordering::Release) & MARKS != 0
    }

    /// What a call that begins would find.
    pub(super) fn look(&self, word: usize, number: u32, what: Use) -> Attempt {
        found(self.0[word].0.load(Ordering::Acquire), number, what.barred_by())
    }

    /// A thread wants the file alone. It has it when this is done, and [`Calls::are_over`] was true since. For [`Alone::Cutting`] it has a
    /// call of [`Use::Beside`] under way.
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

    /// Whether a claim would find the file to be had, or not open.
    pub(super) fn may_claim(&self, number: u32, why: Alone) -> bool {
        found(self.0[0].0.load(Ordering::Acquire), number, why.barred_by()) != Attempt::Barred
    }

    /// Whether no call is left that the thread with the claim waits for.
    pub(super) fn are_over(&self, why: Alone) -> bool {
        self.0.iter().all(|Word(word)| word.load(Ordering::Acquire) & why.counts() == 0)
    }

    /// Others may use the file again, or none is open here any more.
    pub(super) fn give_back(&self, why: Alone) {
        let kept = if why == Alone::Cutting { !CUTTING } else { COUNTS };
        // The first word last, since who claims the file marks the others after it.
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
        assert_eq!(calls.begin(3, 7, Use::Beside), Attempt::NotOpen);
        calls.open(9);
        assert_eq!(calls.begin(3, 9, Use::Beside), Attempt::Done);
    }

    #[test]
    fn a_file_is_cut_between_calls_that_use_its_bytes() {
        let calls = open();
        assert_eq!([calls.begin(1, 7, Use::Bytes), calls.begin(2, 7, Use::Beside)], [Attempt::Done; 2]);
        assert_eq!(calls.claim(7, Alone::Cutting), Attempt::Done);
        assert!(!calls.are_over(Alone::Cutting), "a call is under way");
        assert_eq!((0..WORDS).find(|word| calls.begin(*word, 7, Use::Bytes) != Attempt::Barred), None);
        assert_eq!(
            calls.begin(4, 7, Use::Beside),
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
        assert_eq!(calls.begin(4, 7, Use::Beside), Attempt::Barred);
        assert!([2, 4].map(|word| calls.end(word, Use::Beside)).iter().all(|waits| *waits));
        assert!(calls.are_over(Alone::Closing));
    }

    #[test]
    fn a_file_that_is_to_be_closed_is_cut_by_a_call_that_came_before() {
        let calls = open();
        assert_eq!(calls.begin(2, 7, Use::Beside), Attempt::Done);
        assert_eq!(calls.claim(7, Alone::Closing), Attempt::Done);
        assert_eq!(calls.claim(7, Alone::Cutting), Attempt::Done);
        assert!(calls.are_over(Alone::Cutting) && !calls.are_over(Alone::Closing));
        calls.give_back(Alone::Cutting);
        assert_eq!(calls.begin(3, 7, Use::Bytes), Attempt::Barred, "another thread closes it");
        calls.end(2, Use::Beside);
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
            // SAFETY: the checker tells if anybody writes meanwhile.
            let seen = file.bytes.with(|bytes| unsafe { *bytes });
            assert!(seen > 0, "the file is not open");
            file.calls.end(word, Use::Bytes);
        }
    }

    fn alone(file: &File, why: Alone) {
        let is_beside = why == Alone::Cutting;
        if is_beside && file.calls.begin(1, 1, Use::Beside) != Attempt::Done {
            return;
        }
        if file.calls.claim(1, why) != Attempt::Done {
            assert!(!is_beside, "nobody else cuts it");
            return;
        }
        // Interleavings in which it looks later stand for those in which it waits. The others end here, with the file still claimed.
        if !file.calls.are_over(why) {
            return;
        }
        let new = if why == Alone::Cutting { 2 } else { 0 };
        // SAFETY: the checker tells if anybody else uses it meanwhile.
        file.bytes.with_mut(|bytes| unsafe { *bytes = new });
        file.calls.give_back(why);
        if is_beside {
            file.calls.end(1, Use::Beside);
        }
        if why == Alone::Closing {
            // SAFETY: as above. Another file is opened at the same place.
            file.bytes.with_mut(|bytes| unsafe { *bytes = 3 });
            file.calls.open(2);
        }
    }

    fn opened() -> Arc<File> {
        let file = File { calls: Calls::new(), bytes: UnsafeCell::new(1) };
        file.calls.open(1);
        Arc::new(file)
    }

    fn beside(file: &Arc<File>, what: impl Fn(&File) + Send + 'static) -> thread::JoinHandle<()> {
        let file = Arc::clone(file);
        thread::spawn(move || what(&file))
    }

    #[test]
    fn model_who_has_a_file_alone_has_no_calls_beside_it() {
        for why in [Alone::Cutting, Alone::Closing] {
            loom::model(move || {
                let file = opened();
                let threads = [beside(&file, |file| read(file, 0, 1)), beside(&file, |file| read(file, 1, 1))];
                alone(&file, why);
                threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
            });
        }
    }

    #[test]
    fn model_one_thread_has_a_file_alone_at_a_time() {
        // All interleavings of three threads that change as much are too many.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = model.preemption_bound.or(Some(3));
        model.check(|| {
            let file = opened();
            let threads = [
                beside(&file, |file| alone(file, Alone::Cutting)),
                beside(&file, |file| {
                    read(file, 1, 1);
                    read(file, 1, 2);
                }),
            ];
            alone(&file, Alone::Closing);
            threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        });
    }
}
