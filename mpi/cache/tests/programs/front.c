/* A tool that is preloaded before the library: it counts, and calls the next definition. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int gets;

int MPI_Get(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
            MPI_Win win) {
    __typeof__(MPI_Get) *next = (__typeof__(MPI_Get) *)dlsym(RTLD_NEXT, "MPI_Get");
    ++gets;
    return next(origin, count, type, target, at, target_count, target_type, win);
}

int MPI_Finalize(void) {
    __typeof__(MPI_Finalize) *next = (__typeof__(MPI_Finalize) *)dlsym(RTLD_NEXT, "MPI_Finalize");
    fprintf(stderr, "front: %d gets\n", gets);
    return next();
}
