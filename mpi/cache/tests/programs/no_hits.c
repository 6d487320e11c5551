/* Mode told, one get per interval and no place twice: the library soon stops reading words. Rank 0 gets. */
#include "common.h"

enum { LONGS = 1 << 14, ROUNDS = 20000 };

int main(int argc, char **argv) {
    long *memory, value;
    start(&argc, &argv);
    MPI_Win win = make_window(&memory, LONGS, argv[1]);
    MPI_Win_lock_all(0, win);
    for (int round = 0; rank == 0 && round < ROUNDS; ++round) {
        int at = round % LONGS;
        value = -1;
        MPI_Get(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, win);
        MPI_Win_flush(1, win);
        EQUAL(value, 1000 + at);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
