//! Operations at their page's location, past the protocol, as the engine executes small ones.

use super::{Op, World, home_of};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, Event, PageId};

impl World {
    /// Executes an operation on a byte at the page's home, or at the rank with access to the page, if possible now.
    /// Returns whether it was.
    pub fn ship(&mut self, page: PageId, op: Op) -> bool {
        let home = &self.nodes[home_of(page).index()].protocol.home;
        if !home.has_entry(page) {
            self.do_in_file(page, op);
            return true;
        }
        home.stable_user(page, op.access).is_some_and(|rank| self.do_at_user(rank, page, op))
    }

    /// One step, because the engine holds back messages about the page meanwhile.
    fn do_in_file(&mut self, page: PageId, op: Op) {
        let (home, len) = (home_of(page), self.shape.page_bytes);
        self.note(|| format!("{home:?}: {:?} of the file of {page:?}", op.access));
        let is_written = self.nodes[home.index()].protocol.home.is_written(page);
        match op.access {
            Access::Read => {
                let file = self.nodes[home.index()].file.get(&page.index).filter(|_| is_written);
                let byte = file.map_or(0, |bytes| bytes[op.offset]);
                let newest = self.model.get(&page).map_or(0, |newest| newest[op.offset]);
                assert!(self.is_tainted || byte == newest, "the file of {page:?} is old");
            }
            Access::Write => {
                self.event(home, Event::Written(page));
                let file = self.nodes[home.index()].file.entry(page.index).or_insert_with(|| vec![0; len]);
                file[op.offset] = op.value;
                let model = self.model.entry(page).or_insert_with(|| vec![0; len]);
                model[op.offset] = op.value;
                if let Some(disks) = &mut self.disks {
                    disks.note_newest(page, op.offset..op.offset + 1, model);
                    disks.note_stored(page, op.offset..op.offset + 1);
                }
            }
        }
    }

    /// Executes it in a frame, if the page is open there. The rank may have given up the page, or write access.
    fn do_at_user(&mut self, rank: Rank, page: PageId, op: Op) -> bool {
        let word = self.nodes[rank.index()].words.get(&page).copied().unwrap_or_default();
        let Some((frame, _)) = word.open.filter(|(_, access)| *access >= op.access) else { return false };
        self.note(|| format!("{rank:?}: {:?} {page:?} for another rank", op.access));
        match op.access {
            Access::Read => {
                let byte = self.nodes[rank.index()].frames[frame.0 as usize][op.offset];
                let newest = self.model.get(&page).map_or(0, |newest| newest[op.offset]);
                assert!(self.is_tainted || byte == newest, "{rank:?} has old bytes of {page:?}");
            }
            Access::Write => self.write(rank, page, frame, Op { whole: false, ..op }),
        }
        true
    }
}
