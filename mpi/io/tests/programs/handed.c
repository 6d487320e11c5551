/* One rank caches a file, and another one opens it, too: it is handed back to MPI, and both write it. Meanwhile the
 * first rank has no descriptor left. handed FILE */
#include "common.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DESCRIPTORS = 512 };
static int taken[DESCRIPTORS], count_taken;

static void take_descriptors(void) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_cur > DESCRIPTORS) limit.rlim_cur = DESCRIPTORS;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (count_taken < DESCRIPTORS && (taken[count_taken] = open("/dev/null", O_RDONLY)) >= 0) ++count_taken;
    CHECK(count_taken > 0 && count_taken < DESCRIPTORS);
}

static void return_descriptors(void) {
    while (count_taken > 0) close(taken[--count_taken]);
}

int main(int argc, char **argv) {
    MPI_File file = MPI_FILE_NULL;
    MPI_Info cached;
    MPI_Offset size, place;
    char bytes[64];
    int count;
    MPI_Request request;
    MPI_Status status;
    start(&argc, &argv);
    CHECK(argc == 2 && ranks == 2);
    MPI_Info_create(&cached);
    MPI_Info_set(cached, "vgasnet_cache", "enable");
    if (rank == 0) {
        OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, cached, &file));
        EQUAL(is_cached(file), is_expected());
        OK(MPI_File_set_size(file, 0));
        OK(MPI_File_write(file, "01234567", 8, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_seek_shared(file, 5, MPI_SEEK_SET));
        OK(MPI_File_write_at_all_begin(file, 8, "89", 2, MPI_BYTE));
        take_descriptors();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR, cached, &file));
        EQUAL(is_cached(file), 0);
        OK(MPI_File_get_size(file, &size));
        EQUAL(size, 10);
        OK(MPI_File_write_at(file, 100, "far", 3, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(file));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        return_descriptors();
        /* The handle has kept its state: a split write, pointers, a mode. */
        EQUAL(is_cached(file), 0);
        OK(MPI_File_write_at_all_end(file, "89", MPI_STATUS_IGNORE));
        OK(MPI_File_get_position(file, &place));
        EQUAL(place, 8);
        OK(MPI_File_get_position_shared(file, &place));
        EQUAL(place, 5);
        OK(MPI_File_sync(file));
        OK(MPI_File_get_size(file, &size));
        EQUAL(size, 103);
        OK(MPI_File_set_atomicity(file, 1));
        OK(MPI_File_iwrite_at(file, 20, "now", 3, MPI_BYTE, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, bytes, 64, MPI_BYTE, &status));
        MPI_Get_count(&status, MPI_BYTE, &count);
        EQUAL(count, 64);
        EQUAL(memcmp(bytes, "0123456789\0\0\0\0\0\0\0\0\0\0now", 23), 0);
        OK(MPI_File_read_at(file, 100, bytes, 64, MPI_BYTE, &status));
        MPI_Get_count(&status, MPI_BYTE, &count);
        EQUAL(count, 3);
        EQUAL(memcmp(bytes, "far", 3), 0);
        OK(MPI_File_set_size(file, 102));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, cached, &file));
    EQUAL(is_cached(file), is_expected());
    OK(MPI_File_get_size(file, &size));
    EQUAL(size, 102);
    OK(MPI_File_close(&file));
    MPI_Info_free(&cached);
    finish();
    return 0;
}
