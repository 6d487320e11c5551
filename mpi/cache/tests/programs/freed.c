/* A window is freed with gets in flight: one line, and MPI behaves as usual. Mode always. */
#include "common.h"

int main(int argc, char **argv) {
    long *memory, value = -1, joined = -1;
    MPI_Win win;
    start(&argc, &argv);
    win = make_window(&memory, 8, argv[1]);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    MPI_Get(&value, 1, MPI_LONG, 1 - rank, 1, 1, MPI_LONG, win);
    MPI_Get(&joined, 1, MPI_LONG, 1 - rank, 1, 1, MPI_LONG, win);
    int code = MPI_Win_free(&win);
    if (code != MPI_SUCCESS) {
        /* The window still exists. */
        MPI_Win_unlock_all(win);
        EQUAL(joined, 1000 * (1 - rank) + 1);
        EQUAL(value, joined);
        MPI_Win_free(&win);
    }
    CHECK(win == MPI_WIN_NULL);
    /* Other windows are not affected. */
    win = make_window(&memory, 8, argv[1]);
    MPI_Win_lock_all(0, win);
    MPI_Get(&value, 1, MPI_LONG, 1 - rank, 1, 1, MPI_LONG, win);
    MPI_Win_unlock_all(win);
    EQUAL(value, 1000 * (1 - rank) + 1);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
