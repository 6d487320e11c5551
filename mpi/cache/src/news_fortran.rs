//! The functions of [`crate::news_c`] as Fortran calls them.

use crate::news;
use vgasnet_mpi_front::fortran;

fortran! {
    mpi_recv_, mpi_recv_f08_ => (buf count datatype source tag comm status) |next| news::after(next);
    mpi_mrecv_, mpi_mrecv_f08_ => (buf count datatype message status) |next| news::after(next);
    mpi_sendrecv_, mpi_sendrecv_f08_ => (sendbuf sendcount sendtype dest sendtag recvbuf recvcount recvtype source recvtag comm status)
        |next| news::after(next);
    mpi_sendrecv_replace_, mpi_sendrecv_replace_f08_ => (buf count datatype dest sendtag source recvtag comm status) |next|
        news::after(next);
    mpi_ssend_, mpi_ssend_f08_ => (buf count datatype dest tag comm) |next| news::after(next);
    mpi_probe_, mpi_probe_f08_ => (source tag comm status) |next| news::after(next);
    mpi_mprobe_, mpi_mprobe_f08_ => (source tag comm message status) |next| news::after(next);
    mpi_iprobe_, mpi_iprobe_f08_ => (source tag comm flag status) |next| news::if_found(next, flag);
    mpi_improbe_, mpi_improbe_f08_ => (source tag comm flag message status) |next| news::if_found(next, flag);
    mpi_barrier_, mpi_barrier_f08_ => (comm) |next| news::after(next);
    mpi_bcast_, mpi_bcast_f08_ => (buffer count datatype root comm) |next| news::after(next);
    mpi_gather_, mpi_gather_f08_ => (sendbuf sendcount sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    mpi_gatherv_, mpi_gatherv_f08_ => (sendbuf sendcount sendtype recvbuf recvcounts displs recvtype root comm) |next| news::after(next);
    mpi_scatter_, mpi_scatter_f08_ => (sendbuf sendcount sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    mpi_scatterv_, mpi_scatterv_f08_ => (sendbuf sendcounts displs sendtype recvbuf recvcount recvtype root comm) |next| news::after(next);
    mpi_allgather_, mpi_allgather_f08_ => (sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    mpi_allgatherv_, mpi_allgatherv_f08_ => (sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm) |next| news::after(next);
    mpi_alltoall_, mpi_alltoall_f08_ => (sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next| news::after(next);
    mpi_alltoallv_, mpi_alltoallv_f08_ => (sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm) |next|
        news::after(next);
    mpi_alltoallw_, mpi_alltoallw_f08_ => (sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm) |next|
        news::after(next);
    mpi_reduce_, mpi_reduce_f08_ => (sendbuf recvbuf count datatype op root comm) |next| news::after(next);
    mpi_allreduce_, mpi_allreduce_f08_ => (sendbuf recvbuf count datatype op comm) |next| news::after(next);
    mpi_reduce_scatter_, mpi_reduce_scatter_f08_ => (sendbuf recvbuf recvcounts datatype op comm) |next| news::after(next);
    mpi_reduce_scatter_block_, mpi_reduce_scatter_block_f08_ => (sendbuf recvbuf recvcount datatype op comm) |next| news::after(next);
    mpi_scan_, mpi_scan_f08_ => (sendbuf recvbuf count datatype op comm) |next| news::after(next);
    mpi_exscan_, mpi_exscan_f08_ => (sendbuf recvbuf count datatype op comm) |next| news::after(next);
    mpi_neighbor_allgather_, mpi_neighbor_allgather_f08_ => (sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next|
        news::after(next);
    mpi_neighbor_allgatherv_, mpi_neighbor_allgatherv_f08_ => (sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm) |next|
        news::after(next);
    mpi_neighbor_alltoall_, mpi_neighbor_alltoall_f08_ => (sendbuf sendcount sendtype recvbuf recvcount recvtype comm) |next|
        news::after(next);
    mpi_neighbor_alltoallv_, mpi_neighbor_alltoallv_f08_ => (sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm)
        |next| news::after(next);
    mpi_neighbor_alltoallw_, mpi_neighbor_alltoallw_f08_ => (sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes
        comm) |next| news::after(next);
    mpi_comm_dup_, mpi_comm_dup_f08_ => (comm newcomm) |next| news::after(next);
    mpi_comm_dup_with_info_, mpi_comm_dup_with_info_f08_ => (comm info newcomm) |next| news::after(next);
    mpi_comm_create_, mpi_comm_create_f08_ => (comm group newcomm) |next| news::after(next);
    mpi_comm_create_group_, mpi_comm_create_group_f08_ => (comm group tag newcomm) |next| news::after(next);
    mpi_comm_split_, mpi_comm_split_f08_ => (comm color key newcomm) |next| news::after(next);
    mpi_comm_split_type_, mpi_comm_split_type_f08_ => (comm split_type key info newcomm) |next| news::after(next);
    mpi_comm_free_, mpi_comm_free_f08_ => (comm) |next| news::after(next);
    mpi_comm_disconnect_, mpi_comm_disconnect_f08_ => (comm) |next| news::after(next);
    mpi_intercomm_create_, mpi_intercomm_create_f08_ => (local_comm local_leader peer_comm remote_leader tag newintercomm) |next|
        news::after(next);
    mpi_intercomm_merge_, mpi_intercomm_merge_f08_ => (intercomm high newintracomm) |next| news::after(next);
    mpi_cart_create_, mpi_cart_create_f08_ => (old ndims dims periods reorder comm_cart) |next| news::after(next);
    mpi_cart_sub_, mpi_cart_sub_f08_ => (comm remain_dims newcomm) |next| news::after(next);
    mpi_graph_create_, mpi_graph_create_f08_ => (old nnodes indx edges reorder comm_graph) |next| news::after(next);
    mpi_dist_graph_create_, mpi_dist_graph_create_f08_ => (old n sources degrees destinations weights info reorder comm_dist_graph) |next|
        news::after(next);
    mpi_dist_graph_create_adjacent_, mpi_dist_graph_create_adjacent_f08_ => (old indegree sources sourceweights outdegree destinations
        destweights info reorder comm_dist_graph) |next| news::after(next);
    mpi_comm_accept_, mpi_comm_accept_f08_ => (port_name info root comm newcomm; len) |next| news::after(next);
    mpi_comm_connect_, mpi_comm_connect_f08_ => (port_name info root comm newcomm; len) |next| news::after(next);
    mpi_comm_join_, mpi_comm_join_f08_ => (fd intercomm) |next| news::after(next);
    mpi_comm_spawn_, mpi_comm_spawn_f08_ => (command argv maxprocs info root comm intercomm errcodes; len len2) |next| news::after(next);
    mpi_comm_spawn_multiple_, mpi_comm_spawn_multiple_f08_ => (count commands argv maxprocs info root comm intercomm errcodes; len len2)
        |next| news::after(next);
    mpi_lookup_name_, mpi_lookup_name_f08_ => (service_name info port_name; len len2) |next| news::after(next);
    mpi_file_open_, mpi_file_open_f08_ => (comm filename amode info fh; len) |next| news::after(next);
    mpi_file_close_, mpi_file_close_f08_ => (fh) |next| news::after(next);
    mpi_file_delete_, mpi_file_delete_f08_ => (filename info; len) |next| news::after(next);
    mpi_file_get_size_, mpi_file_get_size_f08_ => (fh size) |next| news::after(next);
    mpi_file_get_position_shared_, mpi_file_get_position_shared_f08_ => (fh offset) |next| news::after(next);
    mpi_file_set_size_, mpi_file_set_size_f08_ => (fh size) |next| news::after(next);
    mpi_file_preallocate_, mpi_file_preallocate_f08_ => (fh size) |next| news::after(next);
    mpi_file_set_view_, mpi_file_set_view_f08_ => (fh disp etype filetype datarep info; len) |next| news::after(next);
    mpi_file_set_atomicity_, mpi_file_set_atomicity_f08_ => (fh flag) |next| news::after(next);
    mpi_file_seek_shared_, mpi_file_seek_shared_f08_ => (fh offset whence) |next| news::after(next);
    mpi_file_sync_, mpi_file_sync_f08_ => (fh) |next| news::after(next);
    mpi_file_read_, mpi_file_read_f08_ => (fh buf count datatype status) |next| news::after(next);
    mpi_file_read_all_, mpi_file_read_all_f08_ => (fh buf count datatype status) |next| news::after(next);
    mpi_file_read_all_end_, mpi_file_read_all_end_f08_ => (fh buf status) |next| news::after(next);
    mpi_file_read_at_, mpi_file_read_at_f08_ => (fh offset buf count datatype status) |next| news::after(next);
    mpi_file_read_at_all_, mpi_file_read_at_all_f08_ => (fh offset buf count datatype status) |next| news::after(next);
    mpi_file_read_at_all_end_, mpi_file_read_at_all_end_f08_ => (fh buf status) |next| news::after(next);
    mpi_file_read_ordered_, mpi_file_read_ordered_f08_ => (fh buf count datatype status) |next| news::after(next);
    mpi_file_read_ordered_end_, mpi_file_read_ordered_end_f08_ => (fh buf status) |next| news::after(next);
    mpi_file_read_shared_, mpi_file_read_shared_f08_ => (fh buf count datatype status) |next| news::after(next);
    mpi_file_write_all_, mpi_file_write_all_f08_ => (fh buf count datatype status) |next| news::after(next);
    mpi_file_write_all_end_, mpi_file_write_all_end_f08_ => (fh buf status) |next| news::after(next);
    mpi_file_write_at_all_, mpi_file_write_at_all_f08_ => (fh offset buf count datatype status) |next| news::after(next);
    mpi_file_write_at_all_end_, mpi_file_write_at_all_end_f08_ => (fh buf status) |next| news::after(next);
    mpi_file_write_ordered_, mpi_file_write_ordered_f08_ => (fh buf count datatype status) |next| news::after(next);
    mpi_file_write_ordered_end_, mpi_file_write_ordered_end_f08_ => (fh buf status) |next| news::after(next);
    mpi_file_write_shared_, mpi_file_write_shared_f08_ => (fh buf count datatype status) |next| news::after(next);
    mpi_comm_create_from_group_, mpi_comm_create_from_group_f08_ => (group stringtag info errhandler newcomm; len) |next| news::after(next);
    mpi_intercomm_create_from_groups_, mpi_intercomm_create_from_groups_f08_ => (local_group local_leader remote_group remote_leader
        stringtag info errhandler newintercomm; len) |next| news::after(next);
    mpi_parrived_, mpi_parrived_f08_ => (request partition flag) |next| news::if_found(next, flag);
}
