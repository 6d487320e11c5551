/* Shared by the C files of libraries loaded before MPI. They call MPI's functions by the next definition of their
 * names, as Rust does. */
#ifndef VGASNET_MPI_FRONT_H
#define VGASNET_MPI_FRONT_H
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* The next definition of a function by its name, else by MPI's other name of the function, or NULL. */
void *vgasnet_mpi_front_find(const char *name, const char *other_name);

/* Handles are integers or pointers. In Rust they are 8 bytes; the upper ones are 0 if MPI's handles are shorter. */
#define FROM_HANDLE(handle) (sizeof(handle) == 4 ? (uint64_t)(uint32_t)(uintptr_t)(handle) : (uint64_t)(uintptr_t)(handle))
#define TO_HANDLE(type, word) ((type)(uintptr_t)(word))

/* A table of next definitions: FUNCTIONS(X) lists names without MPI_. */
#define DECLARE_NEXT(name) __typeof__(MPI_##name) *name;
/* For a function that returns the name of a missing MPI function, or NULL. Each library defines its own NEXT. */
#define FIND_NEXT(name) \
    if ((NEXT(name) = vgasnet_mpi_front_find("MPI_" #name, "PMPI_" #name)) == NULL) return "MPI_" #name;
/* The same for calls the library makes on its own account: tools loaded after the library must not see them. */
#define FIND_OWN(name) \
    if ((NEXT(name) = vgasnet_mpi_front_find("PMPI_" #name, "MPI_" #name)) == NULL) return "MPI_" #name;

/* Completes a collective operation by MPI's function Test. A job may have ranks without the library, which never come:
 * calls on_late once if some have not come after ten seconds. */
int vgasnet_mpi_front_complete(MPI_Request request, int (*test)(MPI_Request *, int *, MPI_Status *), void (*on_late)(void));

/* dup_quietly: a communicator with the processes of comm and with error handler MPI_ERRORS_RETURN. An error of the
 * duplication is returned as well, and does not reach the program's error handler. NEXT has Comm_dup,
 * Comm_get_errhandler, Comm_set_errhandler and Errhandler_free. */
#define DEFINE_DUP_QUIETLY                                                              \
    static int dup_quietly(MPI_Comm comm, MPI_Comm *made) {                             \
        MPI_Errhandler handler;                                                         \
        int error = NEXT(Comm_get_errhandler)(comm, &handler);                          \
        if (error) return error;                                                        \
        if (!(error = NEXT(Comm_set_errhandler)(comm, MPI_ERRORS_RETURN))) {            \
            error = NEXT(Comm_dup)(comm, made);                                         \
            NEXT(Comm_set_errhandler)(comm, handler);                                   \
        }                                                                               \
        NEXT(Errhandler_free)(&handler);                                                \
        return error ? error : NEXT(Comm_set_errhandler)(*made, MPI_ERRORS_RETURN);     \
    }

#ifdef OPEN_MPI
/* Handles are addresses of MPI's variables. A process that loads a library without MPI lacks them, and does not use
 * them. */
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_comm_self
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_datatype_null
#pragma weak ompi_mpi_errors_return
#pragma weak ompi_mpi_file_null
#pragma weak ompi_mpi_info_null
#pragma weak ompi_mpi_int
#pragma weak ompi_mpi_op_bor
#pragma weak ompi_mpi_op_min
#pragma weak ompi_mpi_op_no_op
#pragma weak ompi_mpi_op_sum
#pragma weak ompi_mpi_short_int
#pragma weak ompi_mpi_uint16_t
#pragma weak ompi_mpi_uint32_t
#pragma weak ompi_mpi_uint64_t
#pragma weak ompi_mpi_uint8_t
#pragma weak ompi_mpi_win_null
#pragma weak ompi_request_null

/* The address of one of MPI's variables. `linked` is its linked address, or NULL to look it up by name. */
void *vgasnet_mpi_front_variable(void *linked, const char *name);

/* If MPI is loaded after this library, its variables are found by name. */
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global)                                                     \
    ((type)__extension__({                                                                       \
        static void *found;                                                                      \
        void *at = __atomic_load_n(&found, __ATOMIC_RELAXED);                                    \
        if (at == NULL) {                                                                        \
            at = vgasnet_mpi_front_variable((void *)&(global), #global);                         \
            __atomic_store_n(&found, at, __ATOMIC_RELAXED);                                      \
        }                                                                                        \
        at;                                                                                      \
    }))
#endif

#endif
