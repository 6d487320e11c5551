/* Two communicators make one file at the same time: rank 0 caches it, and the other ranks do not. The first of these is
 * held (tool_held.c) after MPI has made the file, and another one writes the file as soon as its open has returned.
 * absent FILE, which does not exist */
#include "common.h"
#include "waiting.inc"

enum { PLACE = 1 << 20, BYTES = 8 };

static void check(const char *path) {
    char found[BYTES + 2] = "";
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fread(found, 1, BYTES + 1, file) == BYTES + 1);
    EQUAL(memcmp(found, "cached 0", BYTES), 0);
    for (int who = 1; who < ranks; ++who) {
        CHECK(fseek(file, (long)who * PLACE, SEEK_SET) == 0);
        EQUAL(fread(found, 1, BYTES, file), BYTES);
        for (int byte = 0; byte < BYTES; ++byte) EQUAL(found[byte], 'a' + who);
    }
    CHECK(fgetc(file) == EOF);
    fclose(file);
}

int main(int argc, char **argv) {
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    char bytes[BYTES];
    MPI_File file;
    MPI_Info info;
    MPI_Comm others;
    start(&argc, &argv);
    CHECK(argc == 2 && ranks > 1);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &others);
    MPI_Info_create(&info);
    MPI_Info_set(info, "vgasnet_cache", rank == 0 ? "enable" : "disable");
    if (rank == 0) {
        CHECK(wait_for_mark(argv[1], "", 60));
        OK(MPI_File_open(others, argv[1], mode, info, &file));
        EQUAL(is_cached(file), is_expected());
        OK(MPI_File_write_at(file, 0, "cached 0", BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        make_mark(argv[1], ".owned");
    } else {
        OK(MPI_File_open(others, argv[1], mode, info, &file));
        CHECK(wait_for_mark(argv[1], ".owned", 60));
        memset(bytes, 'a' + rank, BYTES);
        OK(MPI_File_write_at(file, (MPI_Offset)rank * PLACE, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        if (rank == ranks - 1) make_mark(argv[1], ".written");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) check(argv[1]);
    MPI_Info_free(&info), MPI_Comm_free(&others);
    finish();
    return 0;
}
