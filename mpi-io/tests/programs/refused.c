/* An open that is refused gives no handle, tells the error handler of files that are not open, and leaves the file alone. refused FILE */
#include "common.h"
#include <unistd.h>

static int heard, heard_class;

static void on_error(MPI_File *file, int *code, ...) {
    (void)file;
    ++heard;
    MPI_Error_class(*code, &heard_class);
}

int main(int argc, char **argv) {
    MPI_File first = MPI_FILE_NULL, second = MPI_FILE_NULL;
    MPI_Errhandler handler;
    MPI_Info cached;
    char bytes[6] = "";
    start(&argc, &argv);
    CHECK(argc == 2 && ranks == 2);
    MPI_Info_create(&cached);
    MPI_Info_set(cached, "vgasnet_cache", "enable");
    /* Only where no file is opened: MPICH counts this handler wrongly when such a file is closed. */
    MPI_File_create_errhandler(on_error, &handler);
    if (rank == 1) MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    if (rank == 0) {
        OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, cached, &first));
        EQUAL(is_cached(first), 1);
        OK(MPI_File_write(first, "bytes", 5, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        int code = MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, cached, &second), class;
        MPI_Error_class(code, &class);
        EQUAL(class, MPI_ERR_FILE_IN_USE);
        CHECK(second == MPI_FILE_NULL);
        EQUAL(heard, 1), EQUAL(heard_class, MPI_ERR_FILE_IN_USE);
        EQUAL(access(argv[1], F_OK), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        OK(MPI_File_close(&first));
        OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &first));
        OK(MPI_File_read(first, bytes, 5, MPI_BYTE, MPI_STATUS_IGNORE));
        EQUAL(strcmp(bytes, "bytes"), 0);
        OK(MPI_File_close(&first));
    }
    MPI_Info_free(&cached);
    finish();
    return 0;
}
