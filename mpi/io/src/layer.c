/* MPI for Rust, which cannot call it directly: handles, constants and types differ between implementations.
 * Functions that return an int return MPI's error code, unless stated otherwise. */
#include "layer.h"
#include <stdlib.h>
#include <string.h>

struct vgasnet_mpi_io_next vgasnet_mpi_io_next;

/* Finds the functions called by the layer. Returns the name of a missing one, or NULL. */
const char *vgasnet_mpi_io_resolve(void) {
    NEXT_FUNCTIONS(FIND_OWN)
    /* It replaces a call of the program, and tools loaded after the library start with MPI. */
    NEXT(Init_thread) = vgasnet_mpi_front_find("MPI_Init_thread", "PMPI_Init_thread");
    return NULL;
}

/* Matches the struct of ffi.rs. */
struct constants {
    uint64_t status_ignore;
    uint64_t fortran_status_ignore;
    uint64_t fortran_bottom;
    uint64_t file_null;
    uint64_t comm_world;
    int32_t thread_multiple;
    int32_t mode_read_only, mode_write_only, mode_read_write, mode_append, mode_create, mode_sequential;
    int32_t seek_set, seek_current, seek_end;
    int32_t order_fortran, distribute_none, distribute_block, distribute_default;
    int32_t err_access, err_arg, err_bad_file, err_file_exists, err_file_in_use, err_io, err_no_space, err_no_such_file, err_quota,
        err_read_only, err_other, err_unsupported;
};

#ifdef OPEN_MPI
extern MPI_Fint *MPI_F_STATUS_IGNORE;
extern int mpi_fortran_bottom_;
#pragma weak MPI_F_STATUS_IGNORE
#pragma weak mpi_fortran_bottom_
#endif

void vgasnet_mpi_io_constants(struct constants *constants) {
    memset(constants, 0, sizeof *constants);
    constants->status_ignore = (uint64_t)(uintptr_t)MPI_STATUS_IGNORE;
#ifdef OPEN_MPI
    constants->fortran_status_ignore = &MPI_F_STATUS_IGNORE == NULL ? 0 : (uint64_t)(uintptr_t)MPI_F_STATUS_IGNORE;
    constants->fortran_bottom = (uint64_t)(uintptr_t)&mpi_fortran_bottom_;
#endif
    constants->file_null = FROM_HANDLE(MPI_FILE_NULL);
    constants->comm_world = FROM_HANDLE(MPI_COMM_WORLD);
    constants->thread_multiple = MPI_THREAD_MULTIPLE;
    constants->mode_read_only = MPI_MODE_RDONLY;
    constants->mode_write_only = MPI_MODE_WRONLY;
    constants->mode_read_write = MPI_MODE_RDWR;
    constants->mode_append = MPI_MODE_APPEND;
    constants->mode_create = MPI_MODE_CREATE;
    constants->mode_sequential = MPI_MODE_SEQUENTIAL;
    constants->seek_set = MPI_SEEK_SET;
    constants->seek_current = MPI_SEEK_CUR;
    constants->seek_end = MPI_SEEK_END;
    constants->order_fortran = MPI_ORDER_FORTRAN;
    constants->distribute_none = MPI_DISTRIBUTE_NONE;
    constants->distribute_block = MPI_DISTRIBUTE_BLOCK;
    constants->distribute_default = MPI_DISTRIBUTE_DFLT_DARG;
    constants->err_access = MPI_ERR_ACCESS;
    constants->err_arg = MPI_ERR_ARG;
    constants->err_bad_file = MPI_ERR_BAD_FILE;
    constants->err_file_exists = MPI_ERR_FILE_EXISTS;
    constants->err_file_in_use = MPI_ERR_FILE_IN_USE;
    constants->err_io = MPI_ERR_IO;
    constants->err_no_space = MPI_ERR_NO_SPACE;
    constants->err_no_such_file = MPI_ERR_NO_SUCH_FILE;
    constants->err_quota = MPI_ERR_QUOTA;
    constants->err_read_only = MPI_ERR_READ_ONLY;
    constants->err_other = MPI_ERR_OTHER;
    constants->err_unsupported = MPI_ERR_UNSUPPORTED_OPERATION;
}

int vgasnet_mpi_io_init(void *argc, void *argv, int *provided) {
    return NEXT(Init_thread)(argc, argv, MPI_THREAD_MULTIPLE, provided);
}

int vgasnet_mpi_io_thread_level(int *level) {
    return NEXT(Query_thread)(level);
}

DEFINE_DUP_QUIETLY

/* A communicator of the library with the same ranks, if a further one is available: MPI needs one to open the file. */
int vgasnet_mpi_io_comm_dup(uint64_t comm, uint64_t *own) {
    MPI_Comm made, spare;
    int error = dup_quietly(TO_HANDLE(MPI_Comm, comm), &made);
    if (error) return error;
    if ((error = dup_quietly(made, &spare))) {
        NEXT(Comm_free)(&made);
        return error;
    }
    *own = FROM_HANDLE(made);
    return NEXT(Comm_free)(&spare);
}

int vgasnet_mpi_io_comm_free(uint64_t comm) {
    MPI_Comm its = TO_HANDLE(MPI_Comm, comm);
    return NEXT(Comm_free)(&its);
}

/* MPI_COMM_NULL and intercommunicators cannot open files, and have no place. MPI reports them to the file's error
 * handler, whereas a call about them here would reach the handler of MPI_COMM_WORLD. */
int vgasnet_mpi_io_place(uint64_t comm, int *rank, int *ranks) {
    int error, is_inter;
    if (TO_HANDLE(MPI_Comm, comm) == MPI_COMM_NULL) return MPI_ERR_COMM;
    if ((error = NEXT(Comm_test_inter)(TO_HANDLE(MPI_Comm, comm), &is_inter))) return error;
    if (is_inter) return MPI_ERR_COMM;
    error = NEXT(Comm_rank)(TO_HANDLE(MPI_Comm, comm), rank);
    return error ? error : NEXT(Comm_size)(TO_HANDLE(MPI_Comm, comm), ranks);
}

int vgasnet_mpi_io_place_of_all(int *rank, int *ranks) {
    return vgasnet_mpi_io_place(FROM_HANDLE(MPI_COMM_WORLD), rank, ranks);
}

/* Whether the process was spawned. */
int vgasnet_mpi_io_has_parents(void) {
    MPI_Comm parents;
    return NEXT(Comm_get_parent)(&parents) == MPI_SUCCESS && parents != MPI_COMM_NULL;
}

/* Whether MPI_Finalize has ended. */
int vgasnet_mpi_io_is_finalized(void) {
    int is = 0;
    return NEXT(Finalized)(&is) == MPI_SUCCESS && is;
}

/* The ranks of a communicator as ranks of MPI_COMM_WORLD, or -1. Returns 0 if one of them is missing there. */
int vgasnet_mpi_io_world_ranks(uint64_t comm, int ranks, int *members) {
    MPI_Group group, world;
    int i, *places = malloc((size_t)ranks * sizeof *places), is_found = 0;
    if (places == NULL) return 0;
    for (i = 0; i < ranks; ++i) places[i] = i, members[i] = -1;
    if (NEXT(Comm_group)(TO_HANDLE(MPI_Comm, comm), &group) == MPI_SUCCESS) {
        if (NEXT(Comm_group)(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
            is_found = NEXT(Group_translate_ranks)(group, ranks, places, world, members) == MPI_SUCCESS;
            NEXT(Group_free)(&world);
        }
        NEXT(Group_free)(&group);
    }
    for (i = 0; i < ranks; ++i) {
        if (members[i] == MPI_UNDEFINED) members[i] = -1;
        is_found = is_found && members[i] >= 0;
    }
    free(places);
    return is_found;
}

/* Collective: returns when all ranks have arrived. */
int vgasnet_mpi_io_meet(uint64_t comm) {
    return NEXT(Barrier)(TO_HANDLE(MPI_Comm, comm));
}

/* Collective: the smallest of the ranks' numbers, for each of several. */
int vgasnet_mpi_io_least(uint64_t comm, int *numbers, int count) {
    return NEXT(Allreduce)(MPI_IN_PLACE, numbers, count, MPI_INT, MPI_MIN, TO_HANDLE(MPI_Comm, comm));
}

/* Collective: the same for one number, with a call of on_late as in vgasnet_mpi_front_complete. */
int vgasnet_mpi_io_least_of_all(int *number, void (*on_late)(void)) {
    MPI_Request request;
    int mine = *number, error = NEXT(Iallreduce)(&mine, number, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
    return error ? error : vgasnet_mpi_front_complete(request, NEXT(Test), on_late);
}

/* Collective: a rank's number. */
int vgasnet_mpi_io_of_rank(uint64_t comm, int rank, uint64_t *number) {
    return NEXT(Bcast)(number, 1, MPI_UINT64_T, rank, TO_HANDLE(MPI_Comm, comm));
}

/* Whether a message of this tag has arrived. */
int vgasnet_mpi_io_has_message(uint64_t comm, int rank, int tag) {
    int has = 0;
    return NEXT(Iprobe)(rank, tag, TO_HANDLE(MPI_Comm, comm), &has, MPI_STATUS_IGNORE) == MPI_SUCCESS && has;
}

int vgasnet_mpi_io_send(uint64_t comm, int rank, int tag, uint64_t number) {
    return NEXT(Send)(&number, 1, MPI_UINT64_T, rank, tag, TO_HANDLE(MPI_Comm, comm));
}

int vgasnet_mpi_io_receive(uint64_t comm, int rank, int tag, uint64_t *number) {
    return NEXT(Recv)(number, 1, MPI_UINT64_T, rank, tag, TO_HANDLE(MPI_Comm, comm), MPI_STATUS_IGNORE);
}

/* Collective: the sum of the numbers of lower ranks, and of all ranks. */
int vgasnet_mpi_io_sums(uint64_t comm, uint64_t mine, uint64_t *before, uint64_t *all) {
    int error;
    *before = 0;
    if ((error = NEXT(Exscan)(&mine, before, 1, MPI_UINT64_T, MPI_SUM, TO_HANDLE(MPI_Comm, comm)))) return error;
    return NEXT(Allreduce)(&mine, all, 1, MPI_UINT64_T, MPI_SUM, TO_HANDLE(MPI_Comm, comm));
}

int vgasnet_mpi_io_info_set(uint64_t info, const char *key, const char *value) {
    return NEXT(Info_set)(TO_HANDLE(MPI_Info, info), key, value);
}

/* Calls the error handler of MPI_FILE_NULL. Open MPI does not allow the call, but every newly opened file has this
 * handler. */
void vgasnet_mpi_io_raise_without_file(int code) {
#ifdef OPEN_MPI
    MPI_File any;
    if (NEXT(File_open)(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &any)) return;
    NEXT(File_call_errhandler)(any, code);
    NEXT(File_close)(&any);
#else
    NEXT(File_call_errhandler)(MPI_FILE_NULL, code);
#endif
}

/* Calls the file's error handler. */
int vgasnet_mpi_io_raise(uint64_t file, int code) {
    NEXT(File_call_errhandler)(TO_HANDLE(MPI_File, file), code);
    return code;
}

int vgasnet_mpi_io_set_atomicity(uint64_t file) {
    return NEXT(File_set_atomicity)(TO_HANDLE(MPI_File, file), 1);
}

void vgasnet_mpi_io_close(uint64_t file) {
    MPI_File its = TO_HANDLE(MPI_File, file);
    NEXT(File_close)(&its);
}

int vgasnet_mpi_io_seek(uint64_t file, int64_t offset) {
    return NEXT(File_seek)(TO_HANDLE(MPI_File, file), offset, MPI_SEEK_SET);
}

int vgasnet_mpi_io_seek_shared(uint64_t file, int64_t offset) {
    return NEXT(File_seek_shared)(TO_HANDLE(MPI_File, file), offset, MPI_SEEK_SET);
}

static int set_status(MPI_Status *status, int64_t bytes) {
    status->MPI_ERROR = MPI_SUCCESS;
    NEXT(Status_set_cancelled)(status, 0);
    return NEXT(Status_set_elements_x)(status, MPI_BYTE, bytes);
}

/* Sets the number of bytes moved. */
void vgasnet_mpi_io_status(uint64_t place, int64_t bytes) {
    MPI_Status *status = (MPI_Status *)(uintptr_t)place, made;
    if (status == MPI_STATUS_IGNORE) return;
    /* Calls that complete one operation leave the error field unchanged. */
    made = *status;
    set_status(&made, bytes);
    made.MPI_ERROR = status->MPI_ERROR;
    *status = made;
}

#ifdef OPEN_MPI
#pragma weak PMPI_Status_c2f
void vgasnet_mpi_io_fortran_status(void *place, int64_t bytes) {
    MPI_Status status;
    memset(&status, 0, sizeof status);
    set_status(&status, bytes);
    PMPI_Status_c2f(&status, place);
}
#endif

/* A request completed by Rust: vgasnet_mpi_io_outcome returns its result, vgasnet_mpi_io_drop frees it. */
int vgasnet_mpi_io_outcome(void *operation, int64_t *bytes);
void vgasnet_mpi_io_drop(void *operation);

static int on_query(void *operation, MPI_Status *status) {
    int64_t bytes;
    int code = vgasnet_mpi_io_outcome(operation, &bytes);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    set_status(status, bytes);
    return code;
}

static int on_free(void *operation) {
    vgasnet_mpi_io_drop(operation);
    return MPI_SUCCESS;
}

static int on_cancel(void *operation, int is_complete) {
    (void)operation, (void)is_complete;
    return MPI_SUCCESS;
}

int vgasnet_mpi_io_request(void *operation, void *place, uint64_t *handle) {
    MPI_Request request;
    int error = NEXT(Grequest_start)(on_query, on_free, on_cancel, operation, &request);
    if (error) return error;
    memcpy(place, &request, sizeof request);
    *handle = FROM_HANDLE(request);
    return MPI_SUCCESS;
}

int vgasnet_mpi_io_complete(uint64_t request) {
    return NEXT(Grequest_complete)(TO_HANDLE(MPI_Request, request));
}
