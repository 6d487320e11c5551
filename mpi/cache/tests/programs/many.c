/* Many windows of the same processes at a time. The arguments are their mode and number. */
#include "common.h"

enum { WINDOWS_MAX = 300 };

int main(int argc, char **argv) {
    static long *memory[WINDOWS_MAX];
    static MPI_Win win[WINDOWS_MAX];
    start(&argc, &argv);
    int windows = atoi(argv[2]), is_told = strcmp(argv[1], "told") == 0;
    CHECK(windows <= WINDOWS_MAX);
    for (int i = 0; i < windows; ++i) win[i] = make_window(&memory[i], 2, argv[1]);
    /* All of them share one hidden window. */
    EQUAL(tool_allocates, windows + is_told);
    EQUAL(tool_dups, is_told);
    for (int i = 0; i < windows; i += windows - 1) {
        long value = -1;
        tool_gets = 0;
        MPI_Win_lock_all(0, win[i]);
        for (int twice = 0; twice < 2; ++twice) {
            MPI_Get(&value, 1, MPI_LONG, 1 - rank, 1, 1, MPI_LONG, win[i]);
            MPI_Win_flush(1 - rank, win[i]);
            EQUAL(value, 1000 * (1 - rank) + 1);
        }
        /* The other rank's unlock tells that it may have stored. */
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_unlock_all(win[i]);
        int is_kept = strcmp(argv[1], "off") != 0 && strcmp(argv[1], "checked") != 0;
        EQUAL(tool_gets, is_kept ? 1 : 2);
    }
    for (int i = 0; i < windows; ++i) MPI_Win_free(&win[i]);
    /* There is room for a window again. */
    win[0] = make_window(&memory[0], 2, argv[1]);
    MPI_Win_free(&win[0]);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
