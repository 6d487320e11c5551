/* The bytes covered by a datatype, found by unpacking all ones into zeroed memory. */
#include "stand_in.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm alone = MPI_COMM_NULL;

/* Unpacks by a message to this rank itself: MPI_Unpack takes whole elements only. */
static int unpack(const void *ones, int bytes, void *to, MPI_Datatype type) {
    int error = MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    if (alone == MPI_COMM_NULL) {
        error = PMPI_Comm_dup(MPI_COMM_SELF, &alone);
        if (!error) error = PMPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
    }
    if (!error)
        error = PMPI_Sendrecv(ones, bytes, MPI_BYTE, 0, 0, to, 1, type, 0, 0, alone, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&lock);
    return error;
}

/* The number of equal bytes, all zeros or all ones, at the start. */
static size_t equal_bytes(const unsigned char *mask, size_t bytes) {
    uint64_t first, next;
    size_t at = 0;
    memset(&first, mask[0], sizeof first);
    for (; bytes - at >= sizeof next; at += sizeof next) {
        memcpy(&next, mask + at, sizeof next);
        if (next != first) break;
    }
    while (at < bytes && mask[at] == mask[0]) ++at;
    return at;
}

static struct runs runs_of_mask(const char *call, const unsigned char *mask, size_t bytes, MPI_Count low) {
    struct runs runs = {NULL, 0};
    size_t room = 0, at = 0, len;
    for (; at < bytes; at += len) {
        len = equal_bytes(mask + at, bytes - at);
        if (mask[at] == 0) continue;
        if (runs.count == room) {
            room = room ? 2 * room : 8;
            runs.list = realloc(runs.list, room * sizeof *runs.list);
            if (runs.list == NULL) vgasnet_mpi_refuse(call, "there is no memory for the layout of the datatype");
        }
        runs.list[runs.count].at = low + (MPI_Count)at;
        runs.list[runs.count++].bytes = (MPI_Count)len;
    }
    return runs;
}

static struct runs one_run(const char *call, MPI_Count at, MPI_Count bytes) {
    struct runs runs = {malloc(sizeof *runs.list), 1};
    if (runs.list == NULL) vgasnet_mpi_refuse(call, "there is no memory for the layout of the datatype");
    runs.list->at = at;
    runs.list->bytes = bytes;
    return runs;
}

struct runs vgasnet_mpi_runs(const char *call, MPI_Datatype type, MPI_Count bytes) {
    MPI_Count size, low, span;
    unsigned char *mask, *ones;
    struct runs runs;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_true_extent_x(type, &low, &span);
    if (size == span && (bytes == size || vgasnet_mpi_is_predefined(type))) return one_run(call, low, bytes);
    if (bytes > INT_MAX)
        vgasnet_mpi_refuse(call, "a datatype with gaps has more than 2 GiB of data in one element; use smaller ones, "
                                 "or copy to ordinary memory with vgasnet_get");
    /* Only the pages covered by a large type with gaps become resident. */
    mask = mmap(NULL, (size_t)span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ones = malloc((size_t)bytes);
    if (mask == MAP_FAILED || ones == NULL)
        vgasnet_mpi_refuse(call, "there is no memory for the layout of the datatype");
    memset(ones, 0xff, (size_t)bytes);
    if (unpack(ones, (int)bytes, (void *)((uintptr_t)mask - (uintptr_t)low), type))
        vgasnet_mpi_refuse(call, "MPI does not tell the layout of the datatype");
    runs = runs_of_mask(call, mask, (size_t)span, low);
    munmap(mask, (size_t)span);
    free(ones);
    return runs;
}
