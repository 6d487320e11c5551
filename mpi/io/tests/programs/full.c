/* A disk fails: writes, sync or close report MPI's error, and the bytes are written once there is room again. full
 * FILE CLASS */
#include "common.h"

int main(int argc, char **argv) {
    MPI_File file, own;
    int code = MPI_SUCCESS, class, failed = 0, any, wanted;
    char *bytes;
    enum { LEN = 1 << 20 };
    start(&argc, &argv);
    CHECK(argc == 3);
    wanted = strcmp(argv[2], "space") == 0 ? MPI_ERR_NO_SPACE : MPI_ERR_IO;
    bytes = calloc(1, LEN);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (int i = 0; i < 8; ++i) {
        code = MPI_File_write_at(file, (MPI_Offset)LEN * (8 * rank + i), bytes, LEN, MPI_BYTE, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) MPI_Error_class(code, &class), EQUAL(class, wanted), failed = 1;
    }
    code = MPI_File_sync(file);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class), EQUAL(class, wanted), failed = 1;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    EQUAL(any, 1);
    /* The disk fails a few times only. */
    for (int i = 0; i < 20 && code != MPI_SUCCESS; ++i) code = MPI_File_sync(file);
    OK(code);
    /* One rank may cut the file of all. */
    if (rank == 0) {
        OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &own));
        OK(MPI_File_set_size(own, 1));
        OK(MPI_File_close(&own));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&file));
    free(bytes);
    finish();
    return 0;
}
