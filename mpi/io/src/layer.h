/* Shared by the C files. They call MPI's functions by the next definition of their names, as Rust does. */
#ifndef VGASNET_MPI_IO_LAYER_H
#define VGASNET_MPI_IO_LAYER_H
#include <front.h>

/* The functions called by the layer itself. */
#define NEXT_FUNCTIONS(X)                                                                                                   \
    X(Allreduce) X(Barrier) X(Bcast) X(Comm_dup) X(Comm_free) X(Comm_get_errhandler) X(Comm_get_parent) X(Comm_group) X(Comm_rank) X(Comm_set_errhandler)             \
    X(Comm_size) X(Comm_test_inter) X(Errhandler_free) X(Finalized) X(Iprobe) X(Recv) X(Send) X(Exscan) X(File_call_errhandler) X(File_close) X(File_open) X(File_seek) X(File_seek_shared) X(File_set_atomicity) X(Grequest_complete) X(Grequest_start)                  \
    X(Group_free) X(Group_translate_ranks) X(Iallreduce) X(Info_set) X(Init_thread) X(Pack) X(Query_thread) X(Status_set_cancelled)   \
    X(Status_set_elements_x) X(Test) X(Type_create_keyval) X(Type_free) X(Type_get_attr) X(Type_get_contents)                       \
    X(Type_get_envelope) X(Type_get_extent_x) X(Type_get_true_extent_x) X(Type_set_attr) X(Type_size_x)                     \
    NEXT_FUNCTIONS_4(X)

#if MPI_VERSION >= 4
#define NEXT_FUNCTIONS_4(X) X(Type_get_contents_c) X(Type_get_envelope_c)
#else
#define NEXT_FUNCTIONS_4(X)
#endif

struct vgasnet_mpi_io_next {
    NEXT_FUNCTIONS(DECLARE_NEXT)
};

extern struct vgasnet_mpi_io_next vgasnet_mpi_io_next;

/* NEXT(Allreduce) is MPI_Allreduce of the next library. */
#define NEXT(name) (vgasnet_mpi_io_next.name)

#endif
