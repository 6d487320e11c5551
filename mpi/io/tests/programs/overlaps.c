/* Communicators with some ranks in common open one file. A communicator that caches and writes hands the file back
 * if others write, and readers have caches of their own. overlaps FILE */
#include "common.h"

enum { PART = 64 };

/* Each rank's bytes, in the file seen by other programs. */
static void expect_bytes(const char *path, int who) {
    char bytes[PART];
    FILE *plain = fopen(path, "rb");
    CHECK(plain != NULL && fseek(plain, PART * who, SEEK_SET) == 0);
    EQUAL(fread(bytes, 1, PART, plain), PART);
    for (int at = 0; at < PART; ++at) EQUAL(bytes[at], 'a' + who);
    fclose(plain);
}

/* The first half has the file, and writes it; then all want it. */
static void writers(const char *path, MPI_Comm half) {
    MPI_File some = MPI_FILE_NULL, all;
    char bytes[PART];
    memset(bytes, 'a' + rank, PART);
    if (rank < ranks / 2) {
        OK(MPI_File_open(half, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &some));
        EQUAL(is_cached(some), is_expected());
        OK(MPI_File_write_at(some, PART * rank, bytes, PART, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &all));
    EQUAL(is_cached(all), 0);
    if (some != MPI_FILE_NULL) EQUAL(is_cached(some), 0);
    OK(MPI_File_close(&all));
    if (rank == ranks - 1) {
        OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &all));
        OK(MPI_File_close(&all));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (some != MPI_FILE_NULL) OK(MPI_File_close(&some));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &all));
    EQUAL(is_cached(all), is_expected());
    if (rank >= ranks / 2) OK(MPI_File_write_at(all, PART * rank, bytes, PART, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&all));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int who = 0; who < ranks; ++who) expect_bytes(path, who);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The first half reads the file; then all write it. */
static void readers(const char *path, MPI_Comm half) {
    MPI_File some = MPI_FILE_NULL, all;
    char bytes[PART];
    if (rank < ranks / 2) {
        OK(MPI_File_open(half, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &some));
        EQUAL(is_cached(some), is_expected());
        OK(MPI_File_read_at(some, PART * (ranks - 1), bytes, PART, MPI_BYTE, MPI_STATUS_IGNORE));
        EQUAL(bytes[0], 'a' + ranks - 1);
    }
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &all));
    EQUAL(is_cached(all), is_expected());
    memset(bytes, 'a' + rank, PART);
    OK(MPI_File_write_at(all, PART * (ranks + rank), bytes, PART, MPI_BYTE, MPI_STATUS_IGNORE));
    settle(all);
    OK(MPI_File_read_at(all, PART * (2 * ranks - 1 - rank), bytes, PART, MPI_BYTE, MPI_STATUS_IGNORE));
    EQUAL(bytes[PART - 1], 'a' + ranks - 1 - rank);
    if (some != MPI_FILE_NULL) OK(MPI_File_close(&some));
    OK(MPI_File_close(&all));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Comm half;
    start(&argc, &argv);
    CHECK(argc == 2 && ranks % 2 == 0);
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks / 2, rank, &half);
    writers(argv[1], half);
    readers(argv[1], half);
    MPI_Comm_free(&half);
    finish();
    return 0;
}
