/* Locks fail (tool_unlocked.c). unlocked FILE PART
 * open: all of them. The variable EXPECT_CACHED says whether the file is cached nevertheless.
 * atomic: after a file was handed back, which needs them in mode atomic. */
#define _GNU_SOURCE
#include "common.h"
#include <dlfcn.h>
#include <errno.h>

static void in_mode_atomic(const char *path) {
    void (*fail_locks)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "fail_locks");
    MPI_File file, other = MPI_FILE_NULL;
    CHECK(fail_locks != NULL);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), 1);
    if (rank == 0) {
        /* Served by MPI, so the first handle is handed back. */
        OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &other));
        OK(MPI_File_close(&other));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EQUAL(is_cached(file), 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_write_at(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    fail_locks(ENOLCK);
    CHECK(MPI_File_write_at(file, rank, "y", 1, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    fail_locks(EOPNOTSUPP);
    OK(MPI_File_write_at(file, rank, "z", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    fail_locks(0);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    MPI_File file;
    start(&argc, &argv);
    CHECK(argc == 3);
    if (strcmp(argv[2], "atomic") == 0) {
        in_mode_atomic(argv[1]);
    } else {
        file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
        OK(MPI_File_write_at_all(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_close(&file));
    }
    finish();
    return 0;
}
