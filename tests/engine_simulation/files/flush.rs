//! A rank's own operations on a file other than reads and writes: flushes, questions about the size, hints.

use crate::job::{Job, PAGE_BYTES};
use fastrand::Rng;
use vgasnet_engine::OwnFlush;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::FileAsk;
use vgasnet_protocol::{Rank, Space};

/// The event a rank waits for, outside of calls.
#[derive(Debug)]
pub enum Waits {
    Nothing,
    /// Its own flush, and the time it began.
    Flush(u64, OwnFlush),
    /// The flushes of the homes after its own.
    Homes(u64, OwnFlush, Vec<u32>, Option<Cause>),
    /// Answers of the other ranks about the file's size, which was at least this large when they were asked.
    Ends(u64, Vec<u32>),
}

impl Job {
    /// A rank continues a flush or question of its own.
    pub fn go_on_waiting(&mut self, rank: usize, space: Space) -> bool {
        let file = self.files.open.get_mut(&space).expect("it is open");
        let member = file.members.get_mut(&rank).expect("it is a member");
        match std::mem::replace(&mut member.waits, Waits::Nothing) {
            Waits::Flush(begun, flush) if self.nodes[rank].engine.is_flushed_file(space) => {
                let engine = &mut self.nodes[rank].engine;
                let refusal = engine.refusal(space);
                let ask = |home: &Rank| engine.ask_of_file(*home, space, FileAsk::Flush, flush.filter().0);
                let ids = file.stripes.homes.iter().map(ask).collect();
                member.waits = Waits::Homes(begun, flush, ids, refusal);
            }
            Waits::Homes(begun, flush, ids, refusal) => {
                let Some(answers) = self.nodes[rank].engine.take_answers_of_file(&ids) else {
                    member.waits = Waits::Homes(begun, flush, ids, refusal);
                    return false;
                };
                let is_refused = refusal.is_some() || answers.iter().any(|answer| answer.cause != 0);
                self.nodes[rank].engine.end_flush(space, flush, is_refused);
                self.on_flushed(rank, space, begun, is_refused);
            }
            Waits::Ends(least, ids) => {
                let engine = &mut self.nodes[rank].engine;
                let Some(answers) = engine.take_answers_of_file(&ids) else {
                    member.waits = Waits::Ends(least, ids);
                    return false;
                };
                let own = member.state.written_end();
                let end = answers.iter().map(|answer| answer.value).fold(member.known_bytes.max(own), u64::max);
                assert!(least <= end && end <= file.most_bytes, "{end} of {least}..={} bytes", file.most_bytes);
                self.files.seen.sizes += 1;
                member.known_bytes = end;
                engine.note_end(space, end.div_ceil(PAGE_BYTES as u64) as u32);
            }
            other => {
                member.waits = other;
                return false;
            }
        }
        self.rouse(rank);
        true
    }

    /// Ends a flush of one rank.
    fn on_flushed(&mut self, rank: usize, space: Space, begun: u64, is_refused: bool) {
        let (file, seen) = (&self.files.open[&space], &mut self.files.seen);
        seen.flushes += 1;
        if is_refused {
            assert!(file.is_faulty, "nothing is wrong with the file");
            seen.failed_flushes += 1;
            return;
        }
        file.history.check_flushed(rank, begun, &file.memory.bytes());
    }

    /// A rank begins to flush the bytes it has written.
    pub fn begin_flush(&mut self, rank: usize, space: Space) {
        let file = self.files.open.get_mut(&space).expect("it is open");
        let begun = file.history.timestamp();
        let operations = &self.nodes[rank].operations;
        let calls = || operations.iter().filter_map(|operation| operation.call.as_ref());
        file.members[&rank].state.settle_begun(|handle| calls().any(|call| call.has(handle)));
        let engine = &mut self.nodes[rank].engine;
        // The flush must reach the pages that are dirty in other pools now.
        let is_elsewhere = |node: &crate::job::Node| {
            node.engine
                .protocol()
                .cache
                .pages_of(space)
                .any(|page| node.engine.protocol().cache.dirty_frame(page).is_some())
        };
        let flush = engine.begin_flush(space);
        file.members.get_mut(&rank).expect("it is a member").waits = Waits::Flush(begun, flush);
        let elsewhere = self.nodes.iter().enumerate().any(|(other, node)| other != rank && is_elsewhere(node));
        self.files.seen.elsewhere += u64::from(elsewhere);
        self.rouse(rank);
    }

    /// A rank begins a flush or a question about the size, or gives a hint.
    pub fn flush_or_ask(&mut self, rank: usize, space: Space, random: &mut Rng) -> bool {
        let file = self.files.open.get_mut(&space).expect("it is open");
        let others: Vec<usize> = file.members.keys().copied().filter(|other| *other != rank).collect();
        let (engine, member) = (&mut self.nodes[rank].engine, file.members.get_mut(&rank).expect("it is a member"));
        if !matches!(member.waits, Waits::Nothing) || !member.may_begin(file.errand) {
            return false;
        }
        let first = random.u32(0..file.pages);
        let range = first..=random.u32(first..file.pages);
        match random.u32(0..8) {
            0..3 => self.begin_flush(rank, space),
            3 => {
                let ask = |other| engine.ask_of_file(Rank(other as u32), space, FileAsk::End, 0);
                member.waits = Waits::Ends(file.least_bytes, others.into_iter().map(ask).collect());
            }
            4 => engine.fetch(space, range),
            5 => engine.discard(space, &range),
            6 => engine.expect_in_order(space, &range),
            _ => engine.clean(space, &range),
        }
        self.rouse(rank);
        true
    }
}
