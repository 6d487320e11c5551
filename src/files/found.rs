//! Looking up a file on each rank of the opening team, and comparing it with the first rank's file.

use super::shared_file::OwnFile;
use super::{FileError, Files, OpenArguments};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use vgasnet_protocol::{Rank, Space};
use vgasnet_storage::{About, Claim, Mark, NamedFile, NamedOptions, errno_of};
use vgasnet_sys::Signalproof;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Permissions of a new file until all ranks have opened it: ranks may need more than its mode allows.
const OPENING_MODE: u32 = 0o600;

/// The files a rank has open for writing, by device and inode of its host. Two handles of one file would have pages and
/// ends of their own, and each would overwrite data of the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Writing(Arc<Mutex<BTreeSet<(u64, u64)>>>);

/// An entry of [`Writing`], removed on drop.
#[derive(Debug)]
pub(super) struct Written {
    all: Writing,
    identity: (u64, u64),
}

impl Writing {
    /// Registers a file for writing.
    ///
    /// # Errors
    /// `EBUSY`: it is registered already.
    fn begin(&self, About { device, inode, .. }: About) -> io::Result<Written> {
        let identity = (device, inode);
        if !Signalproof::lock(&self.0).insert(identity) {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        Ok(Written { all: self.clone(), identity })
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        Signalproof::lock(&self.all.0).remove(&self.identity);
    }
}

/// The file found by a rank.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct FoundFile {
    device: u64,
    inode: u64,
    pub size_bytes: u64,
    changed_ns: u64,
    /// Why the open failed, as an error number; 0 if it succeeded.
    pub errno: u32,
    /// From the first rank: the number of the file's space.
    pub number: u32,
    /// From the first rank: the place of the file's shared pointer in its memory.
    pub place: u32,
    padding: u32,
}

impl FoundFile {
    fn new(about: About, number: u32) -> FoundFile {
        let About { device, inode, size_bytes, changed_ns } = about;
        FoundFile { device, inode, size_bytes, changed_ns, errno: 0, number, place: 0, padding: 0 }
    }

    /// Whether this is the file found by the `first` rank. Hosts assign device numbers as they like, so these count
    /// within a host only. Copies of a file on two hosts may agree in inode and times: the first rank therefore marks a
    /// file opened for writing.
    pub(super) fn is_that_of(&self, first: &FoundFile, is_same_host: bool) -> bool {
        let is_same = if is_same_host {
            self.device == first.device
        } else {
            (self.size_bytes, self.changed_ns) == (first.size_bytes, first.changed_ns)
        };
        self.errno == 0 && self.inode == first.inode && is_same
    }
}

/// A file opened by a rank.
pub(super) struct Opened {
    pub file: Option<Arc<NamedFile>>,
    pub found: FoundFile,
    /// If the file is opened for writing.
    written: Option<Written>,
    /// The same, at the first rank.
    claim: Option<Claim>,
    /// Removed once all ranks have looked.
    mark: Option<Mark>,
}

impl Opened {
    fn new(opened: io::Result<(Arc<NamedFile>, About, Option<Written>)>, number: u32) -> Opened {
        match opened {
            Ok((file, about, written)) => {
                Opened { file: Some(file), found: FoundFile::new(about, number), written, claim: None, mark: None }
            }
            Err(error) => {
                let found = FoundFile { errno: errno_of(&error) as u32, ..FoundFile::default() };
                Opened { file: None, found, written: None, claim: None, mark: None }
            }
        }
    }

    /// Completes an open after all ranks have the file, by changes a failed open must not leave behind. Returns an
    /// error number, or 0.
    pub(super) fn finish(&mut self, arguments: &OpenArguments<'_>) -> u32 {
        let Some(file) = &self.file else { return 0 };
        let denied = arguments.create.map_or(0, |mode| OPENING_MODE & !mode);
        let finished = (|| {
            if let Some(mark) = self.mark.take() {
                mark.take_off(file);
            }
            if arguments.truncate {
                file.set_size(0)?;
            }
            if file.is_new() && denied != 0 { file.deny(denied) } else { Ok(()) }
        })();
        finished.err().map_or(0, |error: io::Error| errno_of(&error) as u32)
    }

    /// What the rank keeps open, the file only if it sees the first rank's.
    pub(super) fn take(&mut self, is_able: bool) -> OwnFile {
        OwnFile::new(self.file.clone().filter(|_| is_able), self.written.take(), self.claim.take())
    }

    /// Undoes an open that failed on some rank: the file is as before.
    pub(super) fn undo(self, path: &Path) {
        let Some(file) = self.file else { return };
        if let Some(mark) = self.mark {
            mark.take_off(&file);
        }
        if file.is_new() {
            file.remove(path);
        }
    }
}

impl Files {
    /// Opens the file as the first rank of a team; the others look for it next. Truncating it and denying access to it
    /// are left to [`Opened::finish`]. `place` is the place of its shared pointer.
    pub(super) fn open_first(&self, path: &Path, arguments: &OpenArguments<'_>, members: &[u32], place: u32) -> Opened {
        let options = NamedOptions {
            create: arguments.create.is_some(),
            mode: arguments.create.unwrap_or_default() | OPENING_MODE,
            exclusive: arguments.exclusive,
            ..options(arguments)
        };
        let number = self.next_number();
        let (mut mark, mut claim) = (None, None);
        let is_spread = members.iter().any(|member| !self.is_same_host(members[0], *member));
        let opened = self.open_named(path, &options).and_then(|(file, about, written)| {
            claim = if arguments.access.write { file.claim()? } else { None };
            mark = Some(()).filter(|()| is_spread && arguments.access.write).and_then(|()| Mark::put(&file));
            // The mark changes the file's times, unless the file could not be marked.
            let about = if is_spread { file.about()? } else { about };
            Ok((file, about, written))
        });
        let mut opened = Opened { mark, claim, ..Opened::new(opened, number) };
        opened.found.place = place;
        opened
    }

    /// Picks a number for the space of a file. No open file has it, and no other first rank of a team picks it.
    pub(super) fn next_number(&self) -> u32 {
        let space = self.ops.space();
        let mut numbers = std::iter::repeat_with(|| {
            number_of(self.opened.fetch_add(1, Ordering::Relaxed), space.rank, space.segments.ranks())
        });
        let is_free = |number: &u32| !self.driver().engine().is_open_file(Space::of_file(*number));
        numbers.find(is_free).expect("numbers come again")
    }

    /// Opens the file as another rank of a team.
    pub(super) fn open_next(&self, path: &Path, arguments: &OpenArguments<'_>) -> Opened {
        Opened::new(self.open_named(path, &options(arguments)), 0)
    }

    fn open_named(&self, path: &Path, options: &NamedOptions) -> io::Result<(Arc<NamedFile>, About, Option<Written>)> {
        let file = Arc::new(NamedFile::open(path, options)?);
        let about = file.about()?;
        let written = if options.write { Some(self.writing.begin(about)?) } else { None };
        Ok((file, about, written))
    }

    /// MPI has created the file: the next sync of this rank syncs its name as well.
    #[cfg(feature = "mpi")]
    pub fn note_new_name(&self, file: &super::SharedFile) {
        file.named().iter().for_each(|named| named.note_new_name());
    }

    /// Whether two ranks of the job are on the same host.
    pub(super) fn is_same_host(&self, one: u32, other: u32) -> bool {
        self.driver().engine().are_of_one_host(Rank(one), Rank(other))
    }

    /// Fails if a file has more pages than there are page numbers.
    pub(super) fn check_pages(&self, path: &Path, size_bytes: u64) -> Result<(), FileError> {
        self.end_of(path, 0, size_bytes).map(drop)
    }
}

/// The numbers of a rank, below 2^31 and repeating: divided by the number of ranks, they leave the rank as remainder.
fn number_of(count: u32, Rank(rank): Rank, ranks: u32) -> u32 {
    const NUMBERS: u32 = 1 << 31;
    let own = (NUMBERS - rank).div_ceil(ranks);
    count % own * ranks + rank
}

fn options(arguments: &OpenArguments<'_>) -> NamedOptions {
    NamedOptions { read: arguments.access.read, write: arguments.access.write, ..NamedOptions::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_give_numbers_of_their_own_for_ever() {
        for (ranks, rank) in [(1, 0), (3, 2), (4, 0), (1 << 20, 77), (1_048_575, 1_048_574)] {
            for count in [0, 1, 2047, 2048, 2049, u32::MAX / 2, u32::MAX] {
                let number = number_of(count, Rank(rank), ranks);
                assert!(number % ranks == rank && number < 1 << 31, "{count} of rank {rank} among {ranks}: {number}");
            }
            assert_ne!(number_of(5, Rank(rank), ranks), number_of(6, Rank(rank), ranks));
        }
    }

    #[test]
    fn a_copy_is_another_file() {
        let first = FoundFile::new(About { device: 1, inode: 7, size_bytes: 100, changed_ns: 5 }, 3);
        let is_that = |about, is_same_host| FoundFile::new(about, 0).is_that_of(&first, is_same_host);
        let about = About { device: 1, inode: 7, size_bytes: 100, changed_ns: 5 };
        assert!([true, false].iter().all(|is_same_host| is_that(about, *is_same_host)));
        assert!(!is_that(About { device: 2, ..about }, true), "two file systems number their files alike");
        assert!(is_that(About { device: 2, ..about }, false));
        assert!(is_that(About { changed_ns: 6, ..about }, true), "the mark may be off again");
        let others = [About { changed_ns: 6, ..about }, About { size_bytes: 99, ..about }, About { inode: 8, ..about }];
        assert!(others.iter().all(|other| !is_that(*other, false)));
        assert!(!FoundFile { errno: 13, ..first }.is_that_of(&first, true));
    }
}
