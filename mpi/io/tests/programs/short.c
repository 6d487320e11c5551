/* A file served by MPI for lack of descriptors is not cached by a later handle, and neither handle loses the other's
 * bytes. argv[1] is the beginning of the files' paths, argv[2] the maximum number to open. */
#include "common.h"

enum { MAX = 1000, BYTES = 64 };
static MPI_File files[MAX];

int main(int argc, char **argv) {
    char path[4096], bytes[BYTES], all[2 * BYTES];
    MPI_File later;
    start(&argc, &argv);
    int count = 0, last = -1, most = atoi(argv[2]);
    CHECK(most <= MAX);
    while (last < 0 && count < most) {
        snprintf(path, sizeof path, "%s%d", argv[1], count);
        OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &files[count]));
        if (!is_cached(files[count])) last = count;
        ++count;
    }
    CHECK(last > 0);
    /* There are descriptors again. */
    for (int i = 0; i < last; ++i) OK(MPI_File_close(&files[i]));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &later));
    CHECK(!is_cached(later));
    memset(bytes, 'a' + rank, BYTES);
    MPI_File by[2] = {files[last], later};
    for (int i = 0; i < 2; ++i)
        OK(MPI_File_write_at_all(by[i], (rank * 2 + i) * BYTES, bytes, BYTES, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&later));
    OK(MPI_File_close(&files[last]));
    /* Nobody has it open: it is cached again. */
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &later));
    CHECK(is_cached(later));
    for (int of = 0; of < ranks; ++of) {
        OK(MPI_File_read_at(later, of * 2 * BYTES, all, 2 * BYTES, MPI_CHAR, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2 * BYTES; ++i) EQUAL(all[i], 'a' + of);
    }
    OK(MPI_File_close(&later));
    finish();
    return 0;
}
