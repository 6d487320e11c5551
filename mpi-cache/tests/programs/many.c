/* More windows at a time than are cached. */
#include "common.h"

enum { WINDOWS = 300 };

int main(int argc, char **argv) {
    static long *memory[WINDOWS];
    static MPI_Win win[WINDOWS];
    start(&argc, &argv);
    for (int i = 0; i < WINDOWS; ++i) win[i] = make_window(&memory[i], 2, argv[1]);
    for (int i = 0; i < WINDOWS; i += WINDOWS - 1) {
        long value = -1;
        tool_gets = 0;
        MPI_Win_lock_all(0, win[i]);
        for (int twice = 0; twice < 2; ++twice) {
            MPI_Get(&value, 1, MPI_LONG, 1 - rank, 1, 1, MPI_LONG, win[i]);
            MPI_Win_flush(1 - rank, win[i]);
            EQUAL(value, 1000 * (1 - rank) + 1);
        }
        /* The other one's unlock tells that it may have stored. */
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_unlock_all(win[i]);
        EQUAL(tool_gets, i == 0 ? 1 : 2);
    }
    for (int i = 0; i < WINDOWS; ++i) MPI_Win_free(&win[i]);
    /* There is room again. */
    win[0] = make_window(&memory[0], 2, argv[1]);
    MPI_Win_free(&win[0]);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
