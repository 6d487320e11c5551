//! Collective calls of a file's team: all ranks make the same calls, with the same arguments, in the same order.

use super::{FileError, Files, SharedFile};
use vgasnet_conduit::SLOW;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A collective call about an open file, with its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collective {
    Close,
    Sync,
    SetSize(u64),
    SetAtomic(bool),
    SetPointer(u64),
    Preallocate(u64),
}

/// A collective call in messages: the index of its name in [`NAMES`], and its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Joint {
    name: u64,
    argument: u64,
}

/// The names of the calls in C.
const NAMES: [&str; 6] = [
    "vgasnet_file_close",
    "vgasnet_file_sync",
    "vgasnet_file_set_size",
    "vgasnet_file_set_atomic",
    "vgasnet_file_set_pointer",
    "vgasnet_file_preallocate",
];

impl Collective {
    /// The name of the call in C.
    pub(super) fn name(self) -> &'static str {
        self.joint().name()
    }

    fn joint(self) -> Joint {
        let (name, argument) = match self {
            Collective::Close => (0, 0),
            Collective::Sync => (1, 0),
            Collective::SetSize(bytes) => (2, bytes),
            Collective::SetAtomic(is_atomic) => (3, u64::from(is_atomic)),
            Collective::SetPointer(value) => (4, value),
            Collective::Preallocate(bytes) => (5, bytes),
        };
        Joint { name, argument }
    }
}

impl Joint {
    fn name(self) -> &'static str {
        NAMES.get(self.name as usize).copied().unwrap_or("another call")
    }
}

impl Files {
    /// Starts a collective call: returns when all ranks of the file's team have come.
    ///
    /// # Errors
    /// The ranks make different calls, or give different arguments. All of them are told, and nothing has changed.
    pub(super) fn come_together(&self, file: &SharedFile, call: Collective) -> Result<(), FileError> {
        let mine = call.joint();
        let tell = || self.tell_alone(file, call);
        let is_checked = self.ops.is_strict().then_some(&tell as &dyn Fn());
        let all = file.members().gather_or_tell(mine, is_checked)?;
        let Some((rank, other)) = file.members().ranks().zip(all).find(|(_, joint)| *joint != mine) else {
            return Ok(());
        };
        let (path, name) = (file.path().display(), other.name());
        Err(FileError::argument(if other.name == mine.name {
            format!(
                "{path}: rank {} of the job gives {} in place of {}; give the same on all ranks of the team",
                rank.0, other.argument, mine.argument
            )
        } else {
            format!(
                "{path}: rank {} of the job is in {name}; make the same collective calls in the same order on all ranks of the team",
                rank.0
            )
        }))
    }

    /// Reports a wait for other ranks. They may just be late, so only a user who has asked for checks is told.
    fn tell_alone(&self, file: &SharedFile, call: Collective) {
        let (rank, path, call) = (self.ops.space().rank.0, file.path().display(), call.name());
        (self.tell)(&format!(
            "rank {rank}: {call}: {path}: other ranks of the team have not come for {} s; call it on all of them",
            SLOW.as_secs()
        ));
    }
}
