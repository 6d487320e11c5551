//! Opening a file: collective, on all ranks of a team or on none.

use super::found::{FoundFile, Opened};
use super::members::Members;
use super::shared_file::Facts;
use super::transfer::PAGES_MAX;
use super::{FileError, Files, SharedFile};
use std::ffi::OsStr;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vgasnet_engine::FileState;
use vgasnet_memory::STRIPE_BYTES;
use vgasnet_protocol::{Rank, Space, Stripes};

/// Maximum length of a path, in bytes.
const PATH_BYTES_MAX: usize = 4095;

/// Data that cannot be written may keep a frame, and other pages need one.
const FRAMES_MIN: u32 = 2;

/// Sent in place of hashes by a rank with refused arguments.
const REFUSED: u64 = 0;

/// The difference shown by each hash, in words.
const ASKED: [&str; 5] = ["another path", "other flags", "another mode", "another stripe_bytes", "another io_ranks"];

/// The access for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// It may be read.
    pub read: bool,
    /// It may be written.
    pub write: bool,
}

/// The arguments of an open, equal on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct OpenArguments<'a> {
    /// The path, without its terminating zero.
    pub path: &'a [u8],
    /// The requested access.
    pub access: Access,
    /// Whether calls are atomic.
    pub atomic: bool,
    /// Creates a missing file, with these permissions.
    pub create: Option<u32>,
    /// An existing file is an error.
    pub exclusive: bool,
    /// Truncates the file.
    pub truncate: bool,
    /// Contiguous bytes per home; 0 for the default.
    pub stripe_bytes: u64,
    /// Number of ranks that do I/O; 0 for all.
    pub io_ranks: u32,
}

impl Files {
    /// Opens a file together with the other ranks of a team. Returns its number on this rank. A rank with refused
    /// arguments takes part, with the reason, since the others wait for it.
    ///
    /// # Errors
    /// The arguments are invalid or differ among the ranks, or the file cannot be opened. It is then open on no rank.
    pub fn open(&self, team: u64, arguments: Result<OpenArguments<'_>, FileError>) -> Result<u32, FileError> {
        let (members, me) = self.coll.team(team)?;
        let checked = arguments.and_then(|given| Ok((given, self.check(&given)?, self.open.reserve()?)));
        let given = checked.as_ref().map_or([REFUSED; ASKED.len()], |(given, ..)| hashes_of(given));
        let all = self.coll.gather_all(team, given)?;
        let (arguments, path, reserved) = checked?;
        let refused = |line: String| Err(FileError::argument(format!("{}: {line}", path.display())));
        if let Some((rank, _)) = members.iter().zip(&all).find(|(_, others)| others.contains(&REFUSED)) {
            return refused(format!("rank {rank} of the job cannot open it so, and says why; it is open on no rank"));
        }
        if let Some((rank, what)) =
            members.iter().zip(&all).find_map(|(rank, others)| Some((rank, differing(&given, others)?)))
        {
            return refused(format!(
                "rank {rank} of the job opens it with {what}; give the same on all ranks of the team"
            ));
        }
        let arguments = &arguments;
        // The first rank creates the file, and the others find it.
        let first = (me == 0).then(|| self.open_first(&path, arguments, &members, reserved.place()));
        let told = self.coll.gather_all(team, first.as_ref().map_or_else(FoundFile::default, |first| first.found))?[0];
        if told.errno != 0 {
            return Err(FileError::io(&path, "be opened", told.errno as i32));
        }
        let team = self.coll.team_of_file(members.clone(), me, told.number)?;
        let mut opened = first.unwrap_or_else(|| self.open_next(&path, arguments));
        let file = self.open_told(arguments, &path, (members, me, team), &mut opened, &told);
        file.map(|file| reserved.open(file)).or_else(|error| {
            if me == 0 {
                opened.undo(&path);
            }
            // The undoing is complete before the others learn of the failure.
            self.coll.gather_all(team, 0_u32)?;
            self.coll.free_team(team)?;
            Err(error)
        })
    }

    /// Opens the file found by the first rank of a team, in a team of its own.
    fn open_told(
        &self,
        arguments: &OpenArguments<'_>,
        path: &Path,
        (members, me, team): (Box<[u32]>, u32, u64),
        opened: &mut Opened,
        told: &FoundFile,
    ) -> Result<SharedFile, FileError> {
        let all = self.coll.gather_all(team, opened.found)?;
        let size_bytes = if arguments.truncate { 0 } else { told.size_bytes };
        self.check_pages(path, size_bytes)?;
        let first = members[0];
        let sees = |rank: u32, found: &FoundFile| found.is_that_of(told, self.is_same_host(first, rank));
        let is_elsewhere = |found: &FoundFile| found.errno == 0 || found.errno as i32 == libc::ENOENT;
        if let Some(failed) = all.iter().find(|found| !is_elsewhere(found)) {
            return Err(FileError::io(path, "be opened", failed.errno as i32));
        }
        let able: Vec<Rank> =
            members.iter().zip(&all).filter(|(rank, found)| sees(**rank, found)).map(|(rank, _)| Rank(*rank)).collect();
        self.tell_of_others(path, me, all.len() - able.len());
        let is_able = able.contains(&Rank(members[me as usize]));
        let most = if arguments.io_ranks == 0 { usize::MAX } else { arguments.io_ranks as usize };
        let homes: Arc<[Rank]> = able.into_iter().take(most).collect();
        let pointer = self.ops.space().memories.get(first as usize).map(|memory| memory.file_pointer(told.place));
        if me == 0 {
            // The others add to the pointer once all have opened the file.
            pointer.into_iter().for_each(|pointer| pointer.store(0, Ordering::Relaxed));
        }
        let others = members.iter().skip(1).filter(|_| me == 0).map(|rank| Rank(*rank)).collect();
        let home = opened.file.clone().filter(|_| homes.contains(&Rank(members[me as usize])));
        let own = opened.take(is_able);
        let facts = Facts {
            space: Space::of_file(told.number),
            path: path.to_owned(),
            access: arguments.access,
            members: Members::new(Arc::clone(&self.coll), team, members, me),
            stripes: self.stripes(homes, arguments.stripe_bytes),
        };
        let file = SharedFile::new(facts, own, FileState::new(others, pointer, home), size_bytes, arguments.atomic);
        let errno = if me == 0 { opened.finish(arguments) } else { 0 };
        self.begin(&file, size_bytes, errno)?;
        Ok(file)
    }

    pub(super) fn stripes(&self, homes: Arc<[Rank]>, stripe_bytes: u64) -> Stripes {
        let page_bytes = self.ops.space().page_bytes() as u64;
        let stripe_bytes = if stripe_bytes == 0 { STRIPE_BYTES.max(page_bytes) } else { stripe_bytes };
        let pages = (stripe_bytes / page_bytes).clamp(1, PAGES_MAX);
        Stripes { homes, pages: pages as u32 }
    }

    /// Registers the file with the engines of all ranks. Fails on all if one has an error number.
    pub(super) fn begin(&self, file: &SharedFile, size_bytes: u64, errno: u32) -> Result<(), FileError> {
        let (page_bytes, stripes) = (self.ops.space().page_bytes() as u64, file.stripes().clone());
        let pages = size_bytes.div_ceil(page_bytes) as u32;
        let (named, state) = (file.named().cloned(), Arc::clone(file.state()));
        self.driver().engine().open_file(file.space(), stripes, pages, named, state);
        // Other ranks may ask this one about the file once all have registered it.
        let all = file.members().gather(errno)?;
        let Some(errno) = all.into_iter().find(|errno| *errno != 0) else { return Ok(()) };
        self.driver().close_file(file.space());
        Err(FileError::io(file.path(), "be opened", errno as i32))
    }

    fn check(&self, arguments: &OpenArguments<'_>) -> Result<PathBuf, FileError> {
        let OpenArguments { path, access, create, exclusive, truncate, stripe_bytes, .. } = *arguments;
        let path_of = |path: &[u8]| PathBuf::from(OsStr::from_bytes(path));
        if path.len() > PATH_BYTES_MAX {
            return Err(FileError::io(&path_of(&path[..40]), "be opened", libc::ENAMETOOLONG));
        }
        let shown = path_of(path);
        let bad = |line: &str| Err(FileError::argument(format!("{}: {line}", shown.display())));
        if self.driver().engine().protocol().cache.frames() < FRAMES_MIN {
            return bad("this rank's pool has room for one page; raise VGASNET_POOL_SIZE, or lower VGASNET_PAGE_SIZE");
        }
        if path.is_empty() {
            return bad("the path is empty; give that of a file");
        }
        if !access.read && !access.write {
            return bad("it is opened for nothing; give VGASNET_FILE_READ, VGASNET_FILE_WRITE, or both");
        }
        if (create.is_some() || truncate) && !access.write {
            return bad("creating or truncating it needs write access; add VGASNET_FILE_WRITE");
        }
        if exclusive && create.is_none() {
            return bad("an exclusive open has to create it; add VGASNET_FILE_CREATE");
        }
        let page_bytes = self.ops.space().page_bytes() as u64;
        if stripe_bytes % page_bytes != 0 {
            return bad(&format!("a stripe of {stripe_bytes} bytes; give a multiple of the page size, {page_bytes}"));
        }
        Ok(shown)
    }

    /// Reports ranks that do not see the file and so do no I/O on it.
    fn tell_of_others(&self, path: &Path, me: u32, others: usize) {
        if me == 0 && others > 0 {
            let who = if others == 1 { "1 rank does".to_owned() } else { format!("{others} ranks do") };
            (self.tell)(&format!(
                "{}: {who} not see the same file under this path, so other ranks read and write it for them; put it on a file \
                 system that all hosts share",
                path.display()
            ));
        }
    }
}

/// Hashes of the arguments in the order of [`ASKED`], the same function on all ranks.
fn hashes_of(arguments: &OpenArguments<'_>) -> [u64; ASKED.len()] {
    let OpenArguments { path, access, atomic, create, exclusive, truncate, stripe_bytes, io_ranks } = *arguments;
    let flags = (access.read, access.write, atomic, create.is_some(), exclusive, truncate);
    [hash_of(path), hash_of(flags), hash_of(create), hash_of(stripe_bytes), hash_of(io_ranks)]
}

fn hash_of(asked: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(asked).max(REFUSED + 1)
}

/// The first difference between the arguments of two ranks.
fn differing(mine: &[u64; ASKED.len()], others: &[u64; ASKED.len()]) -> Option<&'static str> {
    let place = mine.iter().zip(others).position(|(mine, others)| mine != others)?;
    Some(ASKED[place])
}
