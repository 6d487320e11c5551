//! Functions for `libvgasnet-mpi-io`. No header declares them.

use super::OK;
use super::boundary::{attached, entry_points};
use super::files::{FilePointer, number};
use std::ffi::c_int;

entry_points! {
    unsafe fn vgasnet_mpi_file_descriptor(file: FilePointer, descriptor: *mut c_int) -> c_int {
        let files = attached()?.files();
        descriptor.write(files.descriptor(&*files.get_beside(number(file)?)?)?);
        Ok(OK)
    }
}

entry_points! {
    fn vgasnet_mpi_file_hand_over(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.hand_over(&*files.get_beside(number(file)?)?);
        Ok(OK)
    }
}

entry_points! {
    fn vgasnet_mpi_file_note_new_name(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.note_new_name(&*files.get_beside(number(file)?)?);
        Ok(OK)
    }
}

entry_points! {
    fn vgasnet_mpi_file_rescue(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.rescue(&*files.get_beside(number(file)?)?)?;
        Ok(OK)
    }
}

entry_points! {
    unsafe fn vgasnet_mpi_begin_caching(is_counted: *mut c_int) -> c_int {
        is_counted.write(attached()?.files().begin_caching().into());
        Ok(OK)
    }

    unsafe fn vgasnet_mpi_is_caching_barred(is_barred: *mut c_int) -> c_int {
        is_barred.write(attached()?.files().is_caching_barred().into());
        Ok(OK)
    }

    unsafe fn vgasnet_mpi_bar_caching(still_cached: *mut u64) -> c_int {
        still_cached.write(attached()?.files().bar_caching());
        Ok(OK)
    }
}

entry_points! {
    fn vgasnet_mpi_end_caching() -> c_int {
        attached()?.files().end_caching();
        Ok(OK)
    }

    fn vgasnet_mpi_bar_own_caching() -> c_int {
        attached()?.files().bar_own_caching();
        Ok(OK)
    }
}
