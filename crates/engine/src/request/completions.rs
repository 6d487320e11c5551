//! Completions: the client waits for operations by them.
//!
//! A completion counts parts of operations in flight. Completions live in an array that grows in blocks, each twice as
//! large as the one before. The array never moves or shrinks, and free completions are reused.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use vgasnet_settings::UserError;
use vgasnet_sys::Signalproof;

/// Completions in the first block.
const FIRST_BLOCK: u32 = 1024;

/// Number of blocks for numbers of [`Completions::NUMBER_BITS`] bits.
const BLOCKS: usize = (Completions::NUMBER_BITS - FIRST_BLOCK.ilog2()) as usize;

/// Counts parts of operations in flight.
#[derive(Debug, Default)]
struct Counter {
    /// Pending parts.
    pending: AtomicU64,
    /// Odd while the completion is in use. A handle carries the generation at its creation.
    generation: AtomicU32,
    /// While free: one more than the number of the next free completion, or 0.
    next_free: AtomicU32,
    /// The result of a get by value. For operations on files: the failure's errno value.
    value: AtomicU64,
}

impl Counter {
    fn is_done(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }
}

/// The number of a completion in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionId(u32);

impl CompletionId {
    /// The number. Completions used first have low ones.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The inverse of [`CompletionId::number`], while something is pending there.
    pub fn of_number(number: u32) -> CompletionId {
        CompletionId(number)
    }
}

/// A completion as the client names it. Never zero, and not repeated within 2^31 uses of one completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(NonZeroU64);

impl Handle {
    /// The handle in the client's representation.
    pub fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// A handle from the client; `None` for the invalid handle, which names no operation.
    pub fn from_bits(bits: u64) -> Option<Handle> {
        NonZeroU64::new(bits).map(Handle)
    }
}

/// All completions of this rank.
#[derive(Debug, Default)]
pub struct Completions {
    blocks: [OnceLock<Box<[Counter]>>; BLOCKS],
    /// The head of the free list, as [`Counter::next_free`], and above it a number that changes with each change,
    /// against ABA: a thread that has read the second completion sees whether it still is the second.
    free: AtomicU64,
    /// Numbers from here on were never used.
    fresh: Mutex<u32>,
}

/// The block of a number, and its index there.
fn place(number: u32) -> (usize, usize) {
    let shifted = u64::from(number) + u64::from(FIRST_BLOCK);
    let block = shifted.ilog2() - FIRST_BLOCK.ilog2();
    debug_assert!(shifted >= u64::from(FIRST_BLOCK) << block, "completion {number} is in block {block}");
    (block as usize, (shifted - (u64::from(FIRST_BLOCK) << block)) as usize)
}

#[cold]
fn names_nothing(handle: Handle) -> UserError {
    UserError::new(format!(
        "handle {:#x} names no operation in flight: it was synced before or never given out; sync each handle once",
        handle.to_bits()
    ))
}

/// [`Completions::free`] with another head.
fn changed(free: u64, first: u32) -> u64 {
    ((free >> 32).wrapping_add(1) << 32) | u64::from(first)
}

impl Completions {
    /// Maximum bits of a number. The other bits of a handle's low half are free.
    pub const NUMBER_BITS: u32 = 28;

    /// Takes a completion with nothing pending into use.
    pub fn begin(&self) -> CompletionId {
        let number = self.pop_free().unwrap_or_else(|| self.fresh());
        let completion = self.at(number);
        let generation = completion.generation.load(Ordering::Relaxed);
        completion.generation.store(generation.wrapping_add(1), Ordering::Relaxed);
        assert!(generation % 2 == 0, "completion {number} was not in use");
        assert!(completion.is_done(), "nothing is pending before a completion begins");
        CompletionId(number)
    }

    /// Gives back a completion with nothing pending. Its handle becomes invalid.
    pub fn end(&self, id: CompletionId) {
        let completion = self.at(id.0);
        assert!(completion.is_done(), "a completion ends when nothing is pending");
        self.release(id.0, completion);
    }

    /// Ends the completion of a handle if nothing is pending. Returns whether it did.
    ///
    /// # Errors
    /// As [`Completions::find`].
    #[inline]
    pub fn end_if_done(&self, handle: Handle) -> Result<bool, UserError> {
        let Some((number, completion)) = self.named(handle) else { return Err(names_nothing(handle)) };
        let is_done = completion.is_done();
        if is_done {
            self.release(number, completion);
        }
        Ok(is_done)
    }

    /// Whether operations of a valid handle are pending.
    pub fn is_pending(&self, handle: Handle) -> bool {
        self.named(handle).is_some_and(|(_, completion)| !completion.is_done())
    }

    fn release(&self, number: u32, completion: &Counter) {
        // The calling owner is the only user.
        let generation = completion.generation.load(Ordering::Relaxed);
        debug_assert!(
            generation % 2 == 1 && completion.is_done(),
            "a completion is given back once, when nothing is pending"
        );
        completion.generation.store(generation.wrapping_add(1), Ordering::Relaxed);
        let push = |free: u64| {
            completion.next_free.store(free as u32, Ordering::Relaxed);
            Some(changed(free, number + 1))
        };
        let pushed = self.free.fetch_update(Ordering::Release, Ordering::Relaxed, push);
        debug_assert!(pushed.is_ok(), "a completion is always given back");
    }

    /// Takes a free completion, if there is one.
    fn pop_free(&self) -> Option<u32> {
        let pop = |free: u64| {
            let first = (free as u32).checked_sub(1)?;
            // Another thread may have taken it and changed this by now; then it has changed the number above, too.
            Some(changed(free, self.at(first).next_free.load(Ordering::Relaxed)))
        };
        let before = self.free.fetch_update(Ordering::Acquire, Ordering::Acquire, pop).ok()?;
        Some(before as u32 - 1)
    }

    /// A number never used before.
    fn fresh(&self) -> u32 {
        let mut fresh = Signalproof::lock(&self.fresh);
        let number = *fresh;
        assert!(number < 1 << Completions::NUMBER_BITS, "there are too many operations in flight");
        let (block, _) = place(number);
        self.blocks[block]
            .get_or_init(|| (0..FIRST_BLOCK as usize * (1 << block)).map(|_| Counter::default()).collect());
        *fresh += 1;
        number
    }

    /// Counts one more part in flight.
    pub fn add(&self, id: CompletionId) {
        debug_assert!(self.at(id.0).generation.load(Ordering::Relaxed) % 2 == 1, "{id:?} is in use");
        self.at(id.0).pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a finished part. Returns whether it was the last.
    pub fn finish(&self, id: CompletionId) -> bool {
        let before = self.at(id.0).pending.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "each part of a completion ends once");
        before == 1
    }

    /// Whether nothing is pending. If so, the bytes written by the parts are visible.
    pub fn is_done(&self, id: CompletionId) -> bool {
        self.at(id.0).is_done()
    }

    /// The eight bytes for the result of a get by value.
    pub fn value(&self, id: CompletionId) -> &AtomicU64 {
        &self.at(id.0).value
    }

    /// Notes a part's failure, as an errno value. The part is finished afterwards.
    pub fn fail(&self, id: CompletionId, cause: u32) {
        self.at(id.0).value.store(u64::from(cause), Ordering::Relaxed);
    }

    /// The errno value of a part's failure, if one has failed. The value must have been set to 0 before.
    pub fn failure(&self, id: CompletionId) -> Option<u32> {
        let cause = self.at(id.0).value.load(Ordering::Relaxed) as u32;
        (cause != 0).then_some(cause)
    }

    /// The handle of a completion.
    pub fn handle(&self, id: CompletionId) -> Handle {
        let generation = self.at(id.0).generation.load(Ordering::Relaxed);
        let bits = u64::from(generation) << 32 | u64::from(id.0);
        Handle(NonZeroU64::new(bits).expect("a generation in use is odd"))
    }

    /// The completion of a handle.
    ///
    /// # Errors
    /// The handle was synced before, or never given to the client.
    pub fn find(&self, handle: Handle) -> Result<CompletionId, UserError> {
        self.named(handle).map(|(number, _)| CompletionId(number)).ok_or_else(|| names_nothing(handle))
    }

    /// The completion of a handle, with its number.
    fn named(&self, handle: Handle) -> Option<(u32, &Counter)> {
        let (generation, number) = ((handle.to_bits() >> 32) as u32, handle.to_bits() as u32);
        let (block, at) = place(number);
        let completion = &self.blocks.get(block)?.get()?[at];
        let is_named = generation % 2 == 1 && completion.generation.load(Ordering::Relaxed) == generation;
        is_named.then_some((number, completion))
    }

    /// Whether a handle names an operation or seems to have named one.
    pub fn was_given_out(&self, handle: Handle) -> bool {
        let (generation, number) = ((handle.to_bits() >> 32) as u32, handle.to_bits() as u32);
        let (block, at) = place(number);
        let counter = self.blocks.get(block).and_then(OnceLock::get).map(|counters| &counters[at]);
        let age = counter.map(|counter| counter.generation.load(Ordering::Relaxed).wrapping_sub(generation));
        generation % 2 == 1 && age.is_some_and(|age| age < 1 << 31)
    }

    fn at(&self, number: u32) -> &Counter {
        let (block, at) = place(number);
        &self.blocks[block].get().expect("a completion in use has its block")[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_block_after_block() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(FIRST_BLOCK - 1), (0, FIRST_BLOCK as usize - 1));
        assert_eq!(place(FIRST_BLOCK), (1, 0));
        assert_eq!(place(3 * FIRST_BLOCK), (2, 0));
        let last = (1 << Completions::NUMBER_BITS) - FIRST_BLOCK - 1;
        assert_eq!((place(last).0, place(last + 1).0), (BLOCKS - 1, BLOCKS));
    }

    #[test]
    fn a_handle_is_good_for_one_sync() {
        let completions = Completions::default();
        let ids: Vec<_> = (0..5000).map(|_| completions.begin()).collect();
        let handles: Vec<_> = ids.iter().map(|id| completions.handle(*id)).collect();
        for (id, handle) in ids.iter().zip(&handles) {
            assert_eq!(completions.find(*handle), Ok(*id));
            completions.add(*id);
            assert!(!completions.is_done(*id));
            assert!(completions.finish(*id));
            completions.end(*id);
            assert!(completions.find(*handle).is_err() && completions.was_given_out(*handle));
        }
        let again = completions.begin();
        assert!(
            handles.iter().all(|handle| *handle != completions.handle(again)),
            "a number comes with a new generation"
        );
    }

    #[test]
    fn threads_that_begin_and_end_completions_never_get_the_same() {
        const ROUNDS: usize = 20_000;
        let completions = Completions::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        let ids: Vec<_> = (0..1 + round % 5).map(|_| completions.begin()).collect();
                        for id in &ids {
                            completions.add(*id);
                        }
                        // With another thread's count, it would not be the last.
                        assert!(ids.iter().all(|id| completions.finish(*id)));
                        ids.into_iter().for_each(|id| completions.end(id));
                    }
                });
            }
        });
        let used = *completions.fresh.lock().expect("no panic");
        assert!(used <= 20, "{used} completions for 20 at a time");
    }

    #[test]
    fn nonsense_names_nothing() {
        let completions = Completions::default();
        assert_eq!(Handle::from_bits(0), None);
        for bits in [1, u64::MAX, 1 << 32, 0x1_0000_0001] {
            let handle = Handle::from_bits(bits).expect("not zero");
            assert!(completions.find(handle).is_err() && !completions.was_given_out(handle));
        }
    }
}
