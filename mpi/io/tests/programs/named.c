/* The first sync of a file that MPI may have made syncs its directory. It runs with
 * tool_synced.c. named FILE */
#define _GNU_SOURCE
#include "common.h"
#include <dlfcn.h>

static int *counted;

/* Each rank syncs by a handle of its own before all sync together. */
static void expect_synced_alone(const char *path, MPI_File all) {
    MPI_File own;
    int before = *counted;
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &own));
    OK(MPI_File_write_at(own, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(own));
    EQUAL(*counted, before + 1);
    OK(MPI_File_sync(own));
    OK(MPI_File_close(&own));
    OK(MPI_File_sync(all));
    EQUAL(*counted, before + 1);
}

static void expect_synced(MPI_File file, int directories) {
    OK(MPI_File_write_at_all(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    *counted = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) EQUAL(*counted, directories);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_File file;
    start(&argc, &argv);
    CHECK(argc == 2 && (counted = dlsym(RTLD_DEFAULT, "synced_directories")) != NULL);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    expect_synced(file, 1);
    expect_synced(file, 0);
    OK(MPI_File_close(&file));
    file = opened(argv[1], MPI_MODE_RDWR);
    expect_synced(file, 0);
    OK(MPI_File_close(&file));
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    expect_synced_alone(argv[1], file);
    OK(MPI_File_close(&file));
    finish();
    return 0;
}
