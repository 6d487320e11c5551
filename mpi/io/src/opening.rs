//! `MPI_File_open`: decides which files are cached, and which share the pages of another handle. The ranks agree before
//! MPI opens the file, so a refused file is neither created nor changed.

use crate::cached_files::{self, CachedFile, own_files};
use crate::claims::{self, Claim};
use crate::company::Permit;
use crate::descriptors;
use crate::ffi::{self, Comm, constants};
use crate::hold::{Hold, Identity, Pointer};
use crate::look::Look;
use crate::patterns::Patterns;
use crate::settings::{Hints, paths_of};
use crate::vgasnet::{self, Library, Opening};
use crate::{job, rescue, running, say, watch};
use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vgasnet_mpi_front::kind::{File, NewFile};
use vgasnet_mpi_front::{Argument, Handle, Language, SUCCESS, is_its_mpi, kind};

/// A program's request to `MPI_File_open`.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub comm: Handle<kind::Comm>,
    /// The file's name, without the zero.
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

    /// Whether a hint or a pattern names the file.
    fn is_named(&self) -> bool {
        let by_pattern =
            CString::new(paths_of(self.name)[0]).is_ok_and(|path| Patterns::of_environment().match_path(&path));
        !self.has(constants().mode_sequential) && self.hints.is_cached.unwrap_or(by_pattern)
    }
}

/// The server of a file.
enum Server {
    /// MPI.
    Mpi(OfMpi),
    /// vgasnet, with the file of another handle.
    Shared { comm: Comm, first: Arc<CachedFile> },
    /// vgasnet, with a team of these ranks.
    Own { comm: Comm, members: Vec<u32>, path: CString, rights: Rights },
}

/// The claims of a handle served by MPI, at a rank that takes them.
#[derive(Default)]
struct OfMpi {
    claims: Vec<Claim>,
    /// Paths without a file, claimed once MPI has made it.
    absent: Vec<CString>,
    /// Whether some rank has such paths, as the ranks know of each other. All wait for its claims then: otherwise they
    /// would write while another team caches the file.
    is_late: bool,
}

impl OfMpi {
    /// The claims after a look at each path.
    fn new(looks: Vec<(Look, CString)>) -> OfMpi {
        let mut own = OfMpi::default();
        for (look, path) in looks {
            if look.is_absent() {
                own.absent.push(path);
            } else {
                own.claims.extend(look.claim());
            }
        }
        own
    }

    /// The claims after a look at one path, if this rank has looked.
    fn of(look: Option<Look>, path: Option<CString>) -> OfMpi {
        OfMpi::new(look.zip(path).into_iter().collect())
    }

    /// MPI has opened the file: claims what was absent. Returns whether the file is free.
    fn claim_late(&mut self) -> bool {
        let (late, are_free) = settled(std::mem::take(&mut self.absent));
        self.claims.extend(late.into_iter().filter_map(|(look, _)| look.claim()));
        are_free
    }
}

/// A team's rights to a file, at its first rank.
struct Rights {
    look: Option<Look>,
    /// Present if the file may be written.
    permit: Option<Permit>,
}

/// Others cache and write the file, and do not hand it back.
#[derive(Debug)]
struct Taken;

/// Opens a file by MPI, and has it cached if all ranks want so. MPI stores its handle as `new`.
pub fn open<'a, L: Language>(
    wanted: impl Fn() -> Wanted<'a>,
    next: impl Fn() -> c_int,
    new: Argument<'_, L, NewFile>,
) -> c_int {
    let library = running::library();
    if library.is_none() {
        job::tell_if_not_started(|| wanted().is_named());
        // Another MPI has other handles.
        if !is_its_mpi() {
            return next();
        }
    }
    let wanted = wanted();
    // MPI reports the error of a communicator that cannot open files.
    let Some(theirs) = Comm::of(wanted.comm) else { return next() };
    let chosen = match library {
        Some(library) => choose(library, &wanted, &theirs),
        None => choose_unserved(&wanted, &theirs),
    };
    let server = match chosen {
        Ok(server) => server,
        Err(Taken) => return refuse(new),
    };
    let others = descriptors_of(&wanted, &server);
    // An error handler may turn a failure into success.
    new.store(ffi::file_null());
    let code = next();
    // SAFETY: the null handle was stored before, if MPI has not stored another.
    let handle = unsafe { new.stored() };
    let handle = Some(handle).filter(|handle| code == SUCCESS && *handle != ffi::file_null());
    let opened = match server {
        Server::Mpi(own) => leave_to_mpi(&wanted, &theirs, handle, own, &others),
        server => serve(&wanted, handle, server, &others),
    };
    match opened {
        Ok(()) => code,
        Err(Taken) => {
            handle.into_iter().for_each(|handle| ffi::close(handle));
            refuse(new)
        }
    }
}

/// MPI has opened a file, on this rank if there is a handle. vgasnet serves it, if MPI has opened it on all ranks and
/// vgasnet can. Collective.
fn serve(wanted: &Wanted<'_>, handle: Option<Handle<File>>, server: Server, others: &[c_int]) -> Result<(), Taken> {
    let (Server::Shared { comm, .. } | Server::Own { comm, .. }) = &server else { return Ok(()) };
    let is_open = comm.all(handle.is_some());
    match (server, handle, running::library()) {
        (Server::Shared { comm, first }, Some(handle), Some(library)) if is_open => {
            share(library, wanted, handle, comm, &first);
            Ok(())
        }
        (Server::Own { comm, members, path, rights }, Some(handle), Some(library)) if is_open => {
            cache(library, wanted, handle, (comm, members, path), rights)
        }
        (mut server, handle, _) => {
            if let Some(handle) = handle {
                keep(wanted, handle, claims_of_some(&mut server), others);
            }
            if let Server::Shared { comm, .. } | Server::Own { comm, .. } = server {
                comm.free();
            }
            Ok(())
        }
    }
}

/// The claims of a handle that MPI has opened on some ranks only. MPI serves it as well as it can, and nobody waits.
fn claims_of_some(server: &mut Server) -> Vec<Claim> {
    let claim = match server {
        Server::Own { rights: Rights { look: Some(look), .. }, path, .. } => {
            let look = std::mem::replace(look, Look::Unclaimable);
            if look.is_absent() { Look::of(path).claim() } else { look.claim().and_then(Claim::of_mpi) }
        }
        Server::Shared { comm, first } if comm.rank == 0 && first.may_write => Look::of(&first.own_path()).claim(),
        _ => None,
    };
    claim.into_iter().collect()
}

/// Refuses a file cached and written by others. The program gets no handle, and the error handler for calls without a
/// file is called.
fn refuse<L: Language>(new: Argument<'_, L, NewFile>) -> c_int {
    new.store(ffi::file_null());
    ffi::raise_without_file(constants().err_file_in_use)
}

/// Descriptors of the file that a rank with claims already has. If descriptors are about to run short, MPI's own
/// descriptor is identified by exclusion of these.
fn descriptors_of(wanted: &Wanted<'_>, server: &Server) -> Vec<c_int> {
    let has_claims = match server {
        Server::Mpi(own) => !own.claims.is_empty() || !own.absent.is_empty(),
        Server::Shared { comm, .. } | Server::Own { comm, .. } => wanted.may_write() && comm.rank == 0,
    };
    if has_claims { descriptors::writable_of(&c_paths_of(wanted.name)) } else { Vec::new() }
}

/// MPI serves a handle, on this rank if it has opened it. `others` are the earlier descriptors of the file. Collective.
fn leave_to_mpi(
    wanted: &Wanted<'_>,
    theirs: &Comm,
    handle: Option<Handle<File>>,
    mut own: OfMpi,
    others: &[c_int],
) -> Result<(), Taken> {
    let is_free = handle.is_none() || own.claim_late();
    if own.is_late {
        let [is_free, is_open] = theirs.agree([is_free, handle.is_some()]);
        if is_open && !is_free {
            return Err(Taken);
        }
    }
    if let Some(handle) = handle {
        keep(wanted, handle, own.claims, others);
    }
    Ok(())
}

/// A handle served by MPI has its claims while it is open.
fn keep(wanted: &Wanted<'_>, handle: Handle<File>, claims: Vec<Claim>, others: &[c_int]) {
    // A claim takes a descriptor, which the program may need. MPI's own descriptor can hold the lock instead, unless
    // MPI opens the file later or on another rank.
    if claims.is_empty() || !descriptors::are_short() || !pass_to_mpi(wanted, &claims, others) {
        claims.into_iter().for_each(|claim| claims::keep(handle, claim));
    }
}

/// Lets MPI's own descriptor of a file hold the claim: the writable one neither in `others` nor held by a claim.
fn pass_to_mpi(wanted: &Wanted<'_>, claims: &[Claim], others: &[c_int]) -> bool {
    let is_of_mpi =
        |descriptor: &c_int| !others.contains(descriptor) && !claims.iter().any(|claim| claim.is_by(*descriptor));
    let own = descriptors::writable_of(&c_paths_of(wanted.name)).into_iter().find(is_of_mpi);
    own.is_some_and(claims::pass_to)
}

fn c_paths_of(name: &[u8]) -> Vec<CString> {
    paths_of(name).into_iter().filter_map(|path| CString::new(path).ok()).collect()
}

/// A look at each path, as a guest that has waited for owners. Also returns whether all owners handed their file back.
fn settled(paths: Vec<CString>) -> (Vec<(Look, CString)>, bool) {
    let looks: Vec<_> = paths.into_iter().map(|path| (Look::of(&path), path)).collect();
    let are_free = looks.iter().fold(true, |are_free, (look, path)| look.settle(path) && are_free);
    (looks, are_free)
}

/// Reports that others cache and write a file, if it cannot be refused. Returns true: MPI opens it nevertheless.
fn tell_taken(wanted: &Wanted<'_>) -> bool {
    say(format_args!(
        "rank {}: MPI_File_open: {}: another team caches it, and its bytes may overwrite those of this handle; close it there before",
        running::own_rank(),
        String::from_utf8_lossy(wanted.name)
    ));
    true
}

/// The server of a file where vgasnet does not run: MPI. Collective if the ranks know of each other that they have the
/// library. Otherwise each of them has claims of its own, since none can wait for another's.
fn choose_unserved(wanted: &Wanted<'_>, theirs: &Comm) -> Result<Server, Taken> {
    if running::is_agreed() && !ffi::is_finalized() {
        return for_mpi_alone(wanted, theirs, theirs.world_ranks().is_some());
    }
    let (looks, are_free) = if wanted.may_write() { settled(c_paths_of(wanted.name)) } else { (Vec::new(), true) };
    if are_free || tell_taken(wanted) { Ok(Server::Mpi(OfMpi::new(looks))) } else { Err(Taken) }
}

/// Collective. A file that only MPI may serve: its name stands for several, or the ranks are not all of one world.
fn for_mpi_alone(wanted: &Wanted<'_>, theirs: &Comm, is_of_world: bool) -> Result<Server, Taken> {
    // Other processes may lack the library, the first rank included. Then there is no agreement and no joint refusal,
    // and none can wait for another's claims.
    let has_claims = wanted.may_write() && (!is_of_world || theirs.rank == 0);
    let (looks, are_free) = if has_claims { settled(c_paths_of(wanted.name)) } else { (Vec::new(), true) };
    let mut own = OfMpi::new(looks);
    let mut is_free = are_free;
    if is_of_world {
        let [are_free, none_is_late] = theirs.agree([are_free, own.absent.is_empty()]);
        (is_free, own.is_late) = (are_free, !none_is_late);
    }
    if is_free || !is_of_world && tell_taken(wanted) { Ok(Server::Mpi(own)) } else { Err(Taken) }
}

/// Collective. Duplicates the communicator only for files that the library may serve.
fn choose(library: &'static Library, wanted: &Wanted<'_>, theirs: &Comm) -> Result<Server, Taken> {
    if theirs.rank == 0 {
        wanted.hints.tell();
    }
    let paths = paths_of(wanted.name);
    let path = CString::new(paths[0]).ok();
    let members = theirs.world_ranks();
    let is_of_world = members.is_some();
    let (true, Some(members)) = (paths.len() == 1, members) else {
        return for_mpi_alone(wanted, theirs, is_of_world);
    };
    let has_places = !wanted.has(constants().mode_sequential);
    let identity = path.as_deref().filter(|_| has_places).and_then(Identity::of);
    let is_open = identity.is_some_and(|identity| !own_files(identity).is_empty());
    let is_named = wanted.is_named();
    // Each rank may open a file for itself, and the ranks know nothing of each other: caching such a file takes an
    // explicit hint.
    let is_meant = is_named && (wanted.hints.is_cached.is_some() || !theirs.is_one_of_several());
    let is_short = is_meant && path.as_deref().is_some_and(descriptors::are_short_for);
    let is_first_writer = theirs.rank == 0 && wanted.may_write();
    // Before the ranks agree, so that the others wait for the owners that the first one waits for.
    let look_at_it = || path.as_deref().filter(|_| is_first_writer).map(Look::of);
    let is_free = |look: &Option<Look>| match (look, &path) {
        (Some(look), Some(path)) => look.settle(path),
        _ => true,
    };
    let is_there = |look: &Option<Look>| !look.as_ref().is_some_and(Look::is_absent);
    let mut look = if is_open { None } else { look_at_it() };
    let is_settled = is_free(&look);
    let [all_mean_it, none_has_it, none_names_it, is_settled, none_is_late] =
        theirs.agree([is_meant && !is_short, !is_open, !is_named, is_settled, is_there(&look)]);
    if !is_settled {
        return Err(Taken);
    }
    let by_mpi =
        |look, path, none_is_late: bool| Ok(Server::Mpi(OfMpi { is_late: !none_is_late, ..OfMpi::of(look, path) }));
    if !all_mean_it && none_has_it && none_names_it {
        return by_mpi(look, path, none_is_late);
    }
    let Some(comm) = Comm::dup(wanted.comm) else { return by_mpi(look, path, none_is_late) };
    let first = if none_has_it { None } else { shared(wanted, &comm, identity) };
    if let Some(first) = first {
        return Ok(Server::Shared { comm, first });
    }
    look = look.or_else(look_at_it);
    // MPI's writes would be lost in the whole blocks of a team that caches and writes the file.
    let permit = if all_mean_it && is_first_writer { Permit::of(library) } else { None };
    let is_permitted = permit.is_some() || !is_first_writer;
    let owns = all_mean_it && is_permitted && look.as_mut().is_none_or(Look::become_owner);
    let [owns, is_settled, none_is_late] = comm.agree([owns || comm.rank > 0, owns || is_free(&look), is_there(&look)]);
    match path {
        Some(path) if owns && all_mean_it => Ok(Server::Own { comm, members, path, rights: Rights { look, permit } }),
        path => {
            comm.free();
            if is_settled { by_mpi(look, path, none_is_late) } else { Err(Taken) }
        }
    }
}

/// A file that all ranks have open by another handle with at least the same access rights. Collective.
fn shared(wanted: &Wanted<'_>, comm: &Comm, identity: Option<Identity>) -> Option<Arc<CachedFile>> {
    let fits = |file: &CachedFile| wanted.may_read() <= file.may_read && wanted.may_write() <= file.may_write;
    let theirs = identity.map(own_files).unwrap_or_default();
    // The first rank chooses. Of several files it prefers the one shared by the most ranks.
    let chosen = theirs.iter().filter(|(_, file)| fits(file)).max_by_key(|(name, file)| (file.comm.ranks, *name));
    let name = comm.of_first(chosen.map_or(u64::MAX, |(name, _)| *name)).ok().filter(|name| *name != u64::MAX)?;
    let first = theirs.into_iter().find_map(|(its, file)| (its == name).then_some(file));
    if comm.all(first.is_some()) { first } else { None }
}

/// A second handle uses the file of the first. Collective.
fn share(library: &'static Library, wanted: &Wanted<'_>, handle: Handle<File>, comm: Comm, first: &CachedFile) {
    let by_all = first.comm.ranks == comm.ranks;
    let tag = comm.of_first(next_tag()).unwrap_or(0);
    let order = (tag, comm.world_ranks().map_or(0, |members| members[0]));
    let pointer = Pointer::new(library, &comm, tag as u32);
    let hold = Hold::Shared { first: first.handle, order, by_all, pointer };
    // If the second handle has all ranks of the file, its decider is the rank that decides for the first handle.
    let decider = first.comm.world_ranks().zip(comm.world_ranks()).filter(|_| by_all && first.decider.is_some());
    let decider = decider.and_then(|(firsts, own)| own.iter().position(|rank| *rank == firsts[0]));
    let mut file = CachedFile::new(library, (handle, first.file), first.path.clone(), comm, hold);
    (file.through, file.decider) = (Arc::clone(&first.through), decider.map(|rank| rank as u32));
    begin(wanted, file);
}

/// Has a team open a file. If vgasnet cannot, MPI serves it. Collective.
fn cache(
    library: &'static Library,
    wanted: &Wanted<'_>,
    handle: Handle<File>,
    (comm, members, path): (Comm, Vec<u32>, CString),
    Rights { look, permit }: Rights,
) -> Result<(), Taken> {
    // The file may not have existed before MPI opened it. If two communicators create it at once, one of them or both
    // are late, and leave it to MPI.
    let is_late = look.as_ref().is_some_and(Look::is_absent);
    let mut look = if is_late { Some(Look::of(&path)) } else { look };
    let owns = !is_late || look.as_mut().is_none_or(Look::become_owner);
    let is_free = owns || look.as_ref().is_none_or(|look| look.settle(&path));
    let claim = look.and_then(Look::claim);
    let told = match (owns, is_free) {
        (true, _) => next_tag(),
        (false, true) => BY_MPI,
        (false, false) => TAKEN,
    };
    let tag = comm.of_first(told).unwrap_or(BY_MPI);
    if tag >= BY_MPI {
        comm.free();
        if tag == TAKEN {
            return Err(Taken);
        }
        claim.into_iter().for_each(|claim| claims::keep(handle, claim));
        return Ok(());
    }
    let team = library.team_of(&members, tag as u32);
    let flags = if wanted.may_read() { vgasnet::READ } else { 0 } | if wanted.may_write() { vgasnet::WRITE } else { 0 };
    let Hints { stripe_bytes, io_ranks, .. } = &wanted.hints;
    let Ok(file) =
        library.open(team, &Opening { path: &path, flags, stripe_bytes: *stripe_bytes, io_ranks: *io_ranks })
    else {
        library.free_team(team);
        comm.free();
        claim.into_iter().filter_map(Claim::of_mpi).for_each(|claim| claims::keep(handle, claim));
        return Ok(());
    };
    // On all ranks: each may sync it alone by a handle of its own.
    if wanted.has(constants().mode_create) {
        let _fails_if_closed = library.note_new_name(file);
    }
    let (name, identity) = (u64::from(members[0]) << 32 | tag, Identity::of(&path));
    let hold = Hold::Own { team, name, identity, claim: Mutex::new(claim), permit: Mutex::new(permit) };
    let mut file = CachedFile::new(library, (handle, file), path, comm, hold);
    // A file that is only read is never handed over.
    file.decider = wanted.may_write().then_some(0);
    begin(wanted, file);
    Ok(())
}

/// In place of a team's name: MPI serves the file.
const BY_MPI: u64 = u64::MAX - 1;

/// Others cache and write it, and do not hand it back.
const TAKEN: u64 = u64::MAX;

/// Names a team with this rank as its first. A team has only ranks of one job.
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
    file.prepare_to_sync_alone();
    let file = Arc::new(file);
    cached_files::add(&file);
    // A handle that only reads disturbs nobody.
    if file.may_write && matches!(file.hold, Hold::Own { .. }) {
        file.through.is_watched.store(true, Ordering::Release);
        watch::add(&file);
        rescue::prepare();
    }
}
