/* A tool of MPI's profiling interface. It counts, and refuses gets of MPI_BYTE on request. */
#include <mpi.h>
#include <stdlib.h>

int tool_gets, tool_rgets, tool_flushes, tool_allocates, tool_dups, tool_atoms, tool_refuses;

/* Gets of these tests are cached even if MPI maps the memory: the cache is under test. */
__attribute__((constructor)) static void cache_what_is_near(void) {
    setenv("VGASNET_TEST_MPI_CACHE_NEAR", "1", 0);
}

int MPI_Get(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
            MPI_Win win) {
    __atomic_add_fetch(&tool_gets, 1, __ATOMIC_RELAXED);
    if (tool_refuses && type == MPI_BYTE) return MPI_ERR_OTHER;
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

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) {
    __atomic_add_fetch(&tool_dups, 1, __ATOMIC_RELAXED);
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
    __atomic_add_fetch(&tool_allocates, 1, __ATOMIC_RELAXED);
    return PMPI_Win_allocate(size, unit, info, comm, base, win);
}
