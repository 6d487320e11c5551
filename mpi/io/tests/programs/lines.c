/* The cost of files not named, and the library's lines per number of ranks. lines FILE EXPECTED */
#include "common.h"

static int copied;

static int on_copy(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *is_kept) {
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    ++copied;
    *is_kept = 0;
    return MPI_SUCCESS;
}

/* Number of duplications of the communicator when a file is opened. */
static int copies_of(const char *path, MPI_Info info) {
    MPI_File file;
    copied = 0;
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    OK(MPI_File_close(&file));
    return copied;
}

int main(int argc, char **argv) {
    MPI_Info info;
    int key, of_mpi, with_hint;
    start(&argc, &argv);
    CHECK(argc == 3);
    MPI_Comm_create_keyval(on_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &copied);
    MPI_Info_create(&info);
    of_mpi = copies_of(argv[1], MPI_INFO_NULL);
    MPI_Info_set(info, "vgasnet_cache", "enabled");
    EQUAL(copies_of(argv[1], info), of_mpi);
    MPI_Info_set(info, "vgasnet_cache", "enable");
    with_hint = copies_of(argv[1], info);
    EQUAL(with_hint - of_mpi, atoi(argv[2]));
    MPI_Info_free(&info);
    if (rank == 0) printf("MPI: %d\n", of_mpi);
    finish();
    return 0;
}
