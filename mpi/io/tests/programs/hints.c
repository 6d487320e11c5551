/* The selection of cached files. hints FILE KEY VALUE EXPECTED: KEY may be - */
#include "common.h"

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Info info = MPI_INFO_NULL;
    start(&argc, &argv);
    CHECK(argc == 5);
    if (strcmp(argv[2], "-") != 0) MPI_Info_create(&info), MPI_Info_set(info, argv[2], argv[3]);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    EQUAL(is_cached(file), atoi(argv[4]));
    /* A cached file reports which of its hints are for MPI's own I/O. */
    if (strcmp(argv[2], "romio_cb_write") == 0) {
        MPI_Info said;
        char value[MPI_MAX_INFO_VAL + 1];
        int found;
        OK(MPI_File_get_info(file, &said));
        MPI_Info_get(said, "vgasnet_ignored", MPI_MAX_INFO_VAL, value, &found);
        EQUAL(found, atoi(argv[4]));
        if (found) EQUAL(strcmp(value, "romio_cb_write"), 0);
        MPI_Info_free(&said);
    }
    OK(MPI_File_write_at(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    /* Ranks with different hints do not cache. */
    if (ranks > 1 && strstr(argv[2], "cach") != NULL) {
        OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, rank == 0 ? info : MPI_INFO_NULL, &file));
        if (getenv("VGASNET_MPI_FILES") == NULL) EQUAL(is_cached(file), 0);
        OK(MPI_File_close(&file));
    }
    /* Nor can a sequential file be cached. */
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, info, &file));
    EQUAL(is_cached(file), 0);
    OK(MPI_File_close(&file));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    finish();
    return 0;
}
