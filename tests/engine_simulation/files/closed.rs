//! A file leaves nothing behind once all ranks have closed it.

use super::SharedFile;
use crate::job::Job;
use std::sync::Arc;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::PageId;

impl Job {
    /// Ends a file that all ranks have closed.
    pub fn end_file(&mut self, space: Space) {
        let file = self.files.open.remove(&space).expect("it was open");
        self.model.remove_file(space);
        if let Some(steps) = &file.steps {
            steps.check();
            self.files.seen.in_order += 1;
        }
        for (rank, member) in &file.members {
            let node = &self.nodes[*rank];
            let protocol = node.engine.protocol();
            let page = protocol.cache.pages_of(space).next();
            assert_eq!(page, None, "r{rank} has a page of a closed file");
            let entry = protocol.home.known_pages_of(space).next();
            assert_eq!(entry, None, "r{rank} has the directory entry of a page of a closed file");
            let (ask, request) = (
                node.engine.locks().asks_here().find(|ask| ask.file == space),
                node.engine.locks().requests_of(space).next(),
            );
            assert!(
                ask.is_none() && request.is_none(),
                "r{rank} has a lock of a closed file: {:?}",
                member.locks.len()
            );
            for index in 0..file.pages {
                let page = PageId { space, index };
                assert!(node.space.own.table.find(page).is_none(), "r{rank} has {page:?} in its page table");
            }
            let of_others = self.files.open.values().any(|file| file.members.contains_key(rank));
            let blocks = node.engine.storage().blocks_of_files();
            assert!(of_others || blocks == (0, 0), "r{rank} has {blocks:?} blocks of files, and none is open");
            assert_eq!(Arc::strong_count(&member.state), 1, "r{rank} has something of a closed file");
        }
        self.nodes.iter().for_each(|node| node.disk.forget_file(&file.named));
        assert_eq!(Arc::strong_count(&file.named), 1, "somebody has a closed file open");
    }

    /// When nothing can happen any more, every file is closed. Ranks of an open file would wait for each other.
    pub fn check_all_closed(&self) {
        let stuck: String = self.files.open.values().map(|file| self.shown(file)).collect();
        assert!(stuck.is_empty(), "ranks wait for ever:\n{stuck}");
    }

    /// Describes the waits of each rank.
    fn shown(&self, file: &SharedFile) -> String {
        let of_rank = |(rank, member): (&usize, &super::Member)| {
            let node = &self.nodes[*rank];
            let engine = &node.engine;
            let (is_flushed, is_quiet) = (engine.is_flushed_file(file.space), engine.is_quiet_about(file.space));
            let calls = node.operations.iter().map(|operation| &operation.call).collect::<Vec<_>>();
            let locks = member.locks.iter().map(|lock| (lock.id, engine.is_locked(lock.id))).collect::<Vec<_>>();
            let (held, pending) = (engine.held_parts(), engine.pending());
            format!(
                "r{rank}: {:?}, {:?}, flushed: {is_flushed}, quiet: {is_quiet}, held: {held}, {pending:?}, locks {locks:?}, \
                 calls {calls:?}\n",
                member.step, member.waits
            )
        };
        let members: String = file.members.iter().map(of_rank).collect();
        format!("{:?}, {:?}:\n{members}{}", file.space, file.errand, self.lock_waits(file.space))
    }
}
