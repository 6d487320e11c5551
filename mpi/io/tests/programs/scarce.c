/* If communicators are scarce, a file is opened as without the library, and cached if two are left. argv[1] is the
 * file. */
#include "common.h"

enum { MAX = 5000 };
static MPI_Comm copies[MAX];

int main(int argc, char **argv) {
    int count = 0;
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (count < MAX && MPI_Comm_dup(MPI_COMM_WORLD, &copies[count]) == MPI_SUCCESS) ++count;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    int is_scarce = count < MAX;
    for (int left = 1; left <= 2 && is_scarce; ++left) {
        MPI_File file;
        int value = 100 * left + rank, other = -1;
        OK(MPI_Comm_free(&copies[--count]));
        OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
        if (getenv("EXPECT_CACHED") != NULL) EQUAL(is_cached(file), left == 2);
        OK(MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof value, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        settle(file);
        OK(MPI_File_read_at_all(file, (rank + 1) % ranks * (MPI_Offset)sizeof value, &other, 1, MPI_INT, MPI_STATUS_IGNORE));
        EQUAL(other, 100 * left + (rank + 1) % ranks);
        OK(MPI_File_close(&file));
    }
    while (count > 0) OK(MPI_Comm_free(&copies[--count]));
    printf("%s\n", is_scarce ? "scarce" : "plenty");
    finish();
    return 0;
}
