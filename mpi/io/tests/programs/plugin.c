/* Brings MPI into a program without it: `run` writes and reads a file served by the library. */
#include "common.h"

int run(const char *path) {
    MPI_File file;
    MPI_Datatype every_other;
    int64_t mine[64], theirs[64];
    start(NULL, NULL);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK(is_cached(file));
    OK(MPI_Type_vector(64, 1, ranks, MPI_INT64_T, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_File_set_view(file, rank * sizeof mine[0], MPI_INT64_T, every_other, "native", MPI_INFO_NULL));
    for (int i = 0; i < 64; ++i) mine[i] = i * ranks + rank;
    OK(MPI_File_write_all(file, mine, 64, MPI_INT64_T, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 0, theirs, sizeof theirs, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 64; ++i) EQUAL(theirs[i], i);
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    OK(MPI_Type_free(&every_other));
    finish();
    fflush(stdout);
    return 0;
}
