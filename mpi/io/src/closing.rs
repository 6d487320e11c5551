//! The end of a cached file: it is closed, or MPI serves its handles from then on.

use crate::cached_files::{self, CachedFile, shared_with};
use crate::claims::{self, Claim};
use crate::ffi;
use crate::hold::Hold;
use crate::look::Look;
use crate::say;
use crate::sharing::Way;
use crate::vgasnet::Failed;
use crate::watch;
use std::ffi::c_int;
use std::sync::PoisonError;
use vgasnet_mpi_front::kind::File;
use vgasnet_mpi_front::{Handle, SUCCESS};

/// The server of a handle after caching ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// None: it is closed.
    Nothing,
    Mpi,
    /// MPI, which continues at the pointers.
    MpiAtPointers,
}

impl CachedFile {
    /// Gives up the claim: the team caches nothing any more. If MPI continues, the handle becomes a guest, so that a
    /// team that caches the file next does not overwrite MPI's writes with its whole blocks.
    fn end_claim(&self, after: After) {
        let Hold::Own { claim, permit, .. } = &self.hold else { return };
        let claim = claim.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(permit.lock().unwrap_or_else(PoisonError::into_inner).take());
        if after != After::Nothing {
            claim.and_then(Claim::of_mpi).into_iter().for_each(|claim| claims::keep(self.handle, claim));
        }
    }

    /// Ends caching: other programs see all writes. Collective.
    fn end(&self, after: After) -> Result<(), Failed> {
        self.queue.wait_until_idle();
        let is_own = matches!(self.hold, Hold::Own { .. });
        let joint = self.together(is_own);
        watch::remove(self.handle);
        let units = if after == After::MpiAtPointers { self.shared_units() } else { 0 };
        let answer = match &self.hold {
            Hold::Own { team, .. } => {
                let seconds = shared_with(self.handle);
                seconds.iter().for_each(|second| second.queue.wait_until_idle());
                let seconds = seconds.into_iter().map(|second| (second.guest_claim(), second));
                let seconds: Vec<_> = seconds.collect();
                let leave = || seconds.into_iter().for_each(|(claim, second)| second.leave(claim));
                let closed = if matches!(joint, Way::Through) {
                    leave();
                    self.through.end();
                    self.library.close(self.file)
                } else {
                    // Second handles stay cached until the close. Otherwise whole blocks would be written over MPI's
                    // writes.
                    let closed = self.library.close(self.file);
                    leave();
                    closed
                };
                self.library.free_team(*team);
                self.end_claim(after);
                // A handle opened next then finds the file free.
                let _free = self.comm.of_first(0);
                self.through.tell_unwritten().and(closed)
            }
            Hold::Shared { pointer, .. } => {
                drop(joint);
                let synced = self.sync();
                pointer.close(self.library);
                synced
            }
        };
        if after == After::MpiAtPointers {
            self.hand_over(units);
        }
        self.comm.free();
        answer
    }

    /// The claim of a second handle that becomes MPI's, through the descriptor the first has until then.
    pub fn guest_claim(&self) -> Option<Claim> {
        let is_held = self.comm.rank == 0 && self.may_write;
        is_held.then(|| Look::of(&self.own_path()).claim()).flatten()
    }

    /// A second handle becomes MPI's, since the first is closed. All ranks of the second close the first. Collective.
    fn leave(&self, claim: Option<Claim>) {
        drop(cached_files::remove(self.handle));
        claim.into_iter().for_each(|claim| claims::keep(self.handle, claim));
        self.hand_over(self.shared_units());
        if let Hold::Shared { pointer, .. } = &self.hold {
            self.comm.meet();
            pointer.close(self.library);
        }
        self.comm.free();
    }

    /// The shared pointer, at the first rank.
    fn shared_units(&self) -> u64 {
        if self.comm.rank == 0 { self.take_in_order(0).unwrap_or(0) } else { 0 }
    }

    /// MPI's own file continues at the handle's pointers. The first rank supplies the shared one. Collective.
    fn hand_over(&self, shared: u64) {
        let units = *self.position() / self.view().unit;
        let _at = ffi::seek(self.handle, units as i64);
        // MPI's own pointer was not moved, so it is at the beginning unless the file is appended to.
        match self.comm.of_first(shared) {
            Ok(units) if units > 0 || self.is_appended => drop(ffi::seek_shared(self.handle, units as i64)),
            _ => {}
        }
        if self.is_atomic() {
            ffi::set_atomicity(self.handle);
        }
    }
}

/// Leaves the program's open files to MPI, which is about to end. Collective over all ranks; the ranks of a team have
/// the same files open.
pub fn close_all() {
    let mut own = cached_files::all_own_files();
    own.sort_unstable_by_key(|(name, _)| *name);
    for (_, file) in own {
        if file.comm.rank == 0 {
            let (rank, path) = (ffi::world_rank(), file.path.to_string_lossy());
            say(format_args!(
                "rank {rank}: MPI_Finalize: {path} is open; it is written now, and cached no more; call MPI_File_close before"
            ));
        }
        let _closing = cached_files::remove(file.handle);
        // A file of a session outlives this.
        let _told = file.end(After::MpiAtPointers);
    }
}

/// Closes a file: first here, since MPI may delete it then.
pub fn close(handle: Handle<File>, next: impl Fn() -> c_int) -> c_int {
    let Some(file) = cached_files::remove(handle) else {
        // They end after the close.
        let _claims = claims::take(handle);
        return next();
    };
    let answer = file.end(After::Nothing);
    // The error handler still exists.
    let code = file.code(answer);
    drop(file);
    match next() {
        SUCCESS => code,
        failed => failed,
    }
}

/// Leaves a file to MPI from now on. Collective.
pub fn give_up(handle: Handle<File>, is_atomic: bool) -> c_int {
    let Some(file) = cached_files::remove(handle) else { return SUCCESS };
    let answer = file.end(After::Mpi);
    match file.code(answer) {
        SUCCESS if is_atomic => ffi::set_atomicity(handle),
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    /// MPI may give the next handle, opened by another thread, the number of a closed one.
    #[test]
    fn closing_a_handle_leaves_the_claim_of_the_next_one_with_its_number() {
        let path = std::env::temp_dir().join(format!("vgasnet-closing-{}", std::process::id()));
        std::fs::write(&path, b"").expect("the directory can be written");
        let name = CString::new(path.as_os_str().as_bytes()).expect("no zero");
        let claim = || Look::of(&name).claim().expect("a guest");
        // SAFETY: MPI is never called by this handle.
        let handle = unsafe { Handle::new(0x5eed) };
        claims::keep(handle, claim());
        let code = close(handle, || {
            claims::keep(handle, claim());
            SUCCESS
        });
        let other = claim();
        assert!(code == SUCCESS && other.has_guests(), "the next handle has its claim");
        drop(claims::take(handle));
        assert!(!other.has_guests(), "the first one's claim has ended");
        std::fs::remove_file(&path).expect("it is there");
    }
}
