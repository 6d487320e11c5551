/* State and writes of a second handle of a file. seconds FILE PART */
#include "common.h"
#include <sys/stat.h>

static const char *path;

static MPI_File second_of(MPI_Comm comm, int mode) {
    MPI_File file;
    OK(MPI_File_open(comm, path, mode, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    return file;
}

/* MPI serves a second handle when the first is closed, with the same pointers and in the same mode. */
static void left(void) {
    MPI_File first = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR), own, pair = MPI_FILE_NULL;
    MPI_Comm some;
    MPI_Offset place;
    char bytes[100];
    int flag;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &some);
    /* Handles are opened in another order on the other ranks. */
    if (rank == 0) own = second_of(MPI_COMM_SELF, MPI_MODE_RDWR);
    if (rank < 2) pair = second_of(some, MPI_MODE_RDWR);
    if (rank != 0) own = second_of(MPI_COMM_SELF, MPI_MODE_RDWR);
    if (rank == 0) {
        memset(bytes, '1', 100);
        OK(MPI_File_write_shared(own, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    OK(MPI_File_set_atomicity(own, 1));
    /* In MPICH, handles of one file name share a pointer. */
    if (pair != MPI_FILE_NULL) OK(MPI_File_seek_shared(pair, 100, MPI_SEEK_SET));
    OK(MPI_File_close(&first));
    EQUAL(is_cached(own), 0);
    OK(MPI_File_get_atomicity(own, &flag));
    EQUAL(flag, 1);
    if (pair != MPI_FILE_NULL) {
        OK(MPI_File_get_position_shared(pair, &place));
        EQUAL(place, 100);
        OK(MPI_File_close(&pair));
        MPI_Comm_free(&some);
    }
    if (rank == 0) {
        OK(MPI_File_get_position_shared(own, &place));
        EQUAL(place, 100);
        memset(bytes, '2', 100);
        OK(MPI_File_write_shared(own, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(own));
        OK(MPI_File_read_at(own, 99, bytes, 2, MPI_BYTE, MPI_STATUS_IGNORE));
        EQUAL(bytes[0], '1'), EQUAL(bytes[1], '2');
    }
    OK(MPI_File_close(&own));
}

/* An open file is renamed, and another file gets its name. MPI's accesses through the handle still reach the file
 * itself. */
static void renamed(void) {
    char other[4096], bytes[300];
    MPI_File first = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR), own = MPI_FILE_NULL, again;
    snprintf(other, sizeof other, "%s.renamed", path);
    if (rank == 0) own = second_of(MPI_COMM_SELF, MPI_MODE_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        FILE *plain;
        CHECK(rename(path, other) == 0);
        CHECK((plain = fopen(path, "w")) != NULL && fclose(plain) == 0);
        OK(MPI_File_write_at(own, 0, "first", 5, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(own));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_RDWR, MPI_INFO_NULL, &again));
    EQUAL(is_cached(again), is_expected());
    OK(MPI_File_close(&again));
    OK(MPI_File_close(&first));
    OK(MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_RDWR, MPI_INFO_NULL, &again));
    EQUAL(is_cached(again), 0);
    if (rank == 1) OK(MPI_File_write_at(again, 100, "again", 5, MPI_BYTE, MPI_STATUS_IGNORE));
    if (rank == 0) OK(MPI_File_write_at(own, 200, "owned", 5, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&again));
    if (rank == 0) {
        OK(MPI_File_close(&own));
        OK(MPI_File_open(MPI_COMM_SELF, other, MPI_MODE_RDONLY, MPI_INFO_NULL, &own));
        OK(MPI_File_read_at(own, 0, bytes, 205, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(bytes, "first", 5) == 0 && memcmp(bytes + 100, "again", 5) == 0 && memcmp(bytes + 200, "owned", 5) == 0);
        OK(MPI_File_close(&own));
        CHECK(remove(other) == 0);
    }
}

/* One handle writes a file, and another one with its own pages reads it: sync, barrier and sync show the writes. */
static void synced(void) {
    MPI_File reads, writes = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR), own;
    MPI_Offset size;
    char bytes[8];
    FILE *plain;
    if (rank == 0) OK(MPI_File_write_at(writes, 0, "oldoldol", 8, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&writes));
    reads = opened(path, MPI_MODE_RDONLY);
    OK(MPI_File_read_at(reads, 0, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    EQUAL(memcmp(bytes, "oldoldol", 8), 0);
    writes = opened(path, MPI_MODE_RDWR);
    OK(MPI_File_write_at(writes, 8 * rank, "newnewne", 8, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(writes));
    OK(MPI_File_sync(reads));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(reads));
    OK(MPI_File_get_size(reads, &size));
    EQUAL(size, 8 * ranks);
    for (int who = 0; who < ranks; ++who) {
        OK(MPI_File_read_at(reads, 8 * who, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE));
        EQUAL(memcmp(bytes, "newnewne", 8), 0);
    }
    OK(MPI_File_close(&reads));
    /* A handle of one rank flushes that rank's writes; the file has its size when all ranks have synced. */
    if (rank == 0) {
        own = second_of(MPI_COMM_SELF, MPI_MODE_RDWR);
        OK(MPI_File_write_at(own, 8 * ranks, "0123456789", 10, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(own));
        plain = fopen(path, "rb");
        CHECK(plain != NULL && fseek(plain, 8 * ranks, SEEK_SET) == 0);
        EQUAL(fread(bytes, 1, 8, plain), 8);
        EQUAL(memcmp(bytes, "01234567", 8), 0);
        fclose(plain);
        OK(MPI_File_get_size(own, &size));
        EQUAL(size, 8 * ranks + 10);
        OK(MPI_File_close(&own));
    }
    OK(MPI_File_sync(writes));
    if (rank == 0) {
        plain = fopen(path, "rb");
        CHECK(plain != NULL && fseek(plain, 0, SEEK_END) == 0);
        EQUAL(ftell(plain), 8 * ranks + 10);
        fclose(plain);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&writes));
}

/* A second handle of all ranks, and one of some, each with its own shared pointer. */
static void pointers(void) {
    MPI_File first = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR), again, pair;
    MPI_Comm some;
    MPI_Offset place;
    int number = 7 + rank, others[2];
    again = second_of(MPI_COMM_WORLD, MPI_MODE_RDWR);
    OK(MPI_File_write_shared(again, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(again, &place));
    EQUAL(place, 4 * ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_write_ordered(again, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_read_at(first, 4 * (2 * ranks - 1), others, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(others[0], 7 + ranks - 1);
    OK(MPI_File_seek_shared(again, 4 * ranks, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(again, others, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(others[0], number);
    /* In MPICH without the library, handles of one file name share a pointer. */
    OK(MPI_File_get_position_shared(first, &place));
    if (is_expected()) EQUAL(place, 0);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &some);
    pair = second_of(some, MPI_MODE_RDWR);
    if (rank > 0) {
        OK(MPI_File_seek_shared(pair, 100, MPI_SEEK_SET));
        OK(MPI_File_write_shared(pair, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
        MPI_Barrier(some);
        OK(MPI_File_get_position_shared(pair, &place));
        EQUAL(place, 100 + 4 * (ranks - 1));
    }
    OK(MPI_File_close(&again));
    OK(MPI_File_close(&pair));
    OK(MPI_File_close(&first));
    MPI_Comm_free(&some);
}

static MPI_Offset bytes_there(void) {
    struct stat about;
    CHECK(stat(path, &about) == 0);
    return about.st_size;
}

/* A second handle of some ranks extends the file: each time for all of them, and in the file system after its sync. */
static void sized(void) {
    MPI_File first = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR), pair;
    MPI_Comm some;
    MPI_Offset size;
    char bytes[100];
    memset(bytes, 'x', 100);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &some);
    pair = second_of(some, MPI_MODE_RDWR);
    for (int round = 1; rank < 2 && round <= 100; ++round) {
        OK(MPI_File_set_size(pair, round * 1000));
        /* The other rank may still be in that call. */
        OK(MPI_File_write_at(pair, round * 1000 + 100 * rank, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_Barrier(some);
    }
    for (int million = 1; rank < 2 && million <= 2; ++million) {
        if (million == 1) OK(MPI_File_set_size(pair, 1000000));
        else OK(MPI_File_preallocate(pair, 2000000));
        OK(MPI_File_sync(pair));
        MPI_Barrier(some);
        CHECK(bytes_there() >= million * 1000000);
        OK(MPI_File_get_size(pair, &size));
        EQUAL(size, million * 1000000);
        MPI_Barrier(some);
    }
    OK(MPI_File_close(&pair));
    OK(MPI_File_close(&first));
    MPI_Barrier(MPI_COMM_WORLD);
    EQUAL(bytes_there(), 2000000);
    MPI_Comm_free(&some);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(argc == 3);
    path = argv[1];
    if (strcmp(argv[2], "left") == 0) left();
    if (strcmp(argv[2], "synced") == 0) synced();
    if (strcmp(argv[2], "renamed") == 0) renamed();
    if (strcmp(argv[2], "sized") == 0) sized();
    if (strcmp(argv[2], "pointers") == 0) pointers();
    finish();
    return 0;
}
