//! Interposed MPI calls with buffers, in front of MPI's own (MPI's profiling interface). For addresses outside the
//! segment they cost a small number of comparisons.
//!
//! A blocking call with a buffer in the segment works through ordinary memory (`blocking.c`). A call that returns
//! before it is through with the buffer ends the job with a line: MPI would use the memory behind the library's back.
//!
//! Every argument is an integer or a pointer, of types differing between MPIs. Each is passed on as a whole register or
//! stack slot, which holds any of them on 64-bit systems; the high half of an `int` is meaningless.

use std::ffi::c_int;

use crate::segment;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the arguments of MPI's functions are passed on as 64-bit registers and stack slots");

unsafe extern "C" {
    fn vgasnet_mpi_touches(count: i64, datatype: usize) -> c_int;
}

/// Defines the calls `$name` with these arguments, for the kinds in brackets: `always`, or a version of MPI; `large` for
/// the same with counts of 8 bytes, of MPI 4. `$address` are buffers. If one may lie in the segment, `$how` handles the
/// call: `through_memory`, or a function that ends the job if it does.
macro_rules! calls {
    ($([$($kind:ident)+] $rows:tt)+) => {
        $($(calls!(@$kind $rows);)+)+

        /// The MPI functions with buffers defined by this library.
        pub fn names() -> impl Iterator<Item = &'static str> {
            let mut names: Vec<&'static str> = Vec::new();
            $($(calls!(@names $kind names $rows);)+)+
            names.into_iter()
        }
    };
    (@names always $names:ident {$($how:ident $arguments:tt $addresses:tt: $($name:ident)+;)+}) => {
        $names.extend([$($(stringify!($name)),+),+]);
    };
    (@names large $names:ident {$($how:ident $arguments:tt $addresses:tt: $($name:ident)+;)+}) => {
        #[cfg(mpi_4_0)]
        $names.extend([$($(concat!(stringify!($name), "_c")),+),+]);
    };
    (@names $version:ident $names:ident $rows:tt) => {
        #[cfg($version)]
        calls!(@names always $names $rows);
    };
    (@always {$($how:ident $arguments:tt $addresses:tt: $($name:ident)+;)+}) => {
        $(calls!(@group $how $arguments $addresses "": $($name)+);)+
    };
    (@large {$($how:ident $arguments:tt $addresses:tt: $($name:ident)+;)+}) => {
        $(#[cfg(mpi_4_0)] calls!(@group $how $arguments $addresses "_c": $($name)+);)+
    };
    // `refuse_buffer` takes counts of 4 bytes.
    (@group point_to_point $arguments:tt $addresses:tt "_c": $($name:ident)+) => {
        calls!(@group non_blocking $arguments $addresses "_c": $($name)+);
    };
    (@group $how:ident $arguments:tt $addresses:tt $end:literal: $($name:ident)+) => {
        $(calls!(@one $how $arguments $addresses concat!(stringify!($name), $end));)+
    };
    (@one $how:ident ($($argument:ident)+) [$($address:ident)+] $name:expr) => {
        const _: () = {
            /// See the MPI standard.
            ///
            /// # Safety
            /// As for MPI's.
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn call($($argument: usize),+) -> c_int {
                unsafe extern "C" {
                    #[link_name = concat!("P", $name)]
                    fn theirs($($argument: usize),+) -> c_int;
                }
                if $(segment::is_suspect($address))||+ {
                    calls!(@suspect $how ($($argument)+) [$($address)+] $name);
                }
                // SAFETY: the arguments are the caller's, for MPI.
                unsafe { theirs($($argument),+) }
            }
        };
    };
    (@$version:ident $rows:tt) => {
        #[cfg($version)]
        calls!(@always $rows);
    };
    (@suspect through_memory ($($argument:ident)+) $addresses:tt $name:expr) => {{
        unsafe extern "C" {
            #[link_name = concat!("vgasnet_", $name)]
            fn ours($($argument: usize),+) -> c_int;
        }
        // SAFETY: as for MPI's function; this one of `blocking.c` has the same arguments.
        return unsafe { ours($($argument),+) };
    }};
    // With all data at one address, it may be MPI_BOTTOM.
    (@suspect point_to_point ($buffer:ident $count:ident $type:ident $($more:ident)*) [$address:ident] $name:expr) => {
        // SAFETY: the caller passes MPI a count and a datatype.
        unsafe { refuse_buffer($name, $buffer, $count as c_int, $type) }
    };
    (@suspect $how:ident $arguments:tt [$($address:ident)+] $name:expr) => {
        $how($name, &[$($address),+])
    };
}

const COPY: &str = "copy to ordinary memory with vgasnet_get";

/// Ends the job if an address lies in the segment; `instead` names an alternative.
#[cold]
fn refuse_addresses(call: &str, addresses: &[usize], why: &str, instead: &str) {
    if let Some(address) = addresses.iter().find(|address| segment::contains(**address)) {
        segment::refuse(call, &format!("the address {address:#x} lies in the segment, and {why}; {instead}"));
    }
}

/// A call returning before MPI is through with a buffer.
#[cold]
fn non_blocking(call: &str, addresses: &[usize]) {
    let why = "MPI uses it after the call, when the page may be gone";
    refuse_addresses(call, addresses, why, &format!("{COPY}, or use the blocking call"));
}

/// As [`non_blocking`], for one buffer.
///
/// # Safety
/// As for MPI's: the address may be `MPI_BOTTOM`, and the datatype is valid.
#[cold]
unsafe fn refuse_buffer(call: &str, address: usize, count: c_int, datatype: usize) {
    non_blocking(call, &[address]);
    // SAFETY: the caller passes a datatype; with no elements it may be invalid, and is not examined.
    if address == 0 && unsafe { vgasnet_mpi_touches(count.into(), datatype) } != 0 {
        let why = "MPI_BOTTOM, and the datatype has addresses in the segment, which MPI uses after the call, when the \
                   pages may be gone";
        segment::refuse(call, &format!("{why}; {COPY}, or use the blocking call"));
    }
}

/// A call for one-sided access.
#[cold]
fn one_sided(call: &str, addresses: &[usize]) {
    let why = "MPI uses it after the call, when the page may be gone";
    refuse_addresses(call, addresses, why, "use vgasnet_put and vgasnet_get, or give MPI ordinary memory");
}

/// A call not implemented through ordinary memory.
#[cold]
fn unsupported(call: &str, addresses: &[usize]) {
    refuse_addresses(call, addresses, "vgasnet does not do this call on segments", &format!("{COPY} first"));
}

calls! {
    [always large] {
        through_memory(a b c d e f) [a]: MPI_Send MPI_Ssend MPI_Bsend MPI_Rsend;
        through_memory(a b c d e f g) [a]: MPI_Recv;
        through_memory(a b c d e) [a]: MPI_Mrecv MPI_Bcast;
        through_memory(a b c d e f g h i j k l) [a f]: MPI_Sendrecv;
        through_memory(a b c d e f g h i) [a]: MPI_Sendrecv_replace;
        through_memory(a b c d e f g) [a b]: MPI_Reduce;
        through_memory(a b c d e f) [a b]: MPI_Allreduce MPI_Scan MPI_Exscan MPI_Reduce_scatter
            MPI_Reduce_scatter_block;
        through_memory(a b c d e) [a b]: MPI_Reduce_local;
        through_memory(a b c d e f g h) [a d]: MPI_Gather MPI_Scatter MPI_Allgatherv;
        through_memory(a b c d e f g h i) [a d]: MPI_Gatherv;
        through_memory(a b c d e f g h i) [a e]: MPI_Scatterv MPI_Alltoallv MPI_Alltoallw;
        through_memory(a b c d e f g) [a d]: MPI_Allgather MPI_Alltoall MPI_Pack MPI_Unpack;
        through_memory(a b c d e) [b]: MPI_File_read MPI_File_read_all MPI_File_read_shared MPI_File_read_ordered
            MPI_File_write MPI_File_write_all MPI_File_write_shared MPI_File_write_ordered;
        through_memory(a b c d e f) [c]: MPI_File_read_at MPI_File_read_at_all MPI_File_write_at MPI_File_write_at_all;
        point_to_point(a b c d e f g) [a]: MPI_Isend MPI_Issend MPI_Ibsend MPI_Irsend MPI_Irecv MPI_Send_init
            MPI_Ssend_init MPI_Bsend_init MPI_Rsend_init MPI_Recv_init;
        point_to_point(a b c d e) [a]: MPI_Imrecv;
        point_to_point(a b c d e f) [a]: MPI_Ibcast;
        non_blocking(a b c d e f g h i) [a d]: MPI_Igather MPI_Iscatter MPI_Iallgatherv MPI_Ineighbor_allgatherv;
        non_blocking(a b c d e f g h i j) [a d]: MPI_Igatherv;
        non_blocking(a b c d e f g h i j) [a e]: MPI_Iscatterv MPI_Ialltoallv MPI_Ialltoallw MPI_Ineighbor_alltoallv
            MPI_Ineighbor_alltoallw;
        non_blocking(a b c d e f g h) [a d]: MPI_Iallgather MPI_Ialltoall MPI_Ineighbor_allgather
            MPI_Ineighbor_alltoall;
        non_blocking(a b c d e f g h) [a b]: MPI_Ireduce;
        non_blocking(a b c d e f g) [a b]: MPI_Iallreduce MPI_Ireduce_scatter MPI_Ireduce_scatter_block MPI_Iscan
            MPI_Iexscan;
        non_blocking(a b c d e) [b]: MPI_File_iread MPI_File_iwrite MPI_File_iread_shared MPI_File_iwrite_shared;
        non_blocking(a b c d e f) [c]: MPI_File_iread_at MPI_File_iwrite_at;
        non_blocking(a b c d) [b]: MPI_File_read_all_begin MPI_File_write_all_begin MPI_File_read_ordered_begin
            MPI_File_write_ordered_begin;
        non_blocking(a b c d e) [c]: MPI_File_read_at_all_begin MPI_File_write_at_all_begin;
        one_sided(a b c d e f g h) [a]: MPI_Put MPI_Get;
        one_sided(a b c d e f g h i) [a]: MPI_Accumulate MPI_Rput MPI_Rget;
        one_sided(a b c d e f g h i j) [a]: MPI_Raccumulate;
        one_sided(a b c d e f g h i j k l) [a d]: MPI_Get_accumulate;
        one_sided(a b c d e f g h i j k l m) [a d]: MPI_Rget_accumulate;
        one_sided(a b c d e f) [a]: MPI_Win_create;
        unsupported(a b) [a]: MPI_Buffer_attach;
        unsupported(a b c d e f g) [b e]: MPI_Pack_external MPI_Unpack_external;
        unsupported(a b c d e f g) [a d]: MPI_Neighbor_allgather MPI_Neighbor_alltoall;
        unsupported(a b c d e f g h) [a d]: MPI_Neighbor_allgatherv;
        unsupported(a b c d e f g h i) [a e]: MPI_Neighbor_alltoallv MPI_Neighbor_alltoallw;
    }
    [always] {
        one_sided(a b c d e f g) [a b]: MPI_Fetch_and_op;
        one_sided(a b c d e f g) [a b c]: MPI_Compare_and_swap;
        one_sided(a b c) [b]: MPI_Win_attach;
    }
    [mpi_3_1 large] {
        non_blocking(a b c d e) [b]: MPI_File_iread_all MPI_File_iwrite_all;
        non_blocking(a b c d e f) [c]: MPI_File_iread_at_all MPI_File_iwrite_at_all;
    }
    [mpi_4_0 large] {
        non_blocking(a b c d e f g) [a]: MPI_Bcast_init;
        non_blocking(a b c d e f g h i) [a]: MPI_Isendrecv_replace;
        non_blocking(a b c d e f g h i j k l) [a f]: MPI_Isendrecv;
        non_blocking(a b c d e f g h i) [a d]: MPI_Allgather_init MPI_Alltoall_init MPI_Neighbor_allgather_init
            MPI_Neighbor_alltoall_init;
        non_blocking(a b c d e f g h i j) [a d]: MPI_Gather_init MPI_Scatter_init MPI_Allgatherv_init
            MPI_Neighbor_allgatherv_init;
        non_blocking(a b c d e f g h i j k) [a d]: MPI_Gatherv_init;
        non_blocking(a b c d e f g h i j k) [a e]: MPI_Scatterv_init MPI_Alltoallv_init MPI_Alltoallw_init
            MPI_Neighbor_alltoallv_init MPI_Neighbor_alltoallw_init;
        non_blocking(a b c d e f g h) [a b]: MPI_Allreduce_init MPI_Reduce_scatter_init MPI_Reduce_scatter_block_init
            MPI_Scan_init MPI_Exscan_init;
        non_blocking(a b c d e f g h i) [a b]: MPI_Reduce_init;
    }
    [mpi_4_0] {
        non_blocking(a b c d e f g h i) [a]: MPI_Psend_init MPI_Precv_init;
    }
}
