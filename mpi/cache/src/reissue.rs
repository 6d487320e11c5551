//! Gets that MPI is asked for once more: they joined a get that has failed, or whose buffer an operation has written.

use crate::ffi;
use crate::pending::{self, Reissue};
use crate::window::{Effect, Window};
use crate::windows;
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::Datatype;

/// Asks MPI for the bytes of gets that joined in vain.
#[cold]
pub fn reissue(reissues: Vec<Reissue>, window: &Window) {
    for get in reissues {
        let win = if get.space == window.space {
            window
        } else {
            match windows::of_space(get.space) {
                Some(other) => other,
                None => continue,
            }
        };
        let error = ffi::get_bytes(get.buffer, get.target, get.displacement, win.handle, get.atom);
        pending::on_reissued(&get, error);
        // Counted even if MPI has refused it: the next completion must not find everything done.
        win.on_issued(get.target, Effect::Read);
    }
}

/// A buffer of the program, written by an operation.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub address: usize,
    pub count: i64,
    pub datatype: Handle<Datatype>,
}

impl Buffer {
    /// Start and length, if they are known.
    pub fn span(&self) -> Option<(usize, usize)> {
        if self.count < 1 {
            return Some((self.address, 0));
        }
        let (low, bytes) = ffi::span(self.datatype, self.count)?;
        Some((self.address.wrapping_add_signed(low as isize), usize::try_from(bytes).ok()?))
    }

    /// An operation that is not noted writes it. Copies of gets in flight to the same bytes are not kept.
    #[cold]
    pub fn overwrite(&self, window: &Window) {
        let reissues = match self.span() {
            Some((start, len)) => pending::on_written(start, len),
            None => pending::on_written_anywhere(),
        };
        reissue(reissues, window);
    }
}
