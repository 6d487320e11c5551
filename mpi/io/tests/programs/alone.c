/* A sync by some ranks fails: no later one succeeds before the bytes are written again and all ranks have synced.
 * alone FILE. The C library's fsync is replaced, and fails on request. */
#define _DEFAULT_SOURCE
#include "common.h"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failures;

int fsync(int fd) {
    if (failures > 0) {
        --failures;
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static void fails(MPI_File file) {
    int class;
    MPI_Error_class(MPI_File_sync(file), &class);
    EQUAL(class, MPI_ERR_IO);
}

static MPI_File file, own;
static char bytes[5000];

static void write_part(MPI_File by) {
    OK(MPI_File_write_at(by, (MPI_Offset)rank << 20, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE));
}

/* All ranks know of the doubt, and end it together. */
static void end_doubt(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    fails(own);
    MPI_Barrier(MPI_COMM_WORLD);
    fails(file);
    write_part(rank % 2 ? file : own);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
    OK(MPI_File_sync(own));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(argc == 2);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &own));
    EQUAL(is_cached(own), is_expected());
    for (int who = 0; who < ranks; ++who) {
        /* The sync of one rank fails once, and no other call sees an error. */
        write_part(own);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == who) {
            failures = 1;
            fails(own);
            EQUAL(failures, 0);
            fails(own);
        }
        end_doubt();
        /* The sync of all ranks fails. */
        write_part(file);
        failures = rank == who;
        fails(file);
        EQUAL(failures, 0);
        end_doubt();
    }
    /* The doubt of one rank is an error of each close. */
    write_part(own);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) failures = 1, fails(own);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_close(&own) != MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_close(&file) != MPI_SUCCESS);
    finish();
    return 0;
}
