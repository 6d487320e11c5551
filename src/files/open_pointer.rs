//! A shared pointer for the ranks of a second handle of an MPI program's file. It is a file without bytes: nothing is
//! opened, so it needs neither a path nor a permission.

use super::members::Members;
use super::shared_file::{Facts, OwnFile};
use super::{Access, FileError, Files, SharedFile};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vgasnet_engine::FileState;
use vgasnet_protocol::{Rank, Space};

/// Told by a rank that has no number left for a file.
const NONE: u32 = u32::MAX;

impl Files {
    /// Makes a shared pointer for the ranks of a team. Returns its number among the files of this rank. Collective.
    ///
    /// # Errors
    /// A rank has the maximum number of files open.
    pub fn open_pointer(&self, team: u64) -> Result<u32, FileError> {
        let (members, me) = self.coll.team(team)?;
        let reserved = self.open.reserve();
        let place = reserved.as_ref().map_or(NONE, |reserved| reserved.place());
        let number = if me == 0 { self.next_number() } else { 0 };
        let all = self.coll.gather_all(team, [number, place])?;
        let reserved = reserved?;
        if all.iter().any(|[_, place]| *place == NONE) {
            return Err(FileError::argument("another rank cannot open one more file, and says why"));
        }
        let [number, place] = all[0];
        let first = members[0];
        let pointer = self.ops.space().memories.get(first as usize).map(|memory| memory.file_pointer(place));
        if me == 0 {
            pointer.into_iter().for_each(|pointer| pointer.store(0, Ordering::Relaxed));
        }
        let ranks = || members.iter().map(|rank| Rank(*rank));
        let others = ranks().skip(1).filter(|_| me == 0).collect();
        let stripes = self.stripes(ranks().collect(), 0);
        let team = self.coll.team_of_file(members.clone(), me, number)?;
        let facts = Facts {
            space: Space::of_file(number),
            path: PathBuf::from("a shared pointer"),
            access: Access { read: false, write: false },
            members: Members::new(Arc::clone(&self.coll), team, members, me),
            stripes,
        };
        let file = SharedFile::new(facts, OwnFile::default(), FileState::new(others, pointer, None), 0, false);
        self.begin(&file, 0, 0)?;
        Ok(reserved.open(file))
    }
}
