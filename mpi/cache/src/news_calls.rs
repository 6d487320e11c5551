//! The functions by which a process may learn from another one, besides those of [`crate::calls`].

use crate::{ffi, news, windows};
use vgasnet_mpi_front::calls;

/// Functions that may bring news whenever they return. For `unsafe` see [`calls!`].
macro_rules! news {
    (unsafe $([$($group:ident)+] {$($name:ident $($of_fortran:ident)? ($($argument:tt)*);)+})+) => {
        calls! {unsafe $([$($group)+] {$($name $($of_fortran)? ($($argument)*) |next| news::after(next);)+})+}
    };
}

// SAFETY: by MPI's standard the functions have these parameters.
news! {
    unsafe
    // Messages.
    [c large fortran] {
        MPI_Recv mpi_recv (buf count datatype source tag comm status);
        MPI_Mrecv mpi_mrecv (buf count datatype message status);
        MPI_Sendrecv mpi_sendrecv (sendbuf sendcount sendtype dest sendtag recvbuf recvcount recvtype source recvtag
            comm status);
        MPI_Sendrecv_replace mpi_sendrecv_replace (buf count datatype dest sendtag source recvtag comm status);
        MPI_Ssend mpi_ssend (buf count datatype dest tag comm);
    }
    [c fortran] {
        MPI_Probe mpi_probe (source tag comm status);
        MPI_Mprobe mpi_mprobe (source tag comm message status);
    }
    // Collectives.
    [c large fortran] {
        MPI_Bcast mpi_bcast (buffer count datatype root comm);
        MPI_Gather mpi_gather (sendbuf sendcount sendtype recvbuf recvcount recvtype root comm);
        MPI_Gatherv mpi_gatherv (sendbuf sendcount sendtype recvbuf recvcounts displs recvtype root comm);
        MPI_Scatter mpi_scatter (sendbuf sendcount sendtype recvbuf recvcount recvtype root comm);
        MPI_Scatterv mpi_scatterv (sendbuf sendcounts displs sendtype recvbuf recvcount recvtype root comm);
        MPI_Allgather mpi_allgather (sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
        MPI_Allgatherv mpi_allgatherv (sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm);
        MPI_Alltoall mpi_alltoall (sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
        MPI_Alltoallv mpi_alltoallv (sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm);
        MPI_Alltoallw mpi_alltoallw (sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm);
        MPI_Reduce mpi_reduce (sendbuf recvbuf count datatype op root comm);
        MPI_Allreduce mpi_allreduce (sendbuf recvbuf count datatype op comm);
        MPI_Reduce_scatter mpi_reduce_scatter (sendbuf recvbuf recvcounts datatype op comm);
        MPI_Reduce_scatter_block mpi_reduce_scatter_block (sendbuf recvbuf recvcount datatype op comm);
        MPI_Scan mpi_scan (sendbuf recvbuf count datatype op comm);
        MPI_Exscan mpi_exscan (sendbuf recvbuf count datatype op comm);
        MPI_Neighbor_allgather mpi_neighbor_allgather (sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
        MPI_Neighbor_allgatherv mpi_neighbor_allgatherv (sendbuf sendcount sendtype recvbuf recvcounts displs recvtype
            comm);
        MPI_Neighbor_alltoall mpi_neighbor_alltoall (sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
        MPI_Neighbor_alltoallv mpi_neighbor_alltoallv (sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls
            recvtype comm);
        MPI_Neighbor_alltoallw mpi_neighbor_alltoallw (sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls
            recvtypes comm);
    }
    [c fortran] {
        MPI_Barrier mpi_barrier (comm);
    }
    // Communicators and processes.
    [c fortran] {
        MPI_Comm_dup mpi_comm_dup (comm newcomm);
        MPI_Comm_dup_with_info mpi_comm_dup_with_info (comm info newcomm);
        MPI_Comm_create mpi_comm_create (comm group newcomm);
        MPI_Comm_create_group mpi_comm_create_group (comm group tag newcomm);
        MPI_Comm_split mpi_comm_split (comm color key newcomm);
        MPI_Comm_split_type mpi_comm_split_type (comm split_type key info newcomm);
        MPI_Comm_free mpi_comm_free (comm);
        MPI_Comm_disconnect mpi_comm_disconnect (comm);
        MPI_Intercomm_create mpi_intercomm_create (local_comm local_leader peer_comm remote_leader tag newintercomm);
        MPI_Intercomm_merge mpi_intercomm_merge (intercomm high newintracomm);
        MPI_Cart_create mpi_cart_create (old ndims dims periods reorder comm_cart);
        MPI_Cart_sub mpi_cart_sub (comm remain_dims newcomm);
        MPI_Graph_create mpi_graph_create (old nnodes indx edges reorder comm_graph);
        MPI_Dist_graph_create mpi_dist_graph_create (old n sources degrees destinations weights info reorder
            comm_dist_graph);
        MPI_Dist_graph_create_adjacent mpi_dist_graph_create_adjacent (old indegree sources sourceweights outdegree
            destinations destweights info reorder comm_dist_graph);
        MPI_Comm_accept mpi_comm_accept (port_name info root comm newcomm; len);
        MPI_Comm_connect mpi_comm_connect (port_name info root comm newcomm; len);
        MPI_Comm_join mpi_comm_join (fd intercomm);
        MPI_Comm_spawn mpi_comm_spawn (command argv maxprocs info root comm intercomm errcodes; len len2);
        MPI_Comm_spawn_multiple mpi_comm_spawn_multiple (count commands argv maxprocs info root comm intercomm
            errcodes; len len2);
        MPI_Lookup_name mpi_lookup_name (service_name info port_name; len len2);
    }
    // Files: reads, and calls that wait for other ranks.
    [c large fortran] {
        MPI_File_read mpi_file_read (fh buf count datatype status);
        MPI_File_read_all mpi_file_read_all (fh buf count datatype status);
        MPI_File_read_at mpi_file_read_at (fh offset buf count datatype status);
        MPI_File_read_at_all mpi_file_read_at_all (fh offset buf count datatype status);
        MPI_File_read_ordered mpi_file_read_ordered (fh buf count datatype status);
        MPI_File_read_shared mpi_file_read_shared (fh buf count datatype status);
        MPI_File_write_all mpi_file_write_all (fh buf count datatype status);
        MPI_File_write_at_all mpi_file_write_at_all (fh offset buf count datatype status);
        MPI_File_write_ordered mpi_file_write_ordered (fh buf count datatype status);
        MPI_File_write_shared mpi_file_write_shared (fh buf count datatype status);
    }
    [c fortran] {
        MPI_File_open mpi_file_open (comm filename amode info fh; len);
        MPI_File_close mpi_file_close (fh);
        MPI_File_delete mpi_file_delete (filename info; len);
        MPI_File_get_size mpi_file_get_size (fh size);
        MPI_File_get_position_shared mpi_file_get_position_shared (fh offset);
        MPI_File_set_size mpi_file_set_size (fh size);
        MPI_File_preallocate mpi_file_preallocate (fh size);
        MPI_File_set_view mpi_file_set_view (fh disp etype filetype datarep info; len);
        MPI_File_set_atomicity mpi_file_set_atomicity (fh flag);
        MPI_File_seek_shared mpi_file_seek_shared (fh offset whence);
        MPI_File_sync mpi_file_sync (fh);
        MPI_File_read_all_end mpi_file_read_all_end (fh buf status);
        MPI_File_read_at_all_end mpi_file_read_at_all_end (fh buf status);
        MPI_File_read_ordered_end mpi_file_read_ordered_end (fh buf status);
        MPI_File_write_all_end mpi_file_write_all_end (fh buf status);
        MPI_File_write_at_all_end mpi_file_write_at_all_end (fh buf status);
        MPI_File_write_ordered_end mpi_file_write_ordered_end (fh buf status);
    }
    // Of MPI 4.
    [c fortran] {
        MPI_Comm_create_from_group mpi_comm_create_from_group (group stringtag info errhandler newcomm; len);
        MPI_Intercomm_create_from_groups mpi_intercomm_create_from_groups (local_group local_leader remote_group
            remote_leader stringtag info errhandler newintercomm; len);
    }
    // Agreement after a failure (User-Level Failure Mitigation). In Debian's MPICH these calls fail an assertion, so no
    // test calls them.
    [c] {
        MPIX_Comm_agree (comm flag);
        MPIX_Comm_shrink (comm newcomm);
        MPIX_Comm_failure_ack (comm);
        MPIX_Comm_failure_get_acked (comm group);
        MPIX_Comm_ack_failed (comm num_to_ack num_acked);
        MPIX_Comm_get_failed (comm group);
        MPIX_Comm_is_revoked (comm flag);
    }
}

// They bring news if they find something.
// SAFETY: by MPI's standard the functions have these parameters, of these kinds.
calls! {
    unsafe
    [c fortran] {
        MPI_Iprobe mpi_iprobe (source tag comm flag: Flag status) |next| news::if_found(next, flag);
        MPI_Improbe mpi_improbe (source tag comm flag: Flag message status) |next| news::if_found(next, flag);
        MPI_Parrived mpi_parrived (request partition flag: Flag) |next| news::if_found(next, flag);
        // Only from its end a seek tells of others' writes to the file.
        MPI_File_seek mpi_file_seek (fh offset whence: Int) |next| {
            let is_from_end = windows::is_any_cached() && whence.read() == ffi::constants().seek_end;
            if is_from_end { news::after(next) } else { next() }
        };
    }
}
