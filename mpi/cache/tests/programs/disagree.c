/* Rank 1 asks for mode told, rank 0 for mode always. */
#include "common.h"

int main(int argc, char **argv) {
    long *memory, value = -1;
    start(&argc, &argv);
    MPI_Win win = make_window(&memory, 8, rank == 0 ? "always" : "told");
    tool_gets = 0;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 2; ++i) {
        MPI_Get(&value, 1, MPI_LONG, 1 - rank, 1, 1, MPI_LONG, win);
        MPI_Win_flush(1 - rank, win);
        EQUAL(value, 1000 * (1 - rank) + 1);
    }
    EQUAL(tool_gets, rank == 0 ? 1 : 2);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
