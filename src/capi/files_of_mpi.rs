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
    fn vgasnet_mpi_file_rescue(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.rescue(&*files.get_beside(number(file)?)?)?;
        Ok(OK)
    }
}
