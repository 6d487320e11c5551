//! Ranks that ask homes for the pages written since their last question, as at the begin and the end of read-only
//! ranges.

use crate::job::{Job, Node, PAGE_BYTES};
use fastrand::Rng;
use vgasnet_engine::Purpose;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::writes::NEVER;

/// A rank's knowledge of the writes to the pages of one home.
pub struct Watch {
    home: usize,
    /// The time named in the last answer, and the bytes of all pages when it came.
    known: Option<(u64, Vec<Vec<u8>>)>,
    /// The unanswered question, and the pages changed since the known answer when it was asked.
    asked: Option<(u32, Vec<u32>)>,
}

impl Watch {
    /// A watch before the first question.
    pub fn new(home: usize) -> Watch {
        Watch { home, known: None, asked: None }
    }
}

impl Job {
    /// The rank asks the home of its watch, unless the home has no pages or a question is unanswered.
    pub fn ask(&mut self, rank: usize, random: &mut Rng) {
        let home = self.nodes[rank].watch.home;
        let pages = self.shape.ranks[home].pages;
        let now: Vec<Vec<u8>> = self.bytes_of(home);
        let Watch { known, asked, .. } = &mut self.nodes[rank].watch;
        if pages == 0 || asked.is_some() {
            return;
        }
        let differs = |(at, old): (usize, &Vec<u8>)| (*old != now[at]).then_some(at as u32);
        let (since, written) = match known {
            None => (NEVER, Vec::new()),
            Some((since, before)) => (*since, before.iter().enumerate().filter_map(differs).collect()),
        };
        let purpose = if random.bool() { Purpose::Keep } else { Purpose::Watch };
        let id = self.nodes[rank].engine.ask_of_writes(Rank(home as u32), since, &(0..pages), purpose);
        self.nodes[rank].watch.asked = Some((id, written));
        self.rouse(rank);
    }

    /// Takes the answer while no rank is writing, as at the begin of a phase. The answer names all pages written
    /// between the last answer and the question. Returns whether there was one.
    pub fn hear(&mut self, rank: usize) -> bool {
        let is_idle = |node: &Node| node.operations.is_empty() && node.threads.is_empty() && node.pinners.is_empty();
        if !self.nodes.iter().all(is_idle) {
            return false;
        }
        let home = self.nodes[rank].watch.home;
        let Some(id) = self.nodes[rank].watch.asked.as_ref().map(|(id, _)| *id) else { return false };
        let Some((head, pages)) = self.nodes[rank].engine.take_answer_of_writes(id) else { return false };
        let now = self.bytes_of(home);
        let watch = &mut self.nodes[rank].watch;
        let (_, written) = watch.asked.take().expect("there is a question");
        let is_told = |index: u32| pages.iter().any(|page| page.index == index);
        let missing = written.iter().find(|index| !is_told(**index));
        let is_known = watch.known.is_some() && head.has_forgotten == 0 && head.next >= self.shape.ranks[home].pages;
        assert!(!is_known || missing.is_none(), "r{rank} is not told that page {missing:?} of r{home} was written");
        self.seen.writes_told += written.len() as u64;
        watch.known = Some((head.now, now));
        true
    }

    fn bytes_of(&self, home: usize) -> Vec<Vec<u8>> {
        let page = |index| self.model.page(PageId::of_segment(Rank(home as u32), index));
        (0..self.shape.ranks[home].pages).map(|index| page(index)[..PAGE_BYTES].to_vec()).collect()
    }
}
