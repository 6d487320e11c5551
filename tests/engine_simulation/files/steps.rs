//! Atomic calls: whether they could have happened one after the other.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// More states than the search for an order needs. A search that exceeds them has probably no order to find.
const STATES_MAX: usize = 200_000;

/// Some bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub start_bytes: usize,
    pub len_bytes: usize,
}

impl Run {
    pub fn end_bytes(&self) -> usize {
        self.start_bytes + self.len_bytes
    }
}

/// A complete call.
#[derive(Clone, Debug)]
pub struct OneStep {
    pub rank: usize,
    pub is_put: bool,
    /// Each of its bytes may have been written or not.
    pub has_failed: bool,
    pub begun: u64,
    pub ended: u64,
    pub runs: Vec<Run>,
    /// The written or read bytes, one run after the other.
    pub bytes: Vec<u8>,
}

/// The calls of a file from some time on.
pub struct Steps {
    first: Vec<u8>,
    calls: Vec<OneStep>,
}

impl Steps {
    /// The calls of a file with these bytes.
    pub fn new(first: Vec<u8>) -> Steps {
        Steps { first, calls: Vec::new() }
    }

    /// Adds a complete call.
    pub fn push(&mut self, call: OneStep) {
        // A failed read says nothing.
        if call.is_put || !call.has_failed {
            self.calls.push(call);
        }
    }

    /// Checks that a sequential order of the calls exists. Each call comes after all calls that had ended when it
    /// began, and each read returns the bytes left by the writes before it.
    pub fn check(&self) {
        let order = Search::new(self).find();
        assert!(order.is_some(), "the calls are no steps one after the other:\n{}", self.shown());
    }

    fn shown(&self) -> String {
        let line = |OneStep { rank, is_put, has_failed, begun, ended, runs, .. }: &OneStep| {
            let what = if *is_put { "writes" } else { "reads" };
            let fails = if *has_failed { ", and fails" } else { "" };
            format!("{begun}..{ended}: r{rank} {what} {runs:?}{fails}\n")
        };
        self.calls.iter().map(line).collect()
    }
}

/// A part of the file that each call covers whole or not at all: its index, and where its bytes begin in the call's.
#[derive(Clone, Copy)]
struct Part {
    index: usize,
    at: usize,
}

struct Search<'a> {
    first: &'a [u8],
    calls: &'a [OneStep],
    /// The parts of the file, and the parts of each call.
    borders: Vec<usize>,
    parts: Vec<Vec<Part>>,
    /// For each part, the writers its bytes may be from: 0 is the initial content, n is call n - 1. Only failed writes
    /// leave several.
    writers: Vec<Vec<u16>>,
    is_done: Vec<bool>,
    order: Vec<usize>,
    seen: HashSet<u64>,
}

impl<'a> Search<'a> {
    fn new(Steps { first, calls }: &'a Steps) -> Search<'a> {
        let ends = calls.iter().flat_map(|call| &call.runs).flat_map(|run| [run.start_bytes, run.end_bytes()]);
        let borders: BTreeSet<usize> = ends.collect();
        let borders: Vec<usize> = borders.into_iter().collect();
        let parts = calls.iter().map(|call| parts_of(call, &borders)).collect();
        let writers = vec![vec![0]; borders.len()];
        let (is_done, order, seen) = (vec![false; calls.len()], Vec::new(), HashSet::new());
        Search { first, calls, borders, parts, writers, is_done, order, seen }
    }

    /// Returns the order, if there is one.
    fn find(mut self) -> Option<Vec<usize>> {
        self.go_on().then_some(self.order)
    }

    /// Tries each call that may come next, until all are done or none may come. Returns whether all are done.
    fn go_on(&mut self) -> bool {
        let before = self.order.len();
        // A read that returns the present bytes may as well come now: it changes nothing for the others.
        while let Some(read) = self.next_calls().into_iter().find(|call| !self.calls[*call].is_put && self.finds(*call))
        {
            self.is_done[read] = true;
            self.order.push(read);
        }
        if self.order.len() == self.calls.len() {
            return true;
        }
        let mut writes: Vec<usize> = self.next_calls().into_iter().filter(|call| self.calls[*call].is_put).collect();
        writes.sort_by_key(|call| self.calls[*call].ended);
        for write in writes {
            let replaced = self.write(write);
            if self.is_new() && self.go_on() {
                return true;
            }
            self.undo(write, replaced);
        }
        for read in self.order.drain(before..) {
            self.is_done[read] = false;
        }
        false
    }

    /// The calls that may come next: none of the others had ended when they began.
    fn next_calls(&self) -> Vec<usize> {
        let left = || (0..self.calls.len()).filter(|call| !self.is_done[*call]);
        let first_end = left().map(|call| self.calls[call].ended).min().unwrap_or_default();
        left().filter(|call| self.calls[*call].begun < first_end).collect()
    }

    /// Whether a read would return its bytes now.
    fn finds(&self, read: usize) -> bool {
        self.parts[read].iter().all(|part| {
            let len_bytes = self.borders[part.index + 1] - self.borders[part.index];
            let returned = &self.calls[read].bytes[part.at..part.at + len_bytes];
            let may_have = |at: usize, byte: u8| {
                self.writers[part.index].iter().any(|writer| self.bytes_of(*writer, part.index)[at] == byte)
            };
            returned.iter().enumerate().all(|(at, byte)| may_have(at, *byte))
        })
    }

    /// The bytes of a part as left by a writer.
    fn bytes_of(&self, writer: u16, part: usize) -> &[u8] {
        let Some(call) = usize::from(writer).checked_sub(1) else { return &self.first[self.borders[part]..] };
        let its = self.parts[call].iter().find(|its| its.index == part).expect("it has written there");
        &self.calls[call].bytes[its.at..]
    }

    /// Does a write. Returns the previous writers.
    fn write(&mut self, write: usize) -> Vec<Vec<u16>> {
        let (writer, has_failed) = (write as u16 + 1, self.calls[write].has_failed);
        self.is_done[write] = true;
        self.order.push(write);
        let writers = &mut self.writers;
        let replace = |part: &Part| {
            let mut new = if has_failed { writers[part.index].clone() } else { Vec::new() };
            new.push(writer);
            std::mem::replace(&mut writers[part.index], new)
        };
        self.parts[write].iter().map(replace).collect()
    }

    fn undo(&mut self, write: usize, replaced: Vec<Vec<u16>>) {
        self.is_done[write] = false;
        self.order.pop();
        for (part, before) in self.parts[write].iter().zip(replaced) {
            self.writers[part.index] = before;
        }
    }

    /// Whether the search has not seen this state.
    fn is_new(&mut self) -> bool {
        let mut hasher = DefaultHasher::new();
        (&self.is_done, &self.writers).hash(&mut hasher);
        let is_new = self.seen.insert(hasher.finish());
        assert!(self.seen.len() < STATES_MAX, "no order of {} calls was found", self.calls.len());
        is_new
    }
}

fn parts_of(call: &OneStep, borders: &[usize]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut before = 0;
    for run in call.runs.iter().filter(|run| run.len_bytes > 0) {
        let index = |border: usize| borders.binary_search(&border).expect("it is a border");
        let its = index(run.start_bytes)..index(run.end_bytes());
        parts.extend(its.map(|index| Part { index, at: before + borders[index] - run.start_bytes }));
        before += run.len_bytes;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(is_put: bool, (begun, ended): (u64, u64), runs: &[(usize, &[u8])]) -> OneStep {
        let run = |(start_bytes, bytes): &(usize, &[u8])| Run { start_bytes: *start_bytes, len_bytes: bytes.len() };
        let bytes = runs.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        OneStep { rank: 0, is_put, has_failed: false, begun, ended, runs: runs.iter().map(run).collect(), bytes }
    }

    fn order(calls: &[OneStep]) -> Option<Vec<usize>> {
        let steps = Steps { first: vec![0; 8], calls: calls.to_vec() };
        Search::new(&steps).find()
    }

    #[test]
    fn a_read_that_sees_a_call_whole_or_not_at_all_is_a_step() {
        let write = call(true, (1, 9), &[(0, &[1, 1]), (4, &[1])]);
        for (seen, expected) in [([0; 3], vec![1, 0]), ([1; 3], vec![0, 1])] {
            let read = call(false, (2, 3), &[(0, &seen[..2]), (4, &seen[2..])]);
            assert_eq!(order(&[write.clone(), read]), Some(expected));
        }
    }

    #[test]
    fn a_read_that_sees_half_of_a_call_is_none() {
        let write = call(true, (1, 9), &[(0, &[1, 1]), (4, &[1])]);
        for seen in [[1, 1, 0], [0, 0, 1], [1, 0, 1]] {
            let read = call(false, (2, 3), &[(0, &seen[..2]), (4, &seen[2..])]);
            assert_eq!(order(&[write.clone(), read]), None, "{seen:?}");
        }
    }

    #[test]
    fn two_reads_see_two_writes_in_one_order() {
        let writes = [call(true, (1, 9), &[(0, &[1]), (4, &[1])]), call(true, (2, 8), &[(0, &[2]), (4, &[2])])];
        let read = |at: u64, byte: u8| call(false, (at, at + 1), &[(0, &[byte]), (4, &[byte])]);
        let [one, two] = writes;
        assert_eq!(order(&[one.clone(), two.clone(), read(3, 1), read(5, 2)]), Some(vec![0, 2, 1, 3]));
        assert_eq!(order(&[one, two, read(3, 1), read(5, 2), read(6, 1)]), None, "the first comes once");
    }

    #[test]
    fn what_has_ended_is_seen_and_a_failed_write_may_be() {
        let write = call(true, (1, 2), &[(0, &[1, 1])]);
        let read = |bytes: &[u8]| call(false, (3, 4), &[(0, bytes)]);
        assert_eq!(order(&[write.clone(), read(&[0, 0])]), None);
        let failed = OneStep { has_failed: true, ..write };
        assert!([[0, 0], [0, 1], [1, 1]].iter().all(|seen| order(&[failed.clone(), read(seen)]).is_some()));
        assert_eq!(order(&[failed, read(&[2, 0])]), None);
    }
}
