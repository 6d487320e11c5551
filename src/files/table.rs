//! The open files of a rank, by the client's number. A lookup takes no lock.

use super::calls::{Alone, Attempt, Calls, Use, WORDS};
use super::{FileError, SharedFile};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Mutex, OnceLock};
use vgasnet_engine::Driver;
use vgasnet_memory::FILE_POINTERS;
use vgasnet_sys::{Signalproof, places_of_thread, thread_key};

/// Maximum number of open files of a rank.
const FILES_MAX: u32 = FILE_POINTERS;

/// The open files of a rank.
pub(super) struct Table {
    slots: Box<[OnceLock<Box<Slot>>]>,
    numbers: Mutex<Numbers>,
}

/// The slot of a file. It outlives the file, for the next one.
struct Slot {
    calls: Calls,
    /// Written by the thread with the number while no file is open here, or by the thread with exclusive use. Calls
    /// only read it.
    file: UnsafeCell<Option<SharedFile>>,
}

const _: () = {
    const fn is_for_all_threads<T: Send + Sync>() {}
    is_for_all_threads::<SharedFile>();
};

// SAFETY: threads may share the file or pass it on. `calls` separates readers from the one thread that changes it, and
// orders their accesses.
unsafe impl Sync for Slot {}

/// Free numbers. A number modulo [`FILES_MAX`] is a slot; its upper part changes with each file in the slot.
#[derive(Default)]
struct Numbers {
    /// Numbers of slots used before, in the order of reuse: a number comes back late.
    used: VecDeque<u32>,
    /// Number of slots used so far.
    places: u32,
}

/// A number reserved for a file.
pub(super) struct Reserved<'a> {
    table: &'a Table,
    number: u32,
}

/// A call about a file, which stays open until the call ends.
pub struct Call<'a> {
    driver: &'a Driver,
    table: &'a Table,
    slot: &'a Slot,
    number: u32,
    word: usize,
    what: Use,
}

/// Exclusive use of a file by one thread.
pub(super) struct Own<'a> {
    driver: &'a Driver,
    table: &'a Table,
    slot: &'a Slot,
    number: u32,
    why: Alone,
}

impl Reserved<'_> {
    /// A number below [`FILE_POINTERS`] that no other open file has here.
    pub(super) fn place(&self) -> u32 {
        self.number % FILES_MAX
    }
}

impl Table {
    pub(super) fn new() -> Table {
        let slots = (0..FILES_MAX).map(|_| OnceLock::new()).collect();
        Table { slots, numbers: Mutex::default() }
    }

    /// Reserves a number.
    ///
    /// # Errors
    /// The maximum number of files is open.
    pub(super) fn reserve(&self) -> Result<Reserved<'_>, FileError> {
        let mut numbers = Signalproof::lock(&self.numbers);
        let place = numbers.places;
        let new = (place < FILES_MAX).then_some(FILES_MAX + place);
        let number = if new.is_some() { new } else { numbers.used.pop_front() };
        numbers.places += u32::from(new.is_some());
        drop(numbers);
        let number = number.ok_or_else(|| {
            FileError::argument(format!("this rank has {FILES_MAX} files open; close some of them first"))
        })?;
        Ok(Reserved { table: self, number })
    }

    /// Starts a call about a file. Waits while another thread closes the file and, to use its bytes, while another
    /// thread cuts it.
    ///
    /// # Errors
    /// The file is not open.
    #[inline]
    pub(super) fn begin<'a>(&'a self, driver: &'a Driver, number: u32, what: Use) -> Result<Call<'a>, FileError> {
        let slot = self.slot(number).ok_or_else(|| not_open(number))?;
        let word = word_of_thread();
        if slot.calls.begin(word, number, what) != Attempt::Done {
            slot.begin_later(driver, word, number, what)?;
        }
        Ok(Call { driver, table: self, slot, number, word, what })
    }

    /// Claims exclusive use of a file for closing it, and waits for the end of its calls.
    ///
    /// # Errors
    /// The file is not open.
    pub(super) fn claim<'a>(&'a self, driver: &'a Driver, number: u32) -> Result<Own<'a>, FileError> {
        self.claim_because(driver, number, Alone::Closing)
    }

    fn claim_because<'a>(&'a self, driver: &'a Driver, number: u32, why: Alone) -> Result<Own<'a>, FileError> {
        let slot = self.slot(number).ok_or_else(|| not_open(number))?;
        loop {
            match slot.calls.claim(number, why) {
                Attempt::Done => break,
                Attempt::NotOpen => return Err(not_open(number)),
                Attempt::Barred => driver.wait_until(&|| slot.calls.may_claim(number, why)),
            }
        }
        let own = Own { driver, table: self, slot, number, why };
        driver.wait_until(&|| slot.calls.are_over(why));
        Ok(own)
    }

    fn slot(&self, number: u32) -> Option<&Slot> {
        // Slots without a file have number 0.
        let place = (number >= FILES_MAX).then_some(number % FILES_MAX)?;
        self.slots[place as usize].get().map(Box::as_ref)
    }
}

impl Slot {
    /// Starts a call whose first attempt failed.
    #[cold]
    fn begin_later(&self, driver: &Driver, word: usize, number: u32, what: Use) -> Result<(), FileError> {
        loop {
            // A thread waiting for exclusive use may have seen the count of the failed attempt.
            driver.notify();
            self.wait(driver, word, number, what)?;
            if self.calls.begin(word, number, what) == Attempt::Done {
                return Ok(());
            }
        }
    }

    /// Waits while another thread has exclusive use.
    fn wait(&self, driver: &Driver, word: usize, number: u32, what: Use) -> Result<(), FileError> {
        driver.wait_until(&|| self.calls.look(word, number, what) != Attempt::Barred);
        if self.calls.look(word, number, what) == Attempt::NotOpen { Err(not_open(number)) } else { Ok(()) }
    }
}

impl Reserved<'_> {
    /// Opens the file. Returns its number.
    pub(super) fn open(self, file: SharedFile) -> u32 {
        let slot = self.table.slots[(self.number % FILES_MAX) as usize]
            .get_or_init(|| Box::new(Slot { calls: Calls::new(), file: UnsafeCell::new(None) }));
        // SAFETY: no file is open here, so no call reads the slot, and no other thread has the number.
        unsafe { *slot.file.get() = Some(file) };
        slot.calls.open(self.number);
        let number = self.number;
        std::mem::forget(self);
        number
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        Signalproof::lock(&self.table.numbers).used.push_back(next_of(self.number));
    }
}

impl Deref for Call<'_> {
    type Target = SharedFile;

    #[inline]
    fn deref(&self) -> &SharedFile {
        // SAFETY: this call is counted, so no thread changes the file.
        unsafe { (*self.slot.file.get()).as_ref() }.expect("a file is open here")
    }
}

impl Call<'_> {
    /// Gives this thread exclusive use of the file's bytes, once the calls using them have ended. This call does not
    /// use them itself.
    pub(super) fn bar(&self) -> Own<'_> {
        assert!(self.what == Use::Handle, "a call that uses the bytes would wait for itself");
        let claimed = self.table.claim_because(self.driver, self.number, Alone::Cutting);
        claimed.expect("this call keeps the file open")
    }
}

impl Drop for Call<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.slot.calls.end(self.word, self.what) {
            self.driver.notify();
        }
    }
}

impl Deref for Own<'_> {
    type Target = SharedFile;

    fn deref(&self) -> &SharedFile {
        // SAFETY: only this thread may change the file: it has exclusive use.
        unsafe { (*self.slot.file.get()).as_ref() }.expect("a file is open here")
    }
}

impl Drop for Own<'_> {
    /// Ends exclusive use: others may use the file again, or it is closed.
    fn drop(&mut self) {
        if self.why == Alone::Closing {
            // SAFETY: no call is in progress, and none starts.
            unsafe { *self.slot.file.get() = None };
        }
        self.slot.calls.give_back(self.why);
        if self.why == Alone::Closing {
            Signalproof::lock(&self.table.numbers).used.push_back(next_of(self.number));
        }
        self.driver.notify();
    }
}

/// The next number of the same slot. None is 0.
fn next_of(number: u32) -> u32 {
    number.checked_add(FILES_MAX).unwrap_or(FILES_MAX + number % FILES_MAX)
}

/// The word for the calling thread's calls.
#[inline]
fn word_of_thread() -> usize {
    places_of_thread(thread_key()).next().expect("a table has places") % WORDS
}

fn not_open(number: u32) -> FileError {
    FileError::argument(format!("file {number:#x} is not open: it was closed, or never came from vgasnet_file_open"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_0_and_come_again_late() {
        let table = Table::new();
        let all: Vec<Reserved<'_>> = (0..FILES_MAX).map(|_| table.reserve().expect("there is room")).collect();
        assert_eq!((all[0].number, all[4095].number), (4096, 8191));
        assert!(table.reserve().is_err(), "all places are taken");
        drop(all);
        let again = table.reserve().expect("there is room");
        assert_eq!(again.number, 8192, "the place is used again, with another number");
        assert_eq!(next_of(u32::MAX), FILES_MAX + 4095);
    }

    #[test]
    fn a_number_that_no_file_has_had_is_found_nowhere() {
        let table = Table::new();
        let reserved = table.reserve().expect("there is room");
        assert!([0, 77, reserved.number, u32::MAX].iter().all(|number| table.slot(*number).is_none()));
        let slot = || Box::new(Slot { calls: Calls::new(), file: UnsafeCell::new(None) });
        table.slots[0].get_or_init(slot);
        assert!(table.slot(0).is_none() && table.slot(FILES_MAX).is_some(), "number 0 is that of no file");
    }
}
