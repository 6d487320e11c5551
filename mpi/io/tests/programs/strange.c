/* MPI reports the errors of communicators that cannot open files. strange FILE COMM: null, inter */
#include "common.h"

enum { RANKS_MAX = 4 };

int main(int argc, char **argv) {
    MPI_Comm comm = MPI_COMM_NULL, half;
    MPI_File file = MPI_FILE_NULL;
    int code, class = MPI_SUCCESS, classes[RANKS_MAX];
    start(&argc, &argv);
    CHECK(argc == 3);
    if (strcmp(argv[2], "inter") == 0) {
        MPI_Comm_split(MPI_COMM_WORLD, rank < ranks / 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < ranks / 2 ? ranks / 2 : 0, 7, &comm);
    }
    code = MPI_File_open(comm, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Error_class(code, &class);
    /* One rank prints: launchers break the lines of several ranks at any place. */
    CHECK(ranks <= RANKS_MAX);
    MPI_Gather(&class, 1, MPI_INT, classes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int of = 0; rank == 0 && of < ranks; ++of) printf("rank %d: class %d\n", of, classes[of]);
    finish();
    return 0;
}
