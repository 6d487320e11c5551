/* MPI for Rust, which cannot call it directly: handles, constants and types differ between implementations.
 * Functions that return an int return MPI's error code, unless stated otherwise. */
#include "layer.h"
#include <string.h>

#ifdef OPEN_MPI
/* The request of operations complete from the beginning. No header declares it. */
extern char ompi_request_empty[];
#pragma weak ompi_request_empty
#endif

struct vgasnet_mpi_cache_next vgasnet_mpi_cache_next;

/* Finds the functions called by the layer. Returns the name of a missing one, or NULL. */
const char *vgasnet_mpi_cache_resolve(void) {
    NEXT_FUNCTIONS(FIND_NEXT)
    return NULL;
}

struct constants {
    uint64_t request_null;
    int32_t no_store;
    int32_t no_put;
    int32_t no_succeed;
    int32_t seek_end;
};

void vgasnet_mpi_cache_constants(struct constants *constants) {
    constants->request_null = FROM_HANDLE(MPI_REQUEST_NULL);
    constants->no_store = MPI_MODE_NOSTORE;
    constants->no_put = MPI_MODE_NOPUT;
    constants->no_succeed = MPI_MODE_NOSUCCEED;
    constants->seek_end = MPI_SEEK_END;
}

/* The rank in MPI_COMM_WORLD, or -1. */
int vgasnet_mpi_cache_world_rank(void) {
    int is_started = 0, is_ended = 0, rank;
    if (NEXT(Initialized) == NULL || NEXT(Initialized)(&is_started) || !is_started) return -1;
    if (NEXT(Finalized)(&is_ended) || is_ended) return -1;
    return NEXT(Comm_rank)(MPI_COMM_WORLD, &rank) ? -1 : rank;
}

int vgasnet_mpi_cache_place(uint64_t comm, int *rank, int *ranks) {
    int error = NEXT(Comm_rank)(TO_HANDLE(MPI_Comm, comm), rank);
    return error ? error : NEXT(Comm_size)(TO_HANDLE(MPI_Comm, comm), ranks);
}

/* Collective: gathers bytes, with a call of on_late as in vgasnet_mpi_front_complete. */
int vgasnet_mpi_cache_gather(uint64_t comm, const void *mine, void *all, int bytes, void (*on_late)(void)) {
    MPI_Request request;
    int error = NEXT(Iallgather)(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, TO_HANDLE(MPI_Comm, comm), &request);
    return error ? error : vgasnet_mpi_front_complete(request, NEXT(Test), on_late);
}

/* The ranks of a group's members in the window's group. Returns their number, or -1. */
int vgasnet_mpi_cache_members(uint64_t group, uint64_t win, int *ranks, int ranks_max) {
    MPI_Group of_window;
    int members, at, result, places[64];
    if (NEXT(Group_size)(TO_HANDLE(MPI_Group, group), &members) || members > ranks_max) return -1;
    if (NEXT(Win_get_group)(TO_HANDLE(MPI_Win, win), &of_window)) return -1;
    result = members;
    for (at = 0; at < members && result >= 0; at += 64) {
        int step = members - at < 64 ? members - at : 64, i;
        for (i = 0; i < step; ++i) places[i] = at + i;
        if (NEXT(Group_translate_ranks)(TO_HANDLE(MPI_Group, group), step, places, of_window, ranks + at)) result = -1;
    }
    NEXT(Group_free)(&of_window);
    return result;
}

int vgasnet_mpi_cache_flush(uint64_t win, int target) {
    return NEXT(Win_flush)(target, TO_HANDLE(MPI_Win, win));
}

int vgasnet_mpi_cache_flush_local(uint64_t win, int target) {
    return NEXT(Win_flush_local)(target, TO_HANDLE(MPI_Win, win));
}

/* Lets MPI serve the requests of other processes. Messages to this process stay queued. */
void vgasnet_mpi_cache_look(void) {
    int found;
    NEXT(Iprobe)(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

/* Gets bytes, atomically in each element of atom_bytes bytes unless these are 0. */
int vgasnet_mpi_cache_get_bytes(void *origin, int bytes, int target, int64_t displacement, uint64_t win, int atom_bytes) {
    MPI_Win of = TO_HANDLE(MPI_Win, win);
    MPI_Datatype type;
    if (atom_bytes == 0) return NEXT(Get)(origin, bytes, MPI_BYTE, target, displacement, bytes, MPI_BYTE, of);
    type = atom_bytes == 1 ? MPI_UINT8_T : atom_bytes == 2 ? MPI_UINT16_T : atom_bytes == 4 ? MPI_UINT32_T : MPI_UINT64_T;
    return NEXT(Get_accumulate)(NULL, 0, type, origin, bytes / atom_bytes, type, target, displacement, bytes / atom_bytes, type,
                                MPI_NO_OP, of);
}

static int on_query(void *state, MPI_Status *status) {
    (void)state;
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    status->MPI_ERROR = MPI_SUCCESS;
    NEXT(Status_set_cancelled)(status, 0);
    return NEXT(Status_set_elements)(status, MPI_BYTE, 0);
}

static int on_free(void *state) {
    (void)state;
    return MPI_SUCCESS;
}

static int on_cancel(void *state, int is_complete) {
    (void)state, (void)is_complete;
    return MPI_SUCCESS;
}

/* A completed request: it may be waited for, tested and freed. */
int vgasnet_mpi_cache_completed(void *place) {
    MPI_Request request;
    int error = NEXT(Grequest_start)(on_query, on_free, on_cancel, NULL, &request);
    if (error == MPI_SUCCESS) error = NEXT(Grequest_complete)(request);
    if (error == MPI_SUCCESS) memcpy(place, &request, sizeof request);
    return error;
}

/* Whether several threads may call MPI concurrently. */
int vgasnet_mpi_cache_is_thread_multiple(void) {
    int level;
    return NEXT(Query_thread)(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
}

/* Whether this is MPI's request for all operations complete from the beginning. */
int vgasnet_mpi_cache_is_complete(uint64_t request) {
#ifdef OPEN_MPI
    return ompi_request_empty != NULL && request == (uint64_t)(uintptr_t)ompi_request_empty;
#else
    (void)request;
    return 0;
#endif
}

/* Whether the operation of a request is already complete. */
int vgasnet_mpi_cache_is_complete_now(uint64_t request) {
    int is_complete = 0;
    return NEXT(Request_get_status)(TO_HANDLE(MPI_Request, request), &is_complete, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_complete;
}
