//! What a rank finds under the path of a file that a team opens, and whether that is the file of the team's first rank.

use super::{FileError, Files, OpenArguments};
use crate::storage::{About, Claim, Mark, NamedFile, NamedOptions, errno_of};
use crate::sys::Signalproof;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use vgasnet_protocol::ordered::OrderedSet;
use vgasnet_protocol::{Rank, Space};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Permissions that a new file has until all ranks have opened it: the others may need what its mode denies.
const OPENING_MODE: u32 = 0o600;

/// The files that a rank has open to be written, as its host numbers them. Two handles of one would have pages and ends of their own, and
/// one would write over what the other has written.
#[derive(Clone, Debug, Default)]
pub(super) struct Writing(Arc<Mutex<OrderedSet<(u64, u64)>>>);

/// A file that stands there until this is dropped.
#[derive(Debug)]
pub(super) struct Written {
    all: Writing,
    identity: (u64, u64),
}

impl Writing {
    /// A file is to be written.
    ///
    /// # Errors
    /// `EBUSY`: it is already.
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

/// What a rank has found.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Found {
    device: u64,
    inode: u64,
    pub size_bytes: u64,
    changed_ns: u64,
    /// Why the file could not be opened, as an error number, or 0.
    pub errno: u32,
    /// From the first rank: the number of the space.
    pub number: u32,
    /// From the first rank: where its memory has the file's shared pointer.
    pub place: u32,
    padding: u32,
}

impl Found {
    fn new(about: About, number: u32) -> Found {
        let About { device, inode, size_bytes, changed_ns } = about;
        Found { device, inode, size_bytes, changed_ns, errno: 0, number, place: 0, padding: 0 }
    }

    /// Whether this is the file that the `first` rank has found. Hosts number devices as they like. Copies of a file may have the same
    /// number and times on two hosts, so the first rank marks one that is to be written.
    pub(super) fn is_that_of(&self, first: &Found, is_same_host: bool) -> bool {
        let is_same = if is_same_host {
            self.device == first.device
        } else {
            (self.size_bytes, self.changed_ns) == (first.size_bytes, first.changed_ns)
        };
        self.errno == 0 && self.inode == first.inode && is_same
    }
}

/// The file as a rank has it.
pub(super) struct Opened {
    pub file: Option<Arc<NamedFile>>,
    pub found: Found,
    /// Of a file that is to be written.
    pub written: Option<Written>,
    /// The same, at the first rank.
    pub claim: Option<Claim>,
    /// Taken off when all ranks have looked.
    mark: Option<Mark>,
}

impl Opened {
    fn new(opened: io::Result<(Arc<NamedFile>, About, Option<Written>)>, number: u32) -> Opened {
        match opened {
            Ok((file, about, written)) => {
                Opened { file: Some(file), found: Found::new(about, number), written, claim: None, mark: None }
            }
            Err(error) => {
                let found = Found { errno: errno_of(&error) as u32, ..Found::default() };
                Opened { file: None, found, written: None, claim: None, mark: None }
            }
        }
    }

    /// All ranks have the file: it gets what would have been left behind by an open that fails. Returns an error number, or 0.
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

    /// The file is open on no rank: it is as it was.
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
    /// Opens the file as the first rank of a team, whose others look at it next. It is neither emptied nor denied to anybody yet. Its shared
    /// pointer has this place here.
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
            // Unless it could not be marked, that differs now.
            let about = if is_spread { file.about()? } else { about };
            Ok((file, about, written))
        });
        let mut opened = Opened { mark, claim, ..Opened::new(opened, number) };
        opened.found.place = place;
        opened
    }

    /// A number for the space of a file. No other rank that is the first of a team gives it, and no file has it that is open.
    fn next_number(&self) -> u32 {
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

    /// Whether two ranks of the job have the same host.
    pub(super) fn is_same_host(&self, one: u32, other: u32) -> bool {
        self.driver().engine().are_of_one_host(Rank(one), Rank(other))
    }

    /// Fails if the pages of a file have no numbers.
    pub(super) fn check_pages(&self, path: &Path, size_bytes: u64) -> Result<(), FileError> {
        self.end_of(path, 0, size_bytes).map(drop)
    }
}

/// Numbers below 2^31 of a rank, in turns: those that leave its own number when divided by how many ranks there are.
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
        let first = Found::new(About { device: 1, inode: 7, size_bytes: 100, changed_ns: 5 }, 3);
        let is_that = |about, is_same_host| Found::new(about, 0).is_that_of(&first, is_same_host);
        let about = About { device: 1, inode: 7, size_bytes: 100, changed_ns: 5 };
        assert!([true, false].iter().all(|is_same_host| is_that(about, *is_same_host)));
        assert!(!is_that(About { device: 2, ..about }, true), "two file systems number their files alike");
        assert!(is_that(About { device: 2, ..about }, false));
        assert!(is_that(About { changed_ns: 6, ..about }, true), "the mark may be off again");
        let others = [About { changed_ns: 6, ..about }, About { size_bytes: 99, ..about }, About { inode: 8, ..about }];
        assert!(others.iter().all(|other| !is_that(*other, false)));
        assert!(!Found { errno: 13, ..first }.is_that_of(&first, true));
    }
}
