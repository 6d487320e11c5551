//! `MPI_File_open`: which files are cached, and which share the pages of another handle. What ranks have to agree on is settled before MPI
//! opens the file, so that a file which is refused is neither made nor changed.

use crate::ffi::{self, Comm, constants};
use crate::files::{self, CachedFile, own_files};
use crate::job;
use crate::say;
use crate::settings::{Hints, Patterns, path_of};
use crate::sharing::{Claim, Hold, Identity, Pointer, Taken};
use crate::vgasnet::{self, Library, Opening};
use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vgasnet_mpi_front::SUCCESS;

/// What a program asks `MPI_File_open` for.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub comm: u64,
    /// Its name, without the zero.
    pub name: &'a [u8],
    pub mode: c_int,
    pub hints: Hints,
}

impl Wanted<'_> {
    fn has(&self, mode: c_int) -> bool {
        self.mode & mode != 0
    }

    fn may_read(&self) -> bool {
        !self.has(constants().mode_write_only)
    }

    fn may_write(&self) -> bool {
        !self.has(constants().mode_read_only)
    }
}

/// Who serves a file.
enum Server {
    /// MPI.
    Mpi,
    /// vgasnet, by what another handle has opened.
    Shared { comm: Comm, first: Arc<CachedFile> },
    /// vgasnet, by a team of these ranks.
    Own { comm: Comm, members: Vec<u32>, path: CString, claim: Option<Claim> },
}

/// Where a program wants MPI's handle.
pub trait HandlePlace {
    /// The handle that is there.
    fn get(&self) -> u64;
    /// `MPI_FILE_NULL`.
    fn clear(&self);
}

/// Opens a file by MPI, and has it cached if that is wanted on all ranks.
pub fn open<'a>(wanted: impl Fn() -> Wanted<'a>, next: impl Fn() -> c_int, place: &impl HandlePlace) -> c_int {
    let Some(library) = job::library() else { return next() };
    let wanted = wanted();
    let server = match choose(&wanted) {
        Ok(server) => server,
        Err(Taken) => return refuse(place),
    };
    // An error handler may call success what has failed.
    place.clear();
    let code = next();
    let has_failed = code != SUCCESS || place.get() == constants().file_null;
    let opened = match server {
        Server::Mpi => return code,
        // What some ranks have, and others have not, MPI serves as it can.
        Server::Shared { comm, .. } | Server::Own { comm, .. } if !comm.all(!has_failed) => {
            comm.free();
            return code;
        }
        Server::Shared { comm, first } => {
            share(library, &wanted, place.get(), comm, &first);
            Ok(())
        }
        Server::Own { comm, members, path, claim } => {
            cache(library, &wanted, place.get(), (comm, members, path), claim)
        }
    };
    match opened {
        Ok(()) => SUCCESS,
        Err(Taken) => {
            ffi::close(place.get());
            refuse(place)
        }
    }
}

/// Others cache the file and write it. The program gets no handle, and the handler of those that have none hears of it.
fn refuse(place: &impl HandlePlace) -> c_int {
    place.clear();
    ffi::raise_without_file(constants().err_file_in_use)
}

/// Collective. A communicator of the library's own is made only for files that it may serve.
fn choose(wanted: &Wanted<'_>) -> Result<Server, Taken> {
    let Some(theirs) = Comm::of(wanted.comm) else { return Ok(Server::Mpi) };
    if theirs.rank == 0 {
        wanted.hints.tell();
    }
    let path = CString::new(path_of(wanted.name)).ok();
    let has_places = !wanted.has(constants().mode_sequential);
    let identity = path.as_deref().filter(|_| has_places).and_then(Identity::of);
    let is_open = identity.is_some_and(|identity| !own_files(identity).is_empty());
    let by_pattern = || path.as_ref().is_some_and(|path| Patterns::of_environment().match_path(path));
    let is_named = has_places && wanted.hints.is_cached.unwrap_or_else(by_pattern);
    // Each rank may open one file for itself, and they know nothing of each other: who has it cached has to say so.
    let is_meant = is_named && (wanted.hints.is_cached.is_some() || !theirs.is_one_of_several());
    let members = theirs.world_ranks().filter(|_| is_meant);
    let [all_mean_it, none_has_it, none_names_it] = theirs.agree([members.is_some(), !is_open, !is_named]);
    if !all_mean_it && none_has_it && none_names_it {
        return Ok(Server::Mpi);
    }
    let Some(comm) = Comm::dup(wanted.comm) else { return Ok(Server::Mpi) };
    let first = if none_has_it { None } else { shared(wanted, &comm, identity) };
    if let Some(first) = first {
        return Ok(Server::Shared { comm, first });
    }
    // What MPI writes beside a communicator that caches and writes the file would be lost in its whole blocks.
    let claim = claimed(wanted, &comm, path.as_deref())?;
    match (members, path) {
        (Some(members), Some(path)) if all_mean_it => Ok(Server::Own { comm, members, path, claim }),
        _ => {
            comm.free();
            Ok(Server::Mpi)
        }
    }
}

/// The file that all ranks have by another handle, which may do as much. Collective.
fn shared(wanted: &Wanted<'_>, comm: &Comm, identity: Option<Identity>) -> Option<Arc<CachedFile>> {
    let fits = |file: &CachedFile| wanted.may_read() <= file.may_read && wanted.may_write() <= file.may_write;
    let theirs = identity.map(own_files).unwrap_or_default();
    // The first rank chooses. A file of more ranks is one that more of them share.
    let chosen = theirs.iter().filter(|(_, file)| fits(file)).max_by_key(|(name, file)| (file.comm.ranks, *name));
    let name = comm.of_first(chosen.map_or(u64::MAX, |(name, _)| *name)).ok().filter(|name| *name != u64::MAX)?;
    let first = theirs.into_iter().find_map(|(its, file)| (its == name).then_some(file));
    if comm.all(first.is_some()) { first } else { None }
}

/// Claims a file for a communicator that may write it, at its first rank. A file that is not there yet nobody has claimed. Collective.
fn claimed(wanted: &Wanted<'_>, comm: &Comm, path: Option<&CStr>) -> Result<Option<Claim>, Taken> {
    let own = if comm.rank == 0 && wanted.may_write() { path.map_or(Ok(None), Claim::of) } else { Ok(None) };
    if comm.all(own.is_ok()) {
        return own;
    }
    if comm.rank == 0 {
        tell_taken(path.unwrap_or_default());
    }
    comm.free();
    Err(Taken)
}

fn tell_taken(path: &CStr) {
    say(format_args!(
        "rank {}: MPI_File_open: {}: ranks of another communicator, or of another job, cache and write the file, too; open it \
         after they have closed it, or leave it out of VGASNET_MPI_FILES, or give it the hint vgasnet_cache=disable in both",
        ffi::world_rank(),
        path.to_string_lossy()
    ));
}

/// A second handle uses the file of the first. Collective.
fn share(library: &'static Library, wanted: &Wanted<'_>, handle: u64, comm: Comm, first: &CachedFile) {
    let by_all = first.comm.ranks == comm.ranks;
    let tag = comm.of_first(next_tag()).unwrap_or(0);
    let order = (tag, comm.world_ranks().map_or(0, |members| members[0]));
    let pointer = Pointer::new(library, &comm, &first.path, tag as u32);
    let hold = Hold::Shared { first: first.handle, order, by_all, pointer };
    begin(wanted, CachedFile::new(library, (handle, first.file), first.path.clone(), comm, hold));
}

/// Has a team open a file. Where vgasnet cannot, MPI serves it. Collective.
fn cache(
    library: &'static Library,
    wanted: &Wanted<'_>,
    handle: u64,
    (comm, members, path): (Comm, Vec<u32>, CString),
    claim: Option<Claim>,
) -> Result<(), Taken> {
    // It may not have been there before MPI opened it. Of two who make it at once one is late.
    let is_late = comm.rank == 0 && wanted.may_write() && claim.is_none();
    let claim = if is_late { Claim::of(&path) } else { Ok(claim) };
    let tag = comm.of_first(if claim.is_ok() { next_tag() } else { u64::MAX });
    if tag == Ok(u64::MAX) {
        if comm.rank == 0 {
            tell_taken(&path);
        }
        comm.free();
        return Err(Taken);
    }
    let (Ok(tag), Ok(claim)) = (tag, claim) else { return Ok(()) };
    let team = library.team_of(&members, tag as u32);
    let flags = if wanted.may_read() { vgasnet::READ } else { 0 } | if wanted.may_write() { vgasnet::WRITE } else { 0 };
    let Hints { stripe_bytes, io_ranks, .. } = &wanted.hints;
    let Ok(file) =
        library.open(team, &Opening { path: &path, flags, stripe_bytes: *stripe_bytes, io_ranks: *io_ranks })
    else {
        library.free_team(team);
        comm.free();
        return Ok(());
    };
    let (name, identity) = (u64::from(members[0]) << 32 | tag, Identity::of(&path));
    let hold = Hold::Own { team, name, identity, claim: Mutex::new(claim) };
    begin(wanted, CachedFile::new(library, (handle, file), path, comm, hold));
    Ok(())
}

/// Names a team that this rank is the first of: only ranks of one job make teams.
fn next_tag() -> u64 {
    static TEAMS: AtomicU64 = AtomicU64::new(0);
    TEAMS.fetch_add(1, Ordering::Relaxed) & u64::from(u32::MAX >> 1)
}

fn begin(wanted: &Wanted<'_>, mut file: CachedFile) {
    (file.may_read, file.may_write) = (wanted.may_read(), wanted.may_write());
    file.ignored_hints = wanted.hints.ignored.clone();
    if file.comm.rank == 0 {
        wanted.hints.tell_ignored(&file.path);
    }
    file.is_appended = wanted.has(constants().mode_append);
    if file.is_appended {
        file.append();
    }
    files::add(file);
}
