/* All ranks but the first have windows. apart MODE */
#include "common.h"

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Info info;
    MPI_Win win;
    void *memory;
    start(&argc, &argv);
    CHECK(argc == 2);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "vgasnet_cache", argv[1]);
    for (int i = 0; i < 3 && rank > 0; ++i) {
        MPI_Win_allocate(4096, 1, info, comm, &memory, &win);
        MPI_Win_free(&win);
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: done\n", rank);
    MPI_Finalize();
    return 0;
}
