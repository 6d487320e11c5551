/* Every rank sends from its segment by a function of MPI without a stand-in, so that MPI loads from the segment
 * itself: the bytes arrive, or the rank ends with a line. */
#include "check_mpi.h"

#define INTS 256

int main(int argc, char **argv) {
    int got[INTS], i, rank, ranks, page, pages;
    size_t bytes = page_bytes();
    MPI_Init(&argc, &argv);
    pages = 4 * (int)(pool_bytes() / bytes);
    start(&argc, &argv, (uintptr_t)pages * bytes);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (page = 0; page < pages; ++page) {
        int *own = (int *)at((vgasnet_node_t)rank, (uintptr_t)page * bytes);
        for (i = 0; i < INTS; ++i) own[i] = 1000 * page + i + rank;
    }
    barrier();
    for (page = 0; page < pages; ++page) {
        int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
        MPI_Request request;
        MPI_Irecv(got, INTS, MPI_INT, before, page, MPI_COMM_WORLD, &request);
        PMPI_Send(at((vgasnet_node_t)rank, (uintptr_t)page * bytes), INTS, MPI_INT, next, page, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (i = 0; i < INTS; ++i) CHECK_EQ(got[i], 1000 * page + i + before);
    }
    barrier();
    MPI_Finalize();
    return 0;
}
