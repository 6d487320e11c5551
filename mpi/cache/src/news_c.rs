//! C functions by which a process may learn from another one, besides the functions of [`crate::calls`].

use crate::news;
use vgasnet_mpi_front::calls;

calls! {
    // Messages.
    MPI_Recv(buf count datatype source tag comm status) |next| news::after(next);
    MPI_Mrecv(buf count datatype message status) |next| news::after(next);
    MPI_Sendrecv(sendbuf sendcount sendtype dest sendtag recvbuf recvcount recvtype source recvtag comm status) |next| news::after(next);
    MPI_Sendrecv_replace(buf count datatype dest sendtag source recvtag comm status) |next| news::after(next);
    MPI_Ssend(buf count datatype dest tag comm) |next| news::after(next);
    MPI_Probe(source tag comm status) |next| news::after(next);
    MPI_Mprobe(source tag comm message status) |next| news::after(next);
    // Collectives.
    MPI_Barrier(comm) |next| news::after(next);
    MPI_Bcast(buffer count datatype root comm) |next| news::after(next);
    MPI_Gather(sendbuf sendcount sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    MPI_Gatherv(sendbuf sendcount sendtype recvbuf recvcounts displs recvtype root comm) |next| news::after(next);
    MPI_Scatter(sendbuf sendcount sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    MPI_Scatterv(sendbuf sendcounts displs sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    MPI_Allgather(sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    MPI_Allgatherv(sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm) |next| news::after(next);
    MPI_Alltoall(sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    MPI_Alltoallv(sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm) |next| news::after(next);
    MPI_Alltoallw(sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm) |next| news::after(next);
    MPI_Reduce(sendbuf recvbuf count datatype op root comm) |next| news::after(next);
    MPI_Allreduce(sendbuf recvbuf count datatype op comm) |next| news::after(next);
    MPI_Reduce_scatter(sendbuf recvbuf recvcounts datatype op comm) |next| news::after(next);
    MPI_Reduce_scatter_block(sendbuf recvbuf recvcount datatype op comm) |next| news::after(next);
    MPI_Scan(sendbuf recvbuf count datatype op comm) |next| news::after(next);
    MPI_Exscan(sendbuf recvbuf count datatype op comm) |next| news::after(next);
    MPI_Neighbor_allgather(sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    MPI_Neighbor_allgatherv(sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm) |next| news::after(next);
    MPI_Neighbor_alltoall(sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    MPI_Neighbor_alltoallv(sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm) |next| news::after(next);
    MPI_Neighbor_alltoallw(sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm) |next| news::after(next);
    // Communicators and processes.
    MPI_Comm_dup(comm newcomm) |next| news::after(next);
    MPI_Comm_dup_with_info(comm info newcomm) |next| news::after(next);
    MPI_Comm_create(comm group newcomm) |next| news::after(next);
    MPI_Comm_create_group(comm group tag newcomm) |next| news::after(next);
    MPI_Comm_split(comm color key newcomm) |next| news::after(next);
    MPI_Comm_split_type(comm split_type key info newcomm) |next| news::after(next);
    MPI_Comm_free(comm) |next| news::after(next);
    MPI_Comm_disconnect(comm) |next| news::after(next);
    MPI_Intercomm_create(local_comm local_leader peer_comm remote_leader tag newintercomm) |next| news::after(next);
    MPI_Intercomm_merge(intercomm high newintracomm) |next| news::after(next);
    MPI_Cart_create(old ndims dims periods reorder comm_cart) |next| news::after(next);
    MPI_Cart_sub(comm remain_dims newcomm) |next| news::after(next);
    MPI_Graph_create(old nnodes indx edges reorder comm_graph) |next| news::after(next);
    MPI_Dist_graph_create(old n sources degrees destinations weights info reorder comm_dist_graph) |next| news::after(next);
    MPI_Dist_graph_create_adjacent(old indegree sources sourceweights outdegree destinations destweights info reorder comm_dist_graph)
        |next| news::after(next);
    MPI_Comm_accept(port_name info root comm newcomm) |next| news::after(next);
    MPI_Comm_connect(port_name info root comm newcomm) |next| news::after(next);
    MPI_Comm_join(fd intercomm) |next| news::after(next);
    MPI_Comm_spawn(command argv maxprocs info root comm intercomm errcodes) |next| news::after(next);
    MPI_Comm_spawn_multiple(count commands argv maxprocs info root comm intercomm errcodes) |next| news::after(next);
    MPI_Lookup_name(service_name info port_name) |next| news::after(next);
    // Files: reads, and calls that wait for other ranks.
    MPI_File_open(comm filename amode info fh) |next| news::after(next);
    MPI_File_close(fh) |next| news::after(next);
    MPI_File_delete(filename info) |next| news::after(next);
    MPI_File_get_size(fh size) |next| news::after(next);
    MPI_File_get_position_shared(fh offset) |next| news::after(next);
    MPI_File_set_size(fh size) |next| news::after(next);
    MPI_File_preallocate(fh size) |next| news::after(next);
    MPI_File_set_view(fh disp etype filetype datarep info) |next| news::after(next);
    MPI_File_set_atomicity(fh flag) |next| news::after(next);
    MPI_File_seek_shared(fh offset whence) |next| news::after(next);
    MPI_File_sync(fh) |next| news::after(next);
    MPI_File_read(fh buf count datatype status) |next| news::after(next);
    MPI_File_read_all(fh buf count datatype status) |next| news::after(next);
    MPI_File_read_all_end(fh buf status) |next| news::after(next);
    MPI_File_read_at(fh offset buf count datatype status) |next| news::after(next);
    MPI_File_read_at_all(fh offset buf count datatype status) |next| news::after(next);
    MPI_File_read_at_all_end(fh buf status) |next| news::after(next);
    MPI_File_read_ordered(fh buf count datatype status) |next| news::after(next);
    MPI_File_read_ordered_end(fh buf status) |next| news::after(next);
    MPI_File_read_shared(fh buf count datatype status) |next| news::after(next);
    MPI_File_write_all(fh buf count datatype status) |next| news::after(next);
    MPI_File_write_all_end(fh buf status) |next| news::after(next);
    MPI_File_write_at_all(fh offset buf count datatype status) |next| news::after(next);
    MPI_File_write_at_all_end(fh buf status) |next| news::after(next);
    MPI_File_write_ordered(fh buf count datatype status) |next| news::after(next);
    MPI_File_write_ordered_end(fh buf status) |next| news::after(next);
    MPI_File_write_shared(fh buf count datatype status) |next| news::after(next);
    // Probes that do not wait.
    MPI_Iprobe(source tag comm flag status) |next| news::if_found(next, flag);
    MPI_Improbe(source tag comm flag message status) |next| news::if_found(next, flag);
    // Of MPI 4.
    MPI_Comm_create_from_group(group stringtag info errhandler newcomm) |next| news::after(next);
    MPI_Intercomm_create_from_groups(local_group local_leader remote_group remote_leader stringtag info errhandler newintercomm) |next|
        news::after(next);
    MPI_Parrived(request partition flag) |next| news::if_found(next, flag);
    // Agreement after a failure (User-Level Failure Mitigation). In Debian's MPICH these calls fail an assertion, so no
    // test calls them.
    MPIX_Comm_agree(comm flag) |next| news::after(next);
    MPIX_Comm_shrink(comm newcomm) |next| news::after(next);
    MPIX_Comm_failure_ack(comm) |next| news::after(next);
    MPIX_Comm_failure_get_acked(comm group) |next| news::after(next);
    MPIX_Comm_ack_failed(comm num_to_ack num_acked) |next| news::after(next);
    MPIX_Comm_get_failed(comm group) |next| news::after(next);
    MPIX_Comm_is_revoked(comm flag) |next| news::after(next);
}

#[cfg(mpi_4)]
calls! {
    MPI_Recv_c(buf count datatype source tag comm status) |next| news::after(next);
    MPI_Mrecv_c(buf count datatype message status) |next| news::after(next);
    MPI_Sendrecv_c(sendbuf sendcount sendtype dest sendtag recvbuf recvcount recvtype source recvtag comm status) |next| news::after(next);
    MPI_Sendrecv_replace_c(buf count datatype dest sendtag source recvtag comm status) |next| news::after(next);
    MPI_Ssend_c(buf count datatype dest tag comm) |next| news::after(next);
    MPI_Bcast_c(buffer count datatype root comm) |next| news::after(next);
    MPI_Gather_c(sendbuf sendcount sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    MPI_Gatherv_c(sendbuf sendcount sendtype recvbuf recvcounts displs recvtype root comm) |next| news::after(next);
    MPI_Scatter_c(sendbuf sendcount sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    MPI_Scatterv_c(sendbuf sendcounts displs sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    MPI_Allgather_c(sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    MPI_Allgatherv_c(sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm) |next| news::after(next);
    MPI_Alltoall_c(sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    MPI_Alltoallv_c(sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm) |next| news::after(next);
    MPI_Alltoallw_c(sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm) |next| news::after(next);
    MPI_Reduce_c(sendbuf recvbuf count datatype op root comm) |next| news::after(next);
    MPI_Allreduce_c(sendbuf recvbuf count datatype op comm) |next| news::after(next);
    MPI_Reduce_scatter_c(sendbuf recvbuf recvcounts datatype op comm) |next| news::after(next);
    MPI_Reduce_scatter_block_c(sendbuf recvbuf recvcount datatype op comm) |next| news::after(next);
    MPI_Scan_c(sendbuf recvbuf count datatype op comm) |next| news::after(next);
    MPI_Exscan_c(sendbuf recvbuf count datatype op comm) |next| news::after(next);
    MPI_Neighbor_allgather_c(sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    MPI_Neighbor_allgatherv_c(sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm) |next| news::after(next);
    MPI_Neighbor_alltoall_c(sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    MPI_Neighbor_alltoallv_c(sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm) |next| news::after(next);
    MPI_Neighbor_alltoallw_c(sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm) |next| news::after(next);
    MPI_File_read_c(fh buf count datatype status) |next| news::after(next);
    MPI_File_read_all_c(fh buf count datatype status) |next| news::after(next);
    MPI_File_read_at_c(fh offset buf count datatype status) |next| news::after(next);
    MPI_File_read_at_all_c(fh offset buf count datatype status) |next| news::after(next);
    MPI_File_read_ordered_c(fh buf count datatype status) |next| news::after(next);
    MPI_File_read_shared_c(fh buf count datatype status) |next| news::after(next);
    MPI_File_write_all_c(fh buf count datatype status) |next| news::after(next);
    MPI_File_write_at_all_c(fh offset buf count datatype status) |next| news::after(next);
    MPI_File_write_ordered_c(fh buf count datatype status) |next| news::after(next);
    MPI_File_write_shared_c(fh buf count datatype status) |next| news::after(next);
}
