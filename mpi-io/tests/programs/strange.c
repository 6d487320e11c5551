/* MPI says what is wrong with communicators that no file is opened by. strange FILE COMM: null, inter */
#include "common.h"

int main(int argc, char **argv) {
    MPI_Comm comm = MPI_COMM_NULL, half;
    MPI_File file = MPI_FILE_NULL;
    int code, class = MPI_SUCCESS;
    start(&argc, &argv);
    CHECK(argc == 3);
    if (strcmp(argv[2], "inter") == 0) {
        MPI_Comm_split(MPI_COMM_WORLD, rank < ranks / 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < ranks / 2 ? ranks / 2 : 0, 7, &comm);
    }
    code = MPI_File_open(comm, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Error_class(code, &class);
    printf("rank %d: class %d\n", rank, class);
    finish();
    return 0;
}
