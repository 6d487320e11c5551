//! Functions for `libvgasnet-mpi-io`. No header declares them.

use super::OK;
use super::boundary::{attached, entry_points};
use super::coll::TeamType;
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

    fn vgasnet_mpi_file_want_handed_over(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.want_handed_over(&*files.get_beside(number(file)?)?);
        Ok(OK)
    }
}

entry_points! {
    unsafe fn vgasnet_mpi_file_is_wanted(file: FilePointer, is_wanted: *mut c_int) -> c_int {
        let files = attached()?.files();
        is_wanted.write(files.is_wanted(&*files.get_beside(number(file)?)?).into());
        Ok(OK)
    }

    unsafe fn vgasnet_mpi_pointer_open(team: *mut TeamType, pointer: *mut FilePointer) -> c_int {
        let made = attached()?.files().open_pointer(team.addr() as u64)?;
        pointer.write(std::ptr::without_provenance_mut(made as usize));
        Ok(OK)
    }
}

entry_points! {
    fn vgasnet_mpi_file_end_sync_alone(file: FilePointer, errno: c_int) -> c_int {
        let files = attached()?.files();
        files.end_sync_alone(&*files.get_beside(number(file)?)?, Some(errno).filter(|errno| *errno != 0))?;
        Ok(OK)
    }
}

entry_points! {
    fn vgasnet_mpi_file_end_write(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.end_write(&*files.get_beside(number(file)?)?);
        Ok(OK)
    }
}

entry_points! {
    fn vgasnet_mpi_file_hold_writes(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.hold_writes(&*files.get_beside(number(file)?)?);
        Ok(OK)
    }

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

    unsafe fn vgasnet_mpi_end_job(not_rescued: *mut u64) -> c_int {
        not_rescued.write(attached()?.files().end_job());
        Ok(OK)
    }

    unsafe fn vgasnet_mpi_is_job_ending(is_ending: *mut c_int) -> c_int {
        is_ending.write(attached()?.files().is_job_ending().into());
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

    fn vgasnet_mpi_go_on() -> c_int {
        attached()?.files().go_on();
        Ok(OK)
    }

    fn vgasnet_mpi_note_rescue() -> c_int {
        attached()?.files().note_rescue();
        Ok(OK)
    }

    fn vgasnet_mpi_bar_own_caching() -> c_int {
        attached()?.files().bar_own_caching();
        Ok(OK)
    }
}
