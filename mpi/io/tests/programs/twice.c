/* A file open more than once at a time: each handle sees the other's writes. Of two separate communicators neither
 * caches and writes it. twice FILE */
#include "common.h"

enum { PART = 1000 };

static char bytes[PART], its[PART];

static void fill(int seed) {
    for (int at = 0; at < PART; ++at) bytes[at] = (char)mixed(seed, rank, at);
}

/* All ranks write alternately by a handle of all and by their own. */
static void second_handles(const char *path) {
    MPI_File all = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR), own, again;
    MPI_Offset size, place;
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &own));
    EQUAL(is_cached(own), is_expected());
    for (int round = 0; round < 4; ++round) {
        MPI_File one = round % 2 ? all : own, other = round % 2 ? own : all;
        fill(round);
        OK(MPI_File_write_at(one, (MPI_Offset)PART * (round * ranks + rank), bytes, PART, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(other, (MPI_Offset)PART * (round * ranks + rank), its, PART, MPI_BYTE, MPI_STATUS_IGNORE));
        EQUAL(memcmp(bytes, its, PART), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_size(own, &size));
    EQUAL(size, 4 * PART * ranks);
    /* Each handle has its own pointers; in MPICH, handles of one file name share one. */
    OK(MPI_File_seek(all, 10, MPI_SEEK_SET));
    OK(MPI_File_write_shared(own, bytes, rank + 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_get_position_shared(own, &place));
    if (is_expected()) EQUAL(place, rank + 1);
    OK(MPI_File_get_position_shared(all, &place));
    if (is_expected()) EQUAL(place, 0);
    OK(MPI_File_get_position(own, &place));
    EQUAL(place, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &again));
    EQUAL(is_cached(again), is_expected());
    OK(MPI_File_set_size(again, 8 * PART * ranks));
    OK(MPI_File_get_size(all, &size));
    EQUAL(size, 8 * PART * ranks);
    OK(MPI_File_close(&again));
    /* The second stays when the first is closed. */
    fill(10);
    OK(MPI_File_seek(own, (MPI_Offset)PART * rank, MPI_SEEK_SET));
    OK(MPI_File_write_at(all, (MPI_Offset)PART * rank, bytes, PART, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&all));
    EQUAL(is_cached(own), 0);
    OK(MPI_File_read(own, its, PART, MPI_BYTE, MPI_STATUS_IGNORE));
    EQUAL(memcmp(bytes, its, PART), 0);
    OK(MPI_File_close(&own));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The first two ranks have the file, and then the others. */
static void other_communicators(const char *path) {
    MPI_File file;
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 1, rank, &part);
    if (rank < 2) OK(MPI_File_open(part, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 1) {
        OK(MPI_File_open(part, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        OK(MPI_File_close(&file));
        /* The first two ranks have it handed back. */
        OK(MPI_File_open(part, path, MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
        EQUAL(is_cached(file), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) EQUAL(is_cached(file), 0);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 1) {
        OK(MPI_File_open(part, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
        EQUAL(is_cached(file), is_expected());
        OK(MPI_File_close(&file));
    }
    MPI_Comm_free(&part);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (argc != 2) FAIL("usage: twice FILE");
    second_handles(argv[1]);
    other_communicators(argv[1]);
    finish();
    return 0;
}
