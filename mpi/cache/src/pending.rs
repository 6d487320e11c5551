//! Gets in flight: gets with bytes to keep on arrival, gets that joined them, and others that write the same buffers.
//!
//! A get is noted after MPI was asked for its bytes, and numbered. A completion takes the last number before it calls
//! MPI, and files the gets up to it. With several threads a get is therefore filed only when it has arrived, and before
//! the thread that may change the buffer goes on. One lock protects all of this. Gets that miss take it, and
//! completions with something to file.

use crate::atoms::Atom;
use crate::buffers::GetBuffer;
use crate::ffi::SUCCESS;
use crate::origins::Origins;
use crate::store::{self, Fill};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The use of a get's bytes on arrival.
#[derive(Debug)]
enum Purpose {
    /// They are kept.
    Keep(Fill, GetBuffer),
    /// They are not kept.
    None,
    /// They come with another get's bytes.
    Joined { buffer: GetBuffer, displacement: i64 },
    /// They do not come this way, and a thread is about to ask MPI for them.
    Asking,
    /// Its buffer is unknown: it may be anywhere.
    Anywhere,
    /// MPI was asked, and has refused with this code. The call that would complete the get returns it.
    Refused(c_int),
}

/// A get in flight.
#[derive(Debug)]
struct Record {
    space: u32,
    target: u32,
    number: u64,
    atom: Atom,
    dest: usize,
    purpose: Purpose,
    /// It joined another. A thread that completes it goes on until it has its bytes, even if MPI is asked for them on
    /// the way.
    has_joined: bool,
}

/// A get that joined in vain: MPI has to be asked for its bytes.
#[derive(Debug)]
#[must_use = "nobody else gets its bytes"]
pub struct Reissue {
    pub id: u32,
    pub space: u32,
    pub target: u32,
    pub atom: Atom,
    pub buffer: GetBuffer,
    pub displacement: i64,
}

/// A get to be noted. Its buffer is the range of `len` bytes at `dest`.
#[derive(Debug)]
pub struct Noted {
    pub space: u32,
    pub target: u32,
    pub atom: Atom,
    pub dest: usize,
    pub len: usize,
}

/// The result of a completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "it may be an error"]
pub struct Filed {
    /// Joined gets still lack their bytes: other threads are about to ask for them, or have done so since.
    pub lacks: bool,
    /// MPI's code if it has refused the bytes of a get that joined in vain.
    pub error: c_int,
}

impl Filed {
    /// Combines the results of two targets. The first error counts.
    pub fn and(self, other: Filed) -> Filed {
        Filed { lacks: self.lacks || other.lacks, error: first_error(self.error, other.error) }
    }
}

/// The first error of two codes.
pub fn first_error(one: c_int, other: c_int) -> c_int {
    if one == SUCCESS { other } else { one }
}

/// A noted get, for calls about its request.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    id: u32,
    number: u64,
    pub space: u32,
    pub target: u32,
}

impl Ticket {
    /// For an operation that fetches, in place of a get.
    pub fn of_fetch(space: u32, target: u32) -> Ticket {
        Ticket { id: u32::MAX, number: 0, space, target }
    }

    pub fn is_of_fetch(&self) -> bool {
        self.id == u32::MAX
    }
}

/// The gets of a space and a target.
#[derive(Debug, Default)]
struct OfTarget {
    /// Gets with bytes requested from MPI, by their numbers.
    asked: BTreeMap<u64, u32>,
    /// Joined gets, by their destination.
    joined: BTreeMap<usize, Vec<u32>>,
    /// Number of joined gets without bytes.
    lacking: usize,
}

#[derive(Debug)]
struct Pending {
    records: Vec<Option<Record>>,
    free: Vec<u32>,
    targets: BTreeMap<(u32, u32), OfTarget>,
    origins: Origins,
    /// Number of gets with unknown buffers.
    anywhere: usize,
    next_number: u64,
    /// Destinations of joined gets served, or abandoned, before they were noted.
    early: Vec<(usize, bool)>,
}

static PENDING: Mutex<Pending> = Mutex::new(Pending {
    records: Vec::new(),
    free: Vec::new(),
    targets: BTreeMap::new(),
    origins: Origins::new(),
    anywhere: 0,
    next_number: 1,
    early: Vec::new(),
});

/// Number of gets in flight, and the range of all buffers since there was none, for a test without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static LOW: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGH: AtomicUsize = AtomicUsize::new(0);

fn lock() -> MutexGuard<'static, Pending> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether noted gets are in flight.
#[inline]
pub fn has_any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// The number of the last noted get.
pub fn last_number() -> u64 {
    if COUNT.load(Ordering::Acquire) == 0 { 0 } else { lock().next_number - 1 }
}

impl Pending {
    fn add(&mut self, noted: &Noted, purpose: Purpose) -> Ticket {
        let number = self.next_number;
        self.next_number += 1;
        let &Noted { space, target, atom, dest, len } = noted;
        // `None` if MPI was asked for it, else whether it joined.
        let is_lacking = match purpose {
            Purpose::Joined { .. } => Some(true),
            Purpose::Asking => Some(false),
            Purpose::Keep(..) | Purpose::None | Purpose::Anywhere | Purpose::Refused(_) => None,
        };
        let has_buffer = !matches!(purpose, Purpose::Anywhere);
        let record = Record { space, target, number, atom, dest, purpose, has_joined: is_lacking.is_some() };
        let id = self.free.pop().unwrap_or(self.records.len() as u32);
        if id as usize == self.records.len() {
            self.records.push(None);
        }
        self.records[id as usize] = Some(record);
        let of_target = self.targets.entry((space, target)).or_default();
        match is_lacking {
            Some(true) => of_target.joined.entry(dest).or_default().push(id),
            Some(false) => {}
            None => drop(of_target.asked.insert(number, id)),
        }
        of_target.lacking += usize::from(is_lacking.is_some());
        if has_buffer {
            LOW.fetch_min(dest, Ordering::Relaxed);
            HIGH.fetch_max(dest.saturating_add(len), Ordering::Relaxed);
        }
        COUNT.fetch_add(1, Ordering::Relaxed);
        Ticket { id, number, space, target }
    }

    fn has(&self, ticket: Ticket) -> bool {
        let record = self.records.get(ticket.id as usize).and_then(Option::as_ref);
        record.is_some_and(|record| record.number == ticket.number)
    }

    /// Forgets a record, which is no longer in its target's list.
    fn remove(&mut self, id: u32) {
        let record = self.records[id as usize].take();
        record.into_iter().for_each(|record| self.release(id, &record));
    }

    /// A record is gone. A thread that finds no other in flight may change the buffers, so all of them were read before
    /// this.
    fn release(&mut self, id: u32, record: &Record) {
        self.free.push(id);
        match record.purpose {
            Purpose::Anywhere => self.anywhere -= 1,
            _ => self.origins.remove(record.dest),
        }
        if let Some(of_target) = self.targets.get_mut(&(record.space, record.target)) {
            of_target.lacking -= usize::from(record.has_joined);
        }
        if COUNT.load(Ordering::Relaxed) == 1 {
            LOW.store(usize::MAX, Ordering::Relaxed);
            HIGH.store(0, Ordering::Relaxed);
        }
        COUNT.fetch_sub(1, Ordering::Release);
    }

    /// Takes a joined get of a target with this destination.
    fn take_joined(&mut self, space: u32, target: u32, dest: usize) -> Option<u32> {
        let of_target = self.targets.get_mut(&(space, target))?;
        let same = of_target.joined.get_mut(&dest)?;
        let id = same.pop();
        if same.is_empty() {
            of_target.joined.remove(&dest);
        }
        id
    }

    /// The joined gets with these destinations have their bytes.
    fn on_served(&mut self, space: u32, target: u32, dests: Vec<usize>) {
        for dest in dests {
            match self.take_joined(space, target, dest) {
                Some(id) => self.remove(id),
                None => self.early.push((dest, true)),
            }
        }
    }

    /// A get is not kept. The gets joined to it have to ask MPI themselves.
    fn abandon(&mut self, space: u32, target: u32, fill: Fill) -> Vec<Reissue> {
        let mut reissues = Vec::new();
        for dest in store::abandon(fill) {
            let Some(id) = self.take_joined(space, target, dest) else {
                self.early.push((dest, false));
                continue;
            };
            let record = self.records[id as usize].as_mut().expect("it was found");
            let Purpose::Joined { buffer, displacement } = record.purpose else { continue };
            record.purpose = Purpose::Asking;
            reissues.push(Reissue { id, space, target, atom: record.atom, buffer, displacement });
        }
        reissues
    }

    /// These gets are not kept: others write their buffers, so the final content is unknown.
    fn discard(&mut self, ids: Vec<u32>) -> Vec<Reissue> {
        let mut reissues = Vec::new();
        for id in ids {
            let Some(record) = &mut self.records[id as usize] else { continue };
            if !matches!(record.purpose, Purpose::Keep(..)) {
                continue;
            }
            let (space, target) = (record.space, record.target);
            if let Purpose::Keep(fill, _) = std::mem::replace(&mut record.purpose, Purpose::None) {
                reissues.extend(self.abandon(space, target, fill));
            }
        }
        reissues
    }

    /// Files the bytes of a record, which is no longer in its target's list. Returns MPI's code if it has refused them.
    ///
    /// # Safety
    ///
    /// MPI has completed the get, and its completion has not returned to the program.
    unsafe fn file(&mut self, id: u32) -> c_int {
        let Some(mut record) = self.records[id as usize].take() else { return SUCCESS };
        let mut error = SUCCESS;
        match record.purpose {
            Purpose::Keep(fill, buffer) => {
                record.purpose = Purpose::None;
                // SAFETY: the fill is of the get with this buffer. MPI has completed it, and the completion has not
                // returned to the program, as the caller promises.
                let served = unsafe { store::fill(fill, buffer) };
                self.on_served(record.space, record.target, served);
            }
            Purpose::Refused(code) => error = code,
            Purpose::None | Purpose::Anywhere | Purpose::Joined { .. } | Purpose::Asking => {}
        }
        self.release(id, &record);
        error
    }
}

/// Notes a get requested from MPI. If its buffer overlaps another's, neither is kept.
#[must_use = "a request needs the ticket"]
pub fn note(noted: &Noted, kept: Option<(Fill, GetBuffer)>) -> (Ticket, Vec<Reissue>) {
    let mut pending = lock();
    let ticket = pending.add(noted, kept.map_or(Purpose::None, |(fill, buffer)| Purpose::Keep(fill, buffer)));
    let mut conflicting = pending.origins.insert(ticket.id, noted.dest, noted.len);
    if pending.anywhere > 0 {
        conflicting.push(ticket.id);
    }
    (ticket, pending.discard(conflicting))
}

/// Notes gets of a target with unknown buffers. Until they are complete, no get asked for since is kept.
pub fn note_anywhere(space: u32, target: u32) -> Ticket {
    let mut pending = lock();
    pending.anywhere += 1;
    let noted = Noted { space, target, atom: Atom::NONE, dest: 0, len: 0 };
    pending.add(&noted, Purpose::Anywhere)
}

/// Notes a get that joined another.
pub fn note_joined(noted: &Noted, buffer: GetBuffer, displacement: i64) -> Vec<Reissue> {
    let mut pending = lock();
    let at = pending.early.iter().position(|(dest, _)| *dest == noted.dest);
    let early = at.map(|at| pending.early.swap_remove(at).1);
    if early == Some(true) {
        return Vec::new();
    }
    let purpose = if early.is_none() { Purpose::Joined { buffer, displacement } } else { Purpose::Asking };
    let ticket = pending.add(noted, purpose);
    let conflicting = pending.origins.insert(ticket.id, noted.dest, noted.len);
    let mut reissues = pending.discard(conflicting);
    if early.is_some() {
        let &Noted { space, target, atom, .. } = noted;
        reissues.push(Reissue { id: ticket.id, space, target, atom, buffer, displacement });
    }
    reissues
}

/// MPI was asked for the bytes of a get that joined in vain, and has returned this code.
pub fn on_reissued(reissue: &Reissue, error: c_int) {
    let mut pending = lock();
    let number = pending.next_number;
    let Some(Some(record)) = pending.records.get_mut(reissue.id as usize) else { return };
    record.purpose = if error == SUCCESS { Purpose::None } else { Purpose::Refused(error) };
    record.number = number;
    pending.next_number += 1;
    if let Some(of_target) = pending.targets.get_mut(&(reissue.space, reissue.target)) {
        of_target.asked.insert(number, reissue.id);
    }
}

/// A get is not kept, since MPI refused it.
pub fn abandon(space: u32, target: u32, fill: Fill) -> Vec<Reissue> {
    lock().abandon(space, target, fill)
}

/// Bytes were written to a buffer. Gets in flight to the same bytes are not kept.
#[inline]
pub fn on_written(dest: usize, len: usize) -> Vec<Reissue> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return Vec::new();
    }
    if dest >= HIGH.load(Ordering::Relaxed) || dest + len <= LOW.load(Ordering::Relaxed) {
        return Vec::new();
    }
    let mut pending = lock();
    let conflicting = pending.origins.overwrite(dest, len);
    pending.discard(conflicting)
}

/// Bytes were written to an unknown buffer: no get in flight is kept.
pub fn on_written_anywhere() -> Vec<Reissue> {
    let mut pending = lock();
    let ids = (0..pending.records.len() as u32).collect();
    pending.discard(ids)
}

/// Files the gets of a target up to a number. The gets joined to them have their bytes when this returns.
///
/// # Safety
///
/// MPI has completed these gets, and its completion has not returned to the program.
pub unsafe fn file(space: u32, target: u32, last: u64) -> Filed {
    let mut filed = Filed::default();
    // Acquire: the gets filed by others have been read.
    if COUNT.load(Ordering::Acquire) == 0 {
        return filed;
    }
    let mut pending = lock();
    let Some(of_target) = pending.targets.get_mut(&(space, target)) else { return filed };
    let left = of_target.asked.split_off(&(last + 1));
    let come = std::mem::replace(&mut of_target.asked, left);
    for id in come.into_values() {
        // SAFETY: the get's number is not above `last`. MPI has completed these gets, and the completion has not
        // returned to the program, as the caller promises.
        let error = unsafe { pending.file(id) };
        filed.error = first_error(filed.error, error);
    }
    filed.lacks = pending.targets.get(&(space, target)).is_some_and(|of_target| of_target.lacking > 0);
    filed
}

/// Files a get with a complete request, unless it was filed.
///
/// # Safety
///
/// MPI has completed the get's request, and the call about it has not returned to the program.
pub unsafe fn file_one(ticket: Ticket) {
    let mut pending = lock();
    if !pending.has(ticket) {
        return;
    }
    if let Some(of_target) = pending.targets.get_mut(&(ticket.space, ticket.target)) {
        of_target.asked.remove(&ticket.number);
    }
    // SAFETY: MPI has completed the request of this get, and the call has not returned to the program, as the caller
    // promises.
    let error = unsafe { pending.file(ticket.id) };
    debug_assert_eq!(error, SUCCESS, "a get with a request was no other's");
}

/// A request has failed: its get is not kept.
pub fn discard_one(ticket: Ticket) -> Vec<Reissue> {
    let mut pending = lock();
    if pending.has(ticket) { pending.discard(vec![ticket.id]) } else { Vec::new() }
}

/// No get in flight of a space is kept. Returns their number.
pub fn discard_space(space: u32) -> (usize, Vec<Reissue>) {
    let mut pending = lock();
    let of_space = |record: &&Record| record.space == space;
    let ids: Vec<u32> = (0..pending.records.len() as u32)
        .filter(|id| pending.records[*id as usize].as_ref().filter(of_space).is_some())
        .collect();
    (ids.len(), pending.discard(ids))
}

/// A space is gone, with its gets in flight.
pub fn forget_space(space: u32) {
    let mut pending = lock();
    for id in 0..pending.records.len() as u32 {
        if pending.records[id as usize].as_ref().is_some_and(|record| record.space == space) {
            pending.remove(id);
        }
    }
    pending.targets.retain(|(of, _), _| *of != space);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_completes_a_get_that_joined_in_vain_goes_on_until_it_has_its_bytes() {
        let noted = Noted { space: 7, target: 3, atom: Atom::NONE, dest: 4096, len: 8 };
        // The get it joins is abandoned before this one is noted.
        lock().early.push((noted.dest, false));
        // SAFETY: nobody accesses the bytes.
        let buffer = unsafe { GetBuffer::new(noted.dest, noted.len) };
        let reissues = note_joined(&noted, buffer, 0);
        let before = last_number();
        // SAFETY: no get of the space is kept, so no bytes are read.
        let lacks = |last: u64| unsafe { file(noted.space, noted.target, last) }.lacks;
        assert!(reissues.len() == 1 && lacks(before));
        // Another thread asks MPI, which was told before to complete earlier operations.
        on_reissued(&reissues[0], SUCCESS);
        assert!(lacks(before), "its bytes are under way");
        assert!(!lacks(last_number()));
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    }
}
