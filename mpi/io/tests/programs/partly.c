/* MPI opens a file on all ranks but the last (tool_failing.c). The others wait for nobody, and their handle has a claim.
 * The handle is not closed, which is collective. partly FILE */
#include "common.h"
#include "waiting.inc"

int main(int argc, char **argv) {
    MPI_File file, other;
    double begun;
    int code;
    start(&argc, &argv);
    CHECK(argc == 2 && ranks > 1);
    begun = MPI_Wtime();
    code = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    EQUAL(code == MPI_SUCCESS, rank < ranks - 1);
    CHECK(MPI_Wtime() - begun < 30);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "vgasnet_cache", "enable");
        OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR, info, &other));
        EQUAL(is_cached(other), 0);
        OK(MPI_File_close(&other));
        make_mark(argv[1], ".written"); /* the launcher may lose a line at MPI_Abort */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Abort(MPI_COMM_WORLD, 7);
    return 0;
}
