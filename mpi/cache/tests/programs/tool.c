/* A tool of MPI's profiling interface. It counts. On request it refuses gets of MPI_BYTE or the words of a target, and
 * makes gets or words slow. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int tool_gets, tool_rgets, tool_flushes, tool_allocates, tool_dups, tool_atoms, tool_refuses;
int tool_words, tool_refused_target = -1;
long tool_get_ns, tool_word_ns;

static void spend(long ns) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < ns);
}

/* Gets of these tests are cached even if MPI maps the memory: the cache is under test. */
__attribute__((constructor)) static void cache_what_is_near(void) {
    setenv("VGASNET_TEST_MPI_CACHE_NEAR", "1", 0);
}

int MPI_Get(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
            MPI_Win win) {
    __atomic_add_fetch(&tool_gets, 1, __ATOMIC_RELAXED);
    if (tool_refuses && type == MPI_BYTE) return MPI_ERR_OTHER;
    if (tool_get_ns) spend(tool_get_ns);
    return PMPI_Get(origin, count, type, target, at, target_count, target_type, win);
}

int MPI_Rget(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
             MPI_Win win, MPI_Request *request) {
    __atomic_add_fetch(&tool_rgets, 1, __ATOMIC_RELAXED);
    return PMPI_Rget(origin, count, type, target, at, target_count, target_type, win, request);
}

int MPI_Win_flush(int target, MPI_Win win) {
    __atomic_add_fetch(&tool_flushes, 1, __ATOMIC_RELAXED);
    return PMPI_Win_flush(target, win);
}

int MPI_Win_flush_local(int target, MPI_Win win) {
    __atomic_add_fetch(&tool_flushes, 1, __ATOMIC_RELAXED);
    return PMPI_Win_flush_local(target, win);
}

int MPI_Win_flush_all(MPI_Win win) {
    __atomic_add_fetch(&tool_flushes, 1, __ATOMIC_RELAXED);
    return PMPI_Win_flush_all(win);
}

int MPI_Win_flush_local_all(MPI_Win win) {
    __atomic_add_fetch(&tool_flushes, 1, __ATOMIC_RELAXED);
    return PMPI_Win_flush_local_all(win);
}

int MPI_Get_accumulate(const void *origin, int origin_count, MPI_Datatype origin_type, void *result, int result_count,
                       MPI_Datatype result_type, int target, MPI_Aint at, int count, MPI_Datatype type, MPI_Op op, MPI_Win win) {
    __atomic_add_fetch(&tool_atoms, 1, __ATOMIC_RELAXED);
    return PMPI_Get_accumulate(origin, origin_count, origin_type, result, result_count, result_type, target, at, count, type, op, win);
}

/* Words are read and raised so. */
int MPI_Fetch_and_op(const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op, MPI_Win win) {
    if (op == MPI_NO_OP) {
        __atomic_add_fetch(&tool_words, 1, __ATOMIC_RELAXED);
        if (tool_word_ns) spend(tool_word_ns);
    }
    return PMPI_Fetch_and_op(origin, result, type, target, at, op, win);
}

int MPI_Accumulate(const void *origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at, int count,
                   MPI_Datatype type, MPI_Op op, MPI_Win win) {
    /* The words come first in the hidden window. Behind them are numbers of another use. */
    if (target == tool_refused_target && at < 1024) return MPI_ERR_OTHER;
    return PMPI_Accumulate(origin, origin_count, origin_type, target, at, count, type, op, win);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) {
    __atomic_add_fetch(&tool_dups, 1, __ATOMIC_RELAXED);
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
    __atomic_add_fetch(&tool_allocates, 1, __ATOMIC_RELAXED);
    return PMPI_Win_allocate(size, unit, info, comm, base, win);
}
