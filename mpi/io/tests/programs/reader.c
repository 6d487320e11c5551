/* A reader has locked the bytes of claims on a file, by a lock that reaches no guest's byte. reader FILE */
#define _GNU_SOURCE
#include "common.h"
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int reader = -1;
    MPI_File file;
    start(&argc, &argv);
    CHECK(argc == 2);
    if (rank == 0) {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = INT64_MAX - 1, .l_len = 1};
        FILE *made = fopen(argv[1], "wb");
        CHECK(made != NULL && fclose(made) == 0);
        CHECK((reader = open(argv[1], O_RDONLY)) >= 0 && fcntl(reader, F_OFD_SETLK, &lock) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 2; ++turn) {
        OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file));
        EQUAL(is_cached(file), 0);
        OK(MPI_File_close(&file));
    }
    if (rank == 0) close(reader);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), 1);
    OK(MPI_File_close(&file));
    finish();
    return 0;
}
