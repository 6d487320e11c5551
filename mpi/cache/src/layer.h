/* Shared by the C files. They call MPI's functions by the next definition of their names, as Rust does. */
#ifndef VGASNET_MPI_CACHE_LAYER_H
#define VGASNET_MPI_CACHE_LAYER_H
#include <front.h>

/* The functions called by the layer itself. */
#define NEXT_FUNCTIONS(X)                                                                                                          \
    X(Accumulate) X(Iallgather) X(Allreduce) X(Comm_compare) X(Comm_dup) X(Comm_free) X(Comm_get_errhandler) X(Comm_rank) X(Comm_set_errhandler)  \
    X(Comm_size) X(Errhandler_free) X(Fetch_and_op) X(Finalized) X(Get) X(Get_accumulate) X(Grequest_complete) X(Grequest_start) X(Group_free) X(Group_size)             \
    X(Group_translate_ranks) X(Initialized) X(Iprobe) X(Query_thread) X(Request_get_status) X(Rget) X(Status_set_cancelled) X(Status_set_elements) X(Test)                     \
    X(Type_create_keyval) X(Type_free) X(Type_get_attr) X(Type_get_contents) X(Type_get_envelope) X(Type_get_extent)               \
    X(Type_get_true_extent) X(Type_set_attr) X(Type_size) X(Win_allocate) X(Win_flush) X(Win_flush_local) X(Win_free)              \
    X(Win_get_group) X(Win_lock_all) X(Win_set_errhandler) X(Win_sync) X(Win_unlock_all)

struct vgasnet_mpi_cache_next {
    NEXT_FUNCTIONS(DECLARE_NEXT)
};

extern struct vgasnet_mpi_cache_next vgasnet_mpi_cache_next;

/* NEXT(Allreduce) is MPI_Allreduce of the next library. */
#define NEXT(name) (vgasnet_mpi_cache_next.name)

#endif
